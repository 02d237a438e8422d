"""Pooling into as many windows as are asked for."""

from __future__ import annotations

from typing import Any

from argosy.framework.aliases import parameter_aliases
from argosy.nn.pooling import Pool
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "AdaptiveAvgPool1D", "AdaptiveAvgPool2D", "AdaptiveAvgPool3D",
    "AdaptiveMaxPool1D", "AdaptiveMaxPool2D", "AdaptiveMaxPool3D",
]  # fmt: skip


class AdaptiveAvgPool1D(Pool):
    """The means of ``output_size`` windows of [N, C, L]."""

    function = "adaptive_avg_pool1d"

    def __init__(self, output_size: Any, name: str | None = None) -> None:
        super().__init__(output_size=output_size)

    def forward(self, input: Tensor) -> Any:
        """The pooled input."""
        return super().forward(input)


class AdaptiveAvgPool2D(Pool):
    """The means of ``output_size`` windows of [N, C, H, W]."""

    function = "adaptive_avg_pool2d"
    prefix = "_"

    def __init__(self, output_size: Any, data_format: str = "NCHW", name: str | None = None) -> None:
        super().__init__(output_size=output_size, data_format=data_format)

    @property
    def output_size(self) -> Any:
        """The number of windows along each axis."""
        return self._output_size


class AdaptiveAvgPool3D(Pool):
    """The means of ``output_size`` windows of [N, C, D, H, W]."""

    function = "adaptive_avg_pool3d"
    prefix = "_"

    def __init__(self, output_size: Any, data_format: str = "NCDHW", name: str | None = None) -> None:
        super().__init__(output_size=output_size, data_format=data_format)

    @property
    def output_size(self) -> Any:
        """The number of windows along each axis."""
        return self._output_size


class _AdaptiveMax(Pool):
    prefix = "_"
    shown = ("output_size", "return_mask")

    @property
    def return_indices(self) -> bool:
        """Whether the places of the maxima come, too."""
        return self._return_mask  # type: ignore[no-any-return]


class AdaptiveMaxPool1D(_AdaptiveMax):
    """The maxima of ``output_size`` windows of [N, C, L]."""

    function = "adaptive_max_pool1d"

    @parameter_aliases(return_indices="return_mask")
    def __init__(self, output_size: Any, return_mask: bool = False, name: str | None = None) -> None:
        super().__init__(output_size=output_size, return_mask=return_mask)

    def forward(self, input: Tensor) -> Any:
        """The pooled input."""
        return super().forward(input)


class AdaptiveMaxPool2D(_AdaptiveMax):
    """The maxima of ``output_size`` windows of [N, C, H, W]."""

    function = "adaptive_max_pool2d"

    @parameter_aliases(return_indices="return_mask")
    def __init__(self, output_size: Any, return_mask: bool = False, name: str | None = None) -> None:
        super().__init__(output_size=output_size, return_mask=return_mask)


class AdaptiveMaxPool3D(_AdaptiveMax):
    """The maxima of ``output_size`` windows of [N, C, D, H, W]."""

    function = "adaptive_max_pool3d"

    @parameter_aliases(return_indices="return_mask")
    def __init__(self, output_size: Any, return_mask: bool = False, name: str | None = None) -> None:
        super().__init__(output_size=output_size, return_mask=return_mask)
