"""Scatters: elements written at indices that tensors hold. Negative indices count from the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.call_overloads import choose_scatter, index_first
from argosy_phi_ops.declare.operator import Sample, operator
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
from argosy_phi_ops.primitives.checks import INTEGER
from argosy_phi_ops.reference.kernels.registry import Array
from argosy_tensorcore.tensor import Tensor

_REDUCTIONS = {
    "assign": "set", "add": "add", "multiply": "mul", "mul": "mul", "amin": "min", "amax": "max", "mean": "add",
}  # fmt: skip


@operator(promote="first", inplace=True)
def put_along_axis(
    arr: Tensor,
    indices: Tensor,
    values: Tensor,
    axis: int,
    reduce: str = "assign",
    include_self: bool = True,
    broadcast: bool = True,
) -> Tensor:
    """`arr` with `values` combined in at indices along `axis`: assign, add, multiply (mul), amin, amax, mean.

    Without `include_self` only the values are combined, not what was there.
    """
    at = axis_of("put_along_axis", axis, arr.ndim)
    if reduce not in _REDUCTIONS:
        known = ", ".join(_REDUCTIONS)
        raise NotImplementedError(f"put_along_axis: reduce={reduce!r} is not implemented; there are {known}")
    index = spread_index("put_along_axis", arr, indices, at, broadcast)
    address, axes = addresses_along("put_along_axis", arr, index, at)
    given = values if values.dtype == arr.dtype else prim.cast(values, dtype=arr.dtype)
    kind = _REDUCTIONS[reduce]
    if not include_self and kind != "set":
        arr = _neutral_at(arr, address, axes, kind)
    result = prim.scatter(arr, address, prim.broadcast_to(given, index.shape), axes=axes, kind=kind)
    return _divide(result, address, axes, include_self) if reduce == "mean" else result


@put_along_axis.check_bounds
def _(arr: Array, indices: Array, axis: int, **_: Any) -> Bounds:
    yield span(indices, arr.shape[axis] if arr.ndim else 1)


def _divide(total: Tensor, address: Tensor, axes: tuple[int, ...], include_self: bool) -> Tensor:
    """Sums divided by the number of terms: those written, and what was there where that counts or nothing came."""
    ones = prim.constant(1, total.dtype, address.shape[:-1])
    start = prim.constant(1, total.dtype, total.shape)
    if not include_self:
        start = prim.scatter(start, address, prim.mul(ones, 0), axes=axes, kind="set")
    return prim.div(total, prim.scatter(start, address, ones, axes=axes, kind="add"))


def _neutral_at(x: Tensor, address: Tensor, axes: tuple[int, ...], kind: str) -> Tensor:
    """`x` with the neutral element of `kind` at the places about to be written."""
    infinite = {"min": float("inf"), "max": float("-inf")}
    if kind in infinite and x.dtype in INTEGER:
        limits = np.iinfo(x.dtype)
        neutral: Any = int(limits.max if kind == "min" else limits.min)
    else:
        neutral = {"add": 0, "mul": 1, **infinite}[kind]
    shape = address.shape[:-1]
    return prim.scatter(x, address, prim.constant(neutral, x.dtype, shape), axes=axes, kind="set")


@put_along_axis.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((4, 3))
    index = np.array([[0, 1, 2], [0, 1, 1]])
    yield Sample(x, np.array([[1], [0], [2], [2]]), 7.0, 1)
    for reduce in ("add", "multiply", "amin", "amax", "mean"):
        yield Sample(x, index, rng.standard_normal((2, 3)), 0, reduce)
    yield Sample(x, index, rng.standard_normal((2, 3)), 0, "add", include_self=False)
    yield Sample(rng.integers(0, 9, (4, 3)), index, rng.integers(0, 9, (2, 3)), 0, "amax", include_self=False)


@operator(inplace=True, form=choose_scatter)
def scatter(x: Tensor, index: Tensor, updates: Tensor, overwrite: bool = True) -> Tensor:
    """`x` with the rows at `index` replaced by `updates` (the last one wins), or else zeroed and added to."""
    if index.ndim == 2 and index.shape[1] == 1:
        index = prim.reshape(index, shape=index.shape[:1])
    address = index_column(from_front("scatter", index, x.shape[0]))
    if overwrite:
        return prim.scatter(x, address, updates, axes=(0,), kind="set")
    cleared = prim.scatter(x, address, prim.constant(0, x.dtype, updates.shape), axes=(0,), kind="set")
    return prim.scatter(cleared, address, updates, axes=(0,), kind="add")


@scatter.check_bounds
def _(x: Array, index: Array, **_: Any) -> Bounds:
    yield span(index, x.shape[0])


@scatter.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x, updates = rng.standard_normal((4, 3)), rng.standard_normal((2, 3))
    yield Sample(x, np.array([3, 0]), updates)
    yield Sample(x, np.array([1, 1]), updates, overwrite=False)


@operator()
def scatter_nd_add(x: Tensor, index: Tensor, updates: Tensor) -> Tensor:
    """`x` with `updates` added at the places that the last axis of `index` addresses."""
    depth = depth_of("scatter_nd_add", x, index)
    address = nd_address("scatter_nd_add", index, x.shape[:depth])
    return prim.scatter(x, address, updates, axes=tuple(range(depth)), kind="add")


@scatter_nd_add.check_bounds
def _(x: Array, index: Array, updates: Array) -> Bounds:
    return spans(index, x.shape)


@scatter_nd_add.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((4, 3)), np.array([[0, 1], [0, 1], [3, 2]]), rng.standard_normal(3))
    yield Sample(rng.standard_normal((4, 3)), np.array([[2], [2]]), rng.standard_normal((2, 3)))


@operator()
def scatter_nd(index: Tensor, updates: Tensor, shape: Sequence[int]) -> Tensor:
    """Zeros of `shape` with `updates` added at the places that the last axis of `index` addresses."""
    return scatter_nd_add(prim.constant(0, updates.dtype, tuple(shape)), index, updates)


@scatter_nd.check_bounds
def _(index: Array, updates: Array, shape: Sequence[int]) -> Bounds:
    return spans(index, shape)


@scatter_nd.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(np.array([[1], [1], [3]]), rng.standard_normal((3, 2)), [5, 2])


@operator(inplace=True, aliases={"source": "value"}, form=index_first)
def index_add(x: Tensor, index: Tensor, axis: int, value: Tensor, alpha: float = 1) -> Tensor:
    """`x` with the slices of ``alpha * value`` added at `index` along `axis`."""
    at = axis_of("index_add", axis, x.ndim)
    address = index_column(from_front("index_add", index, x.shape[at]))
    scaled = value if alpha == 1 else prim.mul(value, alpha)
    first = (at, *(i for i in range(x.ndim) if i != at))
    return prim.scatter(x, address, prim.transpose(scaled, permutation=first), axes=(at,), kind="add")


@index_add.check_bounds
def _(x: Array, index: Array, axis: int, **_: Any) -> Bounds:
    yield span(index, x.shape[axis])


@index_add.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((4, 3)), np.array([0, 2, 0]), 0, rng.standard_normal((3, 3)))
    yield Sample(rng.standard_normal((4, 3)), np.array([1, 2]), -1, rng.standard_normal((4, 2)), 2.0)


@operator(promote="first", inplace=True)
def index_fill(x: Tensor, index: Tensor, axis: int, value: Tensor) -> Tensor:
    """`x` with the slices at `index` along `axis` filled with a number or a 0-D tensor."""
    at = axis_of("index_fill", axis, x.ndim)
    address = index_column(from_front("index_fill", index, x.shape[at]))
    filler = value if value.dtype == x.dtype else prim.cast(value, dtype=x.dtype)
    rest = tuple(n for i, n in enumerate(x.shape) if i != at)
    return prim.scatter(x, address, prim.broadcast_to(filler, (*index.shape, *rest)), axes=(at,), kind="set")


@index_fill.check_bounds
def _(x: Array, index: Array, axis: int, value: Any) -> Bounds:
    yield span(index, x.shape[axis])


@index_fill.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((4, 3)), np.array([0, 2]), 1, -1.0)
