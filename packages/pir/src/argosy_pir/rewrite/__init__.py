"""Rewriting: declarative and class-based patterns, the greedy driver, statistics and optimisation fuel."""

from argosy_pir.rewrite.constants import Fold, fold_patterns
from argosy_pir.rewrite.declarative import any_value, attribute, computed_attribute, op, rule, splat
from argosy_pir.rewrite.driver import RewriteResult, apply_patterns
from argosy_pir.rewrite.fuel import Session, may_happen, note, observe, spend
from argosy_pir.rewrite.pattern import Pattern, PatternTable, Rewriter

__all__ = [
    "Fold",
    "Pattern",
    "PatternTable",
    "RewriteResult",
    "Rewriter",
    "Session",
    "any_value",
    "apply_patterns",
    "attribute",
    "computed_attribute",
    "fold_patterns",
    "may_happen",
    "note",
    "observe",
    "op",
    "rule",
    "spend",
    "splat",
]
