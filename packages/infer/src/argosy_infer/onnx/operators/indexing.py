"""Gather and scatter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy_infer.onnx.registry import Values, onnx_operator
from argosy_infer.onnx.tensors import count_up, phi, prim, shape_of, size_number, tensor_of
from argosy_pir.dims import dim_product


def _counted(indices: Any, n: Any) -> Any:
    """Indices as int64, those below 0 from the end of an axis of ``n``."""
    whole = prim.cast(indices, dtype="int64")
    return prim.select(prim.lt(whole, 0), prim.add(whole, n), whole)


@onnx_operator("Gather")
def gather(x: Any, indices: Any, *, axis: int = 0) -> Any:
    """Slices of ``x`` along an axis, in the shape of the indices."""
    sizes = shape_of(x)
    axis %= len(sizes)
    flat = phi.reshape(_counted(indices, size_number(sizes[axis])), [dim_product(shape_of(indices))])
    picked = phi.index_select(x, flat, axis)
    return phi.reshape(picked, [*sizes[:axis], *shape_of(indices), *sizes[axis + 1 :]])


@onnx_operator("GatherElements")
def gather_elements(x: Any, indices: Any, *, axis: int = 0) -> Any:
    """The elements whose place along one axis the indices say."""
    axis %= len(shape_of(x))
    return prim.gather(x, _full_index(x, indices, axis), axes=tuple(range(len(shape_of(x)))), batch=0)


def _limits(sizes: Sequence[Any]) -> Any:
    if all(isinstance(n, int) for n in sizes):
        return tensor_of(np.asarray(sizes, np.int64))
    return phi.stack([phi.full([], n, "int64") for n in sizes])


def _full_index(x: Any, indices: Any, axis: int) -> Any:
    """Indices of all axes: [*sizes, rank], those of ``axis`` given, the others where they are."""
    sizes, rank = shape_of(indices), len(shape_of(x))
    parts = []
    for i in range(rank):
        place = _counted(indices, size_number(shape_of(x)[i])) if i == axis else count_up(sizes[i], i, rank)
        parts.append(phi.unsqueeze(phi.broadcast_to(place, list(sizes)), rank))
    return prim.concat(*parts, axis=rank)


@onnx_operator("GatherND")
def gather_nd(x: Any, indices: Any, *, batch_dims: int = 0) -> Any:
    """Slices of ``x`` at places that the last axis of the indices says."""
    depth = shape_of(indices)[-1]
    whole = _counted(indices, _limits(shape_of(x)[batch_dims : batch_dims + depth]))
    return prim.gather(x, whole, axes=tuple(range(batch_dims, batch_dims + depth)), batch=batch_dims)


_REDUCTIONS = {"none": "set", "add": "add", "mul": "mul", "max": "max", "min": "min"}


@onnx_operator("Scatter", "ScatterElements")
def scatter_elements(x: Any, indices: Any, updates: Any, *, axis: int = 0, reduction: str = "none") -> Any:
    """``x`` with the updates where the indices say along one axis."""
    axis %= len(shape_of(x))
    places = _full_index(x, indices, axis)
    return prim.scatter(x, places, updates, axes=tuple(range(len(shape_of(x)))), batch=0, kind=_REDUCTIONS[reduction])


@onnx_operator("ScatterND")
def scatter_nd(x: Any, indices: Any, updates: Any, *, reduction: str = "none") -> Any:
    """``x`` with slices of updates at places that the last axis of the indices says."""
    depth = shape_of(indices)[-1]
    whole = _counted(indices, _limits(shape_of(x)[:depth]))
    return prim.scatter(x, whole, updates, axes=tuple(range(depth)), batch=0, kind=_REDUCTIONS[reduction])


@onnx_operator("Compress")
def compress(x: Any, condition: Values, *, axis: int | None = None) -> Any:
    """The slices along an axis (of all elements in a row without one) whose condition holds."""
    if axis is None:
        x, axis = phi.reshape(x, [-1]), 0
    places = np.flatnonzero(np.asarray(condition, bool))
    return phi.index_select(x, tensor_of(places.astype(np.int64)), axis % len(shape_of(x)))


@onnx_operator("NonZero")
def non_zero(x: Values) -> Any:
    """The indices of elements that are not 0, an axis a row."""
    return tensor_of(np.asarray(np.nonzero(np.atleast_1d(x)), np.int64))


@onnx_operator("Unique")
def unique(x: Values, *, axis: int | None = None, sorted: int = 1) -> Any:
    """The different elements (or slices), where each is first, which one each was, and how often it is there."""
    values, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        rank = np.argsort(order)
        values = np.take(values, order, axis if axis is not None else 0)
        first, counts, inverse = first[order], counts[order], rank[inverse]
    return tensor_of(values), *(tensor_of(each.astype(np.int64)) for each in (first, inverse, counts))


@onnx_operator("TensorScatter")
def tensor_scatter(cache: Any, update: Any, start: Any = None, *, axis: int = -2, mode: str = "linear") -> Any:
    """A cache with an update at each row's ``start`` along an axis; `mode` "circular" goes on at its beginning."""
    sizes, rank = shape_of(cache), len(shape_of(cache))
    axis %= rank
    count = shape_of(update)[axis]
    offsets = phi.full([sizes[0]], 0, "int64") if start is None else prim.cast(start, dtype="int64")
    steps = tensor_of(np.arange(count, dtype=np.int64).reshape([1, -1]))
    places = prim.add(phi.reshape(offsets, [-1, 1]), steps)  # [rows, count]
    if mode == "circular":
        places = prim.floor_mod(places, sizes[axis])
    shape = [sizes[0] if i == 0 else count if i == axis else 1 for i in range(rank)]
    indices = phi.broadcast_to(phi.reshape(places, shape), list(shape_of(update)))
    return scatter_elements(cache, indices, update, axis=axis)
