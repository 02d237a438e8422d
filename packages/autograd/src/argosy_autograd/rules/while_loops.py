"""Derivatives of ``while``, whose number of steps is not known before it has run.

Forward mode runs along. Reverse mode lets the loop count its steps, and then goes back over them from checkpoints: a
fixed number of states lie evenly over all steps, as many again over the segment between two of them that is gone
through just now, and what is between those is computed again. So memory does not depend on the number of steps, and up
to ``_ROWS`` squared steps nothing is computed more than three times.
"""

from __future__ import annotations

from collections.abc import Sequence

from argosy_autograd.activity import captured_values
from argosy_autograd.algebra import Value, where, zeros
from argosy_autograd.errors import MissingRule
from argosy_autograd.forward import jvp_values
from argosy_autograd.regions import active_carries, copy_block, discard, emitter, finish, loop, or_zeros
from argosy_autograd.registry import structured_rule
from argosy_autograd.reverse import vjp_values
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir import Block, Builder, Operation, TensorType
from argosy_pir.values import OpResult

Pairs = list[tuple[Value, Value | None]]
Optional = Sequence[Value | None]

__all__ = ["as_while", "forward_while", "reverse_while"]

_ROWS = 32  # states kept over the whole loop, and over one segment


def reverse_while(op: Operation, incoming: Optional, active: set[Value]) -> Pairs:
    """The sweep back over the steps that the loop took; see the module's docstring."""
    reads = [value for value in captured_values(op) if value in active]
    starts = list(op.operands)
    moving = active_carries(op.regions[1].block, starts, active, reads)
    first = [_zeros_for(incoming[i], starts[i]) for i in moving] + [zeros(v.shape, v.dtype) for v in reads]
    pull = _pull_back(op, moving, reads)
    steps = _Steps(op)
    total = _count(op)
    far = prim.maximum(_quotient(total, _ROWS), _ROWS)  # steps between checkpoints of the whole loop
    near = _quotient(far, _ROWS)  # and of one segment
    segments = steps.checkpoints(steps.start(), total, far)

    def back_over_segment(values: list[Value]) -> list[Value]:
        segment, *gradients = values
        length = prim.minimum(far, total - segment * far)
        rows = steps.checkpoints(steps.row(segments, segment), length, near)

        def back_over_step(values: list[Value]) -> list[Value]:
            index, *gradients = values
            row = prim.floor_div(index, near)
            state = steps.advance(steps.row(rows, row), index - row * near)
            made = copy_block(pull, emitter().block, [*steps.arguments(state), *gradients])
            return [index - 1, *made]

        return [segment - 1, *loop([length - 1, *gradients], _is_not_negative, back_over_step)[1:]]

    made = loop([_quotient(total, far) - 1, *first], _is_not_negative, back_over_segment)[1:]
    discard(pull)
    discard(steps.step)
    return list(zip([*(starts[i] for i in moving), *reads], made, strict=True))


def _zeros_for(g: Value | None, like: Value) -> Value:
    return zeros(like.shape, like.dtype) if g is None else g


def _is_not_negative(values: list[Value]) -> Value:
    return prim.ge(values[0], 0)


def _quotient(n: Value, by: Value | int) -> Value:
    """``n / by`` rounded up, of numbers that are not negative."""
    return prim.floor_div(n + (by - 1), by)


def _pull_back(op: Operation, moving: Sequence[int], reads: Sequence[Value]) -> Block:
    """The reverse of one step: from what it carries and cotangents (of ``moving`` carries after it, then those of
    ``reads`` so far) to the cotangents before it."""
    step = op.regions[1].block
    block = Block([value.type for value in (*step.arguments, *(step.arguments[i] for i in moving), *reads)])
    carried = block.arguments[: len(step.arguments)]
    g_carried = block.arguments[len(carried) : len(carried) + len(moving)]
    sums = block.arguments[len(carried) + len(moving) :]
    ends = copy_block(step, block, carried)
    wrt = [*(carried[i] for i in moving), *reads]
    found = vjp_values([ends[i] for i in moving], g_carried, wrt, Builder.at_end(block), block)
    with emit_at(Builder.at_end(block)):
        summed = [s if g is None else prim.add(s, g) for s, g in zip(sums, found[len(moving) :], strict=True)]
    finish(block, [*or_zeros(found[: len(moving)], wrt[: len(moving)], block), *summed])
    return block


def _count(op: Operation) -> Value:
    """Let the loop ``op`` count its steps; returns their number, an int64."""
    condition, step = (region.block for region in op.regions)
    last = step.last
    assert last is not None
    with emit_at(Builder.before(op), op.location):
        zero = prim.constant(0, "int64")
    condition.add_argument(zero.type)
    counter = step.add_argument(zero.type)
    with emit_at(Builder(step, last), op.location):
        last.set_operands([*last.operands, prim.add(counter, 1)])
    op.set_operands([*op.operands, zero])
    total = OpResult(op, len(op.results), zero.type)
    op.results = (*op.results, total)
    return total


class _Steps:
    """The steps of a loop, to be run again from any state: the list of those carried values that a step changes."""

    def __init__(self, op: Operation) -> None:
        step = op.regions[1].block
        assert step.last is not None
        self.starts = list(op.operands)
        changed = [after is not argument for argument, after in zip(step.arguments, step.last.operands, strict=True)]
        self.kept = [i for i, each in enumerate(changed) if each]
        self.step = Block([argument.type for argument in step.arguments])
        finish(self.step, copy_block(step, self.step, self.step.arguments))
        if not all(isinstance(value.type, TensorType) for value in self.start()):
            raise MissingRule(
                f"'control.while' ({op.location}) has no reverse derivative: its steps communicate between ranks, and "
                "going back would run them again; use a for loop or control.scan of a known length"
            )

    def start(self) -> list[Value]:
        """The state before the first step."""
        return [self.starts[i] for i in self.kept]

    def arguments(self, state: Sequence[Value]) -> list[Value]:
        """All that the loop carries, in ``state``."""
        carried = list(self.starts)
        for i, value in zip(self.kept, state, strict=True):
            carried[i] = value
        return carried

    def advance(self, state: Sequence[Value], count: Value) -> list[Value]:
        """The state ``count`` steps after ``state``."""

        def step(values: list[Value]) -> list[Value]:
            left, *state = values
            ends = copy_block(self.step, emitter().block, self.arguments(state))
            return [left - 1, *(ends[i] for i in self.kept)]

        return loop([count, *state], lambda values: prim.gt(values[0], 0), step)[1:]

    def checkpoints(self, state: Sequence[Value], total: Value, stride: Value) -> list[Value]:
        """Every ``stride``-th of ``total`` states from ``state`` on, stacked: ``_ROWS`` rows, which hold the last
        state once there are no more."""
        index = prim.iota(shape=(_ROWS,), axis=0, dtype="int64")
        body = Block([TensorType((), "int64"), *(value.type for value in state)])
        with emit_at(Builder.at_end(body)):
            arguments: list[Value] = list(body.arguments)
            row, *now = arguments
            more = prim.lt((row + 1) * stride, total)
            after = self.advance(now, where(more, stride, 0))
        region = finish(body, [*now, *after])
        made = emitter().create("control.scan", [index, *state], {"inputs": 1}, regions=[region])
        return list(made.results[: len(state)])

    def row(self, rows: Sequence[Value], index: Value) -> list[Value]:
        """The state in row ``index``."""
        zero = prim.constant(0, "int64")
        found = []
        for x in rows:
            part = prim.dynamic_slice(x, index, *[zero] * (x.ndim - 1), sizes=(1, *x.shape[1:]))
            found.append(prim.reshape(part, shape=x.shape[1:]))
        return found


def forward_while(op: Operation, known: dict[Value, Value]) -> Optional:
    """A loop that carries the tangents as well."""
    condition, step = (region.block for region in op.regions)
    reads = [value for value in captured_values(op) if value in known]
    moving = active_carries(step, op.operands, set(known), reads)
    types = [value.type for value in op.operands]
    types += [types[i] for i in moving]
    test, body = Block(types), Block(types)
    count = len(op.operands)
    (holds,) = copy_block(condition, test, test.arguments[:count])
    ends = copy_block(step, body, body.arguments[:count])
    targets = [ends[i] for i in moving]
    tangents = jvp_values(
        targets,
        [*(body.arguments[i] for i in moving), *reads],
        [*body.arguments[count:], *(known[v] for v in reads)],
        Builder.at_end(body),
        body,
    )
    regions = [
        finish(test, [holds], "control.condition"),
        finish(body, [*ends, *or_zeros(tangents, targets, body)]),
    ]
    starts = [op.operand(i) for i in moving]
    first = [known.get(c) or zeros(c.shape, c.dtype) for c in starts]
    made = emitter().create("control.while", [*op.operands, *first], regions=regions).results
    found = dict(zip(moving, made[count:], strict=True))
    return [found.get(i) for i in range(count)]


def as_while(op: Operation) -> None:
    """Turn a ``control.for`` into the ``while`` that counts its index, which it carries last, in place."""
    start, stop, step = op.operands[:3]
    carried, old = op.operands[3:], op.regions[0].block
    types = [value.type for value in (*carried, start)]
    test, body = Block(types), Block(types)
    with emit_at(Builder.at_end(test), op.location):
        index = test.arguments[-1]
        holds = prim.select(prim.gt(step, 0), prim.lt(index, stop), prim.gt(index, stop))
    with emit_at(Builder.at_end(body), op.location):
        *values, index = body.arguments
        ends = [*copy_block(old, body, [index, *values]), prim.add(index, step)]
    regions = finish(test, [holds], "control.condition"), finish(body, ends)
    discard(old)
    op.name, op.regions = "control.while", regions
    for region in regions:
        region.parent = op
    op.set_operands([*carried, start])
    op.results = (*op.results, OpResult(op, len(op.results), start.type))


structured_rule("control.while", reverse_while, forward_while)
