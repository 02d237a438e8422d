"""Pooling: the maximum or mean of windows, gathered as one strided slice for each place in the window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import DTypeError, ShapeError
from argosy_phi_ops.ops.common.arguments import INPUT, per_axis
from argosy_phi_ops.ops.common.windows import (
    Padding,
    Pairs,
    channels_first,
    channels_last,
    covering_pair,
    padding_pairs,
    window_count,
)
from argosy_phi_ops.primitives.checks import FLOATING, ORDERED
from argosy_tensorcore.tensor import Tensor

Sizes = int | Sequence[int]


class _Windows:
    """Where the windows over [N, C, *S] lie: their size, stride, padding (with what ceil_mode adds), and number."""

    def __init__(
        self, name: str, x: Tensor, size: Sizes, stride: Sizes | None, padding: Padding, ceil_mode: bool, last: bool
    ) -> None:
        rank = x.ndim - 2
        self.size = per_axis(name, size, rank, "kernel_size")
        self.stride = self.size if stride is None else per_axis(name, stride, rank, "stride")
        self.pairs = padding_pairs(name, padding, x.shape[2:], self.size, self.stride, (1,) * rank, last)
        axes = list(zip(x.shape[2:], self.pairs, self.size, self.stride, strict=True))
        self.count = tuple(window_count(*axis, ceil_mode) for axis in axes)
        if any(isinstance(w, int) and w < 0 for w in self.count):
            raise ShapeError(f"{name}: windows of {self.size} do not fit {x.type} padded by {self.pairs}")
        # Windows of ceil_mode, and those over a shorter axis, reach beyond the padding.
        self.reach = tuple(covering_pair(*axis, w, ceil_mode) for axis, w in zip(axes, self.count, strict=True))
        self.sizes = x.shape[2:]
        self.shape = (*x.shape[:2], *self.count)

    @property
    def all_touch(self) -> bool:
        """Whether it is sure that every window has an element, not padding alone."""
        axes = zip(self.sizes, self.reach, self.size, self.stride, self.count, strict=True)
        return all(
            (before, after) == (0, 0) or self._touches(n, before, k, s, w) for n, (before, after), k, s, w in axes
        )

    @staticmethod
    def _touches(n: Any, before: Any, k: int, s: int, count: Any) -> bool:
        last = (count - 1) * s - before - n
        return isinstance(before, int) and before < k and isinstance(last, int) and last < 0

    def places(self, axis: int) -> Iterable[int]:
        """The places of the window along a spatial axis. Of those that lie in padding in every window the first is
        enough: what is combined there never changes more."""
        n, (before, _), k, s, w = (x[axis] for x in (self.sizes, self.reach, self.size, self.stride, self.count))
        if not (isinstance(n, int) and isinstance(before, int) and isinstance(w, int)):
            return range(k)
        # The first window that begins so late that the place is no longer in front of the elements; whether it is one.
        inside = [p for p in range(k) if max(0, -((p - before) // s)) < w and max(p - before, (p - before) % s) < n]
        return sorted({*inside, *[p for p in range(k) if p not in inside][:1]})

    def elements(self, axis: int, whole: bool, dtype: str) -> Any:
        """How many elements each window along a spatial axis has, [N, C, *windows]; `whole`: with padding.

        As Paddle counts: what lies beyond the padding in front, repeated behind, counts neither way, and a window that
        touches no element has a negative number.
        """
        n, (before, _), k, s = self.sizes[axis], self.pairs[axis], self.size[axis], self.stride[axis]
        before, size = _number(before), _number(n)
        start = prim.sub(prim.mul(prim.iota(shape=(self.count[axis],), axis=0, dtype="int32"), s), before)
        stop = prim.minimum(prim.add(start, k), size + before)
        if not whole:
            start, stop = prim.maximum(start, 0), prim.minimum(stop, size)
        return prim.broadcast(prim.cast(prim.sub(stop, start), dtype=dtype), shape=self.shape, axes=(axis + 2,))


def _number(size: Any) -> Any:
    return size if isinstance(size, int) else prim.dim_size(dim=size, dtype="int32")


def _pad(x: Tensor, reach: Pairs, value: Any) -> Tensor:
    if not any(before or after for before, after in reach):
        return x
    low, high = ((0, 0, *(pair[i] for pair in reach)) for i in (0, 1))
    return prim.pad(x, prim.constant(value, x.dtype), low=low, high=high, interior=(0,) * x.ndim)


def _places(x: Tensor, windows: _Windows) -> Iterator[Tensor]:
    """For each place in the window the element that every window has there: [N, C, *windows]."""
    if 0 in windows.count:
        yield prim.slice(x, start=(0,) * x.ndim, limit=windows.shape, stride=(1,) * x.ndim)
        return
    last = [(w - 1) * s + 1 for w, s in zip(windows.count, windows.stride, strict=True)]
    for place in product(*map(windows.places, range(len(windows.size)))):
        limit = (*x.shape[:2], *(end + p for end, p in zip(last, place, strict=True)))
        yield prim.slice(x, start=(0, 0, *place), limit=limit, stride=(1, 1, *windows.stride))


def _lowest_value(dtype: str) -> Any:
    if dtype not in ORDERED:
        raise DTypeError(f"max pooling compares numbers; expected real elements, got {dtype}")
    return float("-inf") if dtype in FLOATING else int(np.iinfo(dtype).min)


def _padding_value(dtype: str, windows: _Windows) -> Any:
    """What padding counts as in a maximum. One of padding alone is the lowest finite float32, as Paddle has it."""
    lowest = float(np.finfo(np.float32).min)
    return lowest if dtype in ("float32", "float64") and not windows.all_touch else _lowest_value(dtype)


def _combine(parts: Iterator[Tensor], combine: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    total = next(parts)
    for part in parts:
        total = combine(total, part)
    return total


def _maximum(x: Tensor, windows: _Windows) -> Tensor:
    """The maximum of each window, as the element at the place of the first one, which alone has a gradient. NaN counts
    as larger than all numbers."""
    values = list(_places(_pad(x, windows.reach, _padding_value(x.dtype, windows)), windows))
    shape = values[0].shape
    best: Any = prim.constant(_lowest_value(x.dtype), x.dtype, shape)
    where: Any = prim.constant(0, "int32", shape)
    for place, value in enumerate(values):
        larger = prim.gt(value, best)
        if x.dtype in FLOATING:
            larger = prim.logical_or(larger, prim.ne(value, value))
        where = prim.select(larger, prim.constant(place, "int32", shape), where)
        best = prim.select(larger, value, best)
    chosen = (
        prim.select(prim.eq(where, place), value, prim.constant(0, x.dtype, shape))
        for place, value in enumerate(values)
    )
    return _combine(chosen, prim.add)


def _argmaximum(x: Tensor, windows: _Windows) -> Tensor:
    """The index of the (first) maximum in the flattened spatial axes of each window, int32."""
    values = _places(_pad(x, windows.reach, _padding_value(x.dtype, windows)), windows)
    flat: Any = prim.constant(0, "int32", x.shape)
    for axis in range(2, x.ndim):
        flat = prim.add(prim.mul(flat, _number(x.shape[axis])), prim.iota(shape=x.shape, axis=axis, dtype="int32"))
    indices = _places(_pad(flat, windows.reach, 0), windows)
    best, where = next(values), next(indices)
    for value, index in zip(values, indices, strict=True):
        where = prim.select(prim.gt(value, best), index, where)
        best = prim.maximum(best, value)
    return where


def _mean(x: Tensor, windows: _Windows, exclusive: bool, divisor: int | None) -> Tensor:
    total = _combine(_places(_pad(x, windows.reach, 0), windows), prim.add)
    if divisor:  # as Paddle has it, the mean is rescaled as if every window were whole
        return prim.mul(_mean(x, windows, exclusive, None), prod(windows.size) / divisor)
    if all(before == after for before, after in windows.pairs) and windows.reach == windows.pairs:
        if not exclusive or windows.reach == ((0, 0),) * len(windows.size):
            return prim.div(total, float(prod(windows.size)))
    counts = (windows.elements(axis, not exclusive, x.dtype) for axis in range(len(windows.size)))
    return prim.div(total, _combine(counts, prim.mul))


def pool_channels_first(name: str, x: Tensor, rank: int, data_format: str, pool: Callable[[Tensor, bool], Any]) -> Any:
    if x.ndim != rank + 2:
        raise ShapeError(f"{name} takes [batch, channels] and {rank} spatial axes, got {x.type}")
    last = data_format[-1] == "C"
    results = pool(channels_first(x) if last else x, last)
    if not last:
        return results
    return tuple(map(channels_last, results)) if isinstance(results, tuple) else channels_last(results)


def _max_pool(
    name: str,
    x: Tensor,
    size: Sizes,
    stride: Sizes | None,
    padding: Padding,
    return_mask: bool,
    ceil_mode: bool,
    data_format: str,
) -> Any:
    def pool(x: Tensor, last: bool) -> Any:
        windows = _Windows(name, x, size, stride, padding, ceil_mode, last)
        best = _maximum(x, windows)
        return (best, _argmaximum(x, windows)) if return_mask else best

    return pool_channels_first(name, x, len(data_format) - 2, data_format, pool)


def _avg_pool(
    name: str,
    x: Tensor,
    size: Sizes,
    stride: Sizes | None,
    padding: Padding,
    exclusive: bool,
    ceil_mode: bool,
    divisor: int | None,
    data_format: str,
) -> Any:
    def pool(x: Tensor, last: bool) -> Any:
        return _mean(x, _Windows(name, x, size, stride, padding, ceil_mode, last), exclusive, divisor)

    return pool_channels_first(name, x, len(data_format) - 2, data_format, pool)


def window_sums(
    name: str, x: Tensor, size: Sizes, stride: Sizes | None, padding: Padding, ceil_mode: bool, data_format: str
) -> Tensor:
    """The sum of each window, in which padding counts as zeros."""

    def pool(x: Tensor, last: bool) -> Any:
        windows = _Windows(name, x, size, stride, padding, ceil_mode, last)
        return _combine(_places(_pad(x, windows.reach, 0), windows), prim.add)

    sums: Tensor = pool_channels_first(name, x, len(data_format) - 2, data_format, pool)
    return sums


@operator(aliases={"input": "x", "return_indices": "return_mask"})
def max_pool1d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Padding = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
) -> Any:
    """The maximum of windows over one spatial axis; with `return_mask` also its flat index, as int32.

    Returns a tensor [N, C, L], or (maxima, indices).
    """
    return _max_pool("max_pool1d", x, kernel_size, stride, padding, return_mask, ceil_mode, "NCL")


@max_pool1d.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3, 7))
    yield Sample(x, 3, 2, 1)
    yield Sample(x, 2, ceil_mode=True)
    yield Sample(x, 3, return_mask=True)


@operator(aliases={"input": "x", "return_indices": "return_mask"})
def max_pool2d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Padding = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
    data_format: str = "NCHW",
) -> Any:
    """The maximum of windows over two spatial axes; with `return_mask` also its flat index, as int32.

    Returns a tensor [N, C, H, W], or (maxima, indices).
    """
    return _max_pool("max_pool2d", x, kernel_size, stride, padding, return_mask, ceil_mode, data_format)


@max_pool2d.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3, 5, 7))
    yield Sample(x, [3, 2], 2, 1)
    yield Sample(x, 2, ceil_mode=True)
    yield Sample(x, 3, 1, "SAME")
    yield Sample(x, 2, return_mask=True)
    yield Sample(x, [2, 3], data_format="NHWC")


@operator(aliases={"input": "x", "return_indices": "return_mask"})
def max_pool3d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Padding = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
    data_format: str = "NCDHW",
) -> Any:
    """The maximum of windows over three spatial axes; with `return_mask` also its flat index, as int32.

    Returns a tensor [N, C, D, H, W], or (maxima, indices).
    """
    return _max_pool("max_pool3d", x, kernel_size, stride, padding, return_mask, ceil_mode, data_format)


@max_pool3d.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((1, 2, 4, 5, 3))
    yield Sample(x, 2, 1)
    yield Sample(x, 3, 2, 1, ceil_mode=True, return_mask=True)


@operator(aliases=INPUT)
def avg_pool1d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Padding = 0,
    exclusive: bool = True,
    ceil_mode: bool = False,
) -> Tensor:
    """The mean of windows over one spatial axis; padding counts as elements unless `exclusive`."""
    pooled: Tensor = _avg_pool("avg_pool1d", x, kernel_size, stride, padding, exclusive, ceil_mode, None, "NCL")
    return pooled


@avg_pool1d.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3, 7))
    yield Sample(x, 3, 2, 1)
    yield Sample(x, 3, 2, 1, exclusive=False)
    yield Sample(x, 2, ceil_mode=True)


@operator(aliases=INPUT)
def avg_pool2d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    exclusive: bool = True,
    divisor_override: int | None = None,
    data_format: str = "NCHW",
) -> Tensor:
    """The mean of windows over two spatial axes; padding counts as elements unless `exclusive`."""
    options = (exclusive, ceil_mode, divisor_override, data_format)
    pooled: Tensor = _avg_pool("avg_pool2d", x, kernel_size, stride, padding, *options)
    return pooled


@avg_pool2d.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3, 5, 7))
    yield Sample(x, [3, 2], 2, 1)
    yield Sample(x, 3, 2, 1, exclusive=False, ceil_mode=True)
    yield Sample(x, 2, divisor_override=3)
    yield Sample(x, [2, 3], data_format="NHWC")


@operator(aliases=INPUT)
def avg_pool3d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    exclusive: bool = True,
    divisor_override: int | None = None,
    data_format: str = "NCDHW",
) -> Tensor:
    """The mean of windows over three spatial axes; padding counts as elements unless `exclusive`."""
    options = (exclusive, ceil_mode, divisor_override, data_format)
    pooled: Tensor = _avg_pool("avg_pool3d", x, kernel_size, stride, padding, *options)
    return pooled


@avg_pool3d.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((1, 2, 4, 5, 3))
    yield Sample(x, 2, 1)
    yield Sample(x, 3, 2, 1, ceil_mode=True)
