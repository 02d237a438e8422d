"""Gradient requests as derivatives along directions: what a request asks for, row by row.

``ad.gradient`` of a sum over rows, with respect to an input whose rows the summands keep apart, is for each row and
each component the derivative of the summand along that component. :func:`parse_request` finds the summands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any

from argosy_autograd.activity import read_values
from argosy_autograd.algebra import COMPLEX, Value, constant_number, is_complex
from argosy_autograd.dialect import constants_of, parts
from argosy_autograd.taylor.deferred_coefficients import DeferredCoefficients
from argosy_autograd.taylor.rows import MIXED, RowAxes, Rows, upstream
from argosy_autograd.taylor.rules import has_rule
from argosy_phi_ops import prim
from argosy_pir import Operation
from argosy_pir.values import OpResult

__all__ = ["MOST_COMPONENTS", "Request", "Summand", "can_move", "component", "parse_request"]

MOST_COMPONENTS, MOST_ELEMENTS = 1024, 128
"""Inputs with more components than this in each row are left to reverse mode, and inputs without rows with more
elements: what depends on all of them is seldom a sum that collapses."""

Analysis = Callable[[Value, int], RowAxes]


@dataclass
class Summand:
    """A term of what is differentiated: ``value``, whose rows are the axes ``rows``, summed over all its elements after
    multiplication by ``weights`` (of its type), and then multiplied and divided by the scalars ``scales``."""

    value: Value
    rows: Rows
    weights: list[Value] = field(default_factory=list)
    scales: list[tuple[str, Value]] = field(default_factory=list)


@dataclass
class Request:
    """An ``ad.gradient`` with one input ``source``, the first ``count`` axes of which are rows."""

    op: Operation
    source: Value
    result: Value
    count: int
    summands: list[Summand]

    @property
    def components(self) -> int:
        """How many components a row of the input has."""
        return _count(self.source.shape[self.count :])


def parse_request(op: Operation, number: int, analysis: Analysis) -> Request | None:
    """The request for the gradient by input ``number`` of ``op``; None where rows do not stay apart, where some values
    count as constants, or where the input is complex: its gradient is no derivative along one direction."""
    if constants_of(op):
        return None
    outputs, inputs, cotangents = parts(op)
    source = inputs[number]
    if is_complex(source):
        return None
    for count in range(source.ndim, -1, -1):
        if not 0 < _count(source.shape[count:]) <= (MOST_COMPONENTS if count else MOST_ELEMENTS):
            continue
        rows = analysis(source, count)
        found: list[Summand] | None = []
        for i, output in enumerate(outputs):
            weight = cotangents[i] if cotangents else None
            more = _summands(output, weight, rows, count)
            found = None if found is None or more is None else found + more
        if found is not None:
            return Request(op, source, op.results[number], count, found)
    return None


def _count(shape: Sequence[Any]) -> int:
    """How many elements there are; 0 where that is known at run time only."""
    return prod(shape) if all(isinstance(n, int) for n in shape) else 0


def _summands(output: Value, weight: Value | None, rows: RowAxes, count: int) -> list[Summand] | None:
    """``output`` (times ``weight``) as a sum of summands; None when it is none."""
    found: list[Summand] = []
    start = Summand(output, ())
    if weight is not None and constant_number(weight) != 1:
        if output.ndim:
            start.weights.append(weight)
        else:
            start.scales.append(("mul", weight))
    stack = [start]
    while stack:
        term = stack.pop()
        held = rows[term.value]
        if held is None:
            continue
        if held != MIXED and len(held) == count:
            term.rows = held
            if not all(_same_rows(w, term, rows) for w in term.weights):
                return None
            found.append(term)
            continue
        inner = _peel(term, rows)
        if inner is None:
            return None
        stack.extend(inner)
    return found


def _same_rows(weight: Value, term: Summand, rows: RowAxes) -> bool:
    return rows[weight] in (None, term.rows)


def _peel(term: Summand, rows: RowAxes) -> list[Summand] | None:
    """What a sum of the elements of ``term`` is a sum of, one operation further up."""
    value = term.value
    if not isinstance(value, OpResult) or value.op.dialect != "prim" or term.weights:
        return None
    name, operands = value.op.kind, value.op.operands
    if name == "reduce_sum" or (name == "reshape"):
        return [Summand(operands[0], (), [], term.scales)]
    if name == "add":
        return [Summand(x, (), [], list(term.scales)) for x in operands]
    if name in ("mul", "div") and value.ndim == 0:
        moving = [x for x in operands if rows[x] is not None]
        if len(moving) == 1 and (name == "mul" or moving[0] is operands[0]):
            other = operands[1] if moving[0] is operands[0] else operands[0]
            return [Summand(moving[0], (), [], [*term.scales, (name, other)])]
    return None


def component(deferred: DeferredCoefficients, request: Request, direction: int) -> Value | None:
    """The gradient's component along ``direction``: a value with the rows of the source, None for zero."""
    shape = request.source.shape[: request.count]
    total: Value | None = None
    for term in request.summands:
        value, moved = term.value, None
        axes = tuple(i for i in range(value.ndim) if i not in term.rows)
        if not term.weights and axes:
            value = deferred.emit_once(("summed", value, axes), partial(_sum, value, axes))
            axes = ()
        if not deferred.sweep.depends(value):
            continue
        moved = deferred.derivative(value, direction)
        for weight in term.weights:
            moved = prim.mul(moved, weight)
        moved = _arrange(_sum(moved, axes), term.rows, shape)
        for kind, scale in term.scales:
            operand = prim.broadcast(scale, shape=shape, axes=())
            moved = prim.mul(moved, operand) if kind == "mul" else prim.div(moved, operand)
        moved = _convert(moved, request.source.dtype)
        total = moved if total is None else prim.add(total, moved)
    return total


def _convert(value: Value, dtype: str) -> Value:
    """A gradient has the dtype of its input: of a complex derivative by a real one that is the real part."""
    if is_complex(value) and dtype not in COMPLEX:
        value = prim.real(value)
    return value if value.dtype == dtype else prim.cast(value, dtype=dtype)


def can_move(request: Request, analysis: Analysis) -> bool:
    """Whether every operation between the input and the summands has a rule for Taylor coefficients."""
    rows = analysis(request.source, request.count)
    seen: set[Value] = set()
    for term in request.summands:
        between = upstream(term.value, lambda v: v in seen or rows[v] is None, read_values)
        if not all(has_rule(op) for op in between):
            return False
        seen.update(result for op in between for result in op.results)
    return True


def _sum(value: Value, axes: Sequence[int]) -> Value:
    if not axes:
        return value
    if all(value.shape[i] == 1 for i in axes):
        return prim.reshape(value, shape=tuple(n for i, n in enumerate(value.shape) if i not in axes))
    return prim.reduce_sum(value, axes=tuple(axes))


def _arrange(value: Value, rows: Rows, shape: tuple[Any, ...]) -> Value:
    order = tuple(sorted(rows).index(axis) for axis in rows)
    made = value if order == tuple(range(len(order))) else prim.transpose(value, permutation=order)
    assert made.shape == shape
    return made
