"""The Cauchy distribution."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from math import log, pi
from typing import Any, NoReturn

from argosy.distribution.distribution import Distribution
from argosy.distribution.kl import register_kl
from argosy.distribution.parameters import parameters
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """Density ``1 / (pi scale (1 + ((x - loc) / scale)**2))``, elementwise."""

    def __init__(self, loc: Any, scale: Any, name: str | None = None) -> None:
        self.name = name or "Cauchy"
        self.loc, self.scale = parameters("Cauchy", loc=loc, scale=scale)
        self.dtype = self.loc.dtype
        super().__init__(self.loc.shape)

    @property
    def mean(self) -> NoReturn:
        """There is none: raises ``ValueError``."""
        raise ValueError("Cauchy distribution has no mean")

    @property
    def variance(self) -> NoReturn:
        """There is none: raises ``ValueError``."""
        raise ValueError("Cauchy distribution has no variance")

    @property
    def stddev(self) -> NoReturn:
        """There is none: raises ``ValueError``."""
        raise ValueError("Cauchy distribution has no stddev")

    def sample(self, shape: Sequence[int] = (), name: str | None = None) -> Tensor:
        """Draws without gradients."""
        return super().sample(shape)

    def rsample(self, shape: Sequence[int] = (), name: str | None = None) -> Tensor:
        """``loc + scale * tan(pi (u - 1/2))`` of uniform numbers u."""
        noise = get_operator("rand")(list(self._extend_shape(shape)), self.dtype.name)
        return self.loc + self.scale * (pi * (noise - 0.5)).tan()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at ``value``."""
        away = (self._value(value, self.dtype) - self.loc) / self.scale
        return -away.square().log1p() - (log(pi) + self.scale.log())

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to ``value``."""
        return ((self._value(value, self.dtype) - self.loc) / self.scale).atan() / pi + 0.5

    def entropy(self) -> Tensor:
        """``log(4 pi scale)``."""
        return log(4 * pi) + self.scale.log()


@register_kl(Cauchy, Cauchy)
def _kl(p: Any, q: Any) -> Any:
    apart = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return apart.log() - (4 * p.scale * q.scale).log()
