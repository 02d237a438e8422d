"""Normalisation layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from argosy.framework.aliases import parameter_aliases
from argosy.nn import functional as F
from argosy.nn.initializer import Constant
from argosy.nn.integers import Integral
from argosy.nn.layer import Layer
from argosy_tensorcore.tensor import Tensor

__all__ = ["LayerNorm", "RMSNorm"]


def _sizes(normalized_shape: int | Sequence[int]) -> list[int]:
    return [normalized_shape] if isinstance(normalized_shape, Integral) else list(normalized_shape)


class LayerNorm(Layer):
    """``(x - mean) / sqrt(var + epsilon) * weight + bias`` over the last axes (Ba et al., 2016).

    x: [..., *normalized_shape]; weight and bias are vectors of as many elements as are normalised together.
    """

    @parameter_aliases(eps="epsilon")
    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        epsilon: float = 1e-5,
        *,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(dtype=dtype or "float32")
        self._device = device
        self._normalized_shape = _sizes(normalized_shape)
        self._epsilon, self._weight_attr, self._bias_attr = epsilon, weight_attr, bias_attr
        has_weight = elementwise_affine and weight_attr is not False
        has_bias = elementwise_affine and bias and bias_attr is not False
        shape = [math.prod(self._normalized_shape)]  # flat, as Paddle's checkpoints have it
        self.weight = (
            self.create_parameter(shape, weight_attr, default_initializer=Constant(1.0)) if has_weight else None
        )
        self.bias = self.create_parameter(shape, bias_attr, is_bias=True) if has_bias else None

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return F.layer_norm(input, self._normalized_shape, self.weight, self.bias, self._epsilon)

    def extra_repr(self) -> str:
        """Shape and epsilon."""
        return f"normalized_shape={self._normalized_shape}, epsilon={self._epsilon}"


class RMSNorm(Layer):
    """``x / sqrt(mean(x^2) + epsilon) * weight`` over the last axes (Zhang and Sennrich, 2019)."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        epsilon: float = 1e-5,
        elementwise_affine: bool = True,
        weight_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._normalized_shape = _sizes(normalized_shape)
        self._epsilon = epsilon
        has_weight = elementwise_affine and weight_attr is not False
        shape = self._normalized_shape
        self.weight = (
            self.create_parameter(shape, weight_attr, default_initializer=Constant(1.0)) if has_weight else None
        )

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return F.rms_norm(input, self._normalized_shape, self.weight, self._epsilon)

    def extra_repr(self) -> str:
        """Shape and epsilon."""
        return f"normalized_shape={self._normalized_shape}, epsilon={self._epsilon}"
