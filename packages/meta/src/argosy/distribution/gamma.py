"""The gamma distribution."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.distribution.distribution import ExponentialFamily
from argosy.distribution.kl import register_kl
from argosy.distribution.parameters import parameters
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """Density proportional to ``x**(concentration - 1) * exp(-rate * x)`` for x > 0, elementwise."""

    def __init__(self, concentration: Any, rate: Any) -> None:
        self.concentration, self.rate = parameters(type(self).__name__, concentration=concentration, rate=rate)
        self.dtype = self.concentration.dtype
        super().__init__(self.concentration.shape)

    @property
    def mean(self) -> Tensor:
        """``concentration / rate``."""
        return self.concentration / self.rate

    @property
    def variance(self) -> Tensor:
        """``concentration / rate**2``."""
        return self.concentration / self.rate.square()

    def log_prob(self, value: Tensor | float) -> Tensor:
        """The logarithm of the density at ``value``."""
        a, x = self.concentration, self._value(value, self.dtype)
        return a * self.rate.log() + (a - 1) * x.log() - self.rate * x - a.lgamma()

    def entropy(self) -> Tensor:
        """``a - log(rate) + lgamma(a) + (1 - a) digamma(a)`` of the concentration a."""
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1.0 - a) * a.digamma()

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """A draw of rate 1, divided by ``rate``: as in Paddle, gradients reach the rate only."""
        wanted = list(self._extend_shape(shape))
        return get_operator("standard_gamma")(self.concentration.expand(wanted)) / self.rate

    @property
    def _natural_parameters(self) -> tuple[Any, ...]:
        return (self.concentration - 1, -self.rate)

    def _log_normalizer(self, *natural_parameters: Any) -> Tensor:
        a, b = natural_parameters
        return (a + 1).lgamma() - (a + 1) * (-b).log()

    @property
    def _mean_carrier_measure(self) -> float:
        return 0.0


@register_kl(Gamma, Gamma)
def _kl(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    norms = b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma()
    return norms + (a - b) * a.digamma() + (q.rate - p.rate) * (a / p.rate)
