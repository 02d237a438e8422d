"""Addresses: indices counted from the front, as columns of axes, with the ranges that bound them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from argosy_phi_ops import prim
from argosy_phi_ops.errors import DTypeError, ShapeError
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


def span(index: Array, size: int) -> tuple[Array, int, int]:
    """The bounds of indices that may count from the end of an axis of `size`."""
    return index, -size, size


def spans(index: Array, shape: Sequence[int]) -> Bounds:
    """The same for addresses along the last axis."""
    for i in range(index.shape[-1]):
        yield span(index[..., i], shape[i])


def index_column(index: Tensor) -> Tensor:
    return prim.reshape(index, shape=(*index.shape, 1))


def depth_of(name: str, x: Tensor, index: Tensor) -> int:
    """How many axes of `x` the last axis of `index` addresses."""
    depth = index.shape[-1]
    if not isinstance(depth, int) or depth > x.ndim:
        raise ShapeError(f"{name}: index {index.type} addresses {depth} axes of x {x.type}")
    return depth


def nd_address(name: str, index: Tensor, sizes: Sequence[Any]) -> Tensor:
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


def addresses_along(name: str, x: Tensor, index: Tensor, axis: int) -> tuple[Tensor, tuple[int, ...]]:
    """The address of ``x[i, index[i, j], j]`` for every element of `index`, over all axes."""
    columns = []
    for i in range(x.ndim):
        if i == axis:
            columns.append(index_column(from_front(name, index, x.shape[axis])))
        else:
            columns.append(index_column(prim.iota(shape=index.shape, axis=i, dtype="int64")))
    joined = columns[0] if len(columns) == 1 else prim.concat(*columns, axis=index.ndim)
    return joined, tuple(range(x.ndim))


def spread_index(name: str, x: Tensor, index: Tensor, axis: int, broadcast: bool) -> Tensor:
    if index.ndim != x.ndim:
        raise ShapeError(f"{name}: index {index.type} should have as many axes as {x.type}")
    if not broadcast:
        return index
    return prim.broadcast_to(index, tuple(index.shape[i] if i == axis else n for i, n in enumerate(x.shape)))
