"""Pooling of sparse tensors as a layer."""

from __future__ import annotations

from typing import Any

from argosy.argument_checks import Sizes
from argosy.nn.layer import Layer
from argosy.sparse.nn import functional as F

__all__ = ["MaxPool3D"]


class MaxPool3D(Layer):
    """The largest stored value of each window over [N, D, H, W, C]; see :func:`argosy.sparse.nn.functional.max_pool3d`.

    Raises NotImplementedError for ``return_mask`` and ``ceil_mode``, which Paddle leaves without effect.
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NDHWC",
        name: str | None = None,
    ) -> None:
        super().__init__()
        if return_mask or ceil_mode:
            raise NotImplementedError("MaxPool3D: return_mask and ceil_mode of sparse tensors are not implemented")
        self._settings = (kernel_size, stride, padding, ceil_mode, data_format)

    def forward(self, x: Any) -> Any:
        """The pooled sparse tensor."""
        return F.max_pool3d(x, *self._settings)

    def extra_repr(self) -> str:
        """Window, stride and padding."""
        return "kernel_size={}, stride={}, padding={}".format(*self._settings[:3])
