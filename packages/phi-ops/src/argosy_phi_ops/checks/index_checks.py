"""Checks of indices in programs: what eager execution refuses, a program refuses, too.

An operator says once, with :meth:`Operator.check_bounds`, which of its operands are indices and of which axes. Where it
is decomposed, a ``prim.check_index`` stands before its primitives, which clamp or drop. What derivatives read at the
same indices needs none of its own, nor do indices that are in range by the way they are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy_phi_ops import prim
from argosy_phi_ops.checks.bounds import Bound, bounds_of
from argosy_phi_ops.checks.index_ranges import is_within
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.declare.operator import Operator
from argosy_phi_ops.primitives.checks import INTEGER
from argosy_pir.builder import Builder
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.values import Value

__all__ = ["checked_program", "insert_checks"]


def insert_checks(op: Operation, operator: Operator) -> None:
    """Put the checks of an application of ``operator`` before it; they are of its line."""
    with emit_at(Builder.before(op), op.location):
        _emit_checks(operator, op.operands, dict(op.attributes))


def checked_program(operator: Operator, program: Program, attributes: dict[str, Any]) -> Program:
    """What ``operator`` decomposes into after its checks: itself where there are none."""
    if (operator.bounds is None and operator.own_bounds is None) or program.block.first is None:
        return program
    made = program.clone()
    with emit_at(Builder.before(made.block.first)):  # type: ignore[arg-type]
        _emit_checks(operator, made.inputs, attributes)
    return made


def _emit_checks(operator: Operator, operands: Sequence[Value], attributes: dict[str, Any]) -> None:
    if operator.bounds is not None or operator.own_bounds is not None:
        for bound in bounds_of(operator, [v.type for v in operands], attributes):
            _check(operator.name, operands[bound.operand], bound)


def _check(name: str, indices: Value, bound: Bound) -> None:
    if indices.dtype not in INTEGER or 0 in indices.shape:
        return
    besides = None if bound.besides == bound.low else bound.besides
    if bound.column is not None:
        indices = _column(indices, bound.column)
    if not is_within(indices, bound.low, bound.size, besides):
        prim.check_index(indices, operator=name, low=bound.low, size=bound.size, besides=besides)


def _column(x: Value, column: int) -> Value:
    start: list[Any] = [0] * x.ndim
    limit = list(x.shape)
    start[-1], limit[-1] = column, column + 1
    found: Value = prim.slice(x, start=tuple(start), limit=tuple(limit), stride=(1,) * x.ndim)
    return found
