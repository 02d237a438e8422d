"""``paddle.tensor``: the functions on tensors once more, also by the families that Paddle keeps them in.

``tensor.math.add``, ``tensor.add`` and ``argosy.add`` are one function. Called, the module makes a tensor, as
:func:`argosy.as_tensor`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from argosy.framework.creation import as_tensor
from argosy.framework.typed_creation import create_tensor as create_tensor

_FAMILIES = (
    "array", "attribute", "creation", "linalg", "logic", "manipulation", "math", "ops", "random", "search",
    "stat",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """The function of that name; a family is this namespace again."""
    if name in _FAMILIES:
        return sys.modules[__name__]
    if name.startswith("__") and name != "__all__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("argosy"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_FAMILIES, *dir(import_module("argosy"))})


class _Callable(ModuleType):
    """The module as a function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return as_tensor(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
