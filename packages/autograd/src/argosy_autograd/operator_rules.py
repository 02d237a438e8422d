"""Cotangent rules of whole operators, written with primitives, where they read less than what follows from the
decomposition.

A rule is called like one of a primitive: ``(g, result, *operands, **attributes)``. A test compares each with
the derivative of the decomposition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy_autograd.algebra import Value
from argosy_phi_ops import prim

__all__ = ["WHOLE_RULES"]

WHOLE_RULES: dict[str, Callable[..., tuple[Value | None, ...] | None]] = {}
"""By operator name. A rule returns None for attributes that it does not handle."""


def _rule(name: str) -> Callable[..., Any]:
    def register(rule: Callable[..., Any]) -> Callable[..., Any]:
        WHOLE_RULES[name] = rule
        return rule

    return register


def _sum(x: Value, axis: int) -> Value:
    """The sum along ``axis``, everywhere along it."""
    axis %= x.ndim
    total = prim.reduce_sum(x, axes=(axis,))
    return prim.broadcast(total, shape=x.shape, axes=tuple(i for i in range(x.ndim) if i != axis))


@_rule("softmax")
def _(g: Value, y: Value, x: Value, *, axis: int, dtype: str | None) -> tuple[Value] | None:
    if not x.ndim or y.dtype != x.dtype:
        return None
    return (y * (g - _sum(g * y, axis)),)


@_rule("log_softmax")
def _(g: Value, y: Value, x: Value, *, axis: int, dtype: str | None) -> tuple[Value] | None:
    if not x.ndim or y.dtype != x.dtype:
        return None
    return (g - prim.exp(y) * _sum(g, axis),)
