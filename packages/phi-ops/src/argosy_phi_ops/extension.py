"""What packages above hook in, named as ``"module:attribute"`` and loaded on first use.

A package registers here when it is imported, which costs nothing and loads nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

__all__ = [
    "METHODS", "load", "native_source", "recorder_source", "register_methods", "register_native", "register_recorder",
]  # fmt: skip

METHODS: dict[str, str] = {}
"""Methods of ``Tensor`` that other packages provide, by name."""

_evaluator: list[Any] = []
_recorder: list[str] = []
_native: list[str] = []


def register_methods(table: Mapping[str, str]) -> None:
    """Give ``Tensor`` the methods of ``table``: name to ``"module:attribute"``."""
    METHODS.update(table)


def register_evaluator(source: str) -> None:
    """Name what applies operators: see :class:`argosy_phi_ops.eager.entries.Evaluator`."""
    _evaluator[:] = [source]


def evaluator() -> Any:
    """What :func:`register_evaluator` named, loaded now if it was not."""
    found = _evaluator[0]  # read once: another thread may put it there meanwhile
    if type(found) is str:
        found = load(found)
        _evaluator[:] = [found]
    return found


def register_recorder(source: str) -> None:
    """Name the recorder of gradients that dispatch loads when the first tensor wants one."""
    _recorder[:] = [source]


def recorder_source() -> str | None:
    """What :func:`register_recorder` was given last."""
    return _recorder[0] if _recorder else None


def register_native(source: str) -> None:
    """Name what makes the native build of eager execution: a function of a layout, see `eager.native`."""
    _native[:] = [source]


def native_source() -> str | None:
    """What :func:`register_native` was given last."""
    return _native[0] if _native else None


def load(source: str) -> Any:
    """The object that ``"module:attribute"`` names."""
    module, _, attribute = source.partition(":")
    return getattr(import_module(module), attribute)
