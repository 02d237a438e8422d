"""The binomial distribution."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.distribution.bernoulli import off_the_ends
from argosy.distribution.distribution import Distribution
from argosy.distribution.kl import register_kl
from argosy.distribution.parameters import parameters
from argosy_autograd.modes import no_grad
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["Binomial"]


class Binomial(Distribution):
    """The number of successes of ``total_count`` trials with probability ``probs``, elementwise."""

    probs: Any  # of the distribution, not of a value

    def __init__(self, total_count: Any, probs: Any) -> None:
        known = total_count if isinstance(total_count, int) else None
        given, chances = parameters("Binomial", total_count=total_count, probs=probs)
        self.total_count = given
        self.probs = chances
        self.dtype = given.dtype
        self._most = known
        super().__init__(given.shape)

    @property
    def mean(self) -> Tensor:
        """``total_count * probs``."""
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        """``total_count * probs * (1 - probs)``."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Counts in the dtype of the probability."""
        wanted = list(self._extend_shape(shape))
        with no_grad():
            drawn = get_operator("binomial")(self.total_count.expand(wanted).cast("int32"), self.probs.expand(wanted))
            return drawn.cast(self.dtype.name)

    def support(self) -> Tensor:
        """0, 1, ... up to the largest count, as the first axis before those of the batch. Reads the counts' values,
        unless there is one that was given as an integer."""
        most = int(self.total_count.max()) if self._most is None else self._most
        counts = get_operator("arange")(0, most + 1, 1, self.dtype.name)
        return counts.reshape([-1, *[1] * len(self.batch_shape)])

    def entropy(self) -> Tensor:
        """The sum over all counts."""
        values = self.support()
        log_prob = self.log_prob(values)
        summand = get_operator("where")(values <= self.total_count, log_prob.exp() * log_prob, 0.0)
        return -summand.sum(0)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of ``value`` successes; minus infinity beyond ``total_count``."""
        x, n = self._value(value, self.dtype), self.total_count
        where = get_operator("where")
        possible = (x >= 0) & (x <= n)
        k = where(possible, x, 0.0 * x)
        ways = (n + 1.0).lgamma() - (n - k + 1.0).lgamma() - (k + 1.0).lgamma()
        p = off_the_ends(self.probs)
        return where(possible, ways + k * p.log() + (n - k) * (-p).log1p(), float("-inf"))


@register_kl(Binomial, Binomial)
def _kl(p: Any, q: Any) -> Any:
    values = p.support()
    mine, other = p.log_prob(values), q.log_prob(values)
    possible = values <= p.total_count
    return get_operator("where")(possible, mine.exp() * (mine - other), 0.0).sum(0)
