"""The normal distribution, of real or complex numbers."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from math import log, pi
from typing import Any

from argosy.distribution.distribution import Distribution
from argosy.distribution.kl import register_kl
from argosy.distribution.parameters import parameters
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["Normal"]


class Normal(Distribution):
    """Normal with mean ``loc`` and standard deviation ``scale``, elementwise.

    A complex ``loc`` makes it circular: real and imaginary parts are independent, each of variance ``scale**2 / 2``.
    """

    def __init__(self, loc: Any, scale: Any, name: str | None = None) -> None:
        self.name = name or "Normal"
        self.loc, self.scale = parameters("Normal", complex_first=True, loc=loc, scale=scale)
        self.dtype = self.loc.dtype
        self._complex_gaussian = self.dtype.kind == "c"
        super().__init__(self.loc.shape)

    @property
    def mean(self) -> Tensor:
        """``loc``."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """``scale**2``."""
        return self.scale.square()

    def sample(self, shape: Sequence[int] = (), seed: int = 0) -> Tensor:
        """The same as :meth:`rsample`, differentiable as in Paddle; with a ``seed`` the same draws at every call."""
        return self._draw(shape, seed)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """``loc + scale * noise``."""
        return self._draw(shape, 0)

    def _draw(self, shape: Sequence[int], seed: int) -> Tensor:
        wanted = list(self._extend_shape(shape))
        # Complex noise has variance 1 in total, as a complex Gaussian is scaled.
        noise = get_operator("gaussian")(wanted, 0.0, 1.0, seed, self.dtype.name)
        return self.loc + noise * self.scale

    def entropy(self) -> Tensor:
        """``log(scale) + log(2 pi e) / 2``, twice that of variance 1/2 for complex numbers."""
        if self._complex_gaussian:
            return 1 + log(pi) + 2 * self.scale.log()
        return 0.5 + 0.5 * log(2 * pi) + self.scale.log()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at ``value``."""
        away = (self._value(value, self.dtype) - self.loc) / self.scale
        if self._complex_gaussian:
            return -(away.conj() * away) - (2 * self.scale.log() + log(pi))
        return -0.5 * away.square() - (self.scale.log() + 0.5 * log(2 * pi))


@register_kl(Normal, Normal)
def _kl(p: Any, q: Any) -> Any:
    if p._complex_gaussian != q._complex_gaussian:
        raise ValueError("kl_divergence: one of the two normal distributions is complex, the other is not")
    ratio = (p.scale / q.scale).square()
    apart = (p.loc - q.loc) / q.scale
    if p._complex_gaussian:
        return ratio + apart.conj() * apart - 1.0 - ratio.log()
    return 0.5 * (ratio + apart.square() - 1.0 - ratio.log())
