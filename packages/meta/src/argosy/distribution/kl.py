"""Kullback-Leibler divergences: one rule for each pair of families, and how the rule of two distributions is found."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from argosy.distribution.bernoulli import Bernoulli, off_the_ends
from argosy.distribution.beta import Beta
from argosy.distribution.binomial import Binomial
from argosy.distribution.categorical import Categorical
from argosy.distribution.cauchy import Cauchy
from argosy.distribution.continuous_bernoulli import ContinuousBernoulli
from argosy.distribution.dirichlet import Dirichlet
from argosy.distribution.distribution import Distribution, ExponentialFamily
from argosy.distribution.exponential import Exponential
from argosy.distribution.gamma import Gamma
from argosy.distribution.geometric import Geometric
from argosy.distribution.laplace import Laplace
from argosy.distribution.lognormal import LogNormal
from argosy.distribution.multivariate_normal import MultivariateNormal, half_log_det, mahalanobis
from argosy.distribution.normal import Normal
from argosy.distribution.parameters import event_sum
from argosy.distribution.poisson import Poisson
from argosy.distribution.uniform import Uniform
from argosy.nn import functional as F
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["kl_divergence", "register_kl"]

Rule = TypeVar("Rule", bound=Callable[..., Tensor])
Pair = tuple[type[Distribution], type[Distribution]]

_RULES: dict[Pair, Callable[..., Tensor]] = {}


def register_kl(cls_p: type[Distribution], cls_q: type[Distribution]) -> Callable[[Rule], Rule]:
    """Decorator: the function gives the divergence of a ``cls_p`` and a ``cls_q``, or of classes derived from them.

    Raises ``TypeError`` for classes that are no distributions.
    """
    if not (issubclass(cls_p, Distribution) and issubclass(cls_q, Distribution)):
        raise TypeError("register_kl: cls_p and cls_q should be classes of distributions")

    def register(rule: Rule) -> Rule:
        _RULES[cls_p, cls_q] = rule
        return rule

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """``E[log p(x) - log q(x)]`` under ``p``, in nats, by the rule for the nearest classes of the two.

    Raises ``NotImplementedError`` where there is no rule; warns where two rules are as near.
    """
    return _rule(type(p), type(q))(p, q)


def _rule(p: type[Distribution], q: type[Distribution]) -> Callable[..., Tensor]:
    fitting = [pair for pair in _RULES if issubclass(p, pair[0]) and issubclass(q, pair[1])]
    if not fitting:
        raise NotImplementedError(f"kl_divergence({p.__name__}, {q.__name__}) has no rule; see register_kl")

    def distance(pair: Pair) -> tuple[int, int]:
        return p.__mro__.index(pair[0]), q.__mro__.index(pair[1])

    left, right = min(fitting, key=distance), min(fitting, key=lambda pair: distance(pair)[::-1])
    if _RULES[left] is not _RULES[right]:
        warnings.warn(
            f"kl_divergence({p.__name__}, {q.__name__}) is ambiguous: "
            f"register_kl({left[0].__name__}, {right[1].__name__}) would settle it",
            RuntimeWarning,
            stacklevel=3,
        )
    return _RULES[left]


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_families(p: Any, q: Any) -> Any:
    """The Bregman divergence of the log-normaliser (Nielsen and Nock, 2010)."""
    if type(p) is not type(q):
        raise NotImplementedError(f"kl_divergence({type(p).__name__}, {type(q).__name__}) has no rule; see register_kl")
    eta, normalizer, slopes = p._differentiated()
    found = q._log_normalizer(*q._natural_parameters) - normalizer
    for mine, other, slope in zip(eta, q._natural_parameters, slopes, strict=True):
        found = found - event_sum((other - mine) * slope, len(q.event_shape))
    return found


def _binary(p: Any, q: Any) -> Any:
    """Of two trials with success probabilities ``p`` and ``q``."""
    p, q = off_the_ends(p), off_the_ends(q)
    return p * (p.log() - q.log()) + (1 - p) * ((-p).log1p() - (-q).log1p())


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    return _binary(p.probs, q.probs)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return _binary(p.probs, q.probs) / p.probs  # of one trial, times the expected number of them


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    values = p.support()
    mine, other = p.log_prob(values), q.log_prob(values)
    possible = values <= p.total_count
    return get_operator("where")(possible, mine.exp() * (mine - other), 0.0).sum(0)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    rate = get_operator("where")(p.rate > 0, p.rate, 1.0)
    return p.rate * (rate.log() - q.rate.log()) - p.rate + q.rate


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    norms = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return norms + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    mine, other = F.log_softmax(p.logits, -1), F.log_softmax(q.logits, -1)
    return (mine.exp() * (mine - other)).sum(-1, keepdim=True)  # Paddle keeps the axis


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    apart = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return apart.log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Any:
    if p.batch_shape != q.batch_shape:
        raise ValueError(f"kl_divergence: batch shapes {p.batch_shape} and {q.batch_shape} should be equal")
    crossed = q._log_constant() + p.mean * q._log_odds(q.probs) + (-q.probs).log1p()
    return -p.entropy() - crossed


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    norms = b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma()
    return norms + (a - b) * a.digamma() + (q.rate - p.rate) * (a / p.rate)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    apart = (p.loc - q.loc).abs()
    return (p.scale * (-apart / p.scale).exp() + apart) / q.scale + (q.scale / p.scale).log() - 1


@register_kl(LogNormal, LogNormal)
def _lognormal(p: Any, q: Any) -> Any:
    return _normal(p._base, q._base)


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    if p._complex_gaussian != q._complex_gaussian:
        raise ValueError("kl_divergence: one of the two normal distributions is complex, the other is not")
    ratio = (p.scale / q.scale).square()
    apart = (p.loc - q.loc) / q.scale
    if p._complex_gaussian:
        return ratio + apart.conj() * apart - 1.0 - ratio.log()
    return 0.5 * (ratio + apart.square() - 1.0 - ratio.log())


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Any:
    if p.event_shape != q.event_shape:
        raise ValueError(f"kl_divergence: event shapes {p.event_shape} and {q.event_shape} should be equal")
    mine, other = get_operator("broadcast_tensors")([p._factor, q._factor])
    spread = get_operator("triangular_solve")(other, mine, upper=False).square().sum([-2, -1])
    distance = mahalanobis(q._factor, p.loc - q.loc)
    return half_log_det(q._factor) - half_log_det(p._factor) + 0.5 * (spread + distance - p.event_shape[0])


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    """Infinite unless the interval of ``q`` holds that of ``p``."""
    within = (q.low <= p.low) & (p.high <= q.high)
    return get_operator("where")(within, ((q.high - q.low) / (p.high - p.low)).log(), float("inf"))
