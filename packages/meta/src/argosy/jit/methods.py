"""Captured methods of an instance: they lie among its attributes and go when it goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["captured_method"]

_ATTRIBUTE = "_captured_methods"
_SLOTTED = 16  # instances without a ``__dict__`` that are known for one method, the latest met


class _CapturedMethods(dict[Any, Any]):
    """What was captured of ``instance``, by the decorated functions of its classes. A deep copy of the instance, and a
    pickled one, begins with none."""

    def __init__(self, instance: Any = None) -> None:
        super().__init__()
        self.instance = instance

    def __reduce__(self) -> tuple[Any, ...]:
        return _CapturedMethods, ()


def captured_method(owner: Any, instance: Any, slotted: dict[int, Any], make: Callable[[], Any]) -> Any:
    """The captured function of ``instance`` that belongs to ``owner``, a decorated function of its class; ``make``
    makes it. It refers to the instance, so that a table elsewhere would keep both for ever, by weak keys, too: it lies
    among the instance's attributes. Of instances without such the latest are in ``slotted``, by id."""
    attributes = getattr(instance, "__dict__", None)
    if type(attributes) is not dict:
        return _find_slotted(instance, slotted, make)
    methods = attributes.get(_ATTRIBUTE)
    if methods is None or methods.instance is not instance:  # ``copy.copy`` takes attributes as they are
        methods = attributes[_ATTRIBUTE] = _CapturedMethods(instance)
    found = methods.get(owner)
    return methods.setdefault(owner, make()) if found is None else found


def _find_slotted(instance: Any, slotted: dict[int, Any], make: Callable[[], Any]) -> Any:
    made = slotted.pop(id(instance), None) or make()
    slotted[id(instance)] = made
    if len(slotted) > _SLOTTED:
        slotted.pop(next(iter(slotted)), None)
    return made
