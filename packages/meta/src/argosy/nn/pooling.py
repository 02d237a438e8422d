"""Pooling layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from argosy.nn.settings import FunctionLayer
from argosy_tensorcore.tensor import Tensor

__all__ = ["AdaptiveAvgPool2D", "AvgPool2D", "MaxPool2D"]


class MaxPool2D(FunctionLayer):
    """The maximum of windows of [N, C, H, W]; windows lie side by side unless ``stride`` says otherwise."""

    function = "max_pool2d"
    renamed: ClassVar = {"kernel_size": "ksize"}

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
        super().__init__(
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            return_mask=return_mask,
            ceil_mode=ceil_mode,
            data_format=data_format,
        )

    def forward(self, x: Tensor) -> Any:
        """The pooled input, with ``return_mask`` also the places of the maxima."""
        return self._applied(x)

    def extra_repr(self) -> str:
        """Kernel, stride and padding."""
        return f"kernel_size={self.ksize}, stride={self.stride}, padding={self.padding}"


class AvgPool2D(FunctionLayer):
    """The mean of windows of [N, C, H, W]; padding does not count unless ``exclusive`` is False."""

    function = "avg_pool2d"
    renamed: ClassVar = {"kernel_size": "ksize", "divisor_override": "divisor"}

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
        super().__init__(
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            ceil_mode=ceil_mode,
            exclusive=exclusive,
            divisor_override=divisor_override,
            data_format=data_format,
        )

    def forward(self, x: Tensor) -> Tensor:
        """The pooled input."""
        return self._applied(x)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """Kernel, stride and padding."""
        return f"kernel_size={self.ksize}, stride={self.stride}, padding={self.padding}"


class AdaptiveAvgPool2D(FunctionLayer):
    """The means of as many windows of [N, C, H, W] as ``output_size`` says."""

    function = "adaptive_avg_pool2d"
    prefix = "_"

    def __init__(self, output_size: Any, data_format: str = "NCHW", name: str | None = None) -> None:
        super().__init__(output_size=output_size, data_format=data_format)

    @property
    def output_size(self) -> Any:
        """The number of windows along each axis."""
        return self._output_size

    def forward(self, x: Tensor) -> Tensor:
        """The pooled input."""
        return self._applied(x)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """The output's size."""
        return f"output_size={self._output_size}"
