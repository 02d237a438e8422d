"""Convolutions (cross-correlations, as the field calls them) through `prim.conv`, and their transposes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.common.arguments import INPUT, broadcast_along, per_axis
from argosy_phi_ops.ops.common.windows import (
    Padding,
    Pairs,
    channels_first,
    channels_last,
    covering_pair,
    dilations_of,
    padding_pairs,
    window_count,
)
from argosy_tensorcore.tensor import Tensor


def _convolve(
    name: str,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: int | Sequence[int],
    padding: Padding,
    dilation: int | Sequence[int],
    groups: int,
    data_format: str,
) -> Tensor:
    rank = len(data_format) - 2
    if x.ndim != rank + 2 or weight.ndim != rank + 2:
        raise ShapeError(f"{name} takes x and weight with {rank} spatial axes, got {x.type} and {weight.type}")
    last = data_format[-1] == "C"
    if last:
        x = channels_first(x)
    strides, dilations = per_axis(name, stride, rank, "stride"), dilations_of(name, dilation, rank, padding)
    pairs = padding_pairs(name, padding, x.shape[2:], weight.shape[2:], strides, dilations, last)
    counts, pairs = _fit(x.shape[2:], weight.shape[2:], pairs, strides, dilations)
    x, pairs = _fill(x, pairs)
    result = prim.conv(
        x, weight, strides=strides, padding=pairs, lhs_dilation=(1,) * rank, rhs_dilation=dilations, groups=groups
    )
    result = _keep_windowless(result, counts)
    if bias is not None:
        result = prim.add(result, broadcast_along(bias, result.shape, 1))
    return channels_last(result) if last else result


def _fit(
    sizes: Sequence[Any], window: Sequence[int], pairs: Pairs, strides: Sequence[int], dilation: Sequence[int]
) -> tuple[list[Any], Pairs]:
    """The number of windows along each axis, and padding that holds one where Paddle counts one over a shorter axis, or
    none: of these nothing is kept."""
    counts, fitted = [], []
    for n, k, pair, s, d in zip(sizes, window, pairs, strides, dilation, strict=True):
        reach = (k - 1) * d + 1
        known = isinstance(n, int) and n + sum(pair) < reach
        count = window_count(n, pair, reach, s) if known else None
        counts.append(count)
        fits = known and count is not None and count >= 0
        fitted.append(covering_pair(n, pair, reach, s, 1) if fits else pair)
    return counts, tuple(fitted)


def _fill(x: Tensor, pairs: Pairs) -> tuple[Tensor, Pairs]:
    """Axes without elements as their padding, and no padding of these: no convolution gives the gradient of such an
    axis."""
    empty = [n == 0 for n in x.shape[2:]]
    if not any(empty):
        return x, pairs
    low, high = ((0, 0, *(pair[side] if e else 0 for e, pair in zip(empty, pairs, strict=True))) for side in (0, 1))
    padded = prim.pad(x, prim.constant(0, x.dtype), low=low, high=high, interior=(0,) * x.ndim)
    return padded, tuple((0, 0) if e else pair for e, pair in zip(empty, pairs, strict=True))


def _keep_windowless(result: Tensor, counts: Sequence[Any]) -> Tensor:
    """Nothing along the axes that have no window."""
    if 0 not in counts:
        return result
    limit = [0 if count == 0 else n for n, count in zip(result.shape[2:], counts, strict=True)]
    rank = result.ndim
    return prim.slice(result, start=(0,) * rank, limit=(*result.shape[:2], *limit), stride=(1,) * rank)


@operator(promote="same", aliases=INPUT)
def conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    data_format: str = "NCL",
) -> Tensor:
    """Cross-correlation of x [N, C, L] (or [N, L, C], "NLC") with weight [out, C / groups, k].

    An axis that is shorter than a window by less than the stride gives one result, by less than twice the stride none.
    Raises :class:`ShapeError` for a shorter one.
    """
    return _convolve("conv1d", x, weight, bias, stride, padding, dilation, groups, data_format)


@conv1d.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x, w = rng.standard_normal((2, 4, 7)), rng.standard_normal((6, 2, 3))
    yield Sample(x, w, rng.standard_normal(6), 2, 1, groups=2)
    yield Sample(x.transpose(0, 2, 1).copy(), rng.standard_normal((6, 4, 2)), padding=[1, 0], data_format="NLC")
    yield Sample(x, rng.standard_normal((6, 4, 8)), rng.standard_normal(6))


@operator(promote="same", aliases=INPUT)
def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    data_format: str = "NCHW",
) -> Tensor:
    """Cross-correlation of x [N, C, H, W] (or "NHWC") with weight [out, C / groups, kh, kw].

    With padding "SAME", `dilation` is taken as 1, as in Paddle.
    """
    return _convolve("conv2d", x, weight, bias, stride, padding, dilation, groups, data_format)


@conv2d.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x, w = rng.standard_normal((2, 4, 5, 6)), rng.standard_normal((3, 4, 3, 2))
    yield Sample(x, w, rng.standard_normal(3))
    yield Sample(x, w, None, [2, 1], [1, 0, 2, 1], 2)
    yield Sample(x, w, stride=2, padding="SAME")
    yield Sample(x, rng.standard_normal((4, 1, 3, 3)), padding=1, groups=4)
    yield Sample(x, w, stride=2, padding="same", dilation=2)


@operator(promote="same", aliases=INPUT)
def conv3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    data_format: str = "NCDHW",
) -> Tensor:
    """Cross-correlation of x [N, C, D, H, W] (or "NDHWC") with weight [out, C / groups, kd, kh, kw]."""
    return _convolve("conv3d", x, weight, bias, stride, padding, dilation, groups, data_format)


@conv3d.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    pairs = [[0, 0], [0, 0], [1, 0], [0, 1], [1, 1]]
    yield Sample(rng.standard_normal((1, 2, 4, 5, 4)), rng.standard_normal((3, 2, 2, 3, 2)), padding=pairs)


def _transpose(
    name: str,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: int | Sequence[int],
    padding: Padding,
    output_padding: int | Sequence[int],
    dilation: int | Sequence[int],
    groups: int,
    output_size: int | Sequence[int] | None,
    data_format: str,
) -> Tensor:
    """The gradient of a convolution with respect to its input: x spread by the stride, with the turned window."""
    rank = len(data_format) - 2
    if x.ndim != rank + 2 or weight.ndim != rank + 2:
        raise ShapeError(f"{name} takes x and weight with {rank} spatial axes, got {x.type} and {weight.type}")
    last = data_format[-1] == "C"
    if last:
        x = channels_first(x)
    strides, dilations = per_axis(name, stride, rank, "stride"), dilations_of(name, dilation, rank, padding)
    window = weight.shape[2:]
    pairs = padding_pairs(name, padding, x.shape[2:], window, strides, dilations, last)
    extra = per_axis(name, output_padding, rank)
    if output_size is not None:
        wanted = per_axis(name, output_size, rank)
        extra = tuple(
            out - ((n - 1) * s - lo - hi + (k - 1) * d + 1)
            for out, n, s, (lo, hi), k, d in zip(wanted, x.shape[2:], strides, pairs, window, dilations, strict=True)
        )
    if any(isinstance(e, int) and not 0 <= e < max(s, d) for e, s, d in zip(extra, strides, dilations, strict=True)):
        argument = "output_padding" if output_size is None else "output_size"
        raise ShapeError(
            f"{name}(): argument {argument!r} should add at least 0 and less than stride or dilation, got {extra}"
        )
    reach = [(k - 1) * d for k, d in zip(window, dilations, strict=True)]
    spread = [(n - 1) * s + 1 for n, s in zip(x.shape[2:], strides, strict=True)]
    inner: Pairs = tuple((r - lo, r - hi + e) for r, (lo, hi), e in zip(reach, pairs, extra, strict=True))
    counts, inner = _fit(spread, window, inner, (1,) * rank, dilations)
    result = prim.conv(
        x,
        _turn(weight, groups),
        strides=(1,) * rank,
        padding=inner,
        lhs_dilation=strides,
        rhs_dilation=dilations,
        groups=groups,
    )
    result = _keep_windowless(result, counts)
    if bias is not None:
        result = prim.add(result, broadcast_along(bias, result.shape, 1))
    return channels_last(result) if last else result


def _turn(weight: Tensor, groups: int) -> Tensor:
    """[in, out / groups, *K] as [out, in / groups, *K] with every window turned round."""
    inputs, outputs, *window = weight.shape
    spatial = tuple(range(3, 3 + len(window)))
    grouped = prim.reshape(weight, shape=(groups, inputs // groups, outputs, *window))
    swapped = prim.transpose(grouped, permutation=(0, 2, 1, *spatial))
    flat = prim.reshape(swapped, shape=(groups * outputs, inputs // groups, *window))
    return prim.reverse(flat, axes=tuple(range(2, 2 + len(window))))


@operator(promote="same", aliases=INPUT)
def conv1d_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
    output_size: int | Sequence[int] | None = None,
    data_format: str = "NCL",
) -> Tensor:
    """The transpose of :func:`conv1d`, with weight [in, out / groups, k]."""
    return _transpose(
        "conv1d_transpose", x, weight, bias, stride, padding, output_padding, dilation, groups, output_size, data_format
    )


@conv1d_transpose.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x, w = rng.standard_normal((2, 4, 5)), rng.standard_normal((4, 3, 3))
    yield Sample(x, w, rng.standard_normal(6), 2, 1, 1, groups=2)
    yield Sample(x, w, stride=2, output_size=12)


@operator(promote="same", aliases=INPUT)
def conv2d_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    output_padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    output_size: int | Sequence[int] | None = None,
    data_format: str = "NCHW",
) -> Tensor:
    """The transpose of :func:`conv2d`, with weight [in, out / groups, kh, kw]."""
    return _transpose(
        "conv2d_transpose", x, weight, bias, stride, padding, output_padding, dilation, groups, output_size, data_format
    )


@conv2d_transpose.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x, w = rng.standard_normal((2, 4, 3, 5)), rng.standard_normal((4, 2, 3, 2))
    yield Sample(x, w, None, [2, 1], [1, 0], dilation=2)


@operator(promote="same", aliases=INPUT)
def conv3d_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
    output_size: int | Sequence[int] | None = None,
    data_format: str = "NCDHW",
) -> Tensor:
    """The transpose of :func:`conv3d`, with weight [in, out / groups, kd, kh, kw]."""
    return _transpose(
        "conv3d_transpose", x, weight, bias, stride, padding, output_padding, dilation, groups, output_size, data_format
    )


@conv3d_transpose.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((1, 2, 3, 2, 3)), rng.standard_normal((2, 2, 2, 2, 2)), stride=2)
