"""The geometric distribution."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.distribution.bernoulli import binary_divergence
from argosy.distribution.distribution import Distribution
from argosy.distribution.exponential import TINY
from argosy.distribution.kl import register_kl
from argosy.distribution.parameters import parameters
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["Geometric"]


class Geometric(Distribution):
    """The number of failures before the first success of trials with probability ``probs``: 0, 1, 2, ..."""

    probs: Any  # of the distribution, not of a value

    def __init__(self, probs: Any) -> None:
        (given,) = parameters("Geometric", probs=probs)
        self.probs = given
        super().__init__(given.shape)

    @property
    def mean(self) -> Tensor:
        """``1 / probs - 1``."""
        return 1.0 / self.probs - 1.0

    @property
    def variance(self) -> Tensor:
        """``(1 - probs) / probs**2``."""
        return (1.0 / self.probs - 1.0) / self.probs

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return self.variance.sqrt()

    def pmf(self, k: Tensor | int) -> Tensor:
        """The probability of ``k`` failures."""
        return (1.0 - self.probs).pow(self._value(k, self.probs.dtype)) * self.probs

    def log_pmf(self, k: Tensor | int) -> Tensor:
        """The logarithm of the probability of ``k`` failures."""
        return self._value(k, self.probs.dtype) * (-self.probs).log1p() + self.probs.log()

    def log_prob(self, value: Tensor) -> Tensor:
        """The same as :meth:`log_pmf`."""
        return self.log_pmf(value)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """Whole numbers ``floor(log(u) / log(1 - probs))`` of uniform u, with derivative 0."""
        dtype = self.probs.dtype.name
        noise = get_operator("uniform")(list(self._extend_shape(shape)), dtype, TINY, 1.0)
        return (noise.log() / (-self.probs).log1p()).floor()

    def entropy(self) -> Tensor:
        """``-((1 - p) log(1 - p) + p log(p)) / p``."""
        p = self.probs
        return -((1.0 - p) * (-p).log1p() + p * p.log()) / p

    def cdf(self, k: Tensor | int) -> Tensor:
        """The probability of at most ``k`` failures."""
        return 1.0 - (1.0 - self.probs).pow(self._value(k, self.probs.dtype) + 1)


@register_kl(Geometric, Geometric)
def _kl(p: Any, q: Any) -> Any:
    return binary_divergence(p.probs, q.probs) / p.probs  # of one trial, times the expected number of them
