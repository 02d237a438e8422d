"""``LazyGuard``: parameters that are filled when asked to, not when they are made."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from argosy_phi_ops.context import context
from argosy_tensorcore.tensor import Tensor

__all__ = ["LazyGuard", "postpone", "waiting"]

_KEY = "nn.lazy"


class LazyGuard:
    """Layers made within the block have parameters that hold nothing yet; ``parameter.initialize()`` fills one.

    Memory is reserved when a parameter is made, but not touched before it is filled.
    """

    def __enter__(self) -> None:
        values = context().values
        values[_KEY] = values.get(_KEY, 0) + 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        context().values[_KEY] -= 1


def waiting() -> bool:
    """Whether this rank is within a :class:`LazyGuard`."""
    return bool(context().values.get(_KEY))


def postpone(parameter: Tensor, initializer: Callable[..., Any]) -> None:
    """Give ``parameter`` the method ``initialize()``, which lets ``initializer`` fill it once."""
    waiting_for = [initializer]

    def initialize() -> None:
        while waiting_for:
            waiting_for.pop()(parameter)

    parameter.__dict__["initialize"] = initialize
