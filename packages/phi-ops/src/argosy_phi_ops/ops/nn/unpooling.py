"""Maxima put back where they came from, and pooling over windows of uneven sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.common.arguments import check_static_sizes, table
from argosy_tensorcore.tensor import Tensor


@operator()
def unpool(x: Tensor, indices: Tensor, output_size: Sequence[int]) -> Tensor:
    """Zeros [N, C, *output_size] with the elements of `x` [N, C, *S] at the places `indices` in each flattened plane.

    `indices` are those that max pooling gives with `return_mask`. Elements of one place overwrite each other.
    """
    if x.shape != indices.shape or x.ndim != len(output_size) + 2:
        raise ShapeError(f"unpool: x {x.type} and indices {indices.type} are [N, C, *S] of {len(output_size)} axes S")
    plane, places = prod(output_size), prod(x.shape[2:])
    flat = prim.reshape(x, shape=(*x.shape[:2], places))
    index = prim.reshape(prim.cast(indices, dtype="int64"), shape=(*x.shape[:2], places, 1))
    empty = prim.constant(0, x.dtype, (*x.shape[:2], plane))
    spread = prim.scatter(empty, index, flat, axes=(2,), batch=2, kind="set")
    return prim.reshape(spread, shape=(*x.shape[:2], *output_size))


@unpool.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((1, 2, 3)), np.array([[[0, 3, 5], [1, 2, 4]]], np.int32), [6])
    yield Sample(rng.standard_normal((1, 1, 2, 2)), np.array([[[[0, 3], [5, 11]]]]), [3, 4])


@operator()
def fractional_windows(
    x: Tensor, starts: Sequence[Sequence[int]], stops: Sequence[Sequence[int]]
) -> tuple[Tensor, Tensor]:
    """The maxima of `x` [N, C, *S] over windows, and their places (int32) in each flattened plane.

    Window i along a spatial axis reaches from ``starts[axis][i]`` up to ``stops[axis][i]``.
    """
    sizes = x.shape[2:]
    check_static_sizes("fractional_max_pool", sizes)
    gathered, rank = x, len(sizes)
    grids = [_grid(first, stop) for first, stop in zip(starts, stops, strict=True)]
    for axis, grid in enumerate(grids):  # [N, C, out, window, ...] axis by axis
        order = (*range(2 + 2 * axis), *range(3 + 2 * axis, gathered.ndim), 2 + 2 * axis)
        moved = prim.transpose(gathered, permutation=order)
        taken = prim.gather(moved, table(grid.reshape(*grid.shape, 1)), axes=(moved.ndim - 1,))
        back = (*range(2, 2 + 2 * axis + 2), 0, 1, *range(2 + 2 * axis + 2, taken.ndim))
        gathered = prim.transpose(taken, permutation=back)
    outs = tuple(2 + 2 * i for i in range(rank))
    inner = tuple(3 + 2 * i for i in range(rank))
    together = prim.transpose(gathered, permutation=(0, 1, *outs, *inner))
    shape = (*together.shape[: 2 + rank], prod(together.shape[2 + rank :]))
    flat = prim.reshape(together, shape=shape)
    best = prim.argmax(flat, axis=2 + rank, dtype="int64")
    places = prim.broadcast(table(_places(grids, sizes)), shape=shape, axes=tuple(range(2, 3 + rank)))
    window = prim.iota(shape=shape, axis=2 + rank, dtype="int64")
    chosen = prim.eq(window, prim.broadcast(best, shape=shape, axes=tuple(range(2 + rank))))
    mask = prim.reduce_sum(prim.select(chosen, places, 0), axes=(2 + rank,))
    return prim.reduce_max(flat, axes=(2 + rank,)), prim.cast(mask, dtype="int32")


def _grid(first: Sequence[int], stop: Sequence[int]) -> Any:
    """[windows, largest window]: the places of each window, its last one repeated where it is smaller."""
    begin, end = np.asarray(first, np.int64), np.asarray(stop, np.int64)
    return np.minimum(begin[:, None] + np.arange(int((end - begin).max())), end[:, None] - 1)


def _places(grids: Sequence[Any], sizes: Sequence[int]) -> Any:
    """The number of each window's element in its plane, [*windows, elements]."""
    rank, total = len(grids), np.zeros((1,) * (2 * len(grids)), np.int64)
    for axis, grid in enumerate(grids):
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = grid.shape
        total = total + grid.reshape(shape) * prod(sizes[axis + 1 :])
    return np.ascontiguousarray(total.reshape(*total.shape[:rank], -1))


@fractional_windows.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 2, 5, 4)), [[0, 1, 3], [0, 2]], [[1, 3, 5], [2, 4]])
