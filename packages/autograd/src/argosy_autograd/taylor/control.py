"""How loops and branches propagate Taylor coefficients: a loop carries them, a branch yields them.

All coefficients that are wanted of a loop are carried together, so that each order adds the products of one more row of
Leibniz's rule: order n costs O(n^2). The coefficients are single ones; sums of them are made outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from argosy_autograd.activity import captured_values, has_gradient, read_values
from argosy_autograd.algebra import Value, plus, zeros
from argosy_autograd.regions import active_carries, copy_block, emitter, finish, or_zeros
from argosy_autograd.rules.control import Scan, as_scan
from argosy_autograd.rules.while_loops import as_while
from argosy_autograd.taylor.functional import Functional, Index
from argosy_phi_ops.context import emit_at
from argosy_pir import Block, Builder, Operation

if TYPE_CHECKING:
    from argosy_autograd.taylor.sweep import Sweep

__all__ = ["through_region"]

Coefficient: TypeAlias = Any
Known: TypeAlias = Mapping[Value, Mapping[Index, Coefficient]]
"""The coefficients of what a region reads: None for zero."""

Made: TypeAlias = dict[tuple[int, Index], Value]
"""Coefficients of results, by number."""


def through_region(sweep: Sweep, op: Operation, result: Value, functional: Functional) -> Coefficient:
    """``functional`` of ``result``, one of the results of a loop or branch."""
    total: Coefficient = None
    for index, c in functional:
        if (result, single_coefficient(index)) not in sweep.made:
            _carry(sweep, op, index)
        found = sweep.made[result, single_coefficient(index)]
        total = plus(total, found if found is None or c == 1 else found * c)
    return total


def single_coefficient(index: Index) -> Functional:
    """The coefficient with ``index``."""
    return Functional([(index, 1.0)])


def _carry(sweep: Sweep, op: Operation, index: Index) -> None:
    """Make all coefficients that are expected of the results of ``op``, ``index`` among them."""
    if op.name == "control.for" and not as_scan(op):
        as_while(op)
    indices = sweep.orders(op, index)
    moving = [v for v in dict.fromkeys(read_values(op)) if sweep.depends(v)]
    known = {v: {i: sweep.coefficient(v, single_coefficient(i)) for i in reversed(indices)} for v in moving}
    live = {d for each in known.values() for i, c in each.items() if c is not None for d in i}
    wanted = [i for i in indices if live.issuperset(i)]
    made = _RULES[op.name](sweep, op, known, wanted) if wanted else {}
    for number, result in enumerate(op.results):
        for i in indices:
            sweep.made[result, single_coefficient(i)] = made.get((number, i))


def _inner_sweep(sweep: Sweep, op: Operation, known: Known, arguments: Known) -> Sweep:
    """The sweep of a region of ``op``, of which ``arguments`` and what it reads from around it are ``known``."""
    captured = captured_values(op)
    still = [v for v in captured if v not in known]
    return sweep.inner_sweep({**{v: known[v] for v in captured if v in known}, **arguments}, still)


def _ends(inner: Sweep, ends: Sequence[Value], indices: Sequence[Index], body: Block) -> list[Value]:
    """The coefficients of ``ends`` at the end of ``body``: those of one after the other."""
    with emit_at(Builder.at_end(body)):
        found = [inner.coefficient(end, single_coefficient(i)) for end in ends for i in reversed(indices)]
    like = [end for end in ends for _ in indices]
    made = or_zeros(found, like, body)
    size = len(indices)
    return [c for k in range(len(ends)) for c in reversed(made[k * size : (k + 1) * size])]


def _number(values: Sequence[Value], numbers: Sequence[int], indices: Sequence[Index]) -> Made:
    keys = [(number, i) for number in numbers for i in indices]
    return dict(zip(keys, values, strict=True))


def _add(body: Block, values: Sequence[Value], indices: Sequence[Index]) -> dict[Value, dict[Index, Value]]:
    """Arguments of ``body`` for the coefficients of ``values``."""
    return {v: {i: body.add_argument(v.type) for i in indices} for v in values}


def _starts(known: Known, values: Sequence[Value], indices: Sequence[Index]) -> list[Value]:
    """The coefficients of ``values``, zeros written out."""
    found = [known[v].get(i) if v in known else None for v in values for i in indices]
    like = [v for v in values for _ in indices]
    return [zeros(v.shape, v.dtype) if c is None else c for v, c in zip(like, found, strict=True)]


def _through_if(sweep: Sweep, op: Operation, known: Known, indices: Sequence[Index]) -> Made:
    numbers = [i for i, result in enumerate(op.results) if has_gradient(result)]
    regions = []
    for region in op.regions:
        block = Block()
        ends = copy_block(region.block, block, ())
        inner = _inner_sweep(sweep, op, known, {})
        regions.append(finish(block, _ends(inner, [ends[i] for i in numbers], indices, block)))
    made = emitter().create("control.if", [op.operand(0)], regions=regions)
    return _number(made.results, numbers, indices)


def _lift_while(sweep: Sweep, op: Operation, known: Known, indices: Sequence[Index]) -> Made:
    condition, step = (region.block for region in op.regions)
    reads = [v for v in captured_values(op) if v in known]
    moving = active_carries(step, op.operands, set(known), reads)
    types = [value.type for value in op.operands]
    types += [types[i] for i in moving for _ in indices]
    test, body = Block(types), Block(types[: len(op.operands)])
    carried = list(body.arguments)
    (holds,) = copy_block(condition, test, test.arguments[: len(carried)])
    arguments = _add(body, [carried[i] for i in moving], indices)
    ends = copy_block(step, body, carried)
    inner = _inner_sweep(sweep, op, known, arguments)
    moved = _ends(inner, [ends[i] for i in moving], indices, body)
    regions = [finish(test, [holds], "control.condition"), finish(body, [*ends, *moved])]
    first = _starts(known, [op.operand(i) for i in moving], indices)
    made = emitter().create("control.while", [*op.operands, *first], regions=regions).results
    return _number(made[len(carried) :], moving, indices)


def _through_scan(sweep: Sweep, op: Operation, known: Known, indices: Sequence[Index]) -> Made:
    scan = Scan(op)
    reads = [v for v in captured_values(op) if v in known]
    moving = scan.active_carries(set(known), reads)
    scanned = [i for i, x in enumerate(scan.xs) if x in known]
    stacked = [i for i in range(scan.stacked) if has_gradient(op.results[i])]
    body = Block([a.type for a in scan.x_arguments])
    xs = list(body.arguments)
    rows = _add(body, [xs[i] for i in scanned], indices)
    carried = [body.add_argument(a.type) for a in scan.c_arguments]
    arguments = _add(body, [carried[i] for i in moving], indices)
    ends = copy_block(scan.body, body, [*xs, *carried])
    inner = _inner_sweep(sweep, op, known, {**rows, **arguments})
    after = ends[scan.stacked :]
    rises = _ends(inner, [ends[i] for i in stacked], indices, body)
    region = finish(body, [*rises, *after, *_ends(inner, [after[i] for i in moving], indices, body)])
    moved = _starts(known, [scan.xs[i] for i in scanned], indices)
    first = _starts(known, [scan.carries[i] for i in moving], indices)
    attributes = {"inputs": len(xs) + len(moved), "reverse": scan.reverse, "length": scan.length}
    operands = [*scan.xs, *moved, *scan.carries, *first]
    made = emitter().create("control.scan", operands, attributes, regions=[region]).results
    found = _number(made[: len(rises)], stacked, indices)
    return found | _number(made[len(rises) + len(carried) :], [scan.stacked + i for i in moving], indices)


_RULES = {"control.if": _through_if, "control.while": _lift_while, "control.scan": _through_scan}
