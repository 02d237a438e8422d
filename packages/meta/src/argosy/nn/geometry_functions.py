"""Functions of ``nn.functional`` on layouts of images and sequences that are a few operators each."""

from __future__ import annotations

from typing import Any

from argosy.argument_checks import Sizes, TensorLike, check_choice, validate_call
from argosy.framework.aliases import parameter_aliases
from argosy.nn.conv_settings import LAYOUTS
from argosy.nn.integers import Integral
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.ops.common.windows import window_count
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "fold", "local_response_norm", "lp_pool1d", "lp_pool2d", "temporal_shift", "unfold", "upsample", "zeropad2d",
]  # fmt: skip


WINDOWS = {
    "kernel_size": "kernel_sizes", "stride": "strides", "padding": "paddings", "dilation": "dilations",
    "output_size": "output_sizes",
}  # fmt: skip
"""Other names that folding takes for its parameters."""


def _pair(function: str, argument: str, value: Any) -> list[int]:
    pair = [value, value] if isinstance(value, Integral) else list(value)
    if len(pair) != 2:
        raise ValueError(f"{function}: {argument} is a number or two, got {value}")
    return pair


def _edges(function: str, paddings: Any) -> list[int]:
    """Padding as top, left, bottom, right."""
    given = [paddings] * 2 if isinstance(paddings, Integral) else list(paddings)
    if len(given) not in (2, 4):
        raise ValueError(f"{function}: paddings is a number, two or four, got {paddings}")
    return given if len(given) == 4 else [*given, *given]


@validate_call
def unfold(
    x: Tensor,
    kernel_sizes: Sizes,
    strides: Sizes = 1,
    paddings: Sizes = 0,
    dilations: Sizes = 1,
    name: str | None = None,
) -> Tensor:
    """Windows of [N, C, H, W] as columns [N, C * kernel elements, windows]; four paddings are top, left, bottom,
    right.
    """
    return get_operator("im2col")(x, kernel_sizes, strides, paddings, dilations)  # type: ignore[no-any-return]


@parameter_aliases(input="x", **WINDOWS)
@validate_call
def fold(
    x: TensorLike,
    output_sizes: Sizes,
    kernel_sizes: Sizes,
    strides: Sizes = 1,
    paddings: Sizes = 0,
    dilations: Sizes = 1,
    name: str | None = None,
) -> Tensor:
    """Columns [N, C * kernel elements, windows] added where they came from: [N, C, *output_sizes].

    A transposed convolution whose filters are the unit vectors of a window.
    """
    kernel, stride, dilation = (
        _pair("fold", label, value)
        for label, value in (("kernel_sizes", kernel_sizes), ("strides", strides), ("dilations", dilations))
    )
    height, width = _pair("fold", "output_sizes", output_sizes)
    top, left, bottom, right = _edges("fold", paddings)
    padded = [height + top + bottom, width + left + right]
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    windows = [window_count(size, (0, 0), r, s) for size, r, s in zip(padded, reach, stride, strict=True)]
    elements = kernel[0] * kernel[1]
    if x.ndim != 3 or x.shape[1] % elements or x.shape[2] != windows[0] * windows[1]:
        raise ValueError(
            f"fold: columns are [N, C * {elements}, {windows[0] * windows[1]}] for output {height}x{width}, "
            f"kernel {kernel}, stride {stride}, got shape {list(x.shape)}"
        )
    batch, channels = x.shape[0], x.shape[1] // elements
    units = get_operator("eye")(elements, dtype=x.dtype).reshape([elements, 1, *kernel])
    columns = x.reshape([batch * channels, elements, *windows])
    image = get_operator("conv2d_transpose")(
        columns, units, stride=stride, dilation=dilation,
        output_size=[(count - 1) * s + r for count, r, s in zip(windows, reach, stride, strict=True)],
    )  # fmt: skip
    image = _extend(image.reshape([batch, channels, *image.shape[2:]]), padded)
    return image[:, :, top : top + height, left : left + width]  # type: ignore[no-any-return]


def _extend(image: Any, sizes: list[int]) -> Any:
    below, beside = max(sizes[0] - image.shape[2], 0), max(sizes[1] - image.shape[3], 0)
    return get_operator("pad")(image, [0, beside, 0, below]) if below or beside else image


@validate_call
def upsample(
    x: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool = False,
    align_mode: int = 0,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """``interpolate`` under its older name."""
    settings: dict[str, Any] = {"align_corners": align_corners, "align_mode": align_mode, "data_format": data_format}
    return get_operator("interpolate")(x, size, scale_factor, mode, **settings)  # type: ignore[no-any-return]


@validate_call
def zeropad2d(x: Tensor, padding: Sizes, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """Zeros around images; padding: left, right, top, bottom, or one number for all."""
    edges = [padding] * 4 if isinstance(padding, Integral) else list(padding)
    return get_operator("pad")(x, edges, mode="constant", value=0.0, data_format=data_format)  # type: ignore[no-any-return]


@validate_call
def local_response_norm(
    x: TensorLike,
    size: int,
    alpha: float = 1e-4,
    beta: float = 0.75,
    k: float = 1.0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Tensor:
    """``x / (k + alpha * mean of the squares of size neighbouring channels)^beta`` (Krizhevsky et al., 2012).

    Channels beyond the edge count as zeros.
    """
    check_choice("local_response_norm", "data_format", data_format, LAYOUTS)
    if x.ndim < 3:
        raise ValueError(f"local_response_norm: the input has 3 axes or more, got shape {list(x.shape)}")
    axis = x.ndim - 1 if data_format[-1] == "C" else 1
    edges = [0] * (2 * x.ndim)
    edges[2 * axis], edges[2 * axis + 1] = size // 2, (size - 1) // 2
    squares = get_operator("pad")(x.square(), edges)
    channels = x.shape[axis]
    total: Any = sum(squares.slice([axis], [i], [i + channels]) for i in range(size))
    return x / (total * (alpha / size) + k) ** beta  # type: ignore[no-any-return]


@validate_call
def lp_pool2d(
    x: TensorLike,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Tensor:
    """``(sum of x^norm_type over each window)^(1 / norm_type)`` of [N, C, H, W]; for infinity the maximum."""
    if norm_type == 0:
        raise ValueError("lp_pool: norm_type must not be 0")
    if norm_type == float("inf"):
        settings: dict[str, Any] = {"ceil_mode": ceil_mode, "data_format": data_format}
        return get_operator("max_pool2d")(x, kernel_size, stride, padding, **settings)  # type: ignore[no-any-return]
    settings = {"ceil_mode": ceil_mode, "data_format": data_format}
    sums = get_operator("sum_pool2d")(x**norm_type, kernel_size, stride, padding, **settings)
    return sums ** (1.0 / norm_type)  # type: ignore[no-any-return]


@validate_call
def lp_pool1d(
    x: TensorLike,
    norm_type: float,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    data_format: str = "NCL",
    name: str | None = None,
) -> Tensor:
    """:func:`lp_pool2d` of [N, C, L]."""
    check_choice("lp_pool1d", "data_format", data_format, ("NCL", "NLC"))
    kernel, step = (_single_size(kernel_size), kernel_size if stride is None else stride)
    edges = padding if isinstance(padding, str) else [0, 0, *_two_sides("lp_pool1d", padding)]
    axis, layout = (2, "NCHW") if data_format == "NCL" else (1, "NHWC")
    image = x.unsqueeze(axis)
    result: Any = lp_pool2d(image, norm_type, [1, kernel], [1, _single_size(step)], edges, ceil_mode, layout)
    return result.squeeze(axis)  # type: ignore[no-any-return]


def _two_sides(function: str, padding: Any) -> list[int]:
    """Padding of one axis, (before, after), from a number, one or two numbers, or pairs of all axes."""
    given: list[Any] = [padding] if isinstance(padding, Integral) else list(padding)
    if given and not isinstance(given[0], Integral):
        given = [n for pair in given for n in pair if list(pair) != [0, 0]] or [0, 0]
    if len(given) not in (1, 2):
        raise ValueError(f"{function}: padding is a number, two, or pairs of all axes, got {padding}")
    return [*given, *given][:2]


def _single_size(value: Any) -> int:
    found = [value] if isinstance(value, Integral) else list(value)
    if len(found) != 1:
        raise ValueError(f"sizes of one axis should be one integer, got {value!r:.60}")
    return found[0]


@validate_call
def temporal_shift(
    x: TensorLike, seg_num: int, shift_ratio: float = 0.25, name: str | None = None, data_format: str = "NCHW"
) -> Tensor:
    """Frames [N * seg_num, C, H, W] whose first channels come from the frame before and the next from the one after
    (Lin et al., 2019); zeros at the ends.
    """
    if x.ndim != 4 or x.shape[0] % seg_num or not 0 < shift_ratio <= 0.5:
        raise ValueError(
            f"temporal_shift: needs 4 axes, frames in segments of {seg_num} and 0 < shift_ratio <= 0.5, "
            f"got shape {list(x.shape)} and {shift_ratio}"
        )
    check_choice("temporal_shift", "data_format", data_format, ("NCHW", "NHWC"))
    channel = 1 if data_format == "NCHW" else 3
    first, second = int(x.shape[channel] * shift_ratio), int(x.shape[channel] * 2 * shift_ratio)
    parts = x.split([first, second - first, x.shape[channel] - second], axis=channel)
    shape = [-1, seg_num, *parts[0].shape[1:]]
    before = _move_axis(parts[0].reshape(shape), 1)
    after = _move_axis(parts[1].reshape([-1, seg_num, *parts[1].shape[1:]]), -1)
    moved = [part.reshape([x.shape[0], *part.shape[2:]]) for part in (before, after)]
    return get_operator("concat")([*moved, parts[2]], axis=channel)  # type: ignore[no-any-return]


def _move_axis(frames: Any, by: int) -> Any:
    still = get_operator("zeros_like")(frames[:, :1])
    parts = [still, frames[:, :-1]] if by > 0 else [frames[:, 1:], still]
    return get_operator("concat")(parts, axis=1)
