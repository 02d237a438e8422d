"""The order of a rank's communication as tokens: one chain for each group's collectives, one for messages."""

from __future__ import annotations

from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir import Builder, Operation, Program, Value
from argosy_pir.types import TokenType

__all__ = ["COMMUNICATION", "builder_at", "communicates_within", "group_of", "thread_tokens"]

COMMUNICATION = frozenset(
    f"prim.{name}" for name, p in PRIMITIVES.items() if p.category == "communication" and name != "create_token"
)


def builder_at(place: Operation, op: Operation) -> Builder:
    """The builder that puts operations of the line of ``op`` before ``place``."""
    block = place.parent
    assert block is not None
    return Builder(block, place, op.location)


def group_of(op: Operation) -> tuple[int, ...] | None:
    """The ranks of a collective, none for all of them; None for messages."""
    return None if op.kind in ("send", "recv", "permute") else tuple(op.attributes.get("group", ()))


def communicates_within(program: Program) -> bool:
    """Whether branches or loops communicate, whose order is their own."""
    return any(inner.name in COMMUNICATION for op in program.block if op.regions for inner in op.walk())


def thread_tokens(program: Program) -> None:
    """Let each communication of the block come after the one before it. Those that were started come after the start
    before them in their group, their waits after their own starts."""
    block = program.block
    with emit_at(Builder.at_start(block)):
        first = prim.create_token()
    last: dict[tuple[int, ...] | None, Value] = {}
    for op in [op for op in block if op.name in COMMUNICATION]:
        group = group_of(op)
        if op.name == "prim.wait":
            op.set_operand(2, op.operand(1).op.results[2])  # type: ignore[attr-defined]
            continue
        place = next(i for i, x in enumerate(op.operands) if isinstance(x.type, TokenType))
        op.set_operand(place, last.get(group, first))
        last[group] = op.results[-1]
    for op in [op for op in block if op.name == "prim.create_token" and op.result is not first]:
        if not op.result.has_uses:
            op.erase()
