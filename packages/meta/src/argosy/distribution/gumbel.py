"""The Gumbel distribution."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from math import pi
from typing import Any

import numpy as np

from argosy.distribution.parameters import parameters
from argosy.distribution.transformed_distribution import TransformedDistribution
from argosy.distribution.uniform import Uniform
from argosy_autograd.modes import no_grad
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The limit of largest values: ``P(X <= x) = exp(-exp(-(x - loc) / scale))``, elementwise."""

    def __init__(self, loc: Any, scale: Any) -> None:
        self.loc, self.scale = parameters("Gumbel", loc=loc, scale=scale)
        limits = np.finfo(np.float32)
        full = get_operator("full_like")
        base = Uniform(full(self.loc, float(limits.tiny)), full(self.loc, float(1 - limits.eps)))
        super().__init__(base, ())

    @property
    def mean(self) -> Tensor:
        """``loc + scale * gamma``, Euler's constant."""
        return self.loc + self.scale * np.euler_gamma

    @property
    def variance(self) -> Tensor:
        """``(pi scale)**2 / 6``."""
        return self.scale.square() * (pi**2 / 6)

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return self.variance.sqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at ``value``."""
        y = (self.loc - self._value(value, self.loc.dtype)) / self.scale
        return y - y.exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to ``value``."""
        return (-(-(self._value(value, self.loc.dtype) - self.loc) / self.scale).exp()).exp()

    def entropy(self) -> Tensor:
        """``log(scale) + 1 + gamma``."""
        return self.scale.log() + (1 + np.euler_gamma)

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Draws without gradients."""
        with no_grad():
            return self.rsample(shape)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """``loc - scale * log(-log(u))`` of uniform numbers u."""
        return self.loc - self.scale * (-self._base.sample(shape).log()).log()
