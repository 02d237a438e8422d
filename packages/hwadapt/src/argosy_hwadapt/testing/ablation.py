"""Counting interfaces by ablation: take one method away at a time and see whether the reference run still passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from argosy_hwadapt.contract import DeviceRuntime
from argosy_hwadapt.optional import OPTIONAL_GROUPS
from argosy_hwadapt.testing.reference_run import check_reference_run

#: The contract's required methods.
REQUIRED = ("devices", "open", "alloc", "free", "copy", "synchronize", "build", "load", "launch")
#: The entry point by which a plug-in is found counts as one interface.
ENTRY = 1


class Ablation(NamedTuple):
    """What a plug-in's author has to write, and what the reference run really needs of it."""

    required: int  #: the contract's demand: nine methods and the entry
    needed: tuple[str, ...]  #: methods without which the run fails
    unused: tuple[str, ...]  #: required methods that this run does without
    offered: tuple[str, ...]  #: optional methods the plug-in has, all of which the run does without

    @property
    def strict_count(self) -> int:
        """Interfaces of the counting rule: needed methods and the entry."""
        return len(self.needed) + ENTRY


class _ReducedRuntime:
    """A runtime that lacks some methods."""

    def __init__(self, runtime: DeviceRuntime, missing: frozenset[str]) -> None:
        self._runtime, self._missing = runtime, missing

    def __getattr__(self, name: str) -> Any:
        if name in self._missing:
            raise AttributeError(f"method {name!r} was taken away")
        return getattr(self._runtime, name)


def ablate(name: str, make_runtime: Callable[[], DeviceRuntime]) -> Ablation:
    """Run the reference run once with all methods, once without the optional ones, and once without each required one.

    Raises what the reference run raises when it does not even pass with all of them, or needs an optional method.
    """
    check_reference_run(name, make_runtime())
    optional = [method for group in OPTIONAL_GROUPS.values() for method in group]
    offered = tuple(method for method in optional if hasattr(make_runtime(), method))
    check_reference_run(name, _reduce_runtime(make_runtime(), frozenset(optional)))
    needed = tuple(
        method for method in REQUIRED if not _passes(name, _reduce_runtime(make_runtime(), frozenset({method})))
    )
    unused = tuple(method for method in REQUIRED if method not in needed)
    return Ablation(len(REQUIRED) + ENTRY, needed, unused, offered)


def _reduce_runtime(runtime: DeviceRuntime, missing: frozenset[str]) -> DeviceRuntime:
    reduced: Any = _ReducedRuntime(runtime, missing)
    return reduced  # type: ignore[no-any-return]


def _passes(name: str, runtime: DeviceRuntime) -> bool:
    try:
        check_reference_run(name, runtime)
    except Exception:  # noqa: BLE001 - that the run fails, in whatever way, is the measurement
        return False
    return True
