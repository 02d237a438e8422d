"""Student's t-distribution."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from math import inf, lgamma, log, nan, pi
from typing import Any

from argosy.distribution.distribution import Distribution
from argosy.distribution.gamma import Gamma
from argosy.distribution.parameters import is_known_false, parameters
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["StudentT"]


class StudentT(Distribution):
    """``loc + scale * t``, where t has ``df`` degrees of freedom, elementwise. Raises ValueError for negative df or
    scale."""

    def __init__(self, df: Any, loc: Any, scale: Any, name: str | None = None) -> None:
        self.name = name or "StudentT"
        self.df, self.loc, self.scale = parameters("StudentT", df=df, loc=loc, scale=scale)
        for called, given in (("df", self.df), ("scale", self.scale)):
            if is_known_false(given >= 0):
                raise ValueError(f"StudentT: {called} must not be negative")
        super().__init__(self.df.shape)
        self._chi2 = Gamma(0.5 * self.df, 0.5)

    @property
    def mean(self) -> Tensor:
        """``loc``, where df > 1; NaN elsewhere."""
        return get_operator("where")(self.df > 1, self.loc, nan)

    @property
    def variance(self) -> Tensor:
        """``scale**2 df / (df - 2)`` where df > 2, infinite where 1 < df <= 2, else NaN."""
        where = get_operator("where")
        finite = self.df > 2
        bounded = where(finite, self.df, 3.0)
        spread = self.scale.square() * bounded / (bounded - 2)
        return where(finite, spread, where(self.df > 1, inf, nan))

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Normal variables over the root of chi-squared ones; gradients reach loc and scale, as in Paddle."""
        noise = get_operator("randn")(list(self._extend_shape(shape)), self.df.dtype.name)
        return self.loc + self.scale * noise * (self._chi2.sample(shape) / self.df).rsqrt()

    def entropy(self) -> Tensor:
        """Of shape ``batch_shape``."""
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        beta = half.lgamma() + lgamma(0.5) - more.lgamma()
        return self.scale.log() + more * (more.digamma() - half.digamma()) + 0.5 * self.df.log() + beta

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at ``value``."""
        y = (self._value(value, self.df.dtype) - self.loc) / self.scale
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        norm = self.scale.log() + 0.5 * self.df.log() + 0.5 * log(pi) + half.lgamma() - more.lgamma()
        return -more * (y.square() / self.df).log1p() - norm
