"""The one table of special rules, and the rules of an operation all together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from argosy_autoparallel.placement import Replicate
from argosy_autoparallel.spmd.factors import factor_strategies
from argosy_autoparallel.spmd.linearity import linear_strategies
from argosy_autoparallel.spmd.strategy import Strategy, StrategyQuery

__all__ = ["Rule", "rule", "strategies"]

Rule = Callable[[StrategyQuery], Iterable[Strategy]]

_RULES: dict[str, list[Rule]] = {}
_KNOWN: dict[Any, list[Strategy]] = {}  # programs ask the same again: for each layout, each layer, each step
_MOST_KNOWN = 65536


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: file strategies of the primitives ``names`` that neither notation nor linearity give."""

    def register(function: Rule) -> Rule:
        for name in names:
            _RULES.setdefault(name, []).append(function)
        _KNOWN.clear()
        return function

    return register


def strategies(query: StrategyQuery) -> list[Strategy]:
    """All ways to run the operation along this mesh dimension; the first is to replicate everything."""
    key = _key(query)
    found = _KNOWN.get(key) if key is not None else None
    if found is None:
        found = _derive(query)
        if key is not None:
            if len(_KNOWN) >= _MOST_KNOWN:
                _KNOWN.clear()
            _KNOWN[key] = found
    return found


def _key(query: StrategyQuery) -> Any:
    """All that rules may look at; None for host calls, whose functions may be registered anew."""
    if query.name == "host_call":
        return None
    attributes, taken = tuple(query.attributes.items()), tuple(query.taken.items())
    places = *query.given, *query.wanted
    return query.name, attributes, *query.operands, *query.results, query.size, query.plain, taken, *places


def _derive(query: StrategyQuery) -> list[Strategy]:
    everywhere = Replicate()
    found = [Strategy((everywhere,) * len(query.operands), (everywhere,) * len(query.results))]
    found += factor_strategies(query)
    for special in _RULES.get(query.name, ()):
        found += special(query)
    found += linear_strategies(query)
    return list(dict.fromkeys(found))
