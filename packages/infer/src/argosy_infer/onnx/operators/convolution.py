"""Convolutions, their transposes, and what they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy_infer.onnx.operators.linear import centred
from argosy_infer.onnx.registry import Values, onnx_operator
from argosy_infer.onnx.tensors import phi, prim, shape_of, tensor_of

Ints = Sequence[int]


def padding_pairs(
    sizes: Sequence[Any], window: Ints, strides: Ints, dilations: Ints, pads: Ints | None, auto_pad: str
) -> list[tuple[int, int]]:
    """The padding before and after each axis. ``SAME_UPPER`` and ``SAME_LOWER`` give ``ceil(n / stride)`` windows."""
    if auto_pad in ("NOTSET", ""):
        found = list(pads or [0] * (2 * len(window)))
        return list(zip(found[: len(window)], found[len(window) :], strict=True))
    if auto_pad == "VALID":
        return [(0, 0)] * len(window)
    pairs = []
    for n, k, s, d in zip(sizes, window, strides, dilations, strict=True):
        total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        small, large = total // 2, total - total // 2
        pairs.append((small, large) if auto_pad == "SAME_UPPER" else (large, small))
    return pairs


def add_bias(x: Any, bias: Any) -> Any:
    """``x`` [N, C, ...] with a number for each channel."""
    return x if bias is None else prim.add(x, phi.reshape(bias, [-1] + [1] * (len(shape_of(x)) - 2)))


@onnx_operator("Conv")
def conv(
    x: Any,
    w: Any,
    bias: Any = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    """Cross-correlation of x [N, C, ...] with w [out, C / group, ...]."""
    rank = len(shape_of(x)) - 2
    by, apart = strides or [1] * rank, dilations or [1] * rank
    pairs = padding_pairs(shape_of(x)[2:], shape_of(w)[2:], by, apart, pads, auto_pad)
    if 1 <= rank <= 3:
        flat = [n for pair in pairs for n in pair]
        padding = flat if len(set(map(tuple, pairs))) > 1 or flat[0] != flat[1] else flat[0]
        return getattr(phi, f"conv{rank}d")(x, w, bias, list(by), padding, list(apart), group)
    made = prim.conv(
        x, w, strides=tuple(by), padding=tuple(pairs), lhs_dilation=(1,) * rank, rhs_dilation=tuple(apart), groups=group
    )
    return add_bias(made, bias)


@onnx_operator("ConvTranspose")
def conv_transpose(
    x: Any,
    w: Any,
    bias: Any = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    output_padding: Ints | None = None,
    output_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    """The gradient of a convolution by its input, x [N, C, ...], with w [C, out / group, ...]."""
    rank = len(shape_of(x)) - 2
    by, apart, extra = strides or [1] * rank, dilations or [1] * rank, output_padding or [0] * rank
    sizes, window = shape_of(x)[2:], shape_of(w)[2:]
    whole = [(n - 1) * s + (k - 1) * d + 1 + e for n, s, k, d, e in zip(sizes, by, window, apart, extra, strict=True)]
    wanted = output_shape or ([n * s for n, s in zip(sizes, by, strict=True)] if auto_pad.startswith("SAME") else None)
    if wanted:
        pairs = []
        for n, m in zip(whole, list(wanted)[-rank:], strict=True):
            small, large = (n - m) // 2, (n - m) - (n - m) // 2
            pairs.append((small, large) if auto_pad == "SAME_UPPER" else (large, small))
    else:
        pairs = padding_pairs(sizes, window, by, apart, pads, auto_pad)
    reach = [(k - 1) * d for k, d in zip(window, apart, strict=True)]
    padding = tuple((r - lo, r - hi + e) for r, (lo, hi), e in zip(reach, pairs, extra, strict=True))
    made = prim.conv(
        x, _turned(w, group), strides=(1,) * rank, padding=padding, lhs_dilation=tuple(by), rhs_dilation=tuple(apart),
        groups=group,
    )  # fmt: skip
    return add_bias(made, bias)


def _turned(w: Any, group: int) -> Any:
    """w [C, out / group, ...] as [out, C / group, ...], each window from its end."""
    channels, out, *window = shape_of(w)
    rank = len(window)
    w = prim.reverse(w, axes=tuple(range(2, 2 + rank)))
    w = phi.reshape(w, [group, channels // group, out, *window])
    w = prim.transpose(w, permutation=(0, 2, 1, *range(3, 3 + rank)))
    return phi.reshape(w, [group * out, channels // group, *window])


@onnx_operator("ConvInteger")
def conv_integer(x: Any, w: Any, x_zero_point: Any = None, w_zero_point: Any = None, **attributes: Any) -> Any:
    """A convolution of integers of 8 bits less their zero points, in int32."""
    return conv(centred(x, x_zero_point, 1), centred(w, w_zero_point, 0), **attributes)


@onnx_operator("Col2Im")
def col2im(
    x: Any,
    image_shape: Values,
    block_shape: Values,
    *,
    dilations: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    """The sum of blocks, x [N, C * product(block), blocks], at their places in an image."""
    rank = len(image_shape)
    image, block = [int(n) for n in image_shape], [int(n) for n in block_shape]
    by, apart = strides or [1] * rank, dilations or [1] * rank
    pairs = padding_pairs(image, block, by, apart, pads, "NOTSET")
    padded = [n + lo + hi for n, (lo, hi) in zip(image, pairs, strict=True)]
    counts = [(n - (k - 1) * d - 1) // s + 1 for n, k, d, s in zip(padded, block, apart, by, strict=True)]
    places = _block_places(padded, block, counts, by, apart)
    rows, depth = shape_of(x)[0], int(np.prod(block))
    channels = shape_of(x)[1] // depth
    columns = prim.transpose(phi.reshape(x, [rows * channels, -1]), permutation=(1, 0))
    sums = phi.full([int(np.prod(padded)), rows * channels], 0, x.payload.dtype.name)
    sums = prim.scatter(sums, tensor_of(places.reshape(-1, 1)), columns, axes=(0,), batch=0, kind="add")
    whole = phi.reshape(prim.transpose(sums, permutation=(1, 0)), [rows, channels, *padded])
    starts = [lo for lo, _ in pairs]
    ends = [lo + n for (lo, _), n in zip(pairs, image, strict=True)]
    return phi.slice(whole, list(range(2, 2 + rank)), starts, ends)


def _block_places(sizes: Ints, block: Ints, counts: Ints, strides: Ints, dilations: Ints) -> np.ndarray[Any, Any]:
    """The place in an image of ``sizes`` of each element of each block: [elements of a block, blocks]."""
    within = np.stack(np.meshgrid(*(np.arange(k) * d for k, d in zip(block, dilations, strict=True)), indexing="ij"))
    starts = np.stack(np.meshgrid(*(np.arange(n) * s for n, s in zip(counts, strides, strict=True)), indexing="ij"))
    axes = within.reshape(len(sizes), -1, 1) + starts.reshape(len(sizes), 1, -1)
    return np.asarray(np.ravel_multi_index(tuple(axes), tuple(sizes)), np.int64)
