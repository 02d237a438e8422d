"""The log-normal distribution."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from typing import Any

from argosy.distribution.kl import kl_divergence, register_kl
from argosy.distribution.normal import Normal
from argosy.distribution.transforms.base import TransformedDistribution
from argosy.distribution.transforms.elementwise import ExpTransform
from argosy_tensorcore.tensor import Tensor

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """The exponential of a normal variable with mean ``loc`` and standard deviation ``scale``."""

    def __init__(self, loc: Any, scale: Any) -> None:
        base = Normal(loc, scale)
        self.loc, self.scale = base.loc, base.scale
        super().__init__(base, [ExpTransform()])

    @property
    def mean(self) -> Tensor:
        """``exp(loc + scale**2 / 2)``."""
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def variance(self) -> Tensor:
        """``(exp(scale**2) - 1) exp(2 loc + scale**2)``."""
        square = self.scale.square()
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        """That of the normal, plus ``loc``."""
        return self._base.entropy() + self.loc


@register_kl(LogNormal, LogNormal)
def _kl(p: Any, q: Any) -> Any:
    return kl_divergence(p._base, q._base)
