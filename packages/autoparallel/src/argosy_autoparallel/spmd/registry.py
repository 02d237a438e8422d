"""The one table of special rules, and the rules of an operation all together."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from argosy_autoparallel.placement import Replicate
from argosy_autoparallel.spmd.factors import factor_strategies
from argosy_autoparallel.spmd.linear import linear_strategies
from argosy_autoparallel.spmd.strategy import Setting, Strategy

__all__ = ["Rule", "rule", "strategies"]

Rule = Callable[[Setting], Iterable[Strategy]]

_RULES: dict[str, list[Rule]] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: file strategies of the primitives ``names`` that neither notation nor linearity give."""

    def register(function: Rule) -> Rule:
        for name in names:
            _RULES.setdefault(name, []).append(function)
        return function

    return register


def strategies(setting: Setting) -> list[Strategy]:
    """All ways to run the operation along this mesh dimension; the first is to replicate everything."""
    everywhere = Replicate()
    found = [Strategy((everywhere,) * len(setting.operands), (everywhere,) * len(setting.results))]
    found += factor_strategies(setting)
    for special in _RULES.get(setting.name, ()):
        found += special(setting)
    found += linear_strategies(setting)
    return list(dict.fromkeys(found))
