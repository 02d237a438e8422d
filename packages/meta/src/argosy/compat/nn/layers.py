"""Layers with the parameters of another framework."""

from __future__ import annotations

import math
from typing import Any

from argosy.compat.nn import functional as C
from argosy.nn import functional as F
from argosy.nn import init
from argosy.nn.layer import Layer
from argosy_tensorcore.tensor import Tensor

__all__ = ["AvgPool1D", "AvgPool2D", "AvgPool3D", "Linear", "Softmax", "Unfold"]


class _AvgPool(Layer):
    """The mean of windows; padding counts unless ``count_include_pad`` is False."""

    function = ""

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size, self.padding, self.ceil_mode = kernel_size, padding, ceil_mode
        self.stride = kernel_size if stride is None else stride
        self.count_include_pad = count_include_pad

    def _options(self) -> dict[str, Any]:
        return {"exclusive": not self.count_include_pad, "ceil_mode": self.ceil_mode}

    def forward(self, input: Tensor) -> Tensor:
        """The pooled input."""
        pool = getattr(F, self.function)
        return pool(input, self.kernel_size, self.stride, self.padding, **self._options())  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """The windows."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1D(_AvgPool):
    """The mean of windows of [N, C, L]."""

    function = "avg_pool1d"


class AvgPool2D(_AvgPool):
    """The mean of windows of [N, C, H, W]; ``divisor_override`` takes the place of the number of elements."""

    function = "avg_pool2d"

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)
        self.divisor_override = divisor_override

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "divisor_override": self.divisor_override}


class AvgPool3D(AvgPool2D):
    """The mean of windows of [N, C, D, H, W]."""

    function = "avg_pool3d"


class Unfold(Layer):
    """Windows of [N, C, H, W] as columns."""

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_sizes, self.dilations, self.paddings, self.strides = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        """The columns [N, C * kernel elements, windows]."""
        return C.unfold(input, self.kernel_sizes, self.dilations, self.paddings, self.strides)


class Linear(Layer):
    """``x @ weight.T + bias`` with weight [out_features, in_features].

    At first the weight is uniform up to 1 / sqrt(out_features), the axis that Paddle takes for the fan-in,
    and the bias up to 1 / sqrt(in_features).
    """

    weight: Any
    bias: Any

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = self.create_parameter([out_features, in_features], dtype=dtype, device=device)
        self.bias = self.create_parameter([out_features], dtype=dtype, is_bias=True, device=device) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias."""
        bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """The affine map."""
        return C.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Sizes, and whether there is a bias."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Softmax(Layer):
    """``exp(x)`` divided by its sum along ``dim``, which is 0 for zero, one or three axes by default, else 1."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """The shares."""
        return C.softmax(input, self.dim)

    def extra_repr(self) -> str:
        """The axis."""
        return f"dim={self.dim}"
