"""Checks of indices become notes: the first index that is out of range is found by a reduction, which is fused with
what makes the indices, and ``cinn.note_index`` notes it where the call will look.

That is done after loops over blocks of rows have been made: a reduction over a batch would keep it whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from argosy_cinn.dialect import NOTE
from argosy_cinn.rewrites.simplify import simplify_operations
from argosy_cinn.shapes import count
from argosy_phi_ops import prim
from argosy_phi_ops.checks.index_errors import CHECK
from argosy_phi_ops.context import emit_at
from argosy_pir.builder import Builder
from argosy_pir.core import Operation
from argosy_pir.dims import Dim
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import Value

#: The number of a check, by which an error finds it in the program of primitives.
SITE = "site"


@register_pass("number-index-checks")
@dataclass(frozen=True)
class NumberIndexChecks(Pass):
    """Numbers the checks of indices in order; what is made of one keeps its number."""

    def run(self, program: Program) -> bool:
        """Number those in regions and functions, too; True where one had no number."""
        changed = False
        for number, op in enumerate(op for op in program.walk() if op.name == CHECK):
            changed |= SITE not in op.attributes
            op.attributes.setdefault(SITE, number)
        return changed


@register_pass("lower-index-checks")
@dataclass(frozen=True)
class LowerIndexChecks(Pass):
    """Rewrites the checks of a simplified program's own block as notes; those in regions wait until these are
    programs."""

    def run(self, program: Program) -> bool:
        """Rewrite all; True where there were any."""
        checks = [op for op in program.block if op.name == CHECK]
        for op in checks:
            builder, before = Builder.before(op), op.previous
            with emit_at(builder, op.location):
                _note(builder, op)
            simplify_operations(_operations_between(program.block.first if before is None else before.next, op))
            op.erase()
        return bool(checks)


def _operations_between(first: Operation | None, end: Operation) -> list[Operation]:
    """The operations from ``first`` to ``end``, exclusively."""
    found: list[Operation] = []
    while first is not None and first is not end:
        found.append(first)
        first = first.next
    return found


def _note(builder: Builder, op: Operation) -> None:
    indices, attributes = op.operand(0), op.attributes
    size = count(indices)
    if size == 0:
        return
    flat = prim.cast(prim.reshape(indices, shape=(size,)), dtype="int64")
    outside = prim.logical_or(
        prim.lt(flat, _broadcast_dim(attributes["low"], size)), prim.ge(flat, _broadcast_dim(attributes["size"], size))
    )
    if attributes["besides"] is not None:
        outside = prim.logical_and(outside, prim.ne(flat, _broadcast_dim(attributes["besides"], size)))
    places = prim.select(outside, prim.iota(shape=(size,), axis=0, dtype="int64"), _broadcast_dim(size, size))
    first = prim.reduce_min(places, axes=(0,))
    last = prim.sub(_number(size), 1)
    there = prim.reshape(prim.minimum(first, last), shape=(1,))  # the last one where none is outside
    value = prim.gather(flat, there, axes=(0,))
    note = {SITE: attributes[SITE], "count": size}
    builder.create(NOTE, (first, value), note, (TensorType((), "int64"),), location=op.location)


def _number(dim: Dim) -> Value:
    made: Any = prim.constant(dim, "int64") if isinstance(dim, int) else prim.dim_size(dim=dim, dtype="int64")
    return made  # type: ignore[no-any-return]


def _broadcast_dim(dim: Dim, size: Dim) -> Value:
    return prim.broadcast_to(_number(dim), (size,))


__all__ = ["SITE", "LowerIndexChecks", "NumberIndexChecks"]
