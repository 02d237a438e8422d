"""What solvers are given: tensors of numbers that have derivatives, and functions that keep a tensor's shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy_tensorcore.tensor import Tensor

__all__ = ["check_floating", "check_like", "held_to_shape"]

Function = Callable[..., Any]


def check_floating(name: str, **given: Any) -> None:
    """Raise ``TypeError`` for an argument that is no floating or complex tensor."""
    for argument, x in given.items():
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}(): {argument} should be a floating Tensor, got {type(x).__name__} {x!r:.60}")
        if x.dtype.kind not in "fc":
            raise TypeError(f"{name}(): {argument} should be a floating Tensor, got {x.dtype.name}; cast it first")


def check_like(name: str, made: Any, like: Tensor) -> None:
    """Raise where what a function gave has not the shape of ``like``, as far as sizes are known."""
    if not isinstance(made, Tensor):
        raise TypeError(f"{name}(): the function should give a Tensor, got {type(made).__name__} {made!r:.60}")
    sizes = zip(made.shape, like.shape, strict=False)
    known = [(n, m) for n, m in sizes if isinstance(n, int) and isinstance(m, int) and n >= 0 and m >= 0]
    if len(made.shape) != len(like.shape) or any(n != m for n, m in known):
        raise ValueError(
            f"{name}(): the function should give the shape of what it takes, {list(like.shape)}, got {list(made.shape)}"
        )


class held_to_shape:
    """``func``, whose result must have the shape of its argument number ``position``; its parameters, where it is a
    layer."""

    def __init__(self, name: str, func: Function, position: int = 0) -> None:
        if not callable(func):
            raise TypeError(f"{name}(): the function should be callable, got {type(func).__name__}")
        self.name, self.func, self.position = name, func, position

    def __call__(self, *args: Any) -> Any:
        """The function's result. Raises ``TypeError`` or ``ValueError`` where it does not fit."""
        made = self.func(*args)
        check_like(self.name, made, args[self.position])
        return made

    def parameters(self) -> list[Any]:
        """Those of a layer, none of other functions."""
        return list(self.func.parameters()) if hasattr(self.func, "parameters") else []
