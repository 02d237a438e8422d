"""Slices along axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.common.arguments import axis_of
from argosy_phi_ops.ops.indexing.subscript import getitem
from argosy_tensorcore.tensor import Tensor


def _slice(
    name: str, x: Tensor, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int], strides: Sequence[int]
) -> Tensor:
    key: list[tuple[Any, ...]] = [("slice", None, None, None)] * x.ndim
    for axis, start, end, stride in zip(axes, starts, ends, strides, strict=True):
        key[axis_of(name, axis, x.ndim)] = ("slice", start, end, stride)
    return getitem(x, [], tuple(key))


@operator(view=True)
def slice_(input: Tensor, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int]) -> Tensor:
    """``input[..., start:end, ...]`` along each of `axes`; bounds outside are moved in. A view."""
    return _slice("slice", input, axes, starts, ends, (1,) * len(axes))


@slice_.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((4, 5, 6)), [0, 2], [1, -3], [3, 6])


@operator(view=True)
def strided_slice(
    x: Tensor, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int], strides: Sequence[int]
) -> Tensor:
    """``x[..., start:end:stride, ...]`` along each of `axes`. A view."""
    return _slice("strided_slice", x, axes, starts, ends, strides)


@strided_slice.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((4, 5, 6)), [1, 2], [0, 1], [5, 6], [2, 3])


@operator(view=True)
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """`length` indices along `dim` from `start` on. A view."""
    at = axis_of("narrow", dim, input.ndim)
    first = start + input.shape[at] if start < 0 else start
    return _slice("narrow", input, (at,), (first,), (first + length,), (1,))


@narrow.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((4, 5)), 1, 1, 3)
    yield Sample(rng.standard_normal((4, 5)), 0, -2, 2)


@operator()
def crop(x: Tensor, shape: Sequence[int] | None = None, offsets: Sequence[int] | None = None) -> Tensor:
    """The block of `shape` (-1: the rest of the axis) that begins at `offsets` (zeros)."""
    sizes = tuple(x.shape) if shape is None else tuple(shape)
    starts = (0,) * x.ndim if offsets is None else tuple(offsets)
    if len(sizes) != x.ndim or len(starts) != x.ndim:
        raise ShapeError(
            f"crop: shape {list(sizes)} and offsets {list(starts)} should have one entry for each axis of {x.type}"
        )
    limits = tuple(n if size == -1 else start + size for n, size, start in zip(x.shape, sizes, starts, strict=True))
    for axis, (start, limit, n) in enumerate(zip(starts, limits, x.shape, strict=True)):
        if isinstance(n, int) and not 0 <= start <= limit <= n:
            raise ShapeError(f"crop: elements {start} to {limit} should lie within axis {axis} of {x.type}")
    return prim.slice(x, start=starts, limit=limits, stride=(1,) * x.ndim)


@crop.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((3, 4)), [2, -1], [1, 1])
    yield Sample(rng.standard_normal((3, 4)))
