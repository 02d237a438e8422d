"""Kernels that move elements without arithmetic; views wherever numpy has one."""

from collections.abc import Sequence

import numpy as np

from argosy_phi_ops.reference.kernels.registry import Array, kernel, numpy_dtype


@kernel("broadcast")
def broadcast(x: Array, *, shape: Sequence[int], axes: Sequence[int]) -> Array:
    """Repeat `x` along new axes (and axes of size one); `axes[i]` is the result axis of operand axis `i`."""
    aligned = [1] * len(shape)
    for axis, size in zip(axes, x.shape, strict=True):
        aligned[axis] = size
    in_order = x.transpose(sorted(range(x.ndim), key=list(axes).__getitem__))
    return np.broadcast_to(in_order.reshape(aligned), shape)


@kernel("reshape")
def reshape(x: Array, *, shape: Sequence[int]) -> Array:
    """The elements in row-major order under another shape."""
    return x.reshape(shape)


@kernel("transpose")
def transpose(x: Array, *, permutation: Sequence[int]) -> Array:
    """Result axis `i` is operand axis `permutation[i]`."""
    return x.transpose(permutation)


@kernel("slice")
def slice_(x: Array, *, start: Sequence[int], limit: Sequence[int], stride: Sequence[int]) -> Array:
    """Every `stride`-th index from `start` up to, not including, `limit`."""
    return x[tuple(slice(*bounds) for bounds in zip(start, limit, stride, strict=True))]


@kernel("pad")
def pad(x: Array, value: Array, *, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Array:
    """`interior` copies of `value` between neighbours, then `low` before and `high` after; negative counts
    crop.
    """
    spread = [max(n + (n - 1) * gap, 0) for n, gap in zip(x.shape, interior, strict=True)]
    shape = [lo + n + hi for lo, n, hi in zip(low, spread, high, strict=True)]
    result = np.full(shape, value, x.dtype)
    to, source = [], []
    for n, gap, lo, size in zip(x.shape, interior, low, shape, strict=True):
        step = gap + 1
        first = max(0, -(lo // step)) if lo < 0 else 0  # the first index that is not cropped away
        last = min(n, max(first, -((lo - size) // step)))  # one past the last
        to.append(slice(lo + first * step, lo + (last - 1) * step + 1 if last > first else lo + first * step, step))
        source.append(slice(first, last))
    result[tuple(to)] = x[tuple(source)]
    return result


@kernel("concat")
def concat(*xs: Array, axis: int) -> Array:
    """The operands one after another along `axis`."""
    return np.concatenate(xs, axis)


@kernel("reverse")
def reverse(x: Array, *, axes: Sequence[int]) -> Array:
    """The order of the indices of `axes` turned round."""
    return np.flip(x, tuple(axes))


@kernel("iota")
def iota(*, shape: Sequence[int], axis: int, dtype: str) -> Array:
    """The index along `axis`, as `dtype`."""
    aligned = [1] * len(shape)
    aligned[axis] = shape[axis]
    return np.broadcast_to(np.arange(shape[axis]).astype(numpy_dtype(dtype)).reshape(aligned), shape)


@kernel("relayout")
def relayout(x: Array, *like: Array, target: str = "") -> Array:
    """`x`: one process holds all of it."""
    return x


@kernel("place")
def place(x: Array, *, source: str, target: str) -> Array:
    """`x`: kernels see the host's memory alone."""
    return x


@kernel("to_local")
def to_local(x: Array, *like: Array, target: str = "", shape: Sequence[int]) -> Array:
    """`x`, of which one process has all. Raises ValueError for a smaller part, which the partitioner cuts out."""
    return _all_of("to_local", x, shape)


@kernel("from_local")
def from_local(x: Array, *like: Array, target: str = "", shape: Sequence[int]) -> Array:
    """`x`, which is all of the tensor. Raises ValueError where it is not."""
    return _all_of("from_local", x, shape)


def _all_of(name: str, x: Array, shape: Sequence[int]) -> Array:
    if x.shape != tuple(shape):
        raise ValueError(f"prim.{name}: {list(shape)} of {list(x.shape)}; one process has all of a tensor, or none")
    return x


@kernel("dim_size")
def dim_size(*, dim: int, dtype: str = "int64") -> Array:
    """The size `dim` (symbolic in the program, a number by now) as a 0-D tensor."""
    return np.asarray(dim, numpy_dtype(dtype))
