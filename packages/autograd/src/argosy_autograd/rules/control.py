"""Derivatives of structured control flow.

``scan`` keeps what its backward pass reads, stacked; a ``for`` of a known number of steps becomes a scan,
one of any other number a ``while`` (see :mod:`argosy_autograd.rules.while_loops`); ``if`` computes its branches again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy_autograd.activity import active_operations, captured_values, has_gradient
from argosy_autograd.algebra import Value, zeros
from argosy_autograd.forward import jvp_values
from argosy_autograd.regions import copy_block, emitter, finish, or_zeros
from argosy_autograd.registry import structured_rule
from argosy_autograd.residuals import captured_from, rematerialise_constants, replace_within
from argosy_autograd.reverse import vjp_values
from argosy_autograd.rules.while_loops import as_while, forward_while, reverse_while
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir import Block, Builder, Operation, decode_scalar
from argosy_pir.values import OpResult

Pairs = list[tuple[Value, Value | None]]
Optional = Sequence[Value | None]


# if


def _reverse_if(op: Operation, incoming: Optional, active: set[Value]) -> Pairs:
    reads = [value for value in captured_values(op) if value in active]
    regions = []
    for region in op.regions:
        block = Block()
        ends = copy_block(region.block, block, ())
        gradients = vjp_values(ends, incoming, reads, Builder.at_end(block), block)
        regions.append(finish(block, or_zeros(gradients, reads, block)))
    made = emitter().create("control.if", [op.operand(0)], regions=regions)
    return list(zip(reads, made.results, strict=True))


def _forward_if(op: Operation, known: dict[Value, Value]) -> Optional:
    reads = [value for value in captured_values(op) if value in known]
    results = [result for result in op.results if has_gradient(result)]
    regions = []
    for region in op.regions:
        block = Block()
        ends = copy_block(region.block, block, ())
        targets = [end for end, result in zip(ends, op.results, strict=True) if result in results]
        tangents = jvp_values(targets, reads, [known[v] for v in reads], Builder.at_end(block), block)
        regions.append(finish(block, or_zeros(tangents, results, block)))
    made = emitter().create("control.if", [op.operand(0)], regions=regions)
    found = dict(zip(results, made.results, strict=True))
    return [found.get(result) for result in op.results]


# scan


class Scan:
    """The parts of a scan: scanned operands and carried ones, the body's arguments and what it yields."""

    def __init__(self, op: Operation) -> None:
        count = op.attributes["inputs"]
        self.op = op
        self.body = op.regions[0].block
        self.xs, self.carries = op.operands[:count], op.operands[count:]
        self.x_arguments, self.c_arguments = self.body.arguments[:count], self.body.arguments[count:]
        self.stacked = len(op.results) - len(self.carries)
        self.reverse = bool(op.attributes.get("reverse"))
        length = op.attributes.get("length")
        self.length = self.xs[0].shape[0] if length is None else length

    @property
    def yields(self) -> tuple[Value, ...]:
        last = self.body.last
        assert last is not None
        return last.operands

    def active_carries(self, start: set[Value], reads: Sequence[Value]) -> list[int]:
        """Which carried values vary with something in ``start``: found by following them round until nothing is
        added."""
        chosen = {i for i, c in enumerate(self.carries) if c in start and has_gradient(c)}
        xs = [a for a, x in zip(self.x_arguments, self.xs, strict=True) if x in start]
        while True:
            wrt = [*xs, *reads, *(self.c_arguments[i] for i in chosen)]
            _, reached = active_operations(self.yields, wrt, self.body)
            after = self.yields[self.stacked :]
            more = chosen | {i for i, value in enumerate(after) if value in reached}
            if more == chosen:
                return sorted(chosen)
            chosen = more

    def keep(self, values: Sequence[Value]) -> list[Value]:
        """Let the scan stack the body's ``values`` too; returns the stacked results, put after those it had."""
        op, last = self.op, self.body.last
        assert last is not None
        last.set_operands([*self.yields[: self.stacked], *values, *self.yields[self.stacked :]])
        types = [v.type.with_shape((self.length, *v.shape)) for v in values]
        new = [OpResult(op, 0, t) for t in types]
        op.results = (*op.results[: self.stacked], *new, *op.results[self.stacked :])
        for i, result in enumerate(op.results):
            result.index = i
        self.stacked += len(new)
        return list(new)


def _reverse_scan(op: Operation, incoming: Optional, active: set[Value]) -> Pairs:
    """A scan the other way that carries the cotangents of the carried values and sums those of captured ones."""
    scan = Scan(op)
    reads = [value for value in captured_values(op) if value in active]
    moving = scan.active_carries(active, reads)
    x_moving = [i for i, x in enumerate(scan.xs) if x in active]
    stacked = [i for i in range(scan.stacked) if incoming[i] is not None]
    carried = [scan.carries[i] for i in moving]
    body = Block([scan.yields[i].type for i in stacked])
    g_stacked = body.arguments
    g_carried = [body.add_argument(c.type) for c in carried]
    sums = [body.add_argument(v.type) for v in reads]
    x_arguments = [scan.x_arguments[i] for i in x_moving]
    gradients = vjp_values(
        [*(scan.yields[i] for i in stacked), *(scan.yields[scan.stacked + i] for i in moving)],
        [*g_stacked, *g_carried],
        [*x_arguments, *(scan.c_arguments[i] for i in moving), *reads],
        Builder.at_end(body),
        scan.body,
    )
    split = len(x_arguments) + len(carried)
    with emit_at(Builder.at_end(body)):
        summed = [s if g is None else prim.add(s, g) for s, g in zip(sums, gradients[split:], strict=True)]
    results = or_zeros(gradients[:split], [*x_arguments, *carried], body)
    region = finish(body, [*results, *summed])
    starts = [incoming[scan.stacked + i] for i in moving]
    residuals = _feed_residuals(scan, body, len(stacked))
    operands: list[Value] = [g for i in stacked if (g := incoming[i]) is not None]
    first = [zeros(c.shape, c.dtype) if g is None else g for g, c in zip(starts, carried, strict=True)]
    first += [zeros(v.shape, v.dtype) for v in reads]
    attributes = {"inputs": len(operands) + len(residuals), "reverse": not scan.reverse, "length": scan.length}
    made = emitter().create("control.scan", [*operands, *residuals, *first], attributes, regions=[region])
    return list(zip([*(scan.xs[i] for i in x_moving), *carried, *reads], made.results, strict=True))


def _feed_residuals(scan: Scan, body: Block, at: int) -> list[Value]:
    """Make what ``body`` reads of the forward body its arguments, from position ``at``; returns the values to
    scan for them."""
    rematerialise_constants(scan.body, body)
    needed = captured_from(scan.body, body)
    known: dict[Value, Value] = dict(zip(scan.x_arguments, scan.xs, strict=True))
    kept = [value for value in needed if value not in known]
    known.update(zip(kept, scan.keep(kept), strict=True))
    for offset, value in enumerate(needed):
        replace_within(body, value, body.add_argument(value.type, index=at + offset))
    return [known[value] for value in needed]


def _forward_scan(op: Operation, known: dict[Value, Value]) -> Optional:
    scan = Scan(op)
    reads = [value for value in captured_values(op) if value in known]
    moving = scan.active_carries(set(known), reads)
    x_moving = [i for i, x in enumerate(scan.xs) if x in known]
    stacked = [i for i in range(scan.stacked) if has_gradient(op.results[i])]
    body = Block([a.type for a in scan.x_arguments])
    x_arguments = body.arguments
    dx_arguments = [body.add_argument(scan.x_arguments[i].type) for i in x_moving]
    c_arguments = [body.add_argument(a.type) for a in scan.c_arguments]
    dc_arguments = [body.add_argument(scan.c_arguments[i].type) for i in moving]
    ends = copy_block(scan.body, body, [*x_arguments, *c_arguments])
    targets = [*(ends[i] for i in stacked), *(ends[scan.stacked + i] for i in moving)]
    tangents = jvp_values(
        targets,
        [*(x_arguments[i] for i in x_moving), *(c_arguments[i] for i in moving), *reads],
        [*dx_arguments, *dc_arguments, *(known[v] for v in reads)],
        Builder.at_end(body),
        body,
    )
    found = or_zeros(tangents, targets, body)
    region = finish(body, [*found[: len(stacked)], *ends[scan.stacked :], *found[len(stacked) :]])
    starts = [scan.carries[i] for i in moving]
    first = [known.get(c) or zeros(c.shape, c.dtype) for c in starts]
    attributes = {
        "inputs": len(scan.xs) + len(x_moving),
        "reverse": scan.reverse,
        "length": scan.length,
    }
    operands = [*scan.xs, *(known[scan.xs[i]] for i in x_moving), *scan.carries, *first]
    made = emitter().create("control.scan", operands, attributes, regions=[region]).results
    results: list[Value | None] = [None] * len(op.results)
    for place, value in zip(stacked, made, strict=False):
        results[place] = value
    for place, value in zip(moving, made[len(stacked) + len(scan.carries) :], strict=True):
        results[scan.stacked + place] = value
    return results


# for


def _reverse_for(op: Operation, incoming: Optional, active: set[Value]) -> Pairs:
    if as_scan(op):
        return _reverse_scan(op, incoming, active)
    as_while(op)
    return reverse_while(op, [*incoming, None], active)


def _forward_for(op: Operation, known: dict[Value, Value]) -> Optional:
    if as_scan(op):
        return _forward_scan(op, known)
    as_while(op)
    return forward_while(op, known)[:-1]


def as_scan(op: Operation) -> bool:
    """Turn a ``for`` of a known number of steps into the scan over its indices, in place; returns whether it is one."""
    start, stop, step = (_known_size(v) for v in op.operands[:3])
    if start is None or stop is None or not isinstance(step, int) or step == 0:
        return False
    distance = stop - start if step > 0 else start - stop
    length = (distance + abs(step) - 1) // abs(step)
    if isinstance(length, int):
        length = max(length, 0)
    with emit_at(Builder.before(op), op.location):
        first = op.operand(0)
        index = prim.iota(shape=(length,), axis=0, dtype=first.dtype)
        if step != 1:
            index = index * step
        if start != 0:
            index = index + first
    op.name = "control.scan"
    op.set_operands([index, *op.operands[3:]])
    op.attributes.update({"inputs": 1, "length": length})
    return True


def _known_size(value: Value) -> Any:
    """The number or symbolic size that a 0-D integer is known to be, or None."""
    while isinstance(value, OpResult) and value.op.name in ("prim.cast", "prim.copy"):
        value = value.op.operand(0)
    if not isinstance(value, OpResult):
        return None
    if value.op.name == "prim.dim_size":
        return value.op.attributes["dim"]
    if value.op.name == "builtin.constant":
        data = value.op.attributes["value"]
        return decode_scalar(data.data, data.type.dtype)
    return None


structured_rule("control.if", _reverse_if, _forward_if)
structured_rule("control.scan", _reverse_scan, _forward_scan)
structured_rule("control.for", _reverse_for, _forward_for)
