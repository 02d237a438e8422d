"""Operators that read and write elements at indices that tensors hold. Negative indices count from the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import DTypeError, ShapeError
from argosy_phi_ops.ops.arguments import axis_of
from argosy_phi_ops.ops.forms import gathering, index_first, scattering
from argosy_phi_ops.primitives.checks import INTEGER
from argosy_phi_ops.reference.kernels.registry import Array
from argosy_tensorcore.tensor import Tensor


def from_front(name: str, index: Tensor, size: Any) -> Tensor:
    """Indices as int64 with negative ones counted from the front of an axis of `size`."""
    if index.dtype not in INTEGER:
        raise DTypeError(f"{name}: indices are integers, got {index.type}")
    wide = index if index.dtype == "int64" else prim.cast(index, dtype="int64")
    extent = size if isinstance(size, int) else prim.dim_size(dim=size, dtype="int64")
    return prim.select(prim.lt(wide, 0), prim.add(wide, extent), wide)


Bounds = Iterator[tuple[Array, int, int]]


def _span(index: Array, size: int) -> tuple[Array, int, int]:
    """The bounds of indices that may count from the end of an axis of `size`."""
    return index, -size, size


def _spans(index: Array, shape: Sequence[int]) -> Bounds:
    """The same for addresses along the last axis."""
    for i in range(index.shape[-1]):
        yield _span(index[..., i], shape[i])


def _column(index: Tensor) -> Tensor:
    return prim.reshape(index, shape=(*index.shape, 1))


def _axis_last_to(x: Tensor, axis: int, count: int) -> Tensor:
    """The first `count` axes moved to where `axis` was."""
    order = [*range(count, count + axis), *range(count), *range(count + axis, x.ndim)]
    return x if order == sorted(order) else prim.transpose(x, permutation=tuple(order))


def _taken(name: str, x: Tensor, index: Tensor, axis: int) -> Tensor:
    """Slices of `x` along `axis`: the axes of `index` take its place."""
    found = prim.gather(x, _column(from_front(name, index, x.shape[axis])), axes=(axis,))
    return _axis_last_to(found, axis, index.ndim)


@operator(form=gathering)
def gather(x: Tensor, index: Tensor, axis: int | None = None) -> Tensor:
    """The slices of `x` along `axis` (0 by default) at the indices of a vector (or a 0-D tensor: it drops the axis)."""
    if index.ndim == 2 and index.shape[1] == 1:
        index = prim.reshape(index, shape=index.shape[:1])
    if index.ndim > 1:
        raise ShapeError(f"gather: index {index.type} should be a vector or 0-D; see take_along_axis and gather_nd")
    return _taken("gather", x, index, axis_of("gather", 0 if axis is None else axis, x.ndim))


@gather.bounded
def _(x: Array, index: Array, axis: int | None) -> Bounds:
    yield _span(index, x.shape[axis or 0])


def picks(rng: np.random.Generator) -> Iterator[Sample]:
    """Vectors of indices along both axes."""
    x = rng.standard_normal((4, 3))
    yield Sample(x, np.array([0, 3, -1]))
    yield Sample(x, np.array([2, 0], np.int32), 1)


gather.samples(picks)


@operator(aliases={"input": "x", "dim": "axis"}, form=index_first)
def index_select(x: Tensor, index: Tensor, axis: int = 0) -> Tensor:
    """The slices of `x` along `axis` at the indices of a vector."""
    return _taken("index_select", x, index, axis_of("index_select", axis, x.ndim))


@index_select.bounded
def _(x: Array, index: Array, axis: int) -> Bounds:
    yield _span(index, x.shape[axis])


index_select.samples(picks)


@operator()
def gather_nd(x: Tensor, index: Tensor) -> Tensor:
    """``x[index[..., 0], index[..., 1], ...]``: the last axis of `index` addresses the first axes of `x`."""
    depth = _depth("gather_nd", x, index)
    if not depth:
        return prim.broadcast_to(x, (*index.shape[:-1], *x.shape))
    return prim.gather(x, _address("gather_nd", index, x.shape[:depth]), axes=tuple(range(depth)))


@gather_nd.bounded
def _(x: Array, index: Array) -> Bounds:
    return _spans(index, x.shape)


def _depth(name: str, x: Tensor, index: Tensor) -> int:
    """How many axes of `x` the last axis of `index` addresses."""
    depth = index.shape[-1]
    if not isinstance(depth, int) or depth > x.ndim:
        raise ShapeError(f"{name}: index {index.type} addresses {depth} axes of x {x.type}")
    return depth


def _address(name: str, index: Tensor, sizes: Sequence[Any]) -> Tensor:
    """Index vectors along the last axis counted from the front of axes of those `sizes`."""
    if not sizes:
        return index
    rank = index.ndim
    columns = []
    for i, size in enumerate(sizes):
        start, limit = [0] * rank, list(index.shape)
        start[-1], limit[-1] = i, i + 1
        column = prim.slice(index, start=tuple(start), limit=tuple(limit), stride=(1,) * rank)
        columns.append(from_front(name, column, size))
    return columns[0] if len(columns) == 1 else prim.concat(*columns, axis=rank - 1)


@gather_nd.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((4, 3, 2))
    yield Sample(x, np.array([[0, 1], [3, -1]]))
    yield Sample(x, np.array([[[0], [2]]]))
    yield Sample(x, np.array([1, 2, 0]))


def _along(name: str, x: Tensor, index: Tensor, axis: int) -> tuple[Tensor, tuple[int, ...]]:
    """The address of ``x[i, index[i, j], j]`` for every element of `index`, over all axes."""
    columns = []
    for i in range(x.ndim):
        if i == axis:
            columns.append(_column(from_front(name, index, x.shape[axis])))
        else:
            columns.append(_column(prim.iota(shape=index.shape, axis=i, dtype="int64")))
    joined = columns[0] if len(columns) == 1 else prim.concat(*columns, axis=index.ndim)
    return joined, tuple(range(x.ndim))


def _spread_index(name: str, x: Tensor, index: Tensor, axis: int, broadcast: bool) -> Tensor:
    if index.ndim != x.ndim:
        raise ShapeError(f"{name}: index {index.type} should have as many axes as {x.type}")
    if not broadcast:
        return index
    return prim.broadcast_to(index, tuple(index.shape[i] if i == axis else n for i, n in enumerate(x.shape)))


@operator(aliases={"input": "arr", "dim": "axis"})
def take_along_axis(arr: Tensor, indices: Tensor, axis: int, broadcast: bool = True) -> Tensor:
    """Elements at indices along `axis` that differ from place to place; `indices` broadcasts on the other axes."""
    at = axis_of("take_along_axis", axis, arr.ndim)
    index = _spread_index("take_along_axis", arr, indices, at, broadcast)
    address, axes = _along("take_along_axis", arr, index, at)
    return prim.gather(arr, address, axes=axes)


@take_along_axis.bounded
def _(arr: Array, indices: Array, axis: int, broadcast: bool) -> Bounds:
    yield _span(indices, arr.shape[axis] if arr.ndim else 1)


@take_along_axis.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((4, 3))
    yield Sample(x, rng.integers(-4, 4, (2, 3)), 0)
    yield Sample(x, np.array([[0, 2]]), -1)
    yield Sample(x, rng.integers(0, 3, (2, 2)), 1, broadcast=False)


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
    index = _spread_index("put_along_axis", arr, indices, at, broadcast)
    address, axes = _along("put_along_axis", arr, index, at)
    given = values if values.dtype == arr.dtype else prim.cast(values, dtype=arr.dtype)
    kind = _REDUCTIONS[reduce]
    if not include_self and kind != "set":
        arr = _neutral_at(arr, address, axes, kind)
    result = prim.scatter(arr, address, prim.broadcast_to(given, index.shape), axes=axes, kind=kind)
    return _divided(result, address, axes, include_self) if reduce == "mean" else result


@put_along_axis.bounded
def _(arr: Array, indices: Array, axis: int, **_: Any) -> Bounds:
    yield _span(indices, arr.shape[axis] if arr.ndim else 1)


def _divided(total: Tensor, address: Tensor, axes: tuple[int, ...], include_self: bool) -> Tensor:
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


@operator(inplace=True, form=scattering)
def scatter(x: Tensor, index: Tensor, updates: Tensor, overwrite: bool = True) -> Tensor:
    """`x` with the rows at `index` replaced by `updates` (the last one wins), or else zeroed and added to."""
    if index.ndim == 2 and index.shape[1] == 1:
        index = prim.reshape(index, shape=index.shape[:1])
    address = _column(from_front("scatter", index, x.shape[0]))
    if overwrite:
        return prim.scatter(x, address, updates, axes=(0,), kind="set")
    cleared = prim.scatter(x, address, prim.constant(0, x.dtype, updates.shape), axes=(0,), kind="set")
    return prim.scatter(cleared, address, updates, axes=(0,), kind="add")


@scatter.bounded
def _(x: Array, index: Array, **_: Any) -> Bounds:
    yield _span(index, x.shape[0])


@scatter.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x, updates = rng.standard_normal((4, 3)), rng.standard_normal((2, 3))
    yield Sample(x, np.array([3, 0]), updates)
    yield Sample(x, np.array([1, 1]), updates, overwrite=False)


@operator()
def scatter_nd_add(x: Tensor, index: Tensor, updates: Tensor) -> Tensor:
    """`x` with `updates` added at the places that the last axis of `index` addresses."""
    depth = _depth("scatter_nd_add", x, index)
    address = _address("scatter_nd_add", index, x.shape[:depth])
    return prim.scatter(x, address, updates, axes=tuple(range(depth)), kind="add")


@scatter_nd_add.bounded
def _(x: Array, index: Array, updates: Array) -> Bounds:
    return _spans(index, x.shape)


@scatter_nd_add.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((4, 3)), np.array([[0, 1], [0, 1], [3, 2]]), rng.standard_normal(3))
    yield Sample(rng.standard_normal((4, 3)), np.array([[2], [2]]), rng.standard_normal((2, 3)))


@operator()
def scatter_nd(index: Tensor, updates: Tensor, shape: Sequence[int]) -> Tensor:
    """Zeros of `shape` with `updates` added at the places that the last axis of `index` addresses."""
    return scatter_nd_add(prim.constant(0, updates.dtype, tuple(shape)), index, updates)


@scatter_nd.bounded
def _(index: Array, updates: Array, shape: Sequence[int]) -> Bounds:
    return _spans(index, shape)


@scatter_nd.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(np.array([[1], [1], [3]]), rng.standard_normal((3, 2)), [5, 2])


@operator(inplace=True, aliases={"source": "value"}, form=index_first)
def index_add(x: Tensor, index: Tensor, axis: int, value: Tensor, alpha: float = 1) -> Tensor:
    """`x` with the slices of ``alpha * value`` added at `index` along `axis`."""
    at = axis_of("index_add", axis, x.ndim)
    address = _column(from_front("index_add", index, x.shape[at]))
    scaled = value if alpha == 1 else prim.mul(value, alpha)
    first = (at, *(i for i in range(x.ndim) if i != at))
    return prim.scatter(x, address, prim.transpose(scaled, permutation=first), axes=(at,), kind="add")


@index_add.bounded
def _(x: Array, index: Array, axis: int, **_: Any) -> Bounds:
    yield _span(index, x.shape[axis])


@index_add.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((4, 3)), np.array([0, 2, 0]), 0, rng.standard_normal((3, 3)))
    yield Sample(rng.standard_normal((4, 3)), np.array([1, 2]), -1, rng.standard_normal((4, 2)), 2.0)


@operator(promote="first", inplace=True)
def index_fill(x: Tensor, index: Tensor, axis: int, value: Tensor) -> Tensor:
    """`x` with the slices at `index` along `axis` filled with a number or a 0-D tensor."""
    at = axis_of("index_fill", axis, x.ndim)
    address = _column(from_front("index_fill", index, x.shape[at]))
    filler = value if value.dtype == x.dtype else prim.cast(value, dtype=x.dtype)
    rest = tuple(n for i, n in enumerate(x.shape) if i != at)
    return prim.scatter(x, address, prim.broadcast_to(filler, (*index.shape, *rest)), axes=(at,), kind="set")


@index_fill.bounded
def _(x: Array, index: Array, axis: int, value: Any) -> Bounds:
    yield _span(index, x.shape[axis])


@index_fill.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((4, 3)), np.array([0, 2]), 1, -1.0)


@operator()
def index_sample(x: Tensor, index: Tensor) -> Tensor:
    """For each row of `x` the elements at the indices in that row of `index`."""
    wide = from_front("index_sample", index, x.shape[1])
    return prim.gather(x, _column(wide), axes=(1,), batch=1)


@index_sample.bounded
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
    return prim.gather(flat, _column(wide), axes=(0,))


@take.bounded
def _(x: Array, index: Array, mode: str) -> Bounds:
    if mode == "raise":
        yield _span(index, x.size)


@take.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3))
    yield Sample(x, np.array([[0, -1], [3, 5]]))
    yield Sample(x, np.array([7, -8]), "wrap")
    yield Sample(x, np.array([7, -8]), "clip")


# Results whose size depends on the values: these run eagerly only


@operator(opaque=True, aliases={"input": "x"})
def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """The elements of `x` where `mask` holds, as a vector. Its size depends on the values: eager only."""
    raise NotImplementedError  # opaque: the kernel below is all there is


@masked_select.reference
def _(x: Array, mask: Array) -> Array:
    both = np.broadcast_arrays(x, mask)
    return both[0][both[1]]


@masked_select.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), np.array([True, False, True]))


@operator(opaque=True, aliases={"input": "x"})
def nonzero(x: Tensor) -> Tensor:
    """The positions of the elements that are not zero, [count, axes]. Eager only."""
    raise NotImplementedError  # opaque: the kernel below is all there is


@nonzero.reference
def _(x: Array) -> Array:
    return np.stack(np.atleast_1d(x).nonzero(), 1).astype(np.int64) if x.ndim else np.zeros((int(x != 0), 0), np.int64)


@nonzero.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(np.array([[0, 1], [2, 0]]))


@operator(opaque=True, constant=True)  # which elements there are is a choice
def unique(
    x: Tensor,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    dtype: str = "int64",
    sorted: bool = True,
) -> Tensor:
    """The different elements (or slices along `axis`) in order; on request where they are, and counts. Eager only."""
    raise NotImplementedError  # opaque: the kernel below is all there is


@unique.reference
def _(
    x: Array,
    return_index: bool,
    return_inverse: bool,
    return_counts: bool,
    axis: int | None,
    dtype: str,
    sorted: bool,
) -> Any:
    find: Any = np.unique  # its overloads do not know flags that are variables
    found = find(x, return_index, return_inverse, return_counts, axis)
    if not isinstance(found, tuple):
        return found
    return (found[0], *(np.asarray(v).reshape(-1).astype(dtype) for v in found[1:]))


@unique.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(np.array([3, 1, 3, 2]))
    yield Sample(np.array([[3, 1], [3, 1], [0, 2]]), axis=0, return_index=True, return_inverse=True, return_counts=True)
