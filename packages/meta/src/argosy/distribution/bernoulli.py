"""The Bernoulli distribution."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy.argument_checks import validate_call
from argosy.distribution.distribution import ExponentialFamily
from argosy.distribution.kl import register_kl
from argosy.distribution.parameters import parameters
from argosy.nn import functional as F
from argosy_autograd.modes import no_grad
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["Bernoulli", "binary_divergence", "off_the_ends"]


def off_the_ends(probs: Any) -> Any:
    """Probabilities kept apart from 0 and 1 by the precision of their dtype, so that their logarithms are finite."""
    eps = float(np.finfo(probs.dtype.numpy).eps) if probs.dtype.in_numpy else 2.0**-7
    return get_operator("clip")(probs, eps, 1 - eps)


class Bernoulli(ExponentialFamily):
    """1 with probability ``probs``, else 0, elementwise. Probabilities are kept apart from 0 and 1 by the precision."""

    probs: Any  # of the distribution, not of a value

    def __init__(self, probs: Any, name: str | None = None) -> None:
        self.name = name or "Bernoulli"
        (given,) = parameters("Bernoulli", probs=probs)
        self.probs = off_the_ends(given)
        self.logits = self.probs.log() - (-self.probs).log1p()
        self.dtype = given.dtype
        super().__init__(given.shape)

    @property
    def mean(self) -> Tensor:
        """``probs``."""
        return self.probs

    @property
    def variance(self) -> Tensor:
        """``probs (1 - probs)``."""
        return self.probs * (1 - self.probs)

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Zeros and ones, in the dtype of the parameter."""
        with no_grad():
            return get_operator("bernoulli")(self.probs.expand(list(self._extend_shape(shape))))

    @validate_call
    def rsample(self, shape: Sequence[int] = (), temperature: float = 1.0) -> Tensor:
        """Logits of a relaxation (Maddison et al., 2017): its sigmoid nears a draw as ``temperature`` nears 0."""
        noise = get_operator("rand")(list(self._extend_shape(shape)), self.dtype.name)
        return (noise.log() - (-noise).log1p() + self.logits) / temperature

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to ``value``."""
        x, where = self._value(value, self.dtype), get_operator("where")
        return where(x < 0, 0.0, where(x < 1, 1 - self.probs, 1.0 + 0 * self.probs))

    def log_prob(self, value: Tensor) -> Tensor:
        """``value log(probs) + (1 - value) log(1 - probs)``."""
        x = self._value(value, self.dtype)
        return x * F.log_sigmoid(self.logits) + (1 - x) * F.log_sigmoid(-self.logits)

    def entropy(self) -> Tensor:
        """``-p log(p) - (1 - p) log(1 - p)``."""
        return -self.log_prob(self.probs)

    @property
    def _natural_parameters(self) -> tuple[Any, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_parameters: Any) -> Tensor:
        return F.softplus(natural_parameters[0])

    @property
    def _mean_carrier_measure(self) -> float:
        return 0.0


def binary_divergence(p: Any, q: Any) -> Any:
    """The divergence of two trials with success probabilities ``p`` and ``q``."""
    p, q = off_the_ends(p), off_the_ends(q)
    return p * (p.log() - q.log()) + (1 - p) * ((-p).log1p() - (-q).log1p())


@register_kl(Bernoulli, Bernoulli)
def _kl(p: Any, q: Any) -> Any:
    return binary_divergence(p.probs, q.probs)
