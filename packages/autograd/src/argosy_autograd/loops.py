"""Gradients asked for inside a loop: what flows in from earlier iterations must not be lost in silence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from argosy_autograd.activity import active_operations, has_gradient, read_values
from argosy_autograd.errors import MissingRule
from argosy_pir import Block, Operation, Value
from argosy_pir.values import BlockArgument, OpResult

__all__ = ["FIRST_CARRIED", "check_loops"]

FIRST_CARRIED = {"control.for": 3, "control.while": 0}
"""The position of the first carried operand."""


def check_loops(request: Operation, outputs: Sequence[Value], inputs: Sequence[Value]) -> None:
    """Raise where the gradient would have to go back through iterations of a loop that ``request`` sits in.

    It would where the outputs read a carried value that depends, through its start or the iteration before, on
    an input defined outside of the loop. Eager execution would go that way.
    """
    loop = request.parent_op
    while loop is not None:
        if loop.name in ("control.for", "control.while", "control.scan"):
            outer = [x for x in inputs if not _is_within(x, loop)]
            for start, argument, after in _carry(loop):
                if outer and argument not in inputs and _reads(outputs, argument):
                    _check(request, outer, start, after)
        loop = loop.parent_op


def _carry(loop: Operation) -> Iterator[tuple[Value, BlockArgument, Value]]:
    """For each carried value its start, the argument that holds it, and its next value."""
    body: Block = loop.regions[-1].block
    first = loop.attributes["inputs"] if loop.name == "control.scan" else FIRST_CARRIED[loop.name]
    starts = loop.operands[first:]
    count = len(starts)
    last = body.last
    assert last is not None
    after = last.operands[len(last.operands) - count :]
    yield from zip(starts, body.arguments[len(body.arguments) - count :], after, strict=True)


def _is_within(value: Value, loop: Operation) -> bool:
    owner = value.owner
    holder = owner.parent_op if isinstance(owner, Block) else owner
    return holder is not None and loop.is_ancestor_of(holder)


def _reads(outputs: Sequence[Value], argument: Value) -> bool:
    """Whether ``outputs`` depend on ``argument`` through values that have gradients."""
    seen: set[Value] = set()
    stack = [v for v in outputs if has_gradient(v)]
    while stack:
        value = stack.pop()
        if value is argument:
            return True
        if value not in seen:
            seen.add(value)
            if isinstance(value, OpResult) and value.op.name != "prim.stop_gradient":
                stack.extend(v for v in read_values(value.op) if has_gradient(v))
    return False


def _check(request: Operation, inputs: Sequence[Value], start: Value, after: Value) -> None:
    _, active = active_operations([start, after], inputs)
    if start in active or after in active:
        raise MissingRule(
            f"the gradient at {request.location} would have to go back through earlier iterations of the loop that "
            "it is in, which is not implemented: take the gradient after the loop, or detach() what the loop carries"
        )
