"""The categorical distribution."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from argosy.distribution.distribution import Distribution
from argosy.distribution.kl import register_kl
from argosy.distribution.parameters import parameters, sizes
from argosy.nn import functional as F
from argosy_autograd.modes import no_grad
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["Categorical"]


class Categorical(Distribution):
    """One of the K classes along the last axis of ``logits`` [..., K].

    As in Paddle ``logits`` has two readings: :meth:`sample`, :meth:`entropy` and divergences take them for logarithms
    of unnormalised probabilities; :meth:`probs` and :meth:`log_prob` for unnormalised probabilities themselves.
    """

    def __init__(self, logits: Any, name: str | None = None) -> None:
        self.name = name or "Categorical"
        (self.logits,) = parameters("Categorical", logits=logits)
        if not self.logits.shape:
            raise ValueError("Categorical: logits should have an axis of classes, got a 0-D tensor")
        self.dtype = self.logits.dtype
        super().__init__(self.logits.shape[:-1])

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """int64 classes of shape ``shape + batch_shape``, from the softmax of the logits."""
        wanted = sizes("Categorical", shape)
        with no_grad():
            weights = F.softmax(self.logits, -1).reshape([-1, self.logits.shape[-1]])
            drawn = get_operator("multinomial")(weights, prod(wanted), True)
            return drawn.transpose([1, 0]).reshape([*wanted, *self._batch_shape])

    def entropy(self) -> Tensor:
        """Of the softmax of the logits; of shape ``batch_shape``."""
        logs = F.log_softmax(self.logits, -1)
        return -(logs.exp() * logs).sum(-1)

    def probs(self, value: Tensor) -> Tensor:
        """``logits[value] / sum(logits)``. With one axis ``value`` asks each batch element for the same classes."""
        weights = self.logits / self.logits.sum(-1, keepdim=True)
        chosen = value if isinstance(value, Tensor) else Tensor(value)
        rank = len(weights.shape)
        if rank == 1:
            return get_operator("gather")(weights, chosen.reshape([-1])).reshape(list(chosen.shape))
        if len(chosen.shape) == 1:
            chosen = chosen.reshape([1] * (rank - 1) + [-1])
        return get_operator("take_along_axis")(weights, chosen, -1)

    def prob(self, value: Tensor) -> Tensor:
        """The same as :meth:`probs`."""
        return self.probs(value)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of :meth:`probs`."""
        return self.probs(value).log()


@register_kl(Categorical, Categorical)
def _kl(p: Any, q: Any) -> Any:
    mine, other = F.log_softmax(p.logits, -1), F.log_softmax(q.logits, -1)
    return (mine.exp() * (mine - other)).sum(-1, keepdim=True)  # Paddle keeps the axis
