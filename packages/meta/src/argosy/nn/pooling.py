"""Pooling over windows: maxima, means and norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from argosy.nn.settings import FunctionLayer
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "AvgPool1D", "AvgPool2D", "AvgPool3D", "LPPool1D", "LPPool2D", "MaxPool1D", "MaxPool2D", "MaxPool3D", "Pool",
]  # fmt: skip


_KSIZE = {"kernel_size": "ksize"}  # what pools of two and three axes have in Paddle


class Pool(FunctionLayer):
    """A pooling function with its settings; subclasses name the function."""

    shown: ClassVar[tuple[str, ...]] = ("norm_type", "kernel_size", "stride", "padding", "output_size")
    """Which settings are printed."""

    def forward(self, x: Tensor) -> Any:
        """The pooled input, with ``return_mask`` also the places of the maxima."""
        return self._apply_function(x)

    def extra_repr(self) -> str:
        """The settings."""
        settings = self._settings
        return ", ".join(f"{name}={settings[name]}" for name in self.shown if name in settings)


class MaxPool1D(Pool):
    """The maximum of windows of [N, C, L]."""

    function = "max_pool1d"

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: Any = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            kernel_size=kernel_size, stride=stride, padding=padding, return_mask=return_mask, ceil_mode=ceil_mode
        )

    def forward(self, input: Tensor) -> Any:
        """The pooled input, with ``return_mask`` also the places of the maxima."""
        return super().forward(input)


class MaxPool2D(Pool):
    """The maximum of windows of [N, C, H, W]; windows lie side by side unless ``stride`` says otherwise."""

    function = "max_pool2d"
    renamed = _KSIZE

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


class MaxPool3D(Pool):
    """The maximum of windows of [N, C, D, H, W]."""

    function = "max_pool3d"
    renamed = _KSIZE

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: Any = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NCDHW",
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


class AvgPool1D(Pool):
    """The mean of windows of [N, C, L]; padding does not count unless ``exclusive`` is False."""

    function = "avg_pool1d"

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: Any = 0,
        exclusive: bool = True,
        ceil_mode: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            kernel_size=kernel_size, stride=stride, padding=padding, exclusive=exclusive, ceil_mode=ceil_mode
        )


class AvgPool2D(Pool):
    """The mean of windows of [N, C, H, W]; padding does not count unless ``exclusive`` is False."""

    function = "avg_pool2d"
    renamed = _KSIZE | {"divisor_override": "divisor"}

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


class AvgPool3D(Pool):
    """The mean of windows of [N, C, D, H, W]."""

    function = "avg_pool3d"
    renamed = _KSIZE | {"divisor_override": "divisor"}

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        exclusive: bool = True,
        divisor_override: int | None = None,
        data_format: str = "NCDHW",
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


class LPPool1D(Pool):
    """The ``norm_type`` norm of windows: the root of the sum of powers."""

    function = "lp_pool1d"
    renamed = _KSIZE

    def __init__(
        self,
        norm_type: float,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        data_format: str = "NCL",
        name: str | None = None,
    ) -> None:
        super().__init__(
            norm_type=float(norm_type),
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            ceil_mode=ceil_mode,
            data_format=data_format,
        )


class LPPool2D(Pool):
    """The ``norm_type`` norm of windows: the root of the sum of powers."""

    function = "lp_pool2d"
    renamed = _KSIZE

    def __init__(
        self,
        norm_type: float,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(
            norm_type=float(norm_type),
            kernel_size=kernel_size,
            stride=kernel_size if stride is None else stride,
            padding=padding,
            ceil_mode=ceil_mode,
            data_format=data_format,
        )
