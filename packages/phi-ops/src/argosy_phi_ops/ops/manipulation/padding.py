"""Padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.common.arguments import section
from argosy_tensorcore.tensor import Tensor


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
    constant (`value`), reflect, replicate and circular. Negative counts take elements away, after the others are added.
    """
    before, after = _pad_counts(x.ndim, tuple(pad), data_format, pad_from_left_axis)
    if mode == "constant":
        filler = prim.constant(value if x.dtype.startswith(("float", "bfloat", "complex")) else int(value), x.dtype)
        return prim.pad(x, filler, low=before, high=after, interior=(0,) * x.ndim)
    for axis in range(x.ndim):
        low, high = before[axis], after[axis]
        if low or high:
            x = _extend(x, axis, max(low, 0), max(high, 0), mode)
        if low < 0 or high < 0:
            x = section(x, axis, max(-low, 0), x.shape[axis] - max(-high, 0))
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


def _extend(x: Tensor, axis: int, low: int, high: int, mode: str) -> Tensor:
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
        yield Sample(x, [-1, 2, 2, -1], mode=mode)
    yield Sample(x, [1, 0, 0, 2], data_format="NHWC")
