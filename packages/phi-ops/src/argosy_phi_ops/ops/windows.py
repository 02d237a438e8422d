"""Views of a tensor's elements by strides and windows, and parts cut out by offsets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import OperatorError, ShapeError
from argosy_phi_ops.ops.norms import length
from argosy_phi_ops.ops.arguments import axis_of, table
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


@operator()
def reduce_as(x: Tensor, target: Tensor) -> Tensor:
    """`x` summed over the axes along which `target`, which broadcasts to it, is repeated."""
    extra = x.ndim - target.ndim
    axes = tuple(i for i in range(x.ndim) if i < extra or (target.shape[i - extra] == 1 and x.shape[i] != 1))
    if extra < 0 or any(i not in axes and x.shape[i] != target.shape[i - extra] for i in range(x.ndim)):
        raise ShapeError(f"reduce_as: target {target.type} does not broadcast to x {x.type}")
    if x.dtype == "bool":
        x = prim.cast(x, dtype="int64")
    return prim.reshape(prim.reduce_sum(x, axes=axes), shape=target.shape)


@reduce_as.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3, 4)), rng.standard_normal((3, 1)))


@operator(inplace=True, upcast=True)
def renorm(x: Tensor, p: float, axis: int, max_norm: float) -> Tensor:
    """`x` with every slice along `axis` scaled down to the `p`-norm `max_norm` if it is longer; of a vector the slices
    are its elements."""
    if not x.ndim:
        raise ShapeError(f"renorm takes a tensor with axes, got {x.type}")
    if p <= 0 or max_norm < 0:
        raise OperatorError(f"renorm: p {p} should be positive and max_norm {max_norm} not negative")
    at = axis_of("renorm", axis, x.ndim)
    rest = tuple(i for i in range(x.ndim) if i != at)
    lengths = length(x, p, rest)
    long = prim.gt(lengths, float(max_norm))
    scale = prim.select(long, prim.div(float(max_norm), prim.select(long, lengths, 1.0)), 1.0)
    return prim.mul(x, prim.broadcast(scale, shape=x.shape, axes=(at,)))


@renorm.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((3, 4)), 2.0, 0, 1.0)
    yield Sample(rng.standard_normal((2, 3, 4)), 1.0, -1, 2.5)
    yield Sample(rng.standard_normal(5), 2.0, 0, 0.5)


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


@operator(axes="..., ... -> ...", promote="float")
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers of those sizes and angles."""
    shape = prim.broadcast_shapes([abs.shape, angle.shape])
    abs, angle = prim.broadcast_to(abs, shape), prim.broadcast_to(angle, shape)
    return prim.complex(prim.mul(abs, prim.cos(angle)), prim.mul(abs, prim.sin(angle)))


@polar.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.uniform(0.1, 2, (2, 3)), rng.standard_normal(3))
