"""The multinomial distribution."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.distribution.bernoulli import off_the_ends
from argosy.distribution.categorical import Categorical
from argosy.distribution.distribution import Distribution
from argosy.distribution.parameters import parameters, sizes
from argosy.nn import functional as F
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """How often each of K classes occurs in ``total_count`` draws; ``probs`` [..., K] need not sum to 1.

    Raises ``ValueError`` for a count below 1 and for 0-D probabilities.
    """

    probs: Any  # of the distribution, not of a value

    def __init__(self, total_count: int, probs: Any) -> None:
        if not isinstance(total_count, int) or total_count < 1:
            raise ValueError(f"Multinomial: total_count should be an integer of at least 1, got {total_count!r:.80}")
        (given,) = parameters("Multinomial", probs=probs)
        if not given.shape:
            raise ValueError("Multinomial: probs should have an axis of classes, got a 0-D tensor")
        self.probs = given / given.sum(-1, keepdim=True)
        self.total_count = total_count
        self._categorical = Categorical(given.log())
        super().__init__(given.shape[:-1], given.shape[-1:])

    @property
    def mean(self) -> Tensor:
        """``total_count * probs``."""
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        """``total_count * probs * (1 - probs)``."""
        return self.total_count * self.probs * (1 - self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of the counts ``value`` [..., K]."""
        x = self._value(value, self.probs.dtype)
        where = get_operator("where")
        impossible = self.probs == 0
        logs = where(impossible, 1.0, self.probs).log()
        gained = where(impossible, where(x == 0, 0.0, float("-inf")), x * logs)
        return (x.sum(-1) + 1).lgamma() - (x + 1).lgamma().sum(-1) + gained.sum(-1)

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Counts of shape ``shape + batch_shape + [K]``, in the dtype of the probabilities."""
        drawn = self._categorical.sample([self.total_count, *sizes("Multinomial", shape)])
        return F.one_hot(drawn, self.probs.shape[-1]).cast(self.probs.dtype.name).sum(0)

    def entropy(self) -> Tensor:
        """``n H(p) - log(n!) + sum_k E[log(x_k!)]``; each x_k is binomial."""
        n, dtype, p = self.total_count, self.probs.dtype.name, off_the_ends(self.probs)
        counts = get_operator("arange")(1, n + 1, 1, dtype).reshape([-1, *[1] * len(p.shape)])
        total = get_operator("full")([], float(n), dtype)
        ways = (total + 1).lgamma() - (counts + 1).lgamma() - (total - counts + 1).lgamma()
        chances = (ways + counts * p.log() + (total - counts) * (-p).log1p()).exp()
        spread = (chances * (counts + 1).lgamma()).sum([0, -1])
        return total * self._categorical.entropy() - (total + 1).lgamma() + spread
