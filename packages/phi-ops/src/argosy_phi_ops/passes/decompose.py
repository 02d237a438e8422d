"""The pass ``decompose``: every operator is replaced by its expansion into primitives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy_phi_ops.checks.index_checks import insert_checks
from argosy_phi_ops.declare.operator import get_operator
from argosy_pir.core import Block, Operation
from argosy_pir.passes import Pass, register_pass
from argosy_pir.program import Program
from argosy_pir.values import Value

__all__ = ["Decompose"]


@register_pass("decompose")
@dataclass(frozen=True)
class Decompose(Pass):
    """Replace operators (``phi.*``) by primitives, except those named in ``keep``, which later passes know as
    wholes.
    """

    keep: tuple[str, ...] = ()

    def run(self, program: Program) -> bool:
        """Inline the expansions; returns whether anything changed."""
        found = [op for op in program.walk() if op.dialect == "phi" and op.kind not in self.keep]
        for op in found:
            decompose_operation(op)
        return bool(found)


def decompose_operation(op: Operation) -> Sequence[Value]:
    """Replace one operator by its expansion, which takes over its location and annotations, after checks of its
    indices; returns what its results are now."""
    block: Block | None = op.parent
    assert block is not None
    operator = get_operator(op.kind)
    expansion = operator.expand([v.type for v in op.operands], dict(op.attributes))
    insert_checks(op, operator)
    previous = op.previous
    values = expansion.inline(op.operands, block, op)
    inner = previous.next if previous is not None else block.first
    while inner is not None and inner is not op:
        inner.location = op.location
        inner.annotations = op.annotations
        inner = inner.next
    op.replace_with(values)
    return values
