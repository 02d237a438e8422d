"""Adaptive pooling: windows chosen so that a given number of outputs comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.ops.common.arguments import INPUT, ones_at, section
from argosy_phi_ops.ops.nn.interpolation import mix_pixels
from argosy_phi_ops.ops.nn.pooling import Sizes, pool_channels_first
from argosy_phi_ops.ops.nn.symbolic_interpolation import OpenWay
from argosy_phi_ops.ops.reduction import count_of
from argosy_tensorcore.tensor import Tensor

# Adaptive pooling: windows chosen so that a given number of outputs comes out


def _adaptive(name: str, x: Tensor, output_size: Sizes, reduce: Callable[[Tensor, tuple[int, ...]], Tensor]) -> Tensor:
    """One window for each output: [floor(i n / m), ceil((i + 1) n / m)) along each spatial axis, from the last."""
    rank = x.ndim - 2
    sizes = (output_size,) * rank if output_size is None or isinstance(output_size, int) else tuple(output_size)
    for axis, outputs in reversed(list(enumerate(sizes, 2))):
        n = x.shape[axis]
        if outputs is None or outputs == n:
            continue
        if outputs == 1:
            shape = tuple(1 if i == axis else size for i, size in enumerate(x.shape))
            x = prim.reshape(reduce(x, (axis,)), shape=shape)
            continue
        if not (isinstance(n, int) and isinstance(outputs, int)):
            if reduce is not _mean_over:
                raise NotImplementedError(f"{name}: several outputs along an axis of symbolic size are not implemented")
            x = mix_pixels(x, axis, OpenWay(n, outputs, None, False, True).area())
            continue
        x = _adapt(x, axis, n, outputs, reduce)
    return x


def _adapt(x: Tensor, axis: int, n: int, outputs: int, reduce: Callable[[Tensor, tuple[int, ...]], Tensor]) -> Tensor:
    if n % outputs == 0:  # equal windows
        split = prim.reshape(x, shape=(*x.shape[:axis], outputs, n // outputs, *x.shape[axis + 1 :]))
        return reduce(split, (axis + 1,))
    shape = tuple(1 if i == axis else size for i, size in enumerate(x.shape))
    bounds = [(i * n // outputs, -(-(i + 1) * n // outputs)) for i in range(outputs)]
    parts = [prim.reshape(reduce(section(x, axis, lo, hi), (axis,)), shape=shape) for lo, hi in bounds]
    return prim.concat(*parts, axis=axis)


def _adaptive_maxima(name: str, x: Tensor, output_size: Sizes, return_mask: bool) -> Any:
    """The maxima, and with `return_mask` the index of each in the flattened spatial axes, as int32.

    Of equal ones the first in the window counts and alone has a gradient; NaN counts as larger than all numbers.
    """
    best: Tensor = _adaptive(name, x, output_size, _first_largest)
    if not return_mask:
        return best
    sizes = [n for n in x.shape[2:] if isinstance(n, int)]
    if len(sizes) != x.ndim - 2:
        raise NotImplementedError(f"{name}: positions over axes of symbolic size are not implemented")
    index = prim.reshape(prim.iota(shape=(prod(sizes),), axis=0, dtype="int32"), shape=tuple(sizes))
    index = prim.broadcast(index, shape=x.shape, axes=tuple(range(2, x.ndim)))
    for axis, (n, outputs) in reversed(list(enumerate(zip(sizes, best.shape[2:], strict=True), 2))):
        x, index = _locate(x, index, axis, n, outputs)
    return best, index


def _locate(x: Tensor, index: Tensor, axis: int, n: int, outputs: int) -> tuple[Tensor, Tensor]:
    """Maxima of the windows along one axis, and the index that each has there."""
    values, places = [], []
    for i in range(outputs):
        window, at = (section(v, axis, i * n // outputs, -(-(i + 1) * n // outputs)) for v in (x, index))
        largest = _is_first_largest(window, axis)
        shape = ones_at(window.shape, (axis,))
        values.append(prim.reshape(_the_one(window, largest, axis), shape=shape))
        places.append(prim.reshape(_the_one(at, largest, axis), shape=shape))
    return prim.concat(*values, axis=axis), prim.concat(*places, axis=axis)


def _first_largest(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The maximum along an axis, as the first element that equals it. Along the axes from the last to the first that is
    the first one of a window in row-major order."""
    (axis,) = axes
    return _the_one(x, _is_first_largest(x, axis), axis)


def _is_first_largest(x: Tensor, axis: int) -> Tensor:
    rest = tuple(i for i in range(x.ndim) if i != axis)
    place = prim.broadcast(prim.argmax(x, axis=axis, dtype="int32"), shape=x.shape, axes=rest)
    return prim.eq(prim.iota(shape=x.shape, axis=axis, dtype="int32"), place)


def _the_one(x: Tensor, chosen: Tensor, axis: int) -> Tensor:
    """The one element along an axis that is chosen."""
    return prim.reduce_sum(prim.select(chosen, x, prim.constant(0, x.dtype, x.shape)), axes=(axis,))


def _mean_over(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    return prim.div(prim.reduce_sum(x, axes=axes), count_of(x.shape, axes, x.dtype))


@operator(aliases=INPUT)
def adaptive_avg_pool1d(x: Tensor, output_size: int | Sequence[Any]) -> Tensor:
    """The mean of as many windows over one spatial axis as `output_size` asks for; None keeps an axis."""
    name = "adaptive_avg_pool1d"
    pooled: Tensor = pool_channels_first(name, x, 1, "NCL", lambda v, _: _adaptive(name, v, output_size, _mean_over))
    return pooled


@adaptive_avg_pool1d.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3, 7))
    yield Sample(x, 1)
    yield Sample(x, 4)


@operator(aliases=INPUT)
def adaptive_avg_pool2d(x: Tensor, output_size: int | Sequence[Any], data_format: str = "NCHW") -> Tensor:
    """The mean of as many windows over two spatial axes as `output_size` asks for; None keeps an axis."""
    name = "adaptive_avg_pool2d"
    pooled: Tensor = pool_channels_first(
        name, x, 2, data_format, lambda v, _: _adaptive(name, v, output_size, _mean_over)
    )
    return pooled


@adaptive_avg_pool2d.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3, 5, 7))
    yield Sample(x, 1)
    yield Sample(x, [5, 3])


@operator(aliases=INPUT)
def adaptive_avg_pool3d(x: Tensor, output_size: int | Sequence[Any], data_format: str = "NCDHW") -> Tensor:
    """The mean of as many windows over three spatial axes as `output_size` asks for; None keeps an axis."""
    name = "adaptive_avg_pool3d"
    pooled: Tensor = pool_channels_first(
        name, x, 3, data_format, lambda v, _: _adaptive(name, v, output_size, _mean_over)
    )
    return pooled


@adaptive_avg_pool3d.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((1, 2, 4, 5, 3))
    yield Sample(x, 1)
    yield Sample(x, [2, 3, None])


@operator(aliases={"return_indices": "return_mask", "input": "x"})
def adaptive_max_pool1d(x: Tensor, output_size: int | Sequence[Any], return_mask: bool = False) -> Any:
    """The maximum of as many windows over one spatial axis as `output_size` asks for; None keeps an axis.

    With `return_mask` also the flat index of each, as int32.
    Returns a tensor [N, C, output_size], or (maxima, indices).
    """
    name = "adaptive_max_pool1d"
    return pool_channels_first(name, x, 1, "NCL", lambda v, _: _adaptive_maxima(name, v, output_size, return_mask))


@adaptive_max_pool1d.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3, 7))
    yield Sample(x, 1)
    yield Sample(x, 4)


@operator(aliases={"return_indices": "return_mask", "input": "x"})
def adaptive_max_pool2d(x: Tensor, output_size: int | Sequence[Any], return_mask: bool = False) -> Any:
    """The maximum of as many windows over two spatial axes as `output_size` asks for; None keeps an axis.

    With `return_mask` also the flat index of each, as int32.
    Returns a tensor [N, C, *output_size], or (maxima, indices).
    """
    name = "adaptive_max_pool2d"
    return pool_channels_first(name, x, 2, "NCHW", lambda v, _: _adaptive_maxima(name, v, output_size, return_mask))


@adaptive_max_pool2d.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3, 5, 7))
    yield Sample(x, 1)
    yield Sample(x, [5, 3])


@operator(aliases={"return_indices": "return_mask", "input": "x"})
def adaptive_max_pool3d(x: Tensor, output_size: int | Sequence[Any], return_mask: bool = False) -> Any:
    """The maximum of as many windows over three spatial axes as `output_size` asks for; None keeps an axis.

    With `return_mask` also the flat index of each, as int32.
    Returns a tensor [N, C, *output_size], or (maxima, indices).
    """
    name = "adaptive_max_pool3d"
    return pool_channels_first(name, x, 3, "NCDHW", lambda v, _: _adaptive_maxima(name, v, output_size, return_mask))


@adaptive_max_pool3d.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((1, 2, 4, 5, 3))
    yield Sample(x, 1)
    yield Sample(x, [2, 3, None])
