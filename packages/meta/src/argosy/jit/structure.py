"""Nests of containers: what stands in them replaced, and what a function changed in those it was given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from argosy_tensorcore.tensor import Tensor

__all__ = ["GivenContainers", "is_named_tuple", "leaves", "map_items"]

T = TypeVar("T")


def is_named_tuple(x: object) -> bool:
    """Whether `x` is an object of a ``namedtuple`` class."""
    return isinstance(x, tuple) and hasattr(x, "_fields")


def map_items(x: Any, convert: Callable[[Any], Any]) -> Any:
    """`x` with ``convert(item)`` in place of each of its items; `x` itself where it has none.

    Items are those of lists, tuples, named tuples and dictionaries, and the fields of data classes. Of dictionaries of
    classes of their own and of data classes a copy is made, and only where an item changes: what else they hold stays.
    """
    kind = type(x)
    if kind in (list, tuple):
        return kind([convert(item) for item in x])
    if kind is dict:
        return {name: convert(item) for name, item in x.items()}
    if is_named_tuple(x):
        return kind(*(convert(item) for item in x))
    if isinstance(x, dict) or (is_dataclass(x) and not isinstance(x, type)):
        return _replace(x, convert)
    return x


def _replace(x: Any, convert: Callable[[Any], Any]) -> Any:
    held = [(name, getattr(x, name)) for name in _fields(x) if hasattr(x, name)]
    items = list(x.items()) if isinstance(x, dict) else []
    made = {id(item): convert(item) for _, item in (*held, *items)}
    if all(made[id(item)] is item for _, item in (*held, *items)):
        return x
    new = copy(x)
    for name, item in items:
        new[name] = made[id(item)]
    for name, item in held:
        object.__setattr__(new, name, made[id(item)])  # frozen ones, too
    return new


def _fields(x: Any) -> list[str]:
    return [field.name for field in fields(x)] if is_dataclass(x) and not isinstance(x, type) else []


def leaves(x: Any, kind: type[T]) -> list[T]:
    """The objects of that class in `x`, a nest of containers, in order; those of dictionaries by their sorted keys."""
    if isinstance(x, kind):
        return [x]
    if isinstance(x, dict):
        items = [item for _, item in sorted(x.items(), key=lambda entry: str(entry[0]))]
    else:
        items = list(x) if isinstance(x, (list, tuple)) else [getattr(x, name) for name in _fields(x)]
    return [found for item in items for found in leaves(item, kind)]


class GivenContainers:
    """The lists and dictionaries among a call's arguments, and the copies of them that its capture works on."""

    def __init__(self, given: Any, copies: Any) -> None:
        self._pairs = list(zip(_containers(given), _containers(copies), strict=True))
        self._before = [_entries(copied) for _, copied in self._pairs]

    def has_changed(self) -> bool:
        """Whether a copy holds anything else than at first."""
        return any(
            not _is_same(_entries(copied), before)
            for (_, copied), before in zip(self._pairs, self._before, strict=True)
        )

    def write_back(self, stand_ins: Sequence[Tensor], tensors: Sequence[Tensor]) -> None:
        """Give the caller's containers what their copies hold, his `tensors` for their `stand_ins`."""
        back: dict[int, Any] = {id(x): real for x, real in zip(stand_ins, tensors, strict=True)}
        back.update((id(copied), real) for real, copied in self._pairs)
        for (real, copied), before in zip(self._pairs, self._before, strict=True):
            if _is_same(_entries(copied), before):
                continue
            if isinstance(real, list):
                real[:] = [back.get(id(item), item) for item in copied]
            else:
                new = {name: back.get(id(item), item) for name, item in copied.items()}
                real.clear()
                real.update(new)


def _containers(x: Any) -> list[Any]:
    if type(x) in (list, tuple):
        inner = [found for item in x for found in _containers(item)]
    elif type(x) is dict:
        inner = [found for item in x.values() for found in _containers(item)]
    else:
        return []
    return inner if type(x) is tuple else [x, *inner]


def _entries(x: Any) -> list[tuple[Any, Any]]:
    return list(x.items()) if isinstance(x, dict) else list(enumerate(x))


def _is_same(a: list[tuple[Any, Any]], b: list[tuple[Any, Any]]) -> bool:
    return len(a) == len(b) and all(x[0] == y[0] and x[1] is y[1] for x, y in zip(a, b, strict=True))
