"""Functions that are for one mode only, as decorators, and what else authors of layers ask of the mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from argosy.static.session import in_static_mode
from argosy_autograd.modes import is_grad_enabled, set_grad_enabled

__all__ = ["dygraph_not_support", "dygraph_only", "fake_interface_only", "non_static_only", "static_only", "tracer"]

Function = Callable[..., Any]


def _only(wanted: bool, where: str) -> Callable[[Function], Function]:
    def restrict(func: Function) -> Function:
        @wraps(func)
        def check_mode(*args: Any, **kwargs: Any) -> Any:
            if in_static_mode() is wanted:
                return func(*args, **kwargs)
            raise AssertionError(
                f"{func.__name__}() is for {where} mode only: call paddle.{_SWITCH[where]}() before it"
            )

        return check_mode

    return restrict


_SWITCH = {"static": "enable_static", "dynamic": "disable_static"}
static_only = dygraph_not_support = _only(True, "static")
dygraph_only = non_static_only = fake_interface_only = _only(False, "dynamic")


class _Tracer:
    """What libraries read and set of the recorder of gradients."""

    @property
    def _has_grad(self) -> bool:
        return is_grad_enabled()

    @_has_grad.setter
    def _has_grad(self, enabled: bool) -> None:
        set_grad_enabled(enabled)


_TRACER = _Tracer()


def tracer() -> _Tracer | None:
    """The recorder of gradients; None in static mode."""
    return None if in_static_mode() else _TRACER


@contextmanager
def no_check_of_views() -> Iterator[None]:
    """Nothing: captured functions keep the views that they make."""
    yield
