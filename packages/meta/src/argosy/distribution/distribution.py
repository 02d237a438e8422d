"""The bases: what all distributions have, and what follows for exponential families from their log-normaliser."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.argument_checks import CheckedConstructor
from argosy.distribution.divergence import RULES, kl_divergence
from argosy.distribution.parameters import as_value, event_sum, sizes
from argosy_autograd.modes import no_grad
from argosy_tensorcore.dtype import DType
from argosy_tensorcore.tensor import Tensor

__all__ = ["Distribution", "ExponentialFamily"]


class Distribution(CheckedConstructor):
    """A family of random tensors: samples have the shape ``sample_shape + batch_shape + event_shape``.

    batch_shape: of independent, differently distributed events; event_shape: of one event, whose elements depend on
    each other. Subclasses define :meth:`rsample` or :meth:`sample`, and :meth:`log_prob`.
    """

    def __init__(self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = ()) -> None:
        self._batch_shape = tuple(batch_shape)
        self._event_shape = tuple(event_shape)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the independent events."""
        return self._batch_shape

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one event."""
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        """The expectation, of shape ``batch_shape + event_shape``."""
        raise self._lacks("mean")

    @property
    def variance(self) -> Tensor:
        """The variance of each element, of shape ``batch_shape + event_shape``."""
        raise self._lacks("variance")

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Draws of shape ``shape + batch_shape + event_shape``; no gradients go through them."""
        with no_grad():
            return self.rsample(shape)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """Draws that are differentiable functions of the parameters. Raises ``NotImplementedError`` where there is no
        such function."""
        raise self._lacks("rsample")

    def entropy(self) -> Tensor:
        """``-E[log p(x)]`` in nats, of shape ``batch_shape``."""
        raise self._lacks("entropy")

    def kl_divergence(self, other: Distribution) -> Tensor:
        """``E[log p(x) - log q(x)]`` under this distribution; see :func:`argosy.distribution.kl_divergence`."""
        return kl_divergence(self, other)

    def prob(self, value: Tensor) -> Tensor:
        """The density, or the probability, of ``value``."""
        return self.log_prob(value).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, of ``value``: of the shape of ``value`` broadcast with
        the batch, without the event's axes."""
        raise self._lacks("log_prob")

    def probs(self, value: Tensor) -> Tensor:
        """The same as :meth:`prob`."""
        return self.prob(value)

    def _lacks(self, member: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} does not define {member}")

    def _extend_shape(self, sample_shape: Sequence[int]) -> tuple[int, ...]:
        return sizes(type(self).__name__, sample_shape) + self._batch_shape + self._event_shape

    def _value(self, value: Any, dtype: DType) -> Any:
        return as_value(type(self).__name__, value, dtype)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch_shape={list(self._batch_shape)}, event_shape={list(self._event_shape)})"


class ExponentialFamily(Distribution):
    """Densities ``h(x) exp(t(x) . eta - A(eta))``: subclasses give ``_natural_parameters`` (eta), ``_log_normalizer``
    (A) and ``_mean_carrier_measure`` (E[log h(x)]), from which entropies and divergences follow by differentiation
    (Nielsen and Nock, 2010).
    """

    @property
    def _natural_parameters(self) -> tuple[Any, ...]:
        raise self._lacks("_natural_parameters")

    def _log_normalizer(self, *natural_parameters: Any) -> Tensor:
        raise self._lacks("_log_normalizer")

    @property
    def _mean_carrier_measure(self) -> Any:
        raise self._lacks("_mean_carrier_measure")

    def entropy(self) -> Tensor:
        """``A(eta) - eta . grad A(eta) - E[log h(x)]``."""
        eta, normalizer, slopes = self._differentiate()
        found = normalizer - self._mean_carrier_measure
        for parameter, slope in zip(eta, slopes, strict=True):
            found = found - event_sum(parameter * slope, len(parameter.shape) - len(normalizer.shape))
        return found

    def _differentiate(self) -> tuple[list[Any], Any, list[Any]]:
        """The natural parameters, the log-normaliser at them, and its slopes, which are the mean statistics."""
        from argosy.autograd import grad  # loaded with the first derivative

        eta = [parameter * 1.0 for parameter in self._natural_parameters]  # results of their own, to differentiate by
        for parameter in eta:
            if parameter.stop_gradient:
                parameter.stop_gradient = False
        normalizer = self._log_normalizer(*eta)
        return eta, normalizer, list(grad(normalizer.sum(), eta, create_graph=True))


def _exponential_families(p: Any, q: Any) -> Any:
    """The Bregman divergence of the log-normaliser (Nielsen and Nock, 2010)."""
    if type(p) is not type(q):
        raise NotImplementedError(f"kl_divergence({type(p).__name__}, {type(q).__name__}) has no rule; see register_kl")
    eta, normalizer, slopes = p._differentiate()
    found = q._log_normalizer(*q._natural_parameters) - normalizer
    for mine, other, slope in zip(eta, q._natural_parameters, slopes, strict=True):
        found = found - event_sum((other - mine) * slope, len(q.event_shape))
    return found


RULES[ExponentialFamily, ExponentialFamily] = _exponential_families
