"""The text of objects at a prompt: the class, and the arguments that made the object, as far as it keeps them."""

from __future__ import annotations

from typing import Any

__all__ = ["ArgumentRepr"]

_LONGEST = 60


class ArgumentRepr:
    """A base of classes whose ``repr`` names the arguments of the constructor that the object has as attributes, with
    an underscore before the name or without, other than their defaults: ``Resize(size=8)``."""

    def __repr__(self) -> str:
        from inspect import signature  # milliseconds, which importing argosy need not wait for
        from reprlib import Repr

        show = Repr()
        show.maxlist, show.maxtuple, show.maxother = 4, 4, _LONGEST
        own = getattr(self, "__dict__", {})
        shown = []
        for name, parameter in signature(type(self)).parameters.items():
            value = own.get(name, own.get(f"_{name}", parameter.default))
            if not _is_same(value, parameter.default):
                shown.append(f"{name}={' '.join(show.repr(value).split())}")
        return f"{type(self).__name__}({', '.join(shown)})"


def _is_same(value: Any, default: Any) -> bool:
    """Whether an argument is its default; arrays, which compare by element, are not."""
    return value is default or (
        type(value) is type(default) and isinstance(value, (int, float, str)) and value == default
    )
