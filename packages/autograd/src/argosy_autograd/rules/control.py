"""Derivatives of structured control flow.

``scan`` keeps what its backward pass reads, stacked; a ``for`` of a known number of steps becomes a scan;
``if`` computes its branches again. ``while`` has forward derivatives only: its number of steps is not known
before it has run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy_autograd.activity import active_operations, captured_values, has_gradient
from argosy_autograd.algebra import Value, zeros
from argosy_autograd.errors import MissingRule
from argosy_autograd.forward import jvp_values
from argosy_autograd.insertion import erase_unused
from argosy_autograd.registry import structured
from argosy_autograd.residuals import captured_from, rematerialise_constants, replace_within
from argosy_autograd.reverse import vjp_values
from argosy_phi_ops import prim
from argosy_phi_ops.context import building, context
from argosy_pir import Block, Builder, Operation, Region, decode_scalar
from argosy_pir.values import OpResult

Pairs = list[tuple[Value, Value | None]]
Optional = Sequence[Value | None]


def _builder() -> Builder:
    builder = context().builder
    assert builder is not None
    return builder


def _finish(block: Block, values: Sequence[Value], terminator: str = "control.yield") -> Region:
    """End ``block`` and drop what it computes in vain."""
    Builder.at_end(block).create(terminator, values)
    erase_unused([op for op in block if op is not block.last])
    return Region([block])


def _or_zeros(values: Optional, like: Sequence[Value], block: Block) -> list[Value]:
    with building(Builder.at_end(block)):
        return [zeros(x.shape, x.dtype) if v is None else v for v, x in zip(values, like, strict=True)]


def _copy(block: Block, into: Block, arguments: Sequence[Value]) -> list[Value]:
    """Copy the operations of ``block`` but its terminator to the end of ``into``; returns what they would yield."""
    mapping: dict[Value, Value] = dict(zip(block.arguments, arguments, strict=True))
    last = block.last
    assert last is not None
    for op in block:
        if op is not last:
            into.append(op.clone(mapping))
    return [mapping.get(value, value) for value in last.operands]


# if


def _reverse_if(op: Operation, incoming: Optional, active: set[Value]) -> Pairs:
    reads = [value for value in captured_values(op) if value in active]
    regions = []
    for region in op.regions:
        block = Block()
        ends = _copy(region.block, block, ())
        gradients = vjp_values(ends, incoming, reads, Builder.at_end(block), block)
        regions.append(_finish(block, _or_zeros(gradients, reads, block)))
    made = _builder().create("control.if", [op.operand(0)], regions=regions)
    return list(zip(reads, made.results, strict=True))


def _forward_if(op: Operation, known: dict[Value, Value]) -> Optional:
    reads = [value for value in captured_values(op) if value in known]
    results = [result for result in op.results if has_gradient(result)]
    regions = []
    for region in op.regions:
        block = Block()
        ends = _copy(region.block, block, ())
        targets = [end for end, result in zip(ends, op.results, strict=True) if result in results]
        tangents = jvp_values(targets, reads, [known[v] for v in reads], Builder.at_end(block), block)
        regions.append(_finish(block, _or_zeros(tangents, results, block)))
    made = _builder().create("control.if", [op.operand(0)], regions=regions)
    found = dict(zip(results, made.results, strict=True))
    return [found.get(result) for result in op.results]


# scan


class _Scan:
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
    scan = _Scan(op)
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
    with building(Builder.at_end(body)):
        summed = [s if g is None else prim.add(s, g) for s, g in zip(sums, gradients[split:], strict=True)]
    results = _or_zeros(gradients[:split], [*x_arguments, *carried], body)
    region = _finish(body, [*results, *summed])
    starts = [incoming[scan.stacked + i] for i in moving]
    residuals = _feed_residuals(scan, body, len(stacked))
    operands: list[Value] = [g for i in stacked if (g := incoming[i]) is not None]
    first = [zeros(c.shape, c.dtype) if g is None else g for g, c in zip(starts, carried, strict=True)]
    first += [zeros(v.shape, v.dtype) for v in reads]
    attributes = {"inputs": len(operands) + len(residuals), "reverse": not scan.reverse, "length": scan.length}
    made = _builder().create("control.scan", [*operands, *residuals, *first], attributes, regions=[region])
    return list(zip([*(scan.xs[i] for i in x_moving), *carried, *reads], made.results, strict=True))


def _feed_residuals(scan: _Scan, body: Block, at: int) -> list[Value]:
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
    scan = _Scan(op)
    reads = [value for value in captured_values(op) if value in known]
    moving = scan.active_carries(set(known), reads)
    x_moving = [i for i, x in enumerate(scan.xs) if x in known]
    stacked = [i for i in range(scan.stacked) if has_gradient(op.results[i])]
    body = Block([a.type for a in scan.x_arguments])
    x_arguments = body.arguments
    dx_arguments = [body.add_argument(scan.x_arguments[i].type) for i in x_moving]
    c_arguments = [body.add_argument(a.type) for a in scan.c_arguments]
    dc_arguments = [body.add_argument(scan.c_arguments[i].type) for i in moving]
    ends = _copy(scan.body, body, [*x_arguments, *c_arguments])
    targets = [*(ends[i] for i in stacked), *(ends[scan.stacked + i] for i in moving)]
    tangents = jvp_values(
        targets,
        [*(x_arguments[i] for i in x_moving), *(c_arguments[i] for i in moving), *reads],
        [*dx_arguments, *dc_arguments, *(known[v] for v in reads)],
        Builder.at_end(body),
        body,
    )
    found = _or_zeros(tangents, targets, body)
    region = _finish(body, [*found[: len(stacked)], *ends[scan.stacked :], *found[len(stacked) :]])
    starts = [scan.carries[i] for i in moving]
    first = [known.get(c) or zeros(c.shape, c.dtype) for c in starts]
    attributes = {
        "inputs": len(scan.xs) + len(x_moving),
        "reverse": scan.reverse,
        "length": scan.length,
    }
    operands = [*scan.xs, *(known[scan.xs[i]] for i in x_moving), *scan.carries, *first]
    made = _builder().create("control.scan", operands, attributes, regions=[region]).results
    results: list[Value | None] = [None] * len(op.results)
    for place, value in zip(stacked, made, strict=False):
        results[place] = value
    for place, value in zip(moving, made[len(stacked) + len(scan.carries) :], strict=True):
        results[scan.stacked + place] = value
    return results


# for


def _reverse_for(op: Operation, incoming: Optional, active: set[Value]) -> Pairs:
    _as_scan(op)
    return _reverse_scan(op, incoming, active)


def _forward_for(op: Operation, known: dict[Value, Value]) -> Optional:
    _as_scan(op)
    return _forward_scan(op, known)


def _as_scan(op: Operation) -> None:
    """Turn a ``for`` of a known number of steps into the scan over its indices, in place."""
    start, stop, step = (_known_size(v) for v in op.operands[:3])
    if start is None or stop is None or not isinstance(step, int) or step == 0:
        raise MissingRule(
            f"the derivative of 'control.for' ({op.location}) needs bounds that are constants or sizes of tensors, "
            "because its backward pass must know the number of steps; use such bounds or control.scan"
        )
    distance = stop - start if step > 0 else start - stop
    length = (distance + abs(step) - 1) // abs(step)
    if isinstance(length, int):
        length = max(length, 0)
    with building(Builder.before(op), op.location):
        first = op.operand(0)
        index = prim.iota(shape=(length,), axis=0, dtype=first.dtype)
        if step != 1:
            index = index * step
        if start != 0:
            index = index + first
    op.name = "control.scan"
    op.set_operands([index, *op.operands[3:]])
    op.attributes.update({"inputs": 1, "length": length})


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


# while


def _reverse_while(op: Operation, incoming: Optional, active: set[Value]) -> Pairs:
    raise MissingRule(
        f"'control.while' ({op.location}) has no reverse derivative: the values of its steps would have to be kept, "
        "and their number is not known before it has run. Use a for loop or control.scan of a known length, or "
        "forward mode (jvp)"
    )


def _forward_while(op: Operation, known: dict[Value, Value]) -> Optional:
    condition, step = (region.block for region in op.regions)
    reads = [value for value in captured_values(op) if value in known]
    moving = _active_loop(step, op.operands, known, reads)
    types = [value.type for value in op.operands]
    types += [types[i] for i in moving]
    test, body = Block(types), Block(types)
    count = len(op.operands)
    (holds,) = _copy(condition, test, test.arguments[:count])
    ends = _copy(step, body, body.arguments[:count])
    targets = [ends[i] for i in moving]
    tangents = jvp_values(
        targets,
        [*(body.arguments[i] for i in moving), *reads],
        [*body.arguments[count:], *(known[v] for v in reads)],
        Builder.at_end(body),
        body,
    )
    regions = [
        _finish(test, [holds], "control.condition"),
        _finish(body, [*ends, *_or_zeros(tangents, targets, body)]),
    ]
    starts = [op.operand(i) for i in moving]
    first = [known.get(c) or zeros(c.shape, c.dtype) for c in starts]
    made = _builder().create("control.while", [*op.operands, *first], regions=regions).results
    found = dict(zip(moving, made[count:], strict=True))
    return [found.get(i) for i in range(count)]


def _active_loop(
    step: Block, operands: Sequence[Value], known: dict[Value, Value], reads: Sequence[Value]
) -> list[int]:
    last = step.last
    assert last is not None
    chosen = {i for i, value in enumerate(operands) if value in known}
    while True:
        wrt = [*reads, *(step.arguments[i] for i in chosen)]
        _, reached = active_operations(last.operands, wrt, step)
        more = chosen | {i for i, value in enumerate(last.operands) if value in reached}
        if more == chosen:
            return sorted(chosen)
        chosen = more


structured("control.if", _reverse_if, _forward_if)
structured("control.scan", _reverse_scan, _forward_scan)
structured("control.for", _reverse_for, _forward_for)
structured("control.while", _reverse_while, _forward_while)
