"""Pooling layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.nn import functional as F
from argosy.nn.layer import Layer
from argosy_tensorcore.tensor import Tensor

__all__ = ["AdaptiveAvgPool2D", "AvgPool2D", "MaxPool2D"]


class MaxPool2D(Layer):
    """The maximum of windows of [N, C, H, W]; windows lie side by side unless ``stride`` says otherwise."""

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: Any = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._settings = (kernel_size, stride, padding, return_mask, ceil_mode, data_format)

    def forward(self, x: Tensor) -> Any:
        """The pooled input, with ``return_mask`` also the places of the maxima."""
        return F.max_pool2d(x, *self._settings)

    def extra_repr(self) -> str:
        """Kernel, stride and padding."""
        return "kernel_size={}, stride={}, padding={}".format(*self._settings[:3])


class AvgPool2D(Layer):
    """The mean of windows of [N, C, H, W]; padding does not count unless ``exclusive`` is False."""

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        exclusive: bool = True,
        divisor_override: int | None = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._settings = (kernel_size, stride, padding, ceil_mode, exclusive, divisor_override, data_format)

    def forward(self, x: Tensor) -> Tensor:
        """The pooled input."""
        return F.avg_pool2d(x, *self._settings)

    def extra_repr(self) -> str:
        """Kernel, stride and padding."""
        return "kernel_size={}, stride={}, padding={}".format(*self._settings[:3])


class AdaptiveAvgPool2D(Layer):
    """The means of as many windows of [N, C, H, W] as ``output_size`` says."""

    def __init__(self, output_size: Any, data_format: str = "NCHW", name: str | None = None) -> None:
        super().__init__()
        self._output_size, self._data_format = output_size, data_format

    @property
    def output_size(self) -> Any:
        """The number of windows along each axis."""
        return self._output_size

    def forward(self, x: Tensor) -> Tensor:
        """The pooled input."""
        return F.adaptive_avg_pool2d(x, self._output_size, self._data_format)

    def extra_repr(self) -> str:
        """The output's size."""
        return f"output_size={self._output_size}"
