"""Batch axes taken as part of the event."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence

from argosy.distribution.distribution import Distribution
from argosy.distribution.parameters import event_sum
from argosy_tensorcore.tensor import Tensor

__all__ = ["Independent"]


class Independent(Distribution):
    """``base`` with its last ``reinterpreted_batch_rank`` batch axes as axes of the event, over which log-probabilities
    and entropies add up. Raises ``TypeError`` for another base, ``ValueError`` unless ``base`` has as many axes."""

    def __init__(self, base: Distribution, reinterpreted_batch_rank: int) -> None:
        if not isinstance(base, Distribution):
            raise TypeError(f"Independent: base should be a Distribution, got {type(base).__name__}")
        rank = len(base.batch_shape)
        if not 0 < reinterpreted_batch_rank <= rank:
            raise ValueError(
                f"Independent: reinterpreted_batch_rank should be from 1 to {rank}, got {reinterpreted_batch_rank}"
            )
        self._base = base
        self._reinterpreted_batch_rank = reinterpreted_batch_rank
        shape, cut = base.batch_shape + base.event_shape, rank - reinterpreted_batch_rank
        super().__init__(shape[:cut], shape[cut:])

    @property
    def mean(self) -> Tensor:
        """That of ``base``."""
        return self._base.mean

    @property
    def variance(self) -> Tensor:
        """That of ``base``."""
        return self._base.variance

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Draws of ``base``."""
        return self._base.sample(shape)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """Differentiable draws of ``base``."""
        return self._base.rsample(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The sum of those of ``base``."""
        return event_sum(self._base.log_prob(value), self._reinterpreted_batch_rank)

    def entropy(self) -> Tensor:
        """The sum of those of ``base``."""
        return event_sum(self._base.entropy(), self._reinterpreted_batch_rank)
