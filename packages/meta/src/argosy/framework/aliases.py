"""Other names of parameters of functions and constructors that are no operators, as Paddle takes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

__all__ = ["parameter_aliases"]

F = TypeVar("F", bound=Callable[..., Any])


def parameter_aliases(**meant: str) -> Callable[[F], F]:
    """Decorator: ``parameter_aliases(eps="epsilon")`` makes ``f(eps=1e-3)`` the call ``f(epsilon=1e-3)``.

    The call raises TypeError where both names are given. ``f.rename(kwargs)`` puts the names that are meant into
    ``kwargs``, for decorators that look at arguments before the call.
    """

    def decorate(function: F) -> F:
        def rename(kwargs: dict[str, Any]) -> None:
            for other in meant.keys() & kwargs.keys():
                if meant[other] in kwargs:
                    raise TypeError(f"{function.__name__}() got both {meant[other]!r} and {other!r}, its other name")
                kwargs[meant[other]] = kwargs.pop(other)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            rename(kwargs)
            return function(*args, **kwargs)

        call.rename = rename  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate
