"""Linear layers, dropout and residual connections as one layer each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.incubate.nn import functional as fused
from argosy.nn import functional as F
from argosy.nn.initializer import Constant
from argosy.nn.layer import Layer
from argosy_tensorcore.tensor import Tensor

__all__ = ["FusedBiasDropoutResidualLayerNorm", "FusedDropout", "FusedDropoutAdd", "FusedLinear"]


class FusedLinear(Layer):
    """``x @ weight + bias``; weight [in_features, out_features], or transposed with ``transpose_weight``."""

    weight: Any
    bias: Any

    def __init__(
        self,
        in_features: int,
        out_features: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        transpose_weight: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        shape = [out_features, in_features] if transpose_weight else [in_features, out_features]
        self.weight = self.create_parameter(shape, weight_attr)
        self.bias = self.create_parameter([out_features], bias_attr, is_bias=True)
        self.transpose_weight = transpose_weight

    def forward(self, input: Tensor) -> Tensor:
        """[..., in_features] to [..., out_features]."""
        return fused.fused_linear(input, self.weight, self.bias, self.transpose_weight)


class FusedDropout(Layer):
    """Dropout, of whole slices along the axes that ``axis`` does not name."""

    def __init__(
        self,
        p: float = 0.5,
        axis: int | Sequence[int] | None = None,
        mode: str = "upscale_in_train",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.p, self.axis, self.mode = p, axis, mode

    def forward(self, input: Tensor) -> Tensor:
        """Elements dropped while training."""
        dropped: Tensor = F.dropout(input, self.p, axis=self.axis, training=self.training, mode=self.mode)
        return dropped

    def extra_repr(self) -> str:
        """The settings."""
        return f"p={self.p}, axis={self.axis}, mode={self.mode}"


class FusedDropoutAdd(Layer):
    """``dropout(x) + y``."""

    def __init__(self, p: float = 0.5, mode: str = "upscale_in_train", name: str | None = None) -> None:
        super().__init__()
        self.p, self.mode = p, mode

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum."""
        return fused.fused_dropout_add(x, y, self.p, self.training, self.mode)

    def extra_repr(self) -> str:
        """The settings."""
        return f"p={self.p}, mode={self.mode}"


class FusedBiasDropoutResidualLayerNorm(Layer):
    """``layer_norm(residual + dropout(x + bias))`` of [..., embed_dim]."""

    linear_bias: Any
    ln_scale: Any
    ln_bias: Any

    def __init__(
        self,
        embed_dim: int,
        dropout_rate: float = 0.5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        epsilon: float = 1e-5,
        name: str | None = None,
    ) -> None:
        super().__init__()
        if embed_dim < 1:
            raise ValueError(f"{type(self).__name__}(): argument 'embed_dim' should be positive, got {embed_dim}")
        self.embed_dim, self.dropout_rate, self._epsilon = embed_dim, dropout_rate, epsilon
        self.linear_bias = self.create_parameter([embed_dim], bias_attr, is_bias=True)
        self.ln_scale = self.create_parameter([embed_dim], weight_attr, default_initializer=Constant(1.0))
        self.ln_bias = self.create_parameter([embed_dim], bias_attr, is_bias=True)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        """The normalised sum."""
        return fused.fused_bias_dropout_residual_layer_norm(
            x, residual, self.linear_bias, self.ln_scale, self.ln_bias, self.dropout_rate, self._epsilon, self.training
        )

    def extra_repr(self) -> str:
        """The settings."""
        return f"embed_dim={self.embed_dim}, dropout_rate={self.dropout_rate}, epsilon={self._epsilon}"
