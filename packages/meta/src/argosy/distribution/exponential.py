"""The exponential distribution."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy.distribution.distribution import ExponentialFamily
from argosy.distribution.kl import register_kl
from argosy.distribution.parameters import parameters
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["Exponential"]

TINY = float(np.finfo(np.float32).tiny)  # uniform numbers start here, so that their logarithms are finite


class Exponential(ExponentialFamily):
    """Density ``rate * exp(-rate * x)`` for x >= 0, elementwise."""

    def __init__(self, rate: Any) -> None:
        (self.rate,) = parameters("Exponential", rate=rate)
        self.dtype = self.rate.dtype
        super().__init__(self.rate.shape)

    @property
    def mean(self) -> Tensor:
        """``1 / rate``."""
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        """``1 / rate**2``."""
        return self.rate.square().reciprocal()

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """``-log(u) / rate`` of uniform numbers u."""
        noise = get_operator("uniform")(list(self._extend_shape(shape)), self.dtype.name, TINY, 1.0)
        return -noise.log() / self.rate

    def prob(self, value: Tensor | float) -> Tensor:
        """The density at ``value``."""
        return self.rate * (-self.rate * self._value(value, self.dtype)).exp()

    def log_prob(self, value: Tensor | float) -> Tensor:
        """The logarithm of the density at ``value``."""
        return self.rate.log() - self.rate * self._value(value, self.dtype)

    def entropy(self) -> Tensor:
        """``1 - log(rate)``."""
        return 1.0 - self.rate.log()

    def cdf(self, value: Tensor | float) -> Tensor:
        """The probability of values up to ``value``."""
        return -(-self.rate * self._value(value, self.dtype)).expm1()

    def icdf(self, value: Tensor | float) -> Tensor:
        """The quantile of the probability ``value``."""
        return -(-self._value(value, self.dtype)).log1p() / self.rate

    @property
    def _natural_parameters(self) -> tuple[Any, ...]:
        return (-self.rate,)

    def _log_normalizer(self, *natural_parameters: Any) -> Tensor:
        return -(-natural_parameters[0]).log()

    @property
    def _mean_carrier_measure(self) -> float:
        return 0.0


@register_kl(Exponential, Exponential)
def _kl(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()
