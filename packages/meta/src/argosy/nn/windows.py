"""Pooling layers for other ranks and other means than the common three: see ``pooling`` for those."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from argosy.nn.settings import FunctionLayer
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "AdaptiveAvgPool1D", "AdaptiveAvgPool3D", "AdaptiveMaxPool1D", "AdaptiveMaxPool2D", "AdaptiveMaxPool3D",
    "AvgPool1D", "AvgPool3D", "LPPool1D", "LPPool2D", "MaxPool1D", "MaxPool3D",
]  # fmt: skip


_KSIZE = {"kernel_size": "ksize"}  # what pools of two and three axes have in Paddle


class _Pool(FunctionLayer):
    """A pooling function with its settings; subclasses name the function."""

    shown: ClassVar[tuple[str, ...]] = ("kernel_size", "stride", "padding", "output_size", "return_mask")
    """Which settings are printed."""

    def forward(self, x: Tensor) -> Any:
        """The pooled input, with ``return_mask`` also the places of the maxima."""
        return self._applied(x)

    def extra_repr(self) -> str:
        """The settings."""
        settings = self._settings
        return ", ".join(f"{name}={settings[name]}" for name in self.shown if name in settings)


class MaxPool1D(_Pool):
    """The maximum of windows of [N, C, L]."""

    shown = ("kernel_size", "stride", "padding")

    function = "max_pool1d"

    def forward(self, input: Tensor) -> Any:
        """The pooled input, with ``return_mask`` also the places of the maxima."""
        return super().forward(input)

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


class MaxPool3D(_Pool):
    """The maximum of windows of [N, C, D, H, W]."""

    shown = ("kernel_size", "stride", "padding")

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


class AvgPool1D(_Pool):
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


class AvgPool3D(_Pool):
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


class AdaptiveAvgPool1D(_Pool):
    """The means of ``output_size`` windows of [N, C, L]."""

    function = "adaptive_avg_pool1d"

    def forward(self, input: Tensor) -> Any:
        """The pooled input."""
        return super().forward(input)

    def __init__(
        self,
        output_size: Any,
        name: str | None = None,
    ) -> None:
        super().__init__(output_size=output_size)


class AdaptiveAvgPool3D(_Pool):
    """The means of ``output_size`` windows of [N, C, D, H, W]."""

    function = "adaptive_avg_pool3d"
    prefix = "_"

    def __init__(
        self,
        output_size: Any,
        data_format: str = "NCDHW",
        name: str | None = None,
    ) -> None:
        super().__init__(output_size=output_size, data_format=data_format)

    @property
    def output_size(self) -> Any:
        """The number of windows along each axis."""
        return self._output_size


class _AdaptiveMax(_Pool):
    prefix = "_"

    @property
    def return_indices(self) -> bool:
        """Whether the places of the maxima come, too."""
        return self._return_mask  # type: ignore[no-any-return]


class AdaptiveMaxPool1D(_AdaptiveMax):
    """The maxima of ``output_size`` windows of [N, C, L]."""

    function = "adaptive_max_pool1d"

    def forward(self, input: Tensor) -> Any:
        """The pooled input."""
        return super().forward(input)

    def __init__(
        self,
        output_size: Any,
        return_mask: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(output_size=output_size, return_mask=return_mask)


class AdaptiveMaxPool2D(_AdaptiveMax):
    """The maxima of ``output_size`` windows of [N, C, H, W]."""

    function = "adaptive_max_pool2d"

    def __init__(
        self,
        output_size: Any,
        return_mask: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(output_size=output_size, return_mask=return_mask)


class AdaptiveMaxPool3D(_AdaptiveMax):
    """The maxima of ``output_size`` windows of [N, C, D, H, W]."""

    function = "adaptive_max_pool3d"

    def __init__(
        self,
        output_size: Any,
        return_mask: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(output_size=output_size, return_mask=return_mask)


class LPPool1D(_Pool):
    """The ``norm_type`` norm of windows: the root of the sum of powers."""

    shown = ("norm_type", "kernel_size", "stride", "padding")

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


class LPPool2D(_Pool):
    """The ``norm_type`` norm of windows: the root of the sum of powers."""

    shown = ("norm_type", "kernel_size", "stride", "padding")
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
