"""Batch normalisation layers."""

from __future__ import annotations

from typing import Any

from argosy.attributes import ParamAttr
from argosy.nn.initializer import Constant
from argosy.nn.layer import Layer
from argosy.nn.statistics import batch_norm
from argosy_tensorcore.tensor import Tensor

__all__ = ["BatchNorm1D", "BatchNorm2D", "BatchNorm3D"]


class _BatchNorm(Layer):
    """Ioffe and Szegedy (2015). The running mean and variance are parameters that are not trained, as in Paddle."""

    _mean: Any
    _variance: Any

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._num_features, self._momentum, self._epsilon = num_features, momentum, epsilon
        self._data_format, self._use_global_stats = data_format, use_global_stats
        shape, ones = [num_features], Constant(1.0)
        self.weight = self.create_parameter(shape, weight_attr, default_initializer=ones)
        self.bias = self.create_parameter(shape, bias_attr, is_bias=True)
        still = ParamAttr(trainable=False)
        self._mean = self.create_parameter(shape, still, default_initializer=Constant(0.0))
        self._variance = self.create_parameter(shape, still, default_initializer=ones)

    def forward(self, x: Tensor) -> Tensor:
        """The normalised input."""
        settings = (self.training, self._momentum, self._epsilon, self._data_format, self._use_global_stats)
        return batch_norm(x, self._mean, self._variance, self.weight, self.bias, *settings)

    def extra_repr(self) -> str:
        """Channels, momentum and epsilon."""
        return f"num_features={self._num_features}, momentum={self._momentum}, epsilon={self._epsilon}"


class BatchNorm1D(_BatchNorm):
    """Batch normalisation of [N, C] or [N, C, L]."""

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCL",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats, name)


class BatchNorm2D(_BatchNorm):
    """Batch normalisation of [N, C, H, W]."""


class BatchNorm3D(_BatchNorm):
    """Batch normalisation of [N, C, D, H, W]."""

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCDHW",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats, name)
