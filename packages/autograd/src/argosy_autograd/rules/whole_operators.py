"""Derivatives of operators that programs keep whole, for those who run them in their own way: ``topk`` on a mesh."""

from __future__ import annotations

from collections.abc import Sequence

from argosy_autograd.algebra import Value
from argosy_autograd.axis_gather import add_along, take_along
from argosy_autograd.registry import structured_rule
from argosy_pir import Operation


def _axis(op: Operation, rank: int) -> int:
    axis = op.attributes.get("axis")
    return rank - 1 if axis is None else axis % rank


def _put_back(op: Operation, incoming: Sequence[Value | None], active: set[Value]) -> list[tuple[Value, Value | None]]:
    """The cotangent of each element that was found, at its place."""
    x, g = op.operand(0), incoming[0]
    rank = len(x.shape)
    if g is None or not rank:
        return [(x, g)]
    axis = _axis(op, rank)
    return [(x, add_along(g, op.results[1], axis, x.shape[axis]))]


def _take_out(op: Operation, known: dict[Value, Value]) -> Sequence[Value | None]:
    """The tangents of the elements that were found."""
    tangent, rank = known.get(op.operand(0)), len(op.operand(0).shape)
    if tangent is None or not rank:
        return tangent, None
    return take_along(tangent, op.results[1], _axis(op, rank)), None


structured_rule("phi.topk", _put_back, _take_out)
