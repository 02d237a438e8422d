"""Pooling: windows over axes of space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy_infer.onnx.operators.convolution import padding_pairs
from argosy_infer.onnx.registry import Values, onnx_operator
from argosy_infer.onnx.tensors import phi, prim, shape_of, tensor_of

Ints = Sequence[int]


class _Windows:
    """Windows along the axes of space of x [N, C, ...]: ``places`` [windows, elements] in the flattened space, -1
    outside of it, and ``counted``: which of those outside are padding that a mean may count."""

    def __init__(
        self,
        sizes: Ints,
        window: Ints,
        strides: Ints,
        dilations: Ints,
        pairs: Sequence[tuple[int, int]],
        ceil_mode: int,
    ) -> None:
        self.sizes = tuple(sizes)
        self.counts, axes, inside, counted = [], [], [], []
        for n, k, s, d, (lo, hi) in zip(sizes, window, strides, dilations, pairs, strict=True):
            reach = n + lo + hi - ((k - 1) * d + 1)
            count = (-(-reach // s) if ceil_mode else reach // s) + 1
            if ceil_mode and (count - 1) * s >= n + lo:
                count -= 1  # a window that begins in the padding after the axis
            at = (np.arange(count) * s - lo)[:, None] + (np.arange(k) * d)[None]
            self.counts.append(count)
            axes.append(at)
            inside.append((at >= 0) & (at < n))
            counted.append(at < n + hi)
        self.inside, self.counted = _outer(inside), _outer(counted)
        strides_of = np.cumprod([1, *self.sizes[:0:-1]])[::-1]
        flat = _outer([a * int(s) for a, s in zip(axes, strides_of, strict=True)], np.add)
        self.places = np.where(self.inside, flat, -1)


def _outer(parts: Sequence[Any], combine: Any = np.logical_and) -> np.ndarray[Any, Any]:
    """[windows of an axis, elements] of each axis as [all windows, all elements]."""
    whole = parts[0]
    for part in parts[1:]:
        both = combine(whole[:, None, :, None], part[None, :, None, :])
        whole = both.reshape(both.shape[0] * both.shape[1], -1)
    return np.asarray(whole)


def _pooled(
    operator: str, x: Any, kernel_shape: Ints, strides: Any, dilations: Any, pads: Any, auto_pad: str, **options: Any
) -> Any:
    """By argosy's own operator, which knows windows without gaps along up to three axes; None where it does not."""
    rank = len(kernel_shape)
    if rank > 3 or any(n != 1 for n in dilations or ()):
        return None
    by = list(strides or [1] * rank)
    pairs = padding_pairs(shape_of(x)[2:], kernel_shape, by, [1] * rank, pads, auto_pad)
    if any(lo >= k or hi >= k for (lo, hi), k in zip(pairs, kernel_shape, strict=True)):
        return None  # windows that lie in the padding alone
    return getattr(phi, f"{operator}{rank}d")(x, list(kernel_shape), by, [n for pair in pairs for n in pair], **options)


def _windows(
    x: Any, kernel_shape: Ints, strides: Any, dilations: Any, pads: Any, auto_pad: str, ceil_mode: int
) -> _Windows:
    rank = len(kernel_shape)
    sizes, by, apart = shape_of(x)[2:], strides or [1] * rank, dilations or [1] * rank
    if not all(isinstance(n, int) for n in sizes):
        raise NotImplementedError("pooling over open sizes")
    pairs = padding_pairs(sizes, kernel_shape, by, apart, pads, auto_pad)
    return _Windows(sizes, kernel_shape, by, apart, pairs, ceil_mode)


def _gathered(x: Any, windows: _Windows, fill: float) -> Any:
    """[N, C, windows, elements], ``fill`` outside of x."""
    rows, channels = shape_of(x)[:2]
    flat = phi.reshape(x, [rows, channels, -1])
    picked = phi.index_select(flat, tensor_of(windows.places.clip(0).reshape(-1)), 2)
    picked = phi.reshape(picked, [rows, channels, *windows.places.shape])
    if windows.inside.all():
        return picked
    return prim.select(tensor_of(windows.inside), picked, phi.full_like(picked, fill))


def _spread(x: Any, windows: _Windows) -> Any:
    return phi.reshape(x, [*shape_of(x)[:2], *windows.counts])


@onnx_operator("MaxPool")
def max_pool(
    x: Any,
    *,
    kernel_shape: Ints,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints | None = None,
    pads: Ints | None = None,
    storage_order: int = 0,
    strides: Ints | None = None,
    node: Any = None,
) -> Any:
    """The largest element of each window; the second result is where it is in x, its axes of space flattened by rows,
    or by columns with `storage_order` 1."""
    several = node is not None and node.outputs > 1
    if not several and not ceil_mode:
        found = _pooled("max_pool", x, kernel_shape, strides, dilations, pads, auto_pad)
        if found is not None:
            return found
    windows = _windows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    dtype = x.payload.dtype
    lowest = -np.inf if dtype.kind == "f" else np.iinfo(dtype.numpy).min
    gathered = _gathered(x, windows, lowest)
    largest = _spread(prim.reduce_max(gathered, axes=(3,)), windows)
    if not several:
        return largest
    chosen = prim.argmax(gathered, axis=3, dtype="int64")  # [N, C, windows]
    elements = windows.places.shape[1]
    table = tensor_of(_numbered(windows, storage_order).reshape(-1))
    starts = tensor_of((np.arange(windows.places.shape[0]) * elements).astype(np.int64))
    rows, channels, space = *shape_of(x)[:2], int(np.prod(windows.sizes))
    flat = phi.index_select(table, phi.reshape(prim.add(chosen, starts), [-1]), 0)
    images = tensor_of((np.arange(rows * channels) * space).reshape(rows, channels, 1))
    found = prim.add(phi.reshape(flat, list(shape_of(chosen))), images)
    return largest, _spread(found, windows)


def _numbered(windows: _Windows, storage_order: int) -> np.ndarray[Any, Any]:
    if not storage_order:
        return windows.places.astype(np.int64)
    at = np.unravel_index(windows.places.clip(0), windows.sizes)
    return np.ravel_multi_index(at, windows.sizes, order="F").astype(np.int64)


@onnx_operator("AveragePool")
def average_pool(
    x: Any,
    *,
    kernel_shape: Ints,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    """The mean of each window, with the zeros of its padding where they count."""
    if not ceil_mode:
        exclusive = not count_include_pad
        found = _pooled("avg_pool", x, kernel_shape, strides, dilations, pads, auto_pad, exclusive=exclusive)
        if found is not None:
            return found
    windows = _windows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    counts = (windows.counted if count_include_pad else windows.inside).sum(1)
    sums = prim.reduce_sum(_gathered(x, windows, 0.0), axes=(3,))
    return _spread(prim.div(sums, prim.cast(tensor_of(counts), dtype=x.payload.dtype.name)), windows)


@onnx_operator("LpPool")
def lp_pool(
    x: Any,
    *,
    kernel_shape: Ints,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints | None = None,
    p: int = 2,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    """The norm of order ``p`` of each window."""
    windows = _windows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    powers = prim.pow(prim.abs(_gathered(x, windows, 0.0)), float(p))
    return _spread(prim.pow(prim.reduce_sum(powers, axes=(3,)), 1.0 / p), windows)


def _space(x: Any) -> tuple[int, ...]:
    return tuple(range(2, len(shape_of(x))))


@onnx_operator("GlobalAveragePool")
def global_average_pool(x: Any) -> Any:
    """The mean of each channel."""
    return phi.mean(x, list(_space(x)), True)


@onnx_operator("GlobalMaxPool")
def global_max_pool(x: Any) -> Any:
    """The largest element of each channel."""
    return phi.unsqueeze(prim.reduce_max(x, axes=_space(x)), list(_space(x)))


@onnx_operator("GlobalLpPool")
def global_lp_pool(x: Any, *, p: int = 2) -> Any:
    """The norm of order ``p`` of each channel."""
    sums = prim.reduce_sum(prim.pow(prim.abs(x), float(p)), axes=_space(x))
    return phi.unsqueeze(prim.pow(sums, 1.0 / p), list(_space(x)))


@onnx_operator("MaxUnpool")
def max_unpool(
    x: Any,
    indices: Any,
    output_shape: Values | None = None,
    *,
    kernel_shape: Ints,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    """Zeros, but for the elements of ``x`` at their places in the flattened tensor that was pooled."""
    rank = len(kernel_shape)
    by = strides or [1] * rank
    pairs = padding_pairs(shape_of(x)[2:], kernel_shape, by, by, pads, "NOTSET")
    own = [
        (n - 1) * s + k - lo - hi for n, s, k, (lo, hi) in zip(shape_of(x)[2:], by, kernel_shape, pairs, strict=True)
    ]
    first = [*shape_of(x)[:2], *own]
    final = first if output_shape is None else [int(n) for n in output_shape]
    # Indices count in a tensor of the sizes that the attributes give; a larger one has it in its corner.
    zeros = phi.full([int(np.prod(first))], 0, x.payload.dtype.name)
    places = phi.reshape(indices, [-1, 1])
    flat = prim.scatter(zeros, places, phi.reshape(x, [-1]), axes=(0,), batch=0, kind="set")
    whole = phi.reshape(flat, first)
    if final == first:
        return whole
    high = tuple(m - n for n, m in zip(first, final, strict=True))
    fill = phi.full([], 0, x.payload.dtype.name)
    return prim.pad(whole, fill, low=(0,) * (rank + 2), high=high, interior=(0,) * (rank + 2))
