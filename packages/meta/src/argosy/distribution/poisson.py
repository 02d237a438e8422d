"""The Poisson distribution."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

from argosy.distribution.distribution import Distribution
from argosy.distribution.kl import register_kl
from argosy.distribution.parameters import parameters
from argosy_autograd.modes import no_grad
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["Poisson"]


class Poisson(Distribution):
    """Counts with expectation ``rate``, elementwise. A number is taken as a tensor of one element."""

    def __init__(self, rate: Any) -> None:
        (self.rate,) = parameters("Poisson", rate=[rate] if isinstance(rate, (int, float)) else rate)
        self.dtype = self.rate.dtype
        super().__init__(self.rate.shape)

    @property
    def mean(self) -> Tensor:
        """``rate``."""
        return self.rate

    @property
    def variance(self) -> Tensor:
        """``rate``."""
        return self.rate

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Counts in the dtype of the rate."""
        with no_grad():
            return get_operator("poisson")(self.rate.expand(list(self._extend_shape(shape))))

    def entropy(self) -> Tensor:
        """The sum over counts up to 30 standard deviations above the largest rate, whose value it reads."""
        most = float(self.rate.max()) if self.rate.size else 0.0
        counts = get_operator("arange")(0, int(most + 30 * sqrt(max(most, 1.0))), 1, self.dtype.name)
        log_prob = self.log_prob(counts.reshape([-1, *[1] * len(self.batch_shape)]))
        summand = get_operator("where")(log_prob > float("-inf"), log_prob.exp() * log_prob, 0.0)
        return -summand.sum(0)

    def log_prob(self, value: Tensor) -> Tensor:
        """``value log(rate) - rate - log(value!)``."""
        x = self._value(value, self.dtype)
        where = get_operator("where")
        gained = where((x == 0) & (self.rate == 0), 0.0, x * where(self.rate == 0, 0.0 * x, self.rate).log())
        return gained - self.rate - (x + 1).lgamma()


@register_kl(Poisson, Poisson)
def _kl(p: Any, q: Any) -> Any:
    rate = get_operator("where")(p.rate > 0, p.rate, 1.0)
    return p.rate * (rate.log() - q.rate.log()) - p.rate + q.rate
