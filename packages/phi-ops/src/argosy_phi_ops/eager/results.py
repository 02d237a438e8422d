"""Tensors made of results: the one place that wraps the arrays of kernels, views of operands included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from argosy_tensorcore.storage import ArrayType, StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["Parts", "any_state", "fresh_tensor", "payload_of", "result_of"]

_new = object.__new__
_ndarray = np.ndarray


def fresh_tensor(array: Any, known: ArrayType, blockers: Any) -> Tensor:
    """A tensor of an array of the type ``known`` that nobody else has. Written out: every application comes here."""
    payload = _new(StridedArray)
    payload.ndarray = array
    payload._storage = None
    payload.array_type = known
    payload.dtype = known.dtype
    payload.shape = known.shape
    payload.ndim = known.ndim
    result = _new(Tensor)
    result.payload = payload
    result._node = None
    result._gradient_blockers = blockers
    result.stop_gradient = True
    return result


def result_of(op: Any, operands: Sequence[Any], array: Any, known: ArrayType | None = None) -> Tensor:
    """A tensor of what a kernel gave, which may be, or share memory with, an operand; ``known`` is its type."""
    if known is not None and type(array) is _ndarray and array.base is None:
        if not any([type(x) is Tensor and x.payload.ndarray is array for x in operands]):
            return fresh_tensor(array, known, None)
    return Tensor._wrap(payload_of(op, operands, array))


def payload_of(op: Any, operands: Sequence[Any], array: Any) -> StridedArray:
    """The payload of a result. Only declared views share memory with the operand; others are copied then."""
    if type(array) is not _ndarray:
        array = np.asarray(array)
    for x in operands:
        if type(x) is Tensor:
            given = x.payload.ndarray
            base = array.base
            if array is given or (
                base is not None and (base is given or base is given.base or np.may_share_memory(array, given))
            ):
                if op.view and x is operands[0] and array.flags.writeable:
                    view: StridedArray = x.payload.share(array)
                    return view
                return StridedArray(array.copy())
    return StridedArray.from_array(array) if array.base is not None else StridedArray(array)


def any_state() -> Tensor:
    """A state of random draws, for what depends on its type alone."""
    return Tensor._wrap(StridedArray(np.zeros(2, np.uint64)))


class Parts:
    """Results that are parts of the memory of the only operand: views of it, or copies.

    ``places`` has for each its type, the strides and the distance from the start in bytes.
    """

    __slots__ = ("are_views", "places")

    def __init__(self, places: list[tuple[ArrayType, tuple[int, ...], int]], are_views: bool) -> None:
        self.places = places
        self.are_views = are_views

    @staticmethod
    def from_kernel(kernel: Callable[..., Any], given: ArrayType, results: Sequence[ArrayType], are_views: bool) -> Any:
        """The parts that ``kernel`` makes of a contiguous array of the type ``given``; None where it makes others."""
        sample = np.zeros(given.shape, given.dtype.numpy)
        made = kernel(sample)
        if not all(type(a) is _ndarray and a.size and np.may_share_memory(a, sample) for a in made):
            return None
        if any(a.dtype != t.dtype.numpy or a.shape != t.shape for a, t in zip(made, results, strict=True)):
            return None
        start = sample.ctypes.data
        return Parts([(t, a.strides, a.ctypes.data - start) for t, a in zip(results, made, strict=True)], are_views)

    def show(self, base: StridedArray) -> tuple[Tensor, ...]:
        """The results for a contiguous operand."""
        memory = base.ndarray
        storage = base.storage if self.are_views else None
        results = []
        for known, strides, distance in self.places:
            array = _ndarray(known.shape, known.dtype.numpy, memory, distance, strides)
            result = fresh_tensor(array if self.are_views else array.copy(), known, None)
            result.payload._storage = storage
            results.append(result)
        return tuple(results)
