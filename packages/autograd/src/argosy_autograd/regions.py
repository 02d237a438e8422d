"""Making the regions of structured control flow, for the rules that differentiate it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from argosy_autograd.activity import active_operations
from argosy_autograd.algebra import Value, zeros
from argosy_autograd.insertion import erase_unused
from argosy_phi_ops.context import context, emit_at
from argosy_pir import Block, Builder, Region

__all__ = ["active_carries", "copy_block", "discard", "emitter", "finish", "loop", "or_zeros"]


def emitter() -> Builder:
    """Where the rule at work emits."""
    builder = context().builder
    assert builder is not None
    return builder


def finish(block: Block, values: Sequence[Value], terminator: str = "control.yield") -> Region:
    """End ``block`` and drop what it computes in vain."""
    Builder.at_end(block).create(terminator, values)
    erase_unused([op for op in block if op is not block.last])
    return Region([block])


def or_zeros(values: Sequence[Value | None], like: Sequence[Value], block: Block) -> list[Value]:
    """``values`` with zeros, made at the end of ``block``, of the type of ``like`` in place of None."""
    with emit_at(Builder.at_end(block)):
        return [zeros(x.shape, x.dtype) if v is None else v for v, x in zip(values, like, strict=True)]


def copy_block(block: Block, into: Block, arguments: Sequence[Value]) -> list[Value]:
    """Copy the operations of ``block`` but its terminator to the end of ``into``; returns what they would yield."""
    return block.inline_into(into, None, dict(zip(block.arguments, arguments, strict=True)))


def discard(block: Block) -> None:
    """Take apart a block that belongs to no operation, so that what it read is not used by it any more."""
    for op in reversed(list(block)):
        op.drop()


def active_carries(step: Block, operands: Sequence[Value], known: set[Value], reads: Sequence[Value]) -> list[int]:
    """Which values that the loop body ``step`` carries vary with what is ``known`` to, found by following them round
    until nothing is added; ``reads`` are those that the body reads from around it."""
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


def loop(
    starts: Sequence[Value], holds: Callable[[list[Value]], Value], step: Callable[[list[Value]], Sequence[Value]]
) -> list[Value]:
    """Emit a ``control.while`` that carries ``starts``; ``holds`` and ``step`` emit its regions from what that is."""
    types = [value.type for value in starts]
    test, body = Block(types), Block(types)
    with emit_at(Builder.at_end(test)):
        condition = holds(list(test.arguments))
    with emit_at(Builder.at_end(body)):
        ends = step(list(body.arguments))
    regions = [finish(test, [condition], "control.condition"), finish(body, ends)]
    return list(emitter().create("control.while", starts, regions=regions).results)
