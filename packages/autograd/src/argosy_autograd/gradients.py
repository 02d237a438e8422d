"""The gradient slot of a tensor: absent, a symbolic zero without a buffer, or a tensor.

These functions are what tensor methods, optimizers and layers use.
"""

from __future__ import annotations

from math import prod
from sys import getrefcount
from typing import Any

import numpy as np

from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.storage import Storage, StridedArray
from argosy_tensorcore.tensor import Tensor

_OURS = 3  # references to what only a slot holds: the slot, a local variable, getrefcount's argument
_LARGE = 1 << 14  # bytes that take longer to fill with zeros than to note that they are zeros

__all__ = ["accumulate_grad", "clear_grad", "clear_gradient", "is_symbolic_zero", "symbolic_zero", "zero_grad"]


class _ZeroStorage(Storage):
    """Storage of zeros that is allocated when first looked at."""

    __slots__ = ("_bytes",)

    def __init__(self, nbytes: int) -> None:
        self._buffer = None
        self._bytes: Any = None
        self.nbytes = nbytes
        self.version = 0

    @property
    def _owner(self) -> Any:  # type: ignore[override]
        if self._bytes is None:
            self._bytes = np.zeros(self.nbytes, np.uint8)
        return self._bytes


def symbolic_zero(tensor: Tensor) -> Tensor:
    """A gradient of zeros for ``tensor`` that has no memory until somebody reads or writes it."""
    payload = tensor.payload
    storage = _ZeroStorage(prod(payload.shape) * payload.dtype.itemsize)
    return Tensor._wrap(StridedArray.over_storage(storage, payload.dtype, payload.shape), False)


def is_symbolic_zero(g: Any) -> bool:
    """Whether ``g`` is a :func:`symbolic_zero` that nobody has looked at."""
    storage = getattr(g.payload, "_storage", None) if type(g) is Tensor else None
    return type(storage) is _ZeroStorage and storage._bytes is None


def accumulate_grad(tensor: Tensor, g: Any, fresh: bool = False) -> None:
    """Add the gradient ``g`` (an array, or a tensor with a history) to the slot of the leaf ``tensor``.

    ``fresh`` says that nobody else holds the array, so that it may be kept.
    """
    old = None if is_symbolic_zero(tensor._grad) else tensor._grad
    if type(g) is Tensor:
        tensor._grad = g if old is None else get_operator("add")(old, g)
        return
    if old is None:
        made = Tensor._wrap(StridedArray(g if fresh and g.base is None and g.flags.writeable else np.array(g)), False)
        tensor._grad = made
        return
    payload = old.payload
    if old._node is None and type(payload) is StridedArray:
        array = payload.ndarray
        array[...] = array + g
        payload.bump_version()
    else:
        tensor._grad = get_operator("add")(old, Tensor._wrap(StridedArray(g)))


def clear_gradient(tensor: Tensor, set_to_zero: bool = True) -> None:
    """Set the gradient to zeros in place, or drop it. Without a gradient nothing happens."""
    tracer = active_tracer()
    if tracer is not None:
        tracer.touch_grad(tensor)
    old = tensor._grad
    if old is None:
        return
    if not set_to_zero:
        tensor._grad = None
    elif tracer is not None or old._node is not None:
        tensor._grad = symbolic_zero(tensor)
    elif type(old.payload) is not StridedArray:
        tensor._grad = get_operator("zeros_like")(old)
    else:
        payload = old.payload
        alone = getrefcount(old) <= _OURS and getrefcount(payload) <= _OURS and payload._storage is None
        if alone and payload.nbytes >= _LARGE and getrefcount(payload.ndarray) < _OURS:
            tensor._grad = symbolic_zero(tensor)  # nobody can tell: the next gradient need not be added to zeros
        else:
            payload.fill_from(0)
            payload.bump_version()


def clear_grad(self: Tensor, set_to_zero: bool = True) -> None:
    """Set the gradient to zeros in place, or drop it; see :func:`clear_gradient`."""
    clear_gradient(self, set_to_zero)


def zero_grad(tensors: Any, set_to_zero: bool = True) -> None:
    """:func:`clear_gradient` for many tensors."""
    for tensor in tensors:
        clear_gradient(tensor, set_to_zero)
