"""Gathers: elements read at indices that tensors hold. Negative indices count from the end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.call_overloads import choose_gather, index_first
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import OperatorError, ShapeError
from argosy_phi_ops.ops.common.arguments import axis_of
from argosy_phi_ops.ops.indexing.addresses import (
    Bounds,
    addresses_along,
    depth_of,
    from_front,
    index_column,
    nd_address,
    span,
    spans,
    spread_index,
)
from argosy_phi_ops.reference.kernels.registry import Array
from argosy_tensorcore.tensor import Tensor


def _axis_last_to(x: Tensor, axis: int, count: int) -> Tensor:
    """The first `count` axes moved to where `axis` was."""
    order = [*range(count, count + axis), *range(count), *range(count + axis, x.ndim)]
    return x if order == sorted(order) else prim.transpose(x, permutation=tuple(order))


def _take(name: str, x: Tensor, index: Tensor, axis: int) -> Tensor:
    """Slices of `x` along `axis`: the axes of `index` take its place."""
    found = prim.gather(x, index_column(from_front(name, index, x.shape[axis])), axes=(axis,))
    return _axis_last_to(found, axis, index.ndim)


@operator(form=choose_gather)
def gather(x: Tensor, index: Tensor, axis: int | None = None) -> Tensor:
    """The slices of `x` along `axis` (0 by default) at the indices of a vector (or a 0-D tensor: it drops the axis)."""
    if index.ndim == 2 and index.shape[1] == 1:
        index = prim.reshape(index, shape=index.shape[:1])
    if index.ndim > 1:
        raise ShapeError(f"gather: index {index.type} should be a vector or 0-D; see take_along_axis and gather_nd")
    return _take("gather", x, index, axis_of("gather", 0 if axis is None else axis, x.ndim))


@gather.check_bounds
def _(x: Array, index: Array, axis: int | None) -> Bounds:
    yield span(index, x.shape[axis or 0])


def picks(rng: np.random.Generator) -> Iterator[Sample]:
    """Vectors of indices along both axes."""
    x = rng.standard_normal((4, 3))
    yield Sample(x, np.array([0, 3, -1]))
    yield Sample(x, np.array([2, 0], np.int32), 1)


gather.samples(picks)


@operator(aliases={"input": "x", "dim": "axis"}, form=index_first, samples=picks)
def index_select(x: Tensor, index: Tensor, axis: int = 0) -> Tensor:
    """The slices of `x` along `axis` at the indices of a vector."""
    return _take("index_select", x, index, axis_of("index_select", axis, x.ndim))


@index_select.check_bounds
def _(x: Array, index: Array, axis: int) -> Bounds:
    yield span(index, x.shape[axis])


@operator()
def gather_nd(x: Tensor, index: Tensor) -> Tensor:
    """``x[index[..., 0], index[..., 1], ...]``: the last axis of `index` addresses the first axes of `x`."""
    depth = depth_of("gather_nd", x, index)
    if not depth:
        return prim.broadcast_to(x, (*index.shape[:-1], *x.shape))
    return prim.gather(x, nd_address("gather_nd", index, x.shape[:depth]), axes=tuple(range(depth)))


@gather_nd.check_bounds
def _(x: Array, index: Array) -> Bounds:
    return spans(index, x.shape)


@gather_nd.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((4, 3, 2))
    yield Sample(x, np.array([[0, 1], [3, -1]]))
    yield Sample(x, np.array([[[0], [2]]]))
    yield Sample(x, np.array([1, 2, 0]))


@operator(aliases={"input": "arr", "dim": "axis"})
def take_along_axis(arr: Tensor, indices: Tensor, axis: int, broadcast: bool = True) -> Tensor:
    """Elements at indices along `axis` that differ from place to place; `indices` broadcasts on the other axes."""
    at = axis_of("take_along_axis", axis, arr.ndim)
    index = spread_index("take_along_axis", arr, indices, at, broadcast)
    address, axes = addresses_along("take_along_axis", arr, index, at)
    return prim.gather(arr, address, axes=axes)


@take_along_axis.check_bounds
def _(arr: Array, indices: Array, axis: int, broadcast: bool) -> Bounds:
    yield span(indices, arr.shape[axis] if arr.ndim else 1)


@take_along_axis.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((4, 3))
    yield Sample(x, rng.integers(-4, 4, (2, 3)), 0)
    yield Sample(x, np.array([[0, 2]]), -1)
    yield Sample(x, rng.integers(0, 3, (2, 2)), 1, broadcast=False)


@operator()
def index_sample(x: Tensor, index: Tensor) -> Tensor:
    """For each row of `x` the elements at the indices in that row of `index`."""
    wide = from_front("index_sample", index, x.shape[1])
    return prim.gather(x, index_column(wide), axes=(1,), batch=1)


@index_sample.check_bounds
def _(x: Array, index: Array) -> Bounds:
    yield index, 0, x.shape[1]


@index_sample.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 5)), np.array([[0, 4, 1], [2, 2, 3]]))


@operator()
def take(x: Tensor, index: Tensor, mode: str = "raise") -> Tensor:
    """Elements of the flattened tensor; indices outside wrap around ("wrap") or clamp ("clip")."""
    size = x.type.size
    flat = prim.reshape(x, shape=(size,))
    if mode == "wrap":
        extent = size if isinstance(size, int) else prim.dim_size(dim=size, dtype="int64")
        wide = prim.floor_mod(prim.cast(index, dtype="int64"), extent)
    elif mode == "clip":
        wide = prim.cast(index, dtype="int64")
    else:
        wide = from_front("take", index, size)
    return prim.gather(flat, index_column(wide), axes=(0,))


@take.check_bounds
def _(x: Array, index: Array, mode: str) -> Bounds:
    if mode == "raise":
        yield span(index, x.size)


@take.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3))
    yield Sample(x, np.array([[0, -1], [3, 5]]))
    yield Sample(x, np.array([7, -8]), "wrap")
    yield Sample(x, np.array([7, -8]), "clip")


@operator()
def shard_index(input: Tensor, index_num: int, nshards: int, shard_id: int, ignore_value: int = -1) -> Tensor:
    """Indices below `index_num` as those within shard `shard_id` of `nshards`; `ignore_value` where in another one."""
    if not 0 <= shard_id < nshards:
        raise OperatorError(f"shard_index: shard_id {shard_id} should lie in [0, {nshards})")
    size = (index_num + nshards - 1) // nshards
    here = prim.eq(prim.floor_div(input, size), shard_id)
    return prim.select(here, prim.floor_mod(input, size), ignore_value)


@shard_index.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(np.array([[16], [1], [19]]), 20, 2, 0)
