"""Other names of parameters of functions and constructors that are no operators, as Paddle takes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

__all__ = ["parameter_aliases"]

F = TypeVar("F", bound=Callable[..., Any])


def parameter_aliases(**meant: str) -> Callable[[F], F]:
    """Decorator: ``also_named(eps="epsilon")`` makes ``f(eps=1e-3)`` the call ``f(epsilon=1e-3)``.

    The call raises TypeError where both names are given.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            for other in meant.keys() & kwargs.keys():
                if meant[other] in kwargs:
                    raise TypeError(f"{function.__name__}() got both {meant[other]!r} and {other!r}, its other name")
                kwargs[meant[other]] = kwargs.pop(other)
            return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate
