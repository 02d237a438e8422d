"""The Laplace distribution."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy.distribution.distribution import Distribution
from argosy.distribution.kl import register_kl
from argosy.distribution.parameters import parameters
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["Laplace"]


class Laplace(Distribution):
    """Density ``exp(-|x - loc| / scale) / (2 scale)``, elementwise."""

    def __init__(self, loc: Any, scale: Any) -> None:
        self.loc, self.scale = parameters("Laplace", loc=loc, scale=scale)
        super().__init__(self.loc.shape)

    @property
    def mean(self) -> Tensor:
        """``loc``."""
        return self.loc

    @property
    def stddev(self) -> Tensor:
        """``sqrt(2) scale``."""
        return 2**0.5 * self.scale

    @property
    def variance(self) -> Tensor:
        """``2 scale**2``."""
        return self.stddev.square()

    def log_prob(self, value: Tensor | float) -> Tensor:
        """The logarithm of the density at ``value``."""
        away = self._value(value, self.loc.dtype) - self.loc
        return -(2 * self.scale).log() - away.abs() / self.scale

    def entropy(self) -> Tensor:
        """``1 + log(2 scale)``."""
        return 1 + (2 * self.scale).log()

    def cdf(self, value: Tensor | float) -> Tensor:
        """The probability of values up to ``value``."""
        away = self._value(value, self.loc.dtype) - self.loc
        return 0.5 - 0.5 * away.sign() * (-away.abs() / self.scale).expm1()

    def icdf(self, value: Tensor | float) -> Tensor:
        """The quantile of the probability ``value``: the inverse of :meth:`cdf`."""
        level = self._value(value, self.loc.dtype) - 0.5
        return self.loc - self.scale * level.sign() * (-2 * level.abs()).log1p()

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """The quantile function of uniform numbers that stay off both ends."""
        dtype = self.loc.dtype
        edge = float(np.finfo(dtype.numpy).eps) / 2 if dtype.in_numpy else 2.0**-9
        noise = get_operator("uniform")(list(self._extend_shape(shape)), dtype.name, edge - 1.0, 1.0 - edge)
        return self.loc - self.scale * noise.sign() * (-noise.abs()).log1p()


@register_kl(Laplace, Laplace)
def _kl(p: Any, q: Any) -> Any:
    apart = (p.loc - q.loc).abs()
    return (p.scale * (-apart / p.scale).exp() + apart) / q.scale + (q.scale / p.scale).log() - 1
