"""Kullback-Leibler divergences: how families declare theirs, each beside its class."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from argosy.distribution.distribution import Distribution
from argosy.distribution.divergence import RULES, kl_divergence
from argosy_tensorcore.tensor import Tensor

__all__ = ["kl_divergence", "register_kl"]

Rule = TypeVar("Rule", bound=Callable[..., Tensor])


def register_kl(cls_p: type[Distribution], cls_q: type[Distribution]) -> Callable[[Rule], Rule]:
    """Decorator: the function gives the divergence of a ``cls_p`` and a ``cls_q``, or of classes derived from them.

    Raises ``TypeError`` for classes that are no distributions.
    """
    if not (issubclass(cls_p, Distribution) and issubclass(cls_q, Distribution)):
        raise TypeError("register_kl: cls_p and cls_q should be classes of distributions")

    def register(rule: Rule) -> Rule:
        RULES[cls_p, cls_q] = rule
        return rule

    return register
