"""Convolution layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from argosy.nn import functional as F
from argosy.nn.initializer import Normal
from argosy.nn.layer import Layer
from argosy_tensorcore.tensor import Tensor

__all__ = ["Conv1D", "Conv2D", "Conv3D"]


class _Conv(Layer):
    """Cross-correlation over ``spatial`` axes; weight [out_channels, in_channels / groups, *kernel].

    The weight starts normal with standard deviation √(2 / (in_channels * kernel elements)), the bias at 0.
    """

    spatial: ClassVar[int]
    function: ClassVar[str]
    layout: ClassVar[str]
    weight: Any
    bias: Any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: Any = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        *,
        bias: bool = True,
        padding_mode: str = "zeros",
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str | None = None,
    ) -> None:
        super().__init__()
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{type(self).__name__}: {in_channels} and {out_channels} channels do not split into {groups} groups"
            )
        if padding_mode != "zeros":
            raise NotImplementedError(f"{type(self).__name__}(padding_mode={padding_mode!r}) is not implemented")
        kernel = [kernel_size] * self.spatial if isinstance(kernel_size, int) else list(kernel_size)
        if len(kernel) != self.spatial:
            raise ValueError(f"{type(self).__name__}: kernel_size needs {self.spatial} numbers, got {kernel}")
        self._shown = f"{in_channels}, {out_channels}, kernel_size={kernel}, stride={stride}, padding={padding}"
        self._settings = (stride, padding, dilation, groups, data_format or self.layout)
        std = math.sqrt(2.0 / (in_channels * math.prod(kernel)))
        shape = [out_channels, in_channels // groups, *kernel]
        self.weight = self.create_parameter(shape, weight_attr, default_initializer=Normal(0.0, std))
        self.bias = self.create_parameter([out_channels], bias_attr if bias else False, is_bias=True)

    def forward(self, x: Tensor) -> Tensor:
        """The convolved input."""
        return getattr(F, self.function)(x, self.weight, self.bias, *self._settings)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """Channels, kernel, stride and padding."""
        return self._shown


class Conv1D(_Conv):
    """Convolution of [N, C, L] (or "NLC")."""

    spatial, function, layout = 1, "conv1d", "NCL"


class Conv2D(_Conv):
    """Convolution of [N, C, H, W] (or "NHWC")."""

    spatial, function, layout = 2, "conv2d", "NCHW"


class Conv3D(_Conv):
    """Convolution of [N, C, D, H, W] (or "NDHWC")."""

    spatial, function, layout = 3, "conv3d", "NCDHW"
