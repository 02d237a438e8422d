"""Python's operators on tensors: methods that find their operator when first used and then step aside.

Python looks operators up on the class, never on the instance, so each needs a method there from the start.
Its first call resolves the operator by name and puts it on the class in its own place; later calls go
straight to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift divmod"
_COMPARISONS = "eq ne lt le gt ge"
_UNARY = "neg pos abs invert round floor ceil trunc"
_ITEMS = "getitem setitem contains"

OPERATOR_NAMES = frozenset(
    [f"__{name}__" for name in f"{_BINARY} {_COMPARISONS} {_UNARY} {_ITEMS}".split()]
    + [f"__r{name}__" for name in _BINARY.split()]
    + [f"__i{name}__" for name in _BINARY.split() if name != "divmod"]
)
# Without an operator of their own, these leave Python to try something else.
_OPTIONAL = frozenset(
    [f"__r{name}__" for name in _BINARY.split()] + [f"__i{name}__" for name in _BINARY.split()] + ["__divmod__"]
)


def trampoline(name: str, find: Callable[[str], object | None]) -> Callable[..., Any]:
    """The first version of operator method name; find resolves it and puts the real one on the class."""

    def operator(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = find(name)
        if found is not None:
            return getattr(self, name)(*args, **kwargs)
        if name in _OPTIONAL:
            return NotImplemented
        if name in ("__eq__", "__ne__") and args[0] is None:
            return name == "__ne__"
        raise TypeError(f"tensors have no operator {name!r} here: operators come with argosy-phi-ops")

    operator.__name__, operator.__qualname__ = name, f"Tensor.{name}"
    return operator


def install_trampolines(cls: type, find: Callable[[str], object | None]) -> None:
    """Give cls a trampoline for every operator."""
    for name in OPERATOR_NAMES:
        setattr(cls, name, trampoline(name, find))
