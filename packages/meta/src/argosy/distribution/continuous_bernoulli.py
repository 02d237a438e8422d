"""The continuous Bernoulli distribution."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any

from argosy.distribution.bernoulli import off_the_ends
from argosy.distribution.distribution import Distribution
from argosy.distribution.kl import register_kl
from argosy.distribution.parameters import parameters
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(Distribution):
    """Density ``C(p) p**x (1 - p)**(1 - x)`` on [0, 1], elementwise (Loaiza-Ganem and Cunningham, 2019).

    Within ``lims`` around 1/2, where the closed forms lose their digits, Taylor expansions stand in for them. A number
    is taken as a tensor of one element.
    """

    probs: Any  # of the distribution, not of a value

    def __init__(self, probs: Any, lims: tuple[float, float] = (0.499, 0.501)) -> None:
        (given,) = parameters("ContinuousBernoulli", probs=[probs] if isinstance(probs, (int, float)) else probs)
        self.probs = off_the_ends(given)
        self.dtype = given.dtype
        self.lims = Tensor(list(lims), given.dtype)
        self._limits = lims
        super().__init__(given.shape)

    def _has_closed_form(self) -> Any:
        """Where the closed forms hold."""
        return (self.probs <= self._limits[0]) | (self.probs > self._limits[1])

    def _safe_probs(self) -> Any:
        """The probabilities, with one that the closed forms can take where they do not hold."""
        return get_operator("where")(self._has_closed_form(), self.probs, self._limits[0])

    def _log_odds(self, p: Any) -> Any:
        return p.log() - (-p).log1p()

    def _log_constant(self) -> Any:
        """``log C(p)``; C(p) is ``2 atanh(1 - 2 p) / (1 - 2 p)``."""
        p = self._safe_probs()
        closed = (self._log_odds(p) / (2 * p - 1)).log()
        x = (self.probs - 0.5).square()
        return get_operator("where")(self._has_closed_form(), closed, log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Tensor:
        """``p / (2 p - 1) - 1 / logit(p)``."""
        p, x = self._safe_probs(), self.probs - 0.5
        closed = p / (2.0 * p - 1.0) - 1.0 / self._log_odds(p)
        return get_operator("where")(self._has_closed_form(), closed, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.square()) * x)

    @property
    def variance(self) -> Tensor:
        """``p (p - 1) / (1 - 2 p)**2 + 1 / logit(p)**2``."""
        p, x = self._safe_probs(), (self.probs - 0.5).square()
        closed = p * (p - 1.0) / (1.0 - 2.0 * p).square() + self._log_odds(p).square().reciprocal()
        return get_operator("where")(self._has_closed_form(), closed, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """The quantile function of uniform numbers."""
        return self.icdf(get_operator("rand")(list(self._extend_shape(shape)), self.dtype.name))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at ``value``."""
        x = self._value(value, self.dtype)
        return self._log_constant() + x * self.probs.log() + (1.0 - x) * (-self.probs).log1p()

    def entropy(self) -> Tensor:
        """``-log C(p) - mean * logit(p) - log(1 - p)``."""
        return -self._log_constant() - self.mean * self._log_odds(self.probs) - (-self.probs).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to ``value``."""
        x, p, where = self._value(value, self.dtype), self._safe_probs(), get_operator("where")
        closed = (p.pow(x) * (1.0 - p).pow(1.0 - x) + p - 1.0) / (2.0 * p - 1.0)
        inner = where(self._has_closed_form(), closed, x)
        return where(x <= 0, 0.0, where(x >= 1, 1.0, inner))

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile of the probability ``value``."""
        x, p = self._value(value, self.dtype), self._safe_probs()
        closed = ((-p + x * (2.0 * p - 1.0)).log1p() - (-p).log1p()) / self._log_odds(p)
        return get_operator("where")(self._has_closed_form(), closed, x)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl(p: Any, q: Any) -> Any:
    if p.batch_shape != q.batch_shape:
        raise ValueError(f"kl_divergence: batch shapes {p.batch_shape} and {q.batch_shape} should be equal")
    crossed = q._log_constant() + p.mean * q._log_odds(q.probs) + (-q.probs).log1p()
    return -p.entropy() - crossed
