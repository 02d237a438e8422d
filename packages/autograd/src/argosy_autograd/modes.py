"""Switching the recording of gradients on and off: context managers that are decorators, too."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any

from argosy_phi_ops.context import AMBIENT, grad_enabled
from argosy_phi_ops.context import set_grad_enabled as switch
from argosy_phi_ops.eager.gradient_blockers import GradientBlocker

__all__ = ["enable_grad", "inference_mode", "is_grad_enabled", "linear", "no_grad", "set_grad_enabled"]

linear: ContextVar[Callable[[], str] | None] = ContextVar("linear", default=None)
"""Set where gradients have to be functions of those they start with (forward mode by reverse mode twice, differential
operators), so that what a custom derivative cuts off is refused: says what was asked for, for the error."""

_RECORDS_NOTHING = "records nothing"
_GENERATOR = 0x20  # the flag of code objects of generator functions


def is_grad_enabled() -> bool:
    """Whether operators record for differentiation here."""
    return grad_enabled()


class _Mode:
    """Sets recording to ``enabled`` within the block, or within each call of the function it decorates."""

    enabled = True

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        made = object.__new__(cls)
        made._previous = []
        return made(function) if callable(function) else made

    _previous: list[tuple[bool, Any]]

    def __enter__(self) -> _Mode:
        self._previous.append(self._switch())
        return self

    def __exit__(self, *error: object) -> None:
        switch(*self._previous.pop())

    def _switch(self, function: Any = None) -> tuple[bool, Any]:
        """Set recording; what it was before. ``function`` is what runs, where it is no block."""
        cut = AMBIENT.cut
        blocker = None if self.enabled else (GradientBlocker(type(self).__name__, _RECORDS_NOTHING, (), function),)
        return switch(self.enabled, blocker), cut

    def clone(self) -> _Mode:
        """Another one of the same kind."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, _previous=[])
        return made

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & _GENERATOR:
            return self._generator(function)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            previous = self._switch(code)
            try:
                return function(*args, **kwargs)
            finally:
                switch(*previous)

        return call

    def _generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Only the body runs in the mode, not what happens between its values."""

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            running = function(*args, **kwargs)
            sent = None
            while True:
                previous = self._switch(function.__code__)
                try:
                    value = running.send(sent)
                except StopIteration as end:
                    return end.value
                finally:
                    switch(*previous)
                sent = yield value

        return call


class no_grad(_Mode):
    """Record nothing: results have ``stop_gradient=True``."""

    enabled = False


class inference_mode(_Mode):
    """Record nothing; the same as :class:`no_grad`, except that ``inference_mode(False)`` does nothing."""

    enabled = False

    def __new__(cls, mode: Callable[..., Any] | bool = True) -> Any:
        if isinstance(mode, bool):
            made = object.__new__(cls)
            made._previous = []
            made.enabled = grad_enabled() if not mode else False
            return made
        return super().__new__(cls, mode)


class enable_grad(_Mode):
    """Record again within a block that records nothing."""

    enabled = True


class set_grad_enabled(_Mode):
    """Set recording at once; as a context manager, until the end of the block."""

    def __new__(cls, mode: bool) -> Any:
        made = object.__new__(cls)
        made.enabled = bool(mode)
        made._previous = [made._switch()]
        return made

    def __enter__(self) -> set_grad_enabled:
        if not self._previous:
            self._previous.append(self._switch())
        return self
