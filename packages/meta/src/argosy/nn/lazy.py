"""``LazyGuard``: parameters that are filled when asked to, not when they are made."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from argosy_phi_ops.context import context
from argosy_tensorcore.tensor import Tensor
from argosy_tensorcore.uninitialized_payload import give_memory

__all__ = ["LazyGuard", "initialize", "initialize_in", "is_lazy", "leave_empty", "on_initialization", "set_init_func"]

_KEY = "nn.lazy"
_FILL = "_init_func"  # where a parameter keeps what is to fill it


class LazyGuard:
    """Layers made within the block have parameters that hold nothing yet; ``parameter.initialize()`` fills one.

    Before that it has no memory: its values are a ``RuntimeError``, and ``set_value`` and ``set_state_dict`` give it
    some.
    """

    def __enter__(self) -> None:
        values = context().own_values
        values[_KEY] = values.get(_KEY, 0) + 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        context().own_values[_KEY] -= 1


def is_lazy() -> bool:
    """Whether this rank is within a :class:`LazyGuard`."""
    return bool(context().own_values.get(_KEY))


def set_init_func(self: Tensor, obj: Callable[..., Any]) -> None:
    """Let ``obj(parameter, None)`` fill the parameter when :func:`initialize` is called.

    Raises ``TypeError`` for a tensor that is no parameter, and for an ``obj`` that cannot be called.
    """
    if not self.is_parameter:
        raise TypeError("set_init_func() is for parameters; this tensor is none")
    if not callable(obj):
        raise TypeError(f"set_init_func(): obj should be a function (parameter, block), got {type(obj).__name__}")
    self.__dict__[_FILL] = obj


def on_initialization(parameter: Tensor, change: Callable[[Tensor], None]) -> None:
    """Call ``change(parameter)`` when the parameter has been filled: now, or at the end of :func:`initialize`."""
    fill = parameter.__dict__.get(_FILL)
    if fill is None:
        change(parameter)
        return

    def change_both(filled: Tensor, block: object) -> None:
        fill(filled, block)
        change(filled)

    parameter.__dict__[_FILL] = change_both


def leave_empty(parameter: Tensor) -> None:
    """Have a parameter that waits to be filled not wait: another rank has its values. Its memory here is untouched, so
    that the system gives it no pages."""
    if not parameter._is_initialized():
        parameter.__dict__.pop(_FILL, None)
        give_memory(parameter)


def initialize_in(parameter: Tensor, make_payload: Callable[[], Any]) -> None:
    """Fill a parameter that waits to be in the memory that ``make_payload()`` gives; others are left as they are."""
    if _FILL in parameter.__dict__ and not parameter._is_initialized():
        parameter.payload = make_payload()
        initialize(parameter)


def initialize(self: Tensor) -> None:
    """Fill a parameter that was made within :class:`LazyGuard`, or as :func:`set_init_func` said; others are left
    as they are. Raises ``TypeError`` for a tensor that is no parameter.
    """
    if not self.is_parameter:
        raise TypeError("initialize() is for parameters; this tensor is none")
    fill = self.__dict__.pop(_FILL, None)
    if fill is not None:
        give_memory(self)
        fill(self, None)
