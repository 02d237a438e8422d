"""The beta distribution."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.distribution.dirichlet import Dirichlet
from argosy.distribution.distribution import ExponentialFamily
from argosy.distribution.kl import kl_divergence, register_kl
from argosy.distribution.parameters import parameters
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """Density proportional to ``x**(alpha - 1) * (1 - x)**(beta - 1)`` on (0, 1), elementwise."""

    def __init__(self, alpha: Any, beta: Any) -> None:
        self.alpha, self.beta = parameters("Beta", alpha=alpha, beta=beta)
        self._dirichlet = Dirichlet(get_operator("stack")([self.alpha, self.beta], -1))
        super().__init__(self.alpha.shape)

    @property
    def mean(self) -> Tensor:
        """``alpha / (alpha + beta)``."""
        return self.alpha / (self.alpha + self.beta)

    @property
    def variance(self) -> Tensor:
        """``alpha beta / ((alpha + beta)**2 (alpha + beta + 1))``."""
        total = self.alpha + self.beta
        return self.alpha * self.beta / (total.square() * (total + 1))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at ``value``."""
        x = self._value(value, self.alpha.dtype)
        return self._dirichlet.log_prob(get_operator("stack")([x, 1.0 - x], -1))

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Draws without gradients."""
        return self._dirichlet.sample(shape)[..., 0]

    def entropy(self) -> Tensor:
        """That of the Dirichlet distribution of two parts."""
        return self._dirichlet.entropy()

    @property
    def _natural_parameters(self) -> tuple[Any, ...]:
        return (self.alpha, self.beta)

    def _log_normalizer(self, *natural_parameters: Any) -> Tensor:
        a, b = natural_parameters
        return a.lgamma() + b.lgamma() - (a + b).lgamma()


@register_kl(Beta, Beta)
def _kl(p: Any, q: Any) -> Any:
    return kl_divergence(p._dirichlet, q._dirichlet)
