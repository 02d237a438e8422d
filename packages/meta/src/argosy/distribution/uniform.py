"""The uniform distribution."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.distribution.distribution import Distribution
from argosy.distribution.kl import register_kl
from argosy.distribution.parameters import parameters
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["Uniform"]


class Uniform(Distribution):
    """Uniform on the interval from ``low`` to ``high``, elementwise."""

    def __init__(self, low: Any, high: Any, name: str | None = None) -> None:
        self.name = name or "Uniform"
        self.low, self.high = parameters("Uniform", low=low, high=high)
        self.dtype = self.low.dtype
        super().__init__(self.low.shape)

    @property
    def mean(self) -> Tensor:
        """``(low + high) / 2``."""
        return (self.low + self.high) / 2

    @property
    def variance(self) -> Tensor:
        """``(high - low)**2 / 12``."""
        return (self.high - self.low).square() / 12

    def sample(self, shape: Sequence[int] = (), seed: int = 0) -> Tensor:
        """The same as :meth:`rsample`, differentiable as in Paddle; with a ``seed`` the same draws at every call."""
        noise = get_operator("uniform")(list(self._extend_shape(shape)), self.dtype.name, 0.0, 1.0, seed)
        return self.low + noise * (self.high - self.low)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """``low + (high - low) * noise``."""
        return self.sample(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """``-log(high - low)`` within the open interval, else minus infinity."""
        return self._support_mask(value).log() - (self.high - self.low).log()

    def prob(self, value: Tensor) -> Tensor:
        """``1 / (high - low)`` within the open interval, else 0."""
        return self._support_mask(value) / (self.high - self.low)

    def _support_mask(self, value: Any) -> Tensor:
        x = self._value(value, self.dtype)
        return get_operator("cast")((self.low < x) & (x < self.high), self.dtype.name)

    def entropy(self) -> Tensor:
        """``log(high - low)``."""
        return (self.high - self.low).log()


@register_kl(Uniform, Uniform)
def _kl(p: Any, q: Any) -> Any:
    """Infinite unless the interval of ``q`` holds that of ``p``."""
    within = (q.low <= p.low) & (p.high <= q.high)
    return get_operator("where")(within, ((q.high - q.low) / (p.high - p.low)).log(), float("inf"))
