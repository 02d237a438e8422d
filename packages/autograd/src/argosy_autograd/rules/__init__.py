"""Derivative rules of the primitives, one module for each family, as in ``argosy_phi_ops.primitives``."""

from argosy_autograd.registry import NOT_APPLICABLE, RuleTable, jvp, vjp
from argosy_autograd.rules import (
    attention,
    calls,
    communication,
    contraction,
    control,
    custom,
    decomposition,
    elementwise,
    grouped_products,
    host,
    indexing,
    layout,
    reduction,
    transform,
    while_loops,
    whole_operators,
)

__all__ = [
    "NOT_APPLICABLE",
    "RuleTable",
    "attention",
    "calls",
    "communication",
    "contraction",
    "control",
    "custom",
    "decomposition",
    "elementwise",
    "grouped_products",
    "host",
    "indexing",
    "jvp",
    "layout",
    "reduction",
    "transform",
    "vjp",
    "while_loops",
    "whole_operators",
]
