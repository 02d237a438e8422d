"""The one table of special rules, and the rules of an operation all together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from argosy_autoparallel.placement import Replicate
from argosy_autoparallel.spmd.factors import factor_strategies
from argosy_autoparallel.spmd.linear import linear_strategies
from argosy_autoparallel.spmd.strategy import Setting, Strategy

__all__ = ["Rule", "rule", "strategies"]

Rule = Callable[[Setting], Iterable[Strategy]]

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


def strategies(setting: Setting) -> list[Strategy]:
    """All ways to run the operation along this mesh dimension; the first is to replicate everything."""
    key = _key(setting)
    found = _KNOWN.get(key) if key is not None else None
    if found is None:
        found = _derived(setting)
        if key is not None:
            if len(_KNOWN) >= _MOST_KNOWN:
                _KNOWN.clear()
            _KNOWN[key] = found
    return found


def _key(setting: Setting) -> Any:
    """All that rules may look at; None for host calls, whose functions may be registered anew."""
    if setting.name == "host_call":
        return None
    attributes, taken = tuple(setting.attributes.items()), tuple(setting.taken.items())
    key = setting.name, attributes, *setting.operands, *setting.results, setting.size, taken, *setting.given
    return key


def _derived(setting: Setting) -> list[Strategy]:
    everywhere = Replicate()
    found = [Strategy((everywhere,) * len(setting.operands), (everywhere,) * len(setting.results))]
    found += factor_strategies(setting)
    for special in _RULES.get(setting.name, ()):
        found += special(setting)
    found += linear_strategies(setting)
    return list(dict.fromkeys(found))
