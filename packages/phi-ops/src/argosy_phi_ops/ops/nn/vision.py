"""Operators on images: shuffles of pixels and channels, windows as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.common.arguments import per_axis
from argosy_phi_ops.ops.common.windows import channels_first, channels_last, covering_pair, window_count
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
    kh, kw = per_axis("im2col", kernel_sizes, 2, "kernel_sizes")
    (sh, sw), (dh, dw) = per_axis("im2col", strides, 2, "strides"), per_axis("im2col", dilations, 2, "dilations")
    given = per_axis("im2col", paddings, 2) if isinstance(paddings, int) or len(paddings) <= 2 else tuple(paddings)
    top, left, bottom, right = given if len(given) == 4 else (*given, *given)
    n, c, h, w = x.shape
    vertical, horizontal = (h, (top, bottom), (kh - 1) * dh + 1, sh), (w, (left, right), (kw - 1) * dw + 1, sw)
    rows, columns = window_count(*vertical), window_count(*horizontal)
    (top, bottom), (left, right) = covering_pair(*vertical, rows), covering_pair(*horizontal, columns)
    low, high = (0, 0, top, left), (0, 0, bottom, right)
    padded = prim.pad(x, prim.constant(0, x.dtype), low=low, high=high, interior=(0,) * 4)
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
