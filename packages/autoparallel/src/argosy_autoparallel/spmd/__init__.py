"""Sharding rules: for each primitive, what one mesh dimension may do with its operands and results.

:func:`strategies` is the whole interface. Most rules follow from the axis notation (:mod:`.factors`) and from linearity
(:mod:`.linearity`); the rest are special rules (:mod:`.special_rules`, :mod:`.windows`), filed with one decorator
(:mod:`.registry`).
"""

from argosy_autoparallel.spmd import special_rules, windows
from argosy_autoparallel.spmd.registry import rule, strategies
from argosy_autoparallel.spmd.strategy import Strategy

__all__ = ["Strategy", "rule", "special_rules", "strategies", "windows"]
