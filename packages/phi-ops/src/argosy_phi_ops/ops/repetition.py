"""Operators that repeat and surround: broadcasting, tiling, padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.arguments import axis_of, section
from argosy_phi_ops.ops.forms import sizes_from
from argosy_tensorcore.tensor import Tensor


@operator(aliases={"input": "x", "size": "shape"})
def broadcast_to(x: Tensor, shape: Sequence[int]) -> Tensor:
    """`x` repeated to `shape`, its axes aligned at the right; -1 keeps the size of an axis."""
    extra = len(shape) - x.ndim
    if extra < 0:
        raise ShapeError(f"broadcast_to: {x.type} has more axes than shape {list(shape)}")
    sizes = tuple(x.shape[i - extra] if n == -1 and i >= extra else n for i, n in enumerate(shape))
    return prim.broadcast_to(x, sizes)


def broadcastable(rng: np.random.Generator) -> Iterator[Sample]:
    """Sizes given and kept."""
    yield Sample(rng.standard_normal((2, 1)), [-1, 5])
    yield Sample(rng.standard_normal((1, 3)), [5, 7, 3])


broadcast_to.samples(broadcastable)


@operator(aliases={"input": "x", "size": "shape"}, form=sizes_from(1, 1))
def expand(x: Tensor, shape: Sequence[int]) -> Tensor:
    """`x` repeated to `shape`, as :func:`broadcast_to`."""
    return broadcast_to(x, shape)


expand.samples(broadcastable)


@operator()
def expand_as(x: Tensor, y: Tensor) -> Tensor:
    """`x` repeated to the shape of `y`."""
    return prim.broadcast_to(x, y.shape)


@expand_as.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 1)), rng.standard_normal((4, 2, 3)))


@operator(aliases={"input": "x", "dims": "repeat_times"})
def tile(x: Tensor, repeat_times: int | Sequence[int]) -> Tensor:
    """The whole of `x` repeated along each axis; missing axes are added in front."""
    times = (repeat_times,) if isinstance(repeat_times, int) else tuple(repeat_times)
    rank = max(len(times), x.ndim)
    times = (1,) * (rank - len(times)) + times
    shape = (1,) * (rank - x.ndim) + tuple(x.shape)
    paired = tuple(n for pair in zip(times, shape, strict=True) for n in pair)
    kept = tuple(range(2 * (rank - x.ndim) + 1, 2 * rank, 2))
    spread = prim.broadcast(x, shape=paired, axes=kept)
    return prim.reshape(spread, shape=tuple(r * n for r, n in zip(times, shape, strict=True)))


@tile.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), [2, 1])
    yield Sample(rng.standard_normal(3), [2, 2])
    yield Sample(rng.standard_normal((2, 3)), 2)


@operator(aliases={"input": "x", "dim": "axis"}, keywords=("output_size",))
def repeat_interleave(x: Tensor, repeats: int | Sequence[int], axis: int | None = None) -> Tensor:
    """Each slice along `axis` (each element of the flattened tensor) `repeats` times in a row.

    `repeats` is one number or one for each slice.
    """
    if axis is None:
        x, axis = prim.reshape(x, shape=(x.type.size,)), 0
    at = axis_of("repeat_interleave", axis, x.ndim)
    if not isinstance(repeats, int):
        return _repeated_each(x, repeats, at)
    shape = (*x.shape[: at + 1], repeats, *x.shape[at + 1 :])
    spread = prim.broadcast(x, shape=shape, axes=tuple(i if i <= at else i + 1 for i in range(x.ndim)))
    return prim.reshape(spread, shape=(*x.shape[:at], x.shape[at] * repeats, *x.shape[at + 1 :]))


def _repeated_each(x: Tensor, repeats: Sequence[int], axis: int) -> Tensor:
    size = x.shape[axis]
    counts = tuple(repeats) * size if len(repeats) == 1 and isinstance(size, int) else tuple(repeats)
    if len(counts) != size:
        raise ShapeError(f"repeat_interleave: {len(counts)} repeats for the {size} slices of {x.type}")
    pieces = [section(x, axis, i, i + 1) for i, count in enumerate(counts) for _ in range(count)]
    return prim.concat(*pieces, axis=axis) if pieces else section(x, axis, 0, 0)


@repeat_interleave.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), 2)
    yield Sample(rng.standard_normal((2, 3)), 3, axis=1)
    yield Sample(rng.standard_normal((2, 3)), [0, 2, 1], axis=1)


@operator()
def pad(
    x: Tensor,
    pad: Sequence[int],
    mode: str = "constant",
    value: float = 0.0,
    data_format: str | None = None,
    pad_from_left_axis: bool = True,
) -> Tensor:
    """Elements added around `x`: two counts for each axis, or for each spatial axis (the last one first).

    With counts for all axes they start from the first axis, or from the last unless `pad_from_left_axis`. Modes:
    constant (`value`), reflect, replicate and circular.
    """
    before, after = _pad_counts(x.ndim, tuple(pad), data_format, pad_from_left_axis)
    if mode == "constant":
        filler = prim.constant(value if x.dtype.startswith(("float", "bfloat", "complex")) else int(value), x.dtype)
        return prim.pad(x, filler, low=before, high=after, interior=(0,) * x.ndim)
    for axis in range(x.ndim):
        if before[axis] or after[axis]:
            x = _extended(x, axis, before[axis], after[axis], mode)
    return x


def _pad_counts(
    rank: int, pad: tuple[int, ...], data_format: str | None, from_left: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if len(pad) % 2 or len(pad) > 2 * rank:
        raise ShapeError(f"pad: two counts for each of at most {rank} axes are expected, got {list(pad)}")
    pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    if len(pairs) == rank and from_left:
        chosen = pairs
    elif len(pairs) == rank:
        chosen = pairs[::-1]
    else:
        channels_last = data_format is not None and data_format[-1] == "C"
        spatial = list(range(1, rank - 1) if channels_last else range(rank - len(pairs), rank))
        chosen = [(0, 0)] * rank
        if len(spatial) != len(pairs):
            raise ShapeError(f"pad: {data_format} of {rank} axes has {len(spatial)} spatial ones, got {list(pad)}")
        for axis, pair in zip(reversed(spatial), pairs, strict=True):
            chosen[axis] = pair
    return tuple(p[0] for p in chosen), tuple(p[1] for p in chosen)


def _extended(x: Tensor, axis: int, low: int, high: int, mode: str) -> Tensor:
    size = x.shape[axis]
    if mode == "replicate":
        ends = [section(x, axis, 0, 1)] * low, [section(x, axis, size - 1, size)] * high
        return prim.concat(*ends[0], x, *ends[1], axis=axis)
    if isinstance(size, int) and ((mode == "reflect" and max(low, high) >= size) or (mode == "circular" and not size)):
        raise ShapeError(f"pad: {mode} of ({low}, {high}) elements needs more than the {size} of axis {axis}")
    if mode == "reflect":
        front = prim.reverse(section(x, axis, 1, low + 1), axes=(axis,))
        back = prim.reverse(section(x, axis, size - 1 - high, size - 1), axes=(axis,))
    elif mode == "circular":
        turns = (low // size, high // size) if isinstance(size, int) else (0, 0)
        low, high = low - turns[0] * size, high - turns[1] * size
        front, back = section(x, axis, size - low, size), section(x, axis, 0, high)
        return prim.concat(front, *[x] * (turns[0] + 1 + turns[1]), back, axis=axis)
    else:
        raise ShapeError(f"pad: mode {mode!r} is unknown; there are constant, reflect, replicate and circular")
    return prim.concat(front, x, back, axis=axis)


@pad.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((1, 2, 3, 4))
    yield Sample(x, [0, 0, 1, 0, 0, 2, 1, 1], value=7.0)
    for mode in ("constant", "reflect", "replicate", "circular"):
        yield Sample(x, [1, 2, 0, 1], mode=mode)
    yield Sample(x, [1, 0, 0, 2], data_format="NHWC")
