"""Distributions of functions of random variables."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.distribution.distribution import Distribution
from argosy.distribution.parameters import event_sum
from argosy.distribution.transforms.base import Transform
from argosy.distribution.transforms.composed import ChainTransform
from argosy_tensorcore.tensor import Tensor

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of ``transforms[-1](... transforms[0](x))`` for x from ``base``.

    Raises ``TypeError`` for other arguments, ``ValueError`` where events of ``base`` have fewer axes than the
    transforms work on.
    """

    def __init__(self, base: Distribution, transforms: Sequence[Transform]) -> None:
        if not isinstance(base, Distribution):
            raise TypeError(f"TransformedDistribution: base should be a Distribution, got {type(base).__name__}")
        if not isinstance(transforms, Sequence) or not all(isinstance(t, Transform) for t in transforms):
            raise TypeError(f"TransformedDistribution: transforms should be a sequence of them, got {transforms!r:.80}")
        self._base, self._transforms = base, transforms
        if not transforms:
            super().__init__(base.batch_shape, base.event_shape)
            return
        chain, shape = ChainTransform(transforms), base.batch_shape + base.event_shape
        needed = chain._domain.event_rank
        if len(shape) < needed:
            raise ValueError(f"TransformedDistribution: base needs {needed} axes or more, got shape {list(shape)}")
        made = tuple(chain.forward_shape(shape))
        cut = len(made) - chain._codomain.event_rank - max(len(base.event_shape) - needed, 0)
        super().__init__(made[:cut], made[cut:])

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Draws of ``base``, transformed."""
        return self._forward(self._base.sample(shape))

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """Differentiable draws of ``base``, transformed."""
        return self._forward(self._base.rsample(shape))

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self._transforms:
            x = transform.forward(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        """That of the preimage under ``base``, minus the logarithm of the Jacobian's determinant there."""
        found: Any = 0.0
        y, rank = value, len(self.event_shape)
        for t in reversed(self._transforms):
            x = t.inverse(y)
            rank += t._domain.event_rank - t._codomain.event_rank
            found = found - event_sum(t.forward_log_det_jacobian(x), rank - t._domain.event_rank)
            y = x
        return found + event_sum(self._base.log_prob(y), rank - len(self._base.event_shape))
