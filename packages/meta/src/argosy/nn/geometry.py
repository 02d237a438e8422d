"""Layers that rearrange, resize and compare: windows, pixels, sizes, distances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from argosy.argument_checks import Sizes, TensorLike, check_choice, validate_call
from argosy.framework.aliases import parameter_aliases
from argosy.nn import functional as F
from argosy.nn.initializer import Uniform
from argosy.nn.layer import Layer
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "Bilinear", "ChannelShuffle", "CosineSimilarity", "Fold", "PairwiseDistance", "PixelShuffle", "PixelUnshuffle",
    "Unflatten", "Unfold", "Upsample", "UpsamplingBilinear2D", "UpsamplingNearest2D",
]  # fmt: skip


class Upsample(Layer):
    """Interpolation to ``size``, or by ``scale_factor``, of the spatial axes."""

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool = False,
        align_mode: int = 0,
        data_format: str | None = None,
        recompute_scale_factor: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.align_mode, self.data_format = align_corners, align_mode, data_format
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, x: Tensor) -> Tensor:
        """The resized input."""
        settings = (self.align_corners, self.align_mode, self.data_format, self.recompute_scale_factor)
        return F.interpolate(x, self.size, self.scale_factor, self.mode, *settings)

    def extra_repr(self) -> str:
        """Size or factor, mode and layout."""
        corners = f"align_corners={self.align_corners}, align_mode={self.align_mode}"
        return f"{self._shown_size()}, mode={self.mode}, {corners}, data_format={self.data_format}"

    def _shown_size(self) -> str:
        return f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"


class _OfImages(Upsample):
    def extra_repr(self) -> str:
        """Size or factor, and layout."""
        return f"{self._shown_size()}, data_format={self.data_format}"


class UpsamplingNearest2D(_OfImages):
    """Nearest-neighbour interpolation of images."""

    def __init__(
        self, size: Any = None, scale_factor: Any = None, data_format: str = "NCHW", name: str | None = None
    ) -> None:
        super().__init__(size, scale_factor, "nearest", data_format=data_format)


class UpsamplingBilinear2D(_OfImages):
    """Bilinear interpolation of images with aligned corners."""

    def __init__(
        self, size: Any = None, scale_factor: Any = None, data_format: str = "NCHW", name: str | None = None
    ) -> None:
        super().__init__(size, scale_factor, "bilinear", True, data_format=data_format)


class PixelShuffle(Layer):
    """[N, C r^2, H, W] as [N, C, H r, W r] (Shi et al., 2016)."""

    def __init__(self, upscale_factor: int, data_format: str = "NCHW", name: str | None = None) -> None:
        super().__init__()
        check_choice(type(self).__name__, "data_format", data_format, ("NCHW", "NHWC"))
        self._upscale_factor, self._data_format = upscale_factor, data_format

    def forward(self, x: Tensor) -> Tensor:
        """The larger images."""
        return F.pixel_shuffle(x, self._upscale_factor, self._data_format)

    def extra_repr(self) -> str:
        """The factor."""
        return f"upscale_factor={self._upscale_factor}"


class PixelUnshuffle(Layer):
    """[N, C, H r, W r] as [N, C r^2, H, W]."""

    def __init__(self, downscale_factor: int, data_format: str = "NCHW", name: str | None = None) -> None:
        super().__init__()
        check_choice(type(self).__name__, "data_format", data_format, ("NCHW", "NHWC"))
        self._downscale_factor, self._data_format = downscale_factor, data_format

    def forward(self, x: Tensor) -> Tensor:
        """The smaller images with more channels."""
        return F.pixel_unshuffle(x, self._downscale_factor, self._data_format)

    def extra_repr(self) -> str:
        """The factor."""
        return f"downscale_factor={self._downscale_factor}"


class ChannelShuffle(Layer):
    """Channels dealt out over ``groups`` (Zhang et al., 2018)."""

    def __init__(self, groups: int, data_format: str = "NCHW", name: str | None = None) -> None:
        super().__init__()
        check_choice(type(self).__name__, "data_format", data_format, ("NCHW", "NHWC"))
        self._groups, self._data_format = groups, data_format

    def forward(self, x: Tensor) -> Tensor:
        """The input with channels rearranged."""
        return F.channel_shuffle(x, self._groups, self._data_format)

    def extra_repr(self) -> str:
        """The groups."""
        return f"groups={self._groups}"


def _shown_windows(kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> str:
    return f"kernel_size={kernel}, dilation={dilation}, padding={padding}, stride={stride}"


class Unfold(Layer):
    """Windows of [N, C, H, W] as columns."""

    def __init__(
        self,
        kernel_sizes: Sizes,
        dilations: Sizes = 1,
        paddings: Sizes = 0,
        strides: Sizes = 1,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._windows = (kernel_sizes, strides, paddings, dilations)

    def forward(self, input: Tensor) -> Tensor:
        """The columns [N, C * kernel elements, windows]."""
        return F.unfold(input, *self._windows)

    def extra_repr(self) -> str:
        """The windows."""
        return _shown_windows(*self._windows)


class Fold(Layer):
    """Columns added where :class:`Unfold` takes them from."""

    @parameter_aliases(
        kernel_size="kernel_sizes",
        stride="strides",
        padding="paddings",
        dilation="dilations",
        output_size="output_sizes",
    )
    def __init__(
        self,
        output_sizes: Sizes,
        kernel_sizes: Sizes,
        dilations: Sizes = 1,
        paddings: Sizes = 0,
        strides: Sizes = 1,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._windows = (output_sizes, kernel_sizes, strides, paddings, dilations)

    @property
    def output_size(self) -> Any:
        """Height and width of the images."""
        return self._windows[0]

    @property
    def kernel_size(self) -> Any:
        """Of the windows."""
        return self._windows[1]

    @property
    def stride(self) -> Any:
        """From window to window."""
        return self._windows[2]

    @property
    def padding(self) -> Any:
        """Around the images."""
        return self._windows[3]

    @property
    def dilation(self) -> Any:
        """Between the elements of a window."""
        return self._windows[4]

    def forward(self, input: Tensor) -> Tensor:
        """The images [N, C, *output_sizes]."""
        return F.fold(input, *self._windows)

    def extra_repr(self) -> str:
        """The windows."""
        return _shown_windows(*self._windows[1:])


class Unflatten(Layer):
    """Split ``axis`` into the axes of ``shape``."""

    def __init__(self, axis: int, shape: Sequence[int], name: str | None = None) -> None:
        super().__init__()
        self.axis, self.shape = axis, shape

    @validate_call
    def forward(self, input: TensorLike) -> Tensor:
        """The input with more axes."""
        return input.unflatten(self.axis, self.shape)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """Axis and shape."""
        return f"axis={self.axis}, shape={self.shape}"


class CosineSimilarity(Layer):
    """The cosine of the angle between two tensors along ``axis``."""

    @parameter_aliases(dim="axis")
    def __init__(self, axis: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self._axis, self._eps = axis, eps

    @property
    def dim(self) -> int:
        """The axis."""
        return self._axis

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The cosines."""
        return F.cosine_similarity(x1, x2, axis=self._axis, eps=self._eps)

    def extra_repr(self) -> str:
        """Axis and epsilon."""
        return f"axis={self._axis}, eps={self._eps}"


class PairwiseDistance(Layer):
    """The ``p`` norm of ``x - y + epsilon`` along the last axis."""

    @parameter_aliases(eps="epsilon")
    def __init__(self, p: float = 2.0, epsilon: float = 1e-6, keepdim: bool = False, name: str | None = None) -> None:
        super().__init__()
        self.p, self.epsilon, self.keepdim = p, epsilon, keepdim

    @property
    def norm(self) -> float:
        """The order of the norm."""
        return self.p

    @property
    def eps(self) -> float:
        """What is added to the difference."""
        return self.epsilon

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The distances."""
        return F.pairwise_distance(x, y, self.p, self.epsilon, self.keepdim)

    def extra_repr(self) -> str:
        """The norm, and what is not as by default."""
        epsilon = "" if self.epsilon == 1e-6 else f", epsilon={self.epsilon}"
        return f"p={self.p}{epsilon}" + (f", keepdim={self.keepdim}" if self.keepdim else "")


class Bilinear(Layer):
    """``x1 @ weight[k] @ x2 + bias[k]``: [N, in1] and [N, in2] give [N, out]; weight [out, in1, in2], bias [1, out].

    Both start uniform within 1 / sqrt(in1_features).
    """

    weight: Any
    bias: Any

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._shown = f"in1_features={in1_features}, in2_features={in2_features}, out_features={out_features}"
        self._shown += f", dtype={self._dtype}"
        if in1_features < 1:
            raise ValueError(f"Bilinear(): argument 'in1_features' must be positive, got {in1_features}")
        bound = 1.0 / math.sqrt(in1_features)
        start = Uniform(-bound, bound)
        shape = [out_features, in1_features, in2_features]
        self._weight_attr, self._bias_attr = weight_attr, bias_attr
        self.weight = self.create_parameter(shape, weight_attr, default_initializer=start)
        self.bias = self.create_parameter([1, out_features], bias_attr, is_bias=True, default_initializer=start)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The bilinear forms."""
        return F.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Sizes."""
        return self._shown
