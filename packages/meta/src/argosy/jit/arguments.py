"""Arguments of a captured function: which are tensors, which are part of the program.

A call is flattened to its tensors and a key of everything else. Tensors count in the key with shape, dtype and
``stop_gradient``; numbers, strings and None by value; lists, tuples and dicts by structure; other objects by identity.
Floats that turned out to change from call to call become inputs, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from argosy.jit.structure import map_items
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["Call", "flatten", "rebuild", "tensors_in"]

_PLAIN = (int, bool, str, bytes, complex, type(None), slice)


class Call:
    """One call, flattened: ``tensors``, ``key``, and the ``floats`` in order of appearance."""

    __slots__ = ("floats", "key", "tensors")

    def __init__(self, tensors: list[Tensor], key: tuple[Any, ...], floats: list[float]) -> None:
        self.tensors = tensors
        self.key = key
        self.floats = floats


def flatten(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """The tensors, floats and key of a call. The common case, tensors in positions, is done in one go."""
    tensors: list[Tensor] = []
    floats: list[float] = []
    key: list[Any] = []
    for x in args:
        if type(x) is Tensor:
            payload = x.payload
            tensors.append(x)
            key.append((payload.shape, payload.dtype, x.stop_gradient))
        else:
            _flatten(x, tensors, floats, key)
    for name, x in kwargs.items():
        key.append(name)
        _flatten(x, tensors, floats, key)
    return Call(tensors, tuple(key), floats)


def _flatten(x: Any, tensors: list[Tensor], floats: list[float], key: list[Any]) -> None:
    kind = type(x)
    if kind is Tensor:
        payload = x.payload
        tensors.append(x)
        key.append((payload.shape, payload.dtype, x.stop_gradient))
    elif kind is float:
        floats.append(x)
        key.append(float)
    elif kind is np.ndarray:
        array = Tensor._wrap(StridedArray.from_array(x))
        tensors.append(array)
        key.append((x.shape, array.payload.dtype, True))
    elif kind in (list, tuple):
        key.append((kind, len(x)))
        for item in x:
            _flatten(item, tensors, floats, key)
    elif kind is dict:
        key.append((dict, *x))
        for item in x.values():
            _flatten(item, tensors, floats, key)
    else:
        key.append((kind, x) if kind in _PLAIN else _IdentityKey(x))


class _IdentityKey:
    """A key that equals itself for the same object only, and keeps it alive."""

    __slots__ = ("held",)

    def __init__(self, held: object) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return type(other) is _IdentityKey and other.held is self.held

    def __hash__(self) -> int:
        return id(self.held)


def rebuild(x: Any, tensors: Iterator[Any], floats: Iterator[Any]) -> Any:
    """``x`` with its tensors and floats replaced in the order that :func:`flatten` meets them."""
    kind = type(x)
    if kind is Tensor or kind is np.ndarray:
        return next(tensors)
    if kind is float:
        return next(floats)
    if kind in (list, tuple):
        return kind(rebuild(item, tensors, floats) for item in x)
    if kind is dict:
        return {name: rebuild(item, tensors, floats) for name, item in x.items()}
    return x


def tensors_in(x: Any, found: Callable[[Tensor], Any]) -> Any:
    """``x`` (tensors in nests of containers) with ``found(tensor)`` in place of each tensor."""
    return found(x) if type(x) is Tensor else map_items(x, lambda item: tensors_in(item, found))
