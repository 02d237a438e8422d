"""Properties of layers: methods whose values are exported, not their programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, update_wrapper
from inspect import getattr_static
from types import MethodType
from typing import Any

from argosy.nn.layer import Layer

__all__ = ["PROPERTIES", "StaticProperty", "property_methods", "property_values"]

PROPERTIES = "argosy.properties"
"""The attribute of the program of ``forward`` that holds the values."""
_KINDS = (bool, int, float, str)


class StaticProperty:
    """What ``to_static(property=True)`` makes of a method without arguments: it runs as Python, and ``jit.save``
    writes what it returns, a number, a text, or a list of these."""

    is_property = True

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self._function = function

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function returns."""
        return self._function(*args, **kwargs)

    def rollback(self) -> Callable[..., Any]:
        """The function as it was before."""
        return self._function


def property_values(layer: Any) -> dict[str, Any]:
    """The values of a layer's properties by name, lists as tuples. Raises TypeError for one that cannot be written."""
    if not isinstance(layer, Layer):
        return {}
    names = [n for n in dir(type(layer)) if isinstance(getattr_static(layer, n, None), StaticProperty)]
    return {name: _check_value(name, getattr(layer, name)()) for name in names}


def _check_value(name: str, value: Any) -> Any:
    items = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    kind = next((kind for kind in _KINDS if all(type(x) is kind for x in items)), None)
    if not items or kind is None:
        raise TypeError(
            f"jit.save(): property {name!r} should be a number, a str or a list of one of these, got {value!r:.60}"
        )
    return items if isinstance(value, (list, tuple)) else value


def property_methods(values: Any, is_method: Callable[[str], bool]) -> dict[str, Callable[[], Any]]:
    """Methods that return the values of an exported program. Raises ValueError for what are no properties."""
    if not isinstance(values, Mapping) or not all(isinstance(name, str) and is_method(name) for name in values):
        raise ValueError(f"properties {values!r:.80} are none of a layer")
    return {name: partial(_value, value) for name, value in values.items()}


def _value(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
