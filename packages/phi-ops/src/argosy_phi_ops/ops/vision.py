"""Operators on images: shuffles of pixels and channels, windows as columns, resizing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.operator import Sample, operator
from argosy_phi_ops.ops.arguments import per_axis, table
from argosy_phi_ops.ops.convolution import channels_first, channels_last
from argosy_tensorcore.tensor import Tensor


def _images(name: str, x: Tensor, data_format: str) -> tuple[Tensor, bool]:
    """`x` as [N, C, H, W], and whether its channels were last."""
    if x.ndim != 4:
        raise ShapeError(f"{name} takes images with 4 axes, got {x.type}")
    last = data_format[-1] == "C"
    return (channels_first(x) if last else x), last


@operator()
def pixel_shuffle(x: Tensor, upscale_factor: int, data_format: str = "NCHW") -> Tensor:
    """[N, C r^2, H, W] as [N, C, H r, W r]: groups of channels become blocks of pixels (Shi et al., 2016)."""
    x, last = _images("pixel_shuffle", x, data_format)
    n, c, h, w = x.shape
    r = upscale_factor
    if isinstance(c, int) and c % (r * r):
        raise ShapeError(f"pixel_shuffle: {c} channels of {x.type} are not a multiple of {r} squared")
    blocks = prim.reshape(x, shape=(n, c // (r * r), r, r, h, w))
    result = prim.reshape(prim.transpose(blocks, permutation=(0, 1, 4, 2, 5, 3)), shape=(n, c // (r * r), h * r, w * r))
    return channels_last(result) if last else result


@pixel_shuffle.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 8, 3, 5)), 2)
    yield Sample(rng.standard_normal((2, 3, 5, 9)), 3, "NHWC")


@operator()
def pixel_unshuffle(x: Tensor, downscale_factor: int, data_format: str = "NCHW") -> Tensor:
    """[N, C, H r, W r] as [N, C r^2, H, W]: undoes :func:`pixel_shuffle`."""
    x, last = _images("pixel_unshuffle", x, data_format)
    n, c, h, w = x.shape
    r = downscale_factor
    blocks = prim.reshape(x, shape=(n, c, h // r, r, w // r, r))
    result = prim.reshape(prim.transpose(blocks, permutation=(0, 1, 3, 5, 2, 4)), shape=(n, c * r * r, h // r, w // r))
    return channels_last(result) if last else result


@pixel_unshuffle.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3, 4, 6)), 2)


@operator()
def channel_shuffle(x: Tensor, groups: int, data_format: str = "NCHW") -> Tensor:
    """Channels dealt out over groups: channel ``g * n + i`` goes to ``i * groups + g`` (Zhang et al., 2018)."""
    x, last = _images("channel_shuffle", x, data_format)
    n, c, h, w = x.shape
    grouped = prim.reshape(x, shape=(n, groups, c // groups, h, w))
    result = prim.reshape(prim.transpose(grouped, permutation=(0, 2, 1, 3, 4)), shape=x.shape)
    return channels_last(result) if last else result


@channel_shuffle.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 6, 3, 5)), 3)


@operator()
def im2col(
    x: Tensor,
    kernel_sizes: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    paddings: int | Sequence[int] = 0,
    dilations: int | Sequence[int] = 1,
) -> Tensor:
    """Windows of [N, C, H, W] as columns [N, C kh kw, windows]: `nn.functional.unfold`.

    Four paddings are top, left, bottom and right.
    """
    (kh, kw), (sh, sw), (dh, dw) = (per_axis("im2col", v, 2) for v in (kernel_sizes, strides, dilations))
    given = per_axis("im2col", paddings, 2) if isinstance(paddings, int) or len(paddings) <= 2 else tuple(paddings)
    top, left, bottom, right = given if len(given) == 4 else (*given, *given)
    low, high = (0, 0, top, left), (0, 0, bottom, right)
    padded = prim.pad(x, prim.constant(0, x.dtype), low=low, high=high, interior=(0,) * 4)
    n, c, h, w = padded.shape
    rows, columns = (h - (kh - 1) * dh - 1) // sh + 1, (w - (kw - 1) * dw - 1) // sw + 1
    parts = []
    for i in range(kh):
        for j in range(kw):
            limit = (n, c, i * dh + (rows - 1) * sh + 1, j * dw + (columns - 1) * sw + 1)
            part = prim.slice(padded, start=(0, 0, i * dh, j * dw), limit=limit, stride=(1, 1, sh, sw))
            parts.append(prim.reshape(part, shape=(n, c, 1, rows * columns)))
    return prim.reshape(prim.concat(*parts, axis=2), shape=(n, c * kh * kw, rows * columns))


@im2col.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3, 5, 7))
    yield Sample(x, 2)
    yield Sample(x, [3, 2], 2, [1, 0, 2, 1])
    yield Sample(x, 2, dilations=2)


# Resizing


@operator(aliases={"x": "input"})
def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool = False,
    align_mode: int = 0,
    data_format: str | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """The spatial axes resized to `size`, or by `scale_factor`.

    Modes: nearest, area, and linear, bilinear or trilinear (one name for each number of spatial axes). Pixels are
    squares: the centres of the first and last ones coincide with `align_corners`; otherwise their outer edges do with
    `align_mode` 0, and 1 scales indices instead.
    """
    if recompute_scale_factor or antialias:
        raise NotImplementedError("interpolate: recompute_scale_factor and antialias are not implemented")
    last = data_format is not None and data_format[-1:] == "C"
    x = channels_first(input) if last else input
    sizes = _resized(x.shape[2:], size, scale_factor)
    factors = _factors(scale_factor, x.ndim - 2) if size is None else (None,) * (x.ndim - 2)
    for axis, (outputs, factor) in enumerate(zip(sizes, factors, strict=True), 2):
        x = _resize_axis(x, axis, outputs, factor, mode, align_corners, align_mode)
    return channels_last(x) if last else x


def _factors(scale_factor: float | Sequence[float] | None, rank: int) -> tuple[float | None, ...]:
    if scale_factor is None or isinstance(scale_factor, (int, float)):
        return (scale_factor,) * rank
    return tuple(scale_factor) * (rank if len(scale_factor) == 1 else 1)


def _resized(
    sizes: Sequence[Any], size: int | Sequence[int] | None, scale_factor: float | Sequence[float] | None
) -> tuple[int, ...]:
    if any(not isinstance(n, int) for n in sizes):
        raise NotImplementedError(f"interpolate: axes of symbolic size are not implemented, got {list(sizes)}")
    if size is not None:
        return per_axis("interpolate", size, len(sizes))
    if scale_factor is None:
        raise ShapeError("interpolate needs size or scale_factor")
    return tuple(int(n * f) for n, f in zip(sizes, _factors(scale_factor, len(sizes)), strict=True))


def _resize_axis(
    x: Tensor, axis: int, outputs: int, factor: float | None, mode: str, align_corners: bool, align_mode: int
) -> Tensor:
    n = x.shape[axis]
    if mode == "nearest":
        step = n / outputs if factor is None else 1 / factor
        if align_corners:
            step = (n - 1) / (outputs - 1) if outputs > 1 else 0.0
        return _picked(x, axis, [min(floor(i * step + (0.5 if align_corners else 0.0)), n - 1) for i in range(outputs)])
    if mode == "area":
        weights = [[float(lo <= j < hi) / (hi - lo) for j in range(n)] for lo, hi in _spans(n, outputs)]
        return _mixed(x, axis, np.array(weights))
    if mode in ("linear", "bilinear", "trilinear"):
        return _mixed(x, axis, _linear_weights(n, outputs, factor, align_corners, align_mode))
    raise NotImplementedError(f"interpolate: mode {mode!r} is not implemented; there are nearest, area and linear ones")


def _spans(n: int, outputs: int) -> list[tuple[int, int]]:
    return [(i * n // outputs, -(-(i + 1) * n // outputs)) for i in range(outputs)]


def _linear_weights(n: int, outputs: int, factor: float | None, align_corners: bool, align_mode: int) -> np.ndarray:
    """The share of each input index in each output, [outputs, n]."""
    if align_corners:
        step = (n - 1) / (outputs - 1) if outputs > 1 else 0.0
    else:
        step = n / outputs if factor is None else 1 / factor
    half_pixel = not align_corners and align_mode == 0
    weights = np.zeros((outputs, n))
    for i in range(outputs):
        place = max((i + 0.5) * step - 0.5, 0.0) if half_pixel else i * step
        low = min(int(place), n - 1)
        share = min(place - low, 1.0)
        weights[i, low] += 1 - share
        weights[i, min(low + 1, n - 1)] += share
    return weights


def _picked(x: Tensor, axis: int, indices: Sequence[int]) -> Tensor:
    found = prim.gather(x, table(np.array(indices, np.int64).reshape(-1, 1)), axes=(axis,))
    return prim.transpose(found, permutation=(*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))


def _mixed(x: Tensor, axis: int, weights: np.ndarray) -> Tensor:
    """Linear combinations along `axis`, one for each row of `weights`."""
    shares = table(weights)
    if x.dtype != "float64":
        shares = prim.cast(shares, dtype=x.dtype)
    result = prim.dot_general(x, shares, lhs_contract=(axis,), rhs_contract=(1,))
    rest = [*range(axis), result.ndim - 1, *range(axis, result.ndim - 1)]
    return prim.transpose(result, permutation=tuple(rest))


@interpolate.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3, 4, 5))
    yield Sample(x, [6, 3])
    yield Sample(x, scale_factor=2)
    yield Sample(x, [7, 9], mode="bilinear")
    yield Sample(x, [7, 3], mode="bilinear", align_corners=True)
    yield Sample(x, scale_factor=[1.5, 2.0], mode="bilinear", align_mode=1)
    yield Sample(rng.standard_normal((2, 3, 5)), [8], mode="linear", data_format="NCW")
    yield Sample(x, [2, 3], mode="area")
