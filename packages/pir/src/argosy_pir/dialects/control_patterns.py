"""Canonicalisation of control flow whose course is known."""

from __future__ import annotations

from argosy_pir.core import Block, Operation
from argosy_pir.folding import constant_of
from argosy_pir.rewrite.pattern import Pattern, Rewriter
from argosy_pir.scalars import decode_scalar
from argosy_pir.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class ConstantIf(Pattern):
    """``control.if`` of a known condition becomes what its region does."""

    name = "constant-if"
    root = "control.if"

    def rewrite(self, op: Operation, rewriter: Rewriter) -> bool:
        """Replace the operation by the region that runs."""
        condition = _number(op.operand(0))
        if condition is None:
            return False
        _inline(op, op.regions[0 if condition else 1].block, (), rewriter)
        return True


class TrivialFor(Pattern):
    """``control.for`` that runs never, or exactly once, needs no loop."""

    name = "constant-for"
    root = "control.for"

    def rewrite(self, op: Operation, rewriter: Rewriter) -> bool:
        """Replace a loop of at most one step by its initial values or its body."""
        start, stop, step = (_number(value) for value in op.operands[:3])
        if start is None or stop is None or not step:
            return False
        steps = len(range(int(start), int(stop), int(step)))
        if steps > 1:
            return False
        if steps == 0:
            rewriter.replace(op, op.operands[3:])
        else:
            _inline(op, op.regions[0].block, (op.operand(0), *op.operands[3:]), rewriter)
        return True


def _number(value: Value) -> float | None:
    data = constant_of(value)
    if data is None or not data.is_splat:
        return None
    number = decode_scalar(data.data, data.type.dtype)
    return None if isinstance(number, complex) else number


def _inline(op: Operation, block: Block, arguments: Sequence[Value], rewriter: Rewriter) -> None:
    """Move the operations of ``block`` before ``op`` and give what it yields to the users of ``op``."""
    for old, new in zip(block.arguments, arguments, strict=True):
        old.replace_all_uses_with(new)
    last = block.last
    assert last is not None
    results = last.operands
    for inner in block:
        if inner is not last:
            rewriter.move_here(inner)
    rewriter.replace(op, results)


PATTERNS: list[Pattern] = [ConstantIf(), TrivialFor()]
