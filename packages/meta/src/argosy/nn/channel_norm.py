"""Normalisation over groups of channels, single channels, neighbouring channels, and by the largest singular value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from argosy.argument_checks import check_choice
from argosy.framework.aliases import parameter_aliases
from argosy.framework.param_attr import ParamAttr
from argosy.nn import functional as F
from argosy.nn.conv_settings import LAYOUTS
from argosy.nn.initializer import Constant, Normal
from argosy.nn.layer import Layer
from argosy.nn.settings import FunctionLayer
from argosy.nn.spectrum import largest_singular_value
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "GroupNorm", "InstanceNorm1D", "InstanceNorm2D", "InstanceNorm3D", "LocalResponseNorm", "SpectralNorm",
]  # fmt: skip


class GroupNorm(Layer):
    """Each of ``num_groups`` groups of channels standardised, then each channel scaled and shifted (Wu and He,
    2018).
    """

    @parameter_aliases(eps="epsilon")
    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        epsilon: float = 1e-5,
        *,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(dtype=dtype or "float32")
        self._device = device
        check_choice("GroupNorm", "data_format", data_format, LAYOUTS)
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(f"GroupNorm: {num_channels} channels do not split into {num_groups} groups")
        self._num_groups, self._num_channels, self._epsilon = num_groups, num_channels, epsilon
        self._data_format = data_format
        shape = [num_channels]
        given, shift = (weight_attr, bias_attr) if affine else (False, False)
        self._weight_attr, self._bias_attr = given, shift
        self.weight = self.create_parameter(shape, given, default_initializer=Constant(1.0))
        self.bias = self.create_parameter(shape, shift, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        settings = (self._num_groups, self._epsilon, self.weight, self.bias, self._data_format)
        return F.group_norm(input, *settings)

    def extra_repr(self) -> str:
        """Groups, channels and epsilon."""
        return f"num_groups={self._num_groups}, num_channels={self._num_channels}, epsilon={self._epsilon}"


class _InstanceNorm(Layer):
    """Each channel of each sample standardised, then scaled and shifted (Ulyanov et al., 2016)."""

    scale: Any
    bias: Any

    def __init__(
        self,
        num_features: int,
        epsilon: float = 1e-5,
        momentum: float = 0.9,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._num_features, self._epsilon, self._momentum = num_features, epsilon, momentum
        self._data_format = data_format
        self._weight_attr, self._bias_attr = weight_attr, bias_attr
        both = weight_attr is not False and bias_attr is not False
        shape = [num_features]
        self.scale = self.create_parameter(shape, weight_attr if both else False, default_initializer=Constant(1.0))
        self.bias = self.create_parameter(shape, bias_attr if both else False, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        settings: dict[str, Any] = {"eps": self._epsilon, "momentum": self._momentum, "data_format": self._data_format}
        return F.instance_norm(input, weight=self.scale, bias=self.bias, **settings)

    def extra_repr(self) -> str:
        """Channels and epsilon."""
        return f"num_features={self._num_features}, epsilon={self._epsilon}"


class InstanceNorm1D(_InstanceNorm):
    """Instance normalisation of [N, C, L]."""

    def __init__(
        self,
        num_features: int,
        epsilon: float = 1e-5,
        momentum: float = 0.9,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCL",
        name: str | None = None,
    ) -> None:
        super().__init__(num_features, epsilon, momentum, weight_attr, bias_attr, data_format, name)


class InstanceNorm2D(_InstanceNorm):
    """Instance normalisation of [N, C, H, W]."""


class InstanceNorm3D(_InstanceNorm):
    """Instance normalisation of [N, C, D, H, W]."""

    def __init__(
        self,
        num_features: int,
        epsilon: float = 1e-5,
        momentum: float = 0.9,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCDHW",
        name: str | None = None,
    ) -> None:
        super().__init__(num_features, epsilon, momentum, weight_attr, bias_attr, data_format, name)


class LocalResponseNorm(FunctionLayer):
    """Normalisation by ``size`` neighbouring channels (Krizhevsky et al., 2012)."""

    function = "local_response_norm"

    def __init__(
        self,
        size: int,
        alpha: float = 0.0001,
        beta: float = 0.75,
        k: float = 1.0,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(size=size, alpha=alpha, beta=beta, k=k, data_format=data_format)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return self._apply_function(input)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """The settings."""
        shown = f"size={self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
        return shown if self.data_format == "NCHW" else f"{shown}, data_format={self.data_format}"


class SpectralNorm(Layer):
    """A weight divided by its largest singular value, found by power iteration (Miyato et al., 2018).

    weight_shape: of what :meth:`forward` takes; ``dim`` becomes the rows of the matrix. Every call iterates anew from
    the vectors of the last one.
    """

    weight_u: Any
    weight_v: Any

    def __init__(
        self,
        weight_shape: Sequence[int],
        dim: int = 0,
        power_iters: int = 1,
        eps: float = 1e-12,
        dtype: str = "float32",
    ) -> None:
        super().__init__(dtype=dtype)
        self._dim, self._power_iters, self._eps = dim, power_iters, eps
        if not -len(weight_shape) <= dim < len(weight_shape):
            raise ValueError(f"SpectralNorm: dim {dim} is not an axis of weight_shape {list(weight_shape)}")
        rows = weight_shape[dim]
        columns = math.prod(weight_shape) // rows
        still, start = ParamAttr(trainable=False), Normal(0.0, 1.0)
        self.weight_u = self.create_parameter([rows], still, default_initializer=start)
        self.weight_v = self.create_parameter([columns], still, default_initializer=start)

    def forward(self, x: Tensor) -> Tensor:
        """``x`` with largest singular value near 1."""
        vectors = (self.weight_u, self.weight_v)
        return x / largest_singular_value(x, *vectors, self._dim, self._power_iters, self._eps)  # type: ignore[no-any-return]
