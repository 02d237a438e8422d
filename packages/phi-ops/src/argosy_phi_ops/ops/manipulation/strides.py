"""Views of a tensor's elements by strides and windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.common.arguments import axis_of, table
from argosy_phi_ops.reference.kernels.registry import Array
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.tensor import Tensor


def _check_strides(shape: Sequence[int], stride: Sequence[int], offset: int, size: int) -> None:
    if len(shape) != len(stride) or any(n < 0 for n in shape) or any(s < 0 for s in stride) or offset < 0:
        raise ShapeError(f"as_strided: shape {list(shape)}, stride {list(stride)} and offset {offset} do not fit")
    last = offset + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    if all(shape) and last >= size:
        raise ShapeError(f"as_strided: element {last} of a tensor of {size}; elements should be from 0 to {size - 1}")


def _elements(offset: int, itemsize: int) -> int:
    if offset % itemsize:
        raise ShapeError(f"as_strided: an offset of {offset} bytes is no whole number of elements of {itemsize} bytes")
    return offset // itemsize


@operator(view=True, aliases={"size": "shape"})
def as_strided(x: Tensor, shape: Sequence[int], stride: Sequence[int], offset: int = 0) -> Tensor:
    """The elements ``i0 * stride[0] + i1 * stride[1] + ...`` of `x` in row-major order from `offset` (in bytes) on.

    A view of contiguous tensors.
    """
    size = x.type.size
    if not isinstance(size, int):
        raise NotImplementedError(f"as_strided of a symbolic size is not implemented: {x.type}")
    offset = _elements(offset, as_dtype(x.dtype).itemsize)
    _check_strides(shape, stride, offset, size)
    places = np.full(tuple(shape), offset, np.int64)
    for axis, (n, step) in enumerate(zip(shape, stride, strict=True)):
        places += (np.arange(n) * step).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    flat = prim.reshape(x, shape=(size,))
    return prim.gather(flat, table(places[..., None]), axes=(0,))


@as_strided.reference
def _(x: Array, shape: Sequence[int], stride: Sequence[int], offset: int) -> Array:
    offset = _elements(offset, x.itemsize)
    _check_strides(shape, stride, offset, x.size)
    flat = x.reshape(-1)[offset:]
    found: Array = np.lib.stride_tricks.as_strided(flat, tuple(shape), tuple(s * x.itemsize for s in stride))
    return found


@as_strided.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((3, 4)), [2, 2], [4, 1], 8)
    yield Sample(rng.standard_normal(6), [3, 3], [1, 1])


@operator(view=True, aliases={"dimension": "axis"})
def unfold(x: Tensor, axis: int, size: int, step: int) -> Tensor:
    """The windows of `size` elements, `step` apart, along `axis`; their elements along a new last axis. A view."""
    at = axis_of("unfold", axis, x.ndim)
    length = x.shape[at] if x.ndim else 1
    if not isinstance(length, int):
        raise NotImplementedError(f"unfold along an axis of symbolic size is not implemented: {x.type}")
    if step < 1 or not 0 <= size <= length:
        raise ShapeError(f"unfold: windows of {size} elements, {step} apart, along axis {axis} of {x.type}")
    starts = np.arange(0, length - size + 1, step)
    places = (starts[:, None] + np.arange(size)).reshape(-1, 1)
    moved = prim.transpose(x, permutation=(at, *(i for i in range(x.ndim) if i != at)))
    taken = prim.gather(moved, table(places), axes=(0,))
    rest = tuple(n for i, n in enumerate(x.shape) if i != at)
    apart = prim.reshape(taken, shape=(len(starts), size, *rest))
    order = (*range(2, at + 2), 0, *range(at + 2, x.ndim + 1), 1)
    return prim.transpose(apart, permutation=order)


@unfold.reference
def _(x: Array, axis: int, size: int, step: int) -> Array:
    at = axis_of("unfold", axis, x.ndim)
    if step < 1 or not 0 <= size <= x.shape[at]:
        raise ShapeError(f"unfold: windows of {size} elements, {step} apart, along axis {axis} of {list(x.shape)}")
    windows = np.lib.stride_tricks.sliding_window_view(x, size, at, writeable=x.flags.writeable)
    found: Array = windows[(slice(None),) * at + (slice(None, None, step),)]
    return found


@unfold.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal(9), 0, 2, 4)
    yield Sample(rng.standard_normal((2, 5, 3)), 1, 3, 1)
