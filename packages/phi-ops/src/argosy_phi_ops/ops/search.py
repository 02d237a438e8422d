"""Sorting and searching."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.declare.promotion import kind_of
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.common.arguments import axis_of, require_size, section
from argosy_phi_ops.ops.reduction import check_elements, keep
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.tensor import Tensor


def index_values(rng: np.random.Generator) -> Iterator[Sample]:
    """Flattened, along an axis, kept, with ties."""
    x = rng.integers(0, 4, (3, 5))
    yield Sample(x)
    yield Sample(x, 1)
    yield Sample(x.astype(np.float32), 0, keepdim=True, dtype="int32")
    yield Sample(x, keepdim=True)


def _search_axis(primitive: Any, x: Tensor, axis: int | None, keepdim: bool, dtype: str) -> Tensor:
    shape = x.shape
    if axis is None:
        check_elements(primitive.name, x, range(len(shape)))
        size: Any = x.type.size
        found = primitive(prim.reshape(x, shape=(size,)), axis=0, dtype=dtype)
        return prim.reshape(found, shape=(1,) * len(shape)) if keepdim else found
    at = axis_of(primitive.name, axis, len(shape))
    check_elements(primitive.name, x, (at,))
    return keep(primitive(x, axis=at, dtype=dtype), shape, (at,), keepdim)


@operator(samples=index_values)
def argmax(x: Tensor, axis: int | None = None, keepdim: bool = False, dtype: str = "int64") -> Tensor:
    """The index of the first maximum along `axis`, or in the flattened tensor. ShapeError over no elements."""
    return _search_axis(prim.argmax, x, axis, keepdim, dtype)


@operator(samples=index_values)
def argmin(x: Tensor, axis: int | None = None, keepdim: bool = False, dtype: str = "int64") -> Tensor:
    """The index of the first minimum along `axis`, or in the flattened tensor. ShapeError over no elements."""
    return _search_axis(prim.argmin, x, axis, keepdim, dtype)


def _with_indices(x: Tensor, axis: int, descending: bool) -> tuple[Tensor, Tensor]:
    index = prim.iota(shape=x.shape, axis=axis, dtype="int64")
    values, order = prim.sort(x, index, axis=axis, keys=1, descending=descending, stable=True)
    return values, order


def sort_samples(rng: np.random.Generator) -> Iterator[Sample]:
    """Both directions, with ties."""
    x = rng.integers(0, 5, (3, 6))
    yield Sample(x.astype(np.float64))
    yield Sample(x, 0, descending=True)


@operator(aliases={"input": "x", "dim": "axis"}, samples=sort_samples)
def sort(x: Tensor, axis: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The elements along `axis` in order, NaN counting as largest; always stable."""
    if not x.ndim:
        return x
    values = prim.sort(x, axis=axis_of("sort", axis, x.ndim), keys=1, descending=descending, stable=True)
    return values[0] if isinstance(values, tuple) else values


@operator(aliases={"input": "x", "dim": "axis"}, samples=sort_samples)
def argsort(x: Tensor, axis: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices that would sort along `axis`; always stable."""
    if not x.ndim:
        return prim.constant(0, "int64")
    return _with_indices(x, axis_of("argsort", axis, x.ndim), descending)[1]


@operator(aliases={"input": "x", "dim": "axis"})
def topk(
    x: Tensor, k: int, axis: int | None = None, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """The `k` largest (or smallest) elements along `axis` in order, and their indices; of equals the first ones."""
    at = axis_of("topk", -1 if axis is None else axis, x.ndim)
    if not x.ndim:
        return x, prim.constant(0, "int64")
    size = x.shape[at]
    if isinstance(size, int) and k > size:
        raise ShapeError(f"topk: axis {at} of {x.type} should have {k} elements or more")
    require_size("topk", size - k + 1)
    values, order = _with_indices(x, at, largest)
    return section(values, at, 0, k), section(order, at, 0, k)


@topk.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((3, 6)), 2)
    yield Sample(rng.integers(0, 4, (3, 6)), 2, axis=0, largest=False)


@operator()
def kthvalue(x: Tensor, k: int, axis: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The `k`-th smallest element along `axis` (counted from 1) and its index."""
    at = axis_of("kthvalue", -1 if axis is None else axis, x.ndim)
    if not x.ndim and k == 1:
        return x, prim.constant(0, "int64")
    shape = tuple(n for i, n in enumerate(x.shape) if i != at)
    found = [section(part, at, k - 1, k) for part in _with_indices(x, at, False)]
    values, order = found if keepdim else (prim.reshape(part, shape=shape) for part in found)
    return values, order


@kthvalue.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((3, 6)), 2)
    yield Sample(rng.standard_normal((3, 6)), 1, 0, keepdim=True)
    yield Sample(rng.standard_normal(()), 1)


@operator(aliases={"input": "values"}, keywords=("side", "sorter"))
def searchsorted(sorted_sequence: Tensor, values: Tensor, out_int32: bool = False, right: bool = False) -> Tensor:
    """Where each value would be put in to keep the last axis sorted: before equals, or behind them with `right`."""
    batch = sorted_sequence.ndim - 1
    if batch and tuple(sorted_sequence.shape[:-1]) != tuple(values.shape[:-1]):
        raise ShapeError(f"searchsorted: {sorted_sequence.type} and {values.type} differ in their leading axes")
    sorted_sequence, values = _promote_operands(sorted_sequence, values)
    places = "int32" if out_int32 else "int64"
    sizes = (*values.shape, *sorted_sequence.shape)
    if all(isinstance(size, int) for size in sizes) and sorted_sequence.shape[-1] > _COUNTED:
        return prim.cast(_halve(sorted_sequence, values, right), dtype=places)
    shape = (*values.shape, sorted_sequence.shape[-1])
    steps = prim.broadcast(sorted_sequence, shape=shape, axes=(*range(batch), values.ndim))
    wanted = prim.broadcast(values, shape=shape, axes=tuple(range(values.ndim)))
    below = prim.le(steps, wanted) if right else prim.lt(steps, wanted)
    if kind_of(values.dtype) == 2:  # NaN goes behind all
        missing = prim.broadcast(prim.is_nan(values), shape=shape, axes=tuple(range(values.ndim)))
        below = prim.logical_or(below, missing)
    return prim.reduce_sum(prim.cast(below, dtype=places), axes=(values.ndim,))


_COUNTED = 512
"""Up to so many elements all are compared, which takes a table of values by elements."""


def _halve(sequence: Tensor, values: Tensor, right: bool) -> Tensor:
    """The places in ``sequence`` by steps of falling powers of two, each taken while what lies there is smaller."""
    length = sequence.shape[-1]
    rows = prim.reshape(sequence, shape=(prod(sequence.shape[:-1]), length))
    wanted = prim.reshape(values, shape=(rows.shape[0], prod(values.shape) // max(rows.shape[0], 1)))
    place = prim.broadcast(prim.constant(0, "int64"), shape=wanted.shape, axes=())
    step = 1 << (length.bit_length() - 1)
    while step:
        ahead = prim.add(place, step)
        last = prim.sub(prim.minimum(ahead, length), 1)
        there = prim.gather(rows, prim.reshape(last, shape=(*wanted.shape, 1)), axes=(1,), batch=1)
        below = prim.le(there, wanted) if right else prim.lt(there, wanted)
        place = prim.select(prim.logical_and(below, prim.le(ahead, length)), ahead, place)
        step //= 2
    if kind_of(values.dtype) == 2:  # NaN goes behind all
        place = prim.select(prim.is_nan(wanted), length, place)
    return prim.reshape(place, shape=values.shape)


def _promote_operands(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Both in the dtype of the higher kind, or of the wider one of one kind."""
    common = max(x.dtype, y.dtype, key=lambda name: (kind_of(name), as_dtype(name).itemsize))
    return tuple(v if v.dtype == common else prim.cast(v, dtype=common) for v in (x, y))


@searchsorted.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(np.array([1.0, 3.0, 5.0]), np.array([[0.0, 3.0], [4.0, 9.0]]), right=True)
    yield Sample(np.sort(rng.standard_normal((2, 4))), rng.standard_normal((2, 3)), out_int32=True)
    yield Sample(np.array([1, 3, 5]), np.array([[0, 3], [4, 9]], np.int32))
    long = np.sort(rng.integers(0, 50, (2, 600)).astype(np.float64))
    yield Sample(long, rng.integers(-5, 55, (2, 6)).astype(np.float64))
    yield Sample(long[0], np.array([3.0, np.nan]), right=True)


@operator(aliases={"boundaries": "sorted_sequence"})
def bucketize(x: Tensor, sorted_sequence: Tensor, out_int32: bool = False, right: bool = False) -> Tensor:
    """Where each element of `x` belongs in the sorted vector; see :func:`searchsorted`."""
    return searchsorted(sorted_sequence, x, out_int32, right)


@bucketize.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), np.array([-1.0, 0.0, 1.0]))


@operator()
def mode(x: Tensor, axis: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The most frequent element along `axis` (of equally frequent ones the smallest) and its last index."""
    at = axis_of("mode", axis, x.ndim)
    if not x.ndim:
        return x, prim.constant(0, "int64")
    moved = prim.transpose(x, permutation=(*(i for i in range(x.ndim) if i != at), at))
    return _mode_last(moved, x, at, keepdim)


def _mode_last(moved: Tensor, x: Tensor, at: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    last = moved.ndim - 1
    shape = (*moved.shape, moved.shape[last])
    each = prim.broadcast(moved, shape=shape, axes=tuple(range(moved.ndim)))
    other = prim.broadcast(moved, shape=shape, axes=(*range(last), moved.ndim))
    count = prim.reduce_sum(prim.cast(prim.eq(each, other), dtype="int64"), axes=(moved.ndim,))
    index = prim.iota(shape=moved.shape, axis=last, dtype="int64")
    # Sorted by falling count, then rising value, then falling position: the first one is wanted.
    ordered = prim.sort(prim.neg(count), moved, prim.neg(index), axis=last, keys=3)
    rest = tuple(moved.shape[:last])
    value, position = (prim.reshape(section(part, last, 0, 1), shape=rest) for part in ordered[1:])
    return keep(value, x.shape, (at,), keepdim), keep(prim.neg(position), x.shape, (at,), keepdim)


@mode.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.integers(0, 3, (3, 6)))
    yield Sample(rng.integers(0, 3, (5, 2)).astype(np.float64), 0, keepdim=True)
    yield Sample(rng.standard_normal(()))
