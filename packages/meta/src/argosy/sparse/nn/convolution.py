"""Sparse convolutions as layers."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from argosy.argument_checks import Sizes
from argosy.nn.initializer import Normal
from argosy.nn.layer import Layer
from argosy.sparse.nn import functional as F
from argosy_phi_ops.ops.common.arguments import per_axis

__all__ = ["Conv2D", "Conv3D", "SubmConv2D", "SubmConv3D"]


class _Conv(Layer):
    """Weight [*kernel, in_channels, out_channels], at first normal with standard deviation √(2 / (in_channels * kernel
    elements)); bias [out_channels], at first 0, none with ``bias_attr=False``.
    """

    function: ClassVar[str]
    weight: Any
    bias: Any

    def _make(self, channels: tuple[int, int], sizes: tuple[Any, Any, Any, Any], attrs: tuple[Any, Any]) -> None:
        this, rank = type(self).__name__, int(self.function[-2])
        if attrs[0] is False:
            raise ValueError(f"{this}: weight_attr is False, but there is no convolution without a weight")
        self._in_channels, self._out_channels = channels
        self._kernel_size = list(per_axis(this, sizes[0], rank, "kernel_size"))
        self._stride, self._padding, self._dilation = list(per_axis(this, sizes[1], rank, "stride")), *sizes[2:]
        std = math.sqrt(2.0 / (channels[0] * math.prod(self._kernel_size)))
        shape = [*self._kernel_size, *channels]
        self.weight = self.create_parameter(shape, attrs[0], default_initializer=Normal(0.0, std))
        self.bias = self.create_parameter([channels[1]], attrs[1], is_bias=True)

    def _check(self, groups: int, padding_mode: str, data_format: str, backend: str | None = None) -> None:
        this, wanted = type(self).__name__, "NDHWC" if self.function.endswith("3d") else "NHWC"
        if groups != 1 or padding_mode != "zeros":
            given = f"groups {groups} and padding_mode {padding_mode!r}"
            raise NotImplementedError(f"{this}: {given}; sparse convolutions have 1 and 'zeros'")
        if data_format != wanted or backend not in (None, "igemm"):
            given = f"{data_format!r} and {backend!r}"
            raise ValueError(f"{this}: data_format should be {wanted!r} and backend None or 'igemm', got {given}")
        self._data_format = data_format

    def forward(self, x: Any) -> Any:
        """The convolved sparse tensor."""
        settings = (self._stride, self._padding, self._dilation)
        return getattr(F, self.function)(x, self.weight, self.bias, *settings)

    def extra_repr(self) -> str:
        """Channels, kernel and what is not as by default."""
        text = f"{self._in_channels}, {self._out_channels}, kernel_size={self._kernel_size}"
        rank = len(self._kernel_size)
        dilation = list(per_axis("", self._dilation, rank, "dilation"))
        text += f", stride={self._stride}" if self._stride != [1] * rank else ""
        text += f", padding={self._padding}" if self._padding != 0 else ""
        text += f", dilation={dilation}" if dilation != [1] * rank else ""
        return f"{text}, data_format={self._data_format}"


class Conv2D(_Conv):
    """Sparse convolution of [N, H, W, C]; see :func:`argosy.sparse.nn.functional.conv2d`."""

    function = "conv2d"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Sizes = 1,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NHWC",
    ) -> None:
        super().__init__()
        self._check(groups, padding_mode, data_format)
        self._make((in_channels, out_channels), (kernel_size, stride, padding, dilation), (weight_attr, bias_attr))


class Conv3D(_Conv):
    """Sparse convolution of [N, D, H, W, C]; see :func:`argosy.sparse.nn.functional.conv3d`."""

    function = "conv3d"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Sizes = 1,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NDHWC",
    ) -> None:
        super().__init__()
        self._check(groups, padding_mode, data_format)
        self._make((in_channels, out_channels), (kernel_size, stride, padding, dilation), (weight_attr, bias_attr))


class SubmConv2D(_Conv):
    """Submanifold convolution of [N, H, W, C]; see :func:`argosy.sparse.nn.functional.subm_conv2d`."""

    function = "subm_conv2d"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Sizes = 1,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        key: str | None = None,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NHWC",
        backend: str | None = None,
    ) -> None:
        super().__init__()
        self._check(groups, padding_mode, data_format, backend)
        self._make((in_channels, out_channels), (kernel_size, stride, padding, dilation), (weight_attr, bias_attr))


class SubmConv3D(_Conv):
    """Submanifold convolution of [N, D, H, W, C]; see :func:`argosy.sparse.nn.functional.subm_conv3d`."""

    function = "subm_conv3d"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Sizes = 1,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        key: str | None = None,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NDHWC",
        backend: str | None = None,
    ) -> None:
        super().__init__()
        self._check(groups, padding_mode, data_format, backend)
        self._make((in_channels, out_channels), (kernel_size, stride, padding, dilation), (weight_attr, bias_attr))
