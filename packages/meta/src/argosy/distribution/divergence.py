"""The table of Kullback-Leibler divergences by pairs of families, and how the rule of two distributions is found."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from argosy_tensorcore.tensor import Tensor

__all__ = ["RULES", "kl_divergence"]

Pair = tuple[type, type]

RULES: dict[Pair, Callable[..., Tensor]] = {}
"""By the classes of the two distributions, what gives their divergence: each family's module adds its own."""


def kl_divergence(p: Any, q: Any) -> Tensor:
    """``E[log p(x) - log q(x)]`` under ``p``, in nats, by the rule for the nearest classes of the two.

    Raises ``NotImplementedError`` where there is no rule; warns where two rules are as near.
    """
    return _rule(type(p), type(q))(p, q)


def _rule(p: type, q: type) -> Callable[..., Tensor]:
    fitting = [pair for pair in RULES if issubclass(p, pair[0]) and issubclass(q, pair[1])]
    if not fitting:
        raise NotImplementedError(f"kl_divergence({p.__name__}, {q.__name__}) has no rule; see register_kl")

    def distance(pair: Pair) -> tuple[int, int]:
        return p.__mro__.index(pair[0]), q.__mro__.index(pair[1])

    left, right = min(fitting, key=distance), min(fitting, key=lambda pair: distance(pair)[::-1])
    if RULES[left] is not RULES[right]:
        warnings.warn(
            f"kl_divergence({p.__name__}, {q.__name__}) is ambiguous: "
            f"register_kl({left[0].__name__}, {right[1].__name__}) would settle it",
            RuntimeWarning,
            stacklevel=3,
        )
    return RULES[left]
