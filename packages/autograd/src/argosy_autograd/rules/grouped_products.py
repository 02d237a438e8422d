"""Derivatives of grouped products: each operand's cotangent is a grouped product of the result's with the other one."""

from __future__ import annotations

from typing import Any

from argosy_autograd.algebra import Value, plus
from argosy_autograd.registry import jvp, vjp
from argosy_phi_ops import prim

Triple = tuple[Value | None, Value | None, Value | None]


@vjp("grouped_dot")
def _(g: Value, result: Value, lhs: Value, rhs: Value, starts: Value, *, transposed: bool) -> Triple:
    pair = (g, lhs) if transposed else (lhs, g)
    return prim.grouped_dot(g, rhs, starts, transposed=not transposed), prim.grouped_outer(*pair, starts), None


@vjp("grouped_outer")
def _(g: Value, result: Value, lhs: Value, rhs: Value, starts: Value) -> Triple:
    return prim.grouped_dot(rhs, g, starts, transposed=True), prim.grouped_dot(lhs, g, starts), None


@jvp("grouped_dot")
def _(
    result: Value, lhs: Value, rhs: Value, starts: Value, d_lhs: Value | None, d_rhs: Value | None,
    d_starts: Value | None, **attributes: Any,
) -> Value | None:  # fmt: skip
    left = None if d_lhs is None else prim.grouped_dot(d_lhs, rhs, starts, **attributes)
    return plus(left, None if d_rhs is None else prim.grouped_dot(lhs, d_rhs, starts, **attributes))


@jvp("grouped_outer")
def _(
    result: Value, lhs: Value, rhs: Value, starts: Value, d_lhs: Value | None, d_rhs: Value | None,
    d_starts: Value | None,
) -> Value | None:  # fmt: skip
    left = None if d_lhs is None else prim.grouped_outer(d_lhs, rhs, starts)
    return plus(left, None if d_rhs is None else prim.grouped_outer(lhs, d_rhs, starts))
