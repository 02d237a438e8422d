"""The Dirichlet distribution."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.distribution.distribution import ExponentialFamily
from argosy.distribution.kl import register_kl
from argosy.distribution.parameters import parameters
from argosy_autograd.modes import no_grad
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """Points of a simplex with density proportional to ``prod(x**(concentration - 1))`` over the last axis."""

    def __init__(self, concentration: Any) -> None:
        (self.concentration,) = parameters("Dirichlet", concentration=concentration)
        shape = self.concentration.shape
        if not shape or 0 in shape:
            raise ValueError(f"Dirichlet: concentration should have at least one axis and element, got {list(shape)}")
        super().__init__(shape[:-1], shape[-1:])

    @property
    def mean(self) -> Tensor:
        """The concentration divided by its sum."""
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def variance(self) -> Tensor:
        """``m (1 - m) / (1 + a)`` of the mean m and the sum a of the concentration."""
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Gamma variables divided by their sum; no gradients go through them."""
        with no_grad():
            parts = get_operator("standard_gamma")(self.concentration.expand(list(self._extend_shape(shape))))
            return parts / parts.sum(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at ``value`` [..., K]."""
        a, x = self.concentration, self._value(value, self.concentration.dtype)
        return (x.log() * (a - 1.0)).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    def entropy(self) -> Tensor:
        """Of shape ``batch_shape``."""
        a = self.concentration
        total, k = a.sum(-1), a.shape[-1]
        inner = ((a - 1.0) * a.digamma()).sum(-1)
        return a.lgamma().sum(-1) - total.lgamma() - (k - total) * total.digamma() - inner

    @property
    def _natural_parameters(self) -> tuple[Any, ...]:
        return (self.concentration,)

    def _log_normalizer(self, *natural_parameters: Any) -> Tensor:
        (a,) = natural_parameters
        return a.lgamma().sum(-1) - a.sum(-1).lgamma()


@register_kl(Dirichlet, Dirichlet)
def _kl(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    norms = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return norms + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)
