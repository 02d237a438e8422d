"""The order of a rank's communication as tokens: one chain for each group's collectives, one for messages."""

from __future__ import annotations

from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir import Builder, Operation, Program, Value
from argosy_pir.errors import PassError
from argosy_pir.types import TokenType
from argosy_pir.values import OpResult

__all__ = [
    "COMMUNICATION",
    "builder_at",
    "communicates_within",
    "group_of",
    "materialize_before",
    "takes_no_time",
    "thread_tokens",
]

COMMUNICATION = frozenset(
    f"prim.{name}" for name, p in PRIMITIVES.items() if p.category == "communication" and name != "create_token"
)


def builder_at(place: Operation, op: Operation) -> Builder:
    """The builder that puts operations of the line of ``op`` before ``place``."""
    block = place.parent
    assert block is not None
    return Builder(block, place, op.location)


def takes_no_time(op: Operation) -> bool:
    """Whether an operation is of those that take no time worth hiding anything behind."""
    primitive = PRIMITIVES.get(op.kind) if op.dialect == "prim" else None
    return primitive is None or primitive.category in ("layout", "communication")


def materialize_before(x: Value, place: Operation) -> Value:
    """``x`` where it is needed, before ``place``: what is made of it just before it is communicated (a part padded,
    parts put together) is made there."""
    if not isinstance(x, OpResult) or x.op.parent is not place.parent or x.op.is_before(place):
        return x
    if not takes_no_time(x.op) or x.op.regions or x.op.name in COMMUNICATION:
        raise PassError(f"'{x.op.name}' is needed before '{place.name}', which comes before it")
    made = x.op.clone({y: materialize_before(y, place) for y in x.op.operands})
    place.parent.insert_before(place, made)  # type: ignore[union-attr]
    return made.results[x.index]


def group_of(op: Operation) -> tuple[int, ...] | None:
    """The ranks of a collective, none for all of them; None for messages."""
    kind = op.attributes.get("collective", op.kind)
    return None if kind in ("send", "recv", "start_recv", "permute") else tuple(op.attributes.get("group", ()))


def communicates_within(program: Program) -> bool:
    """Whether branches or loops communicate, whose order is their own."""
    return any(inner.name in COMMUNICATION for op in program.block if op.regions for inner in op.walk())


def thread_tokens(program: Program, by_group: bool = True) -> None:
    """Let each communication of the block come after the one before it in its group (or in the program). Those that
    were started come after the start before them, their waits after their own starts."""
    block = program.block
    with emit_at(Builder.at_start(block)):
        first = prim.create_token()
    last: dict[tuple[int, ...] | None, Value] = {}
    for op in [op for op in block if op.name in COMMUNICATION]:
        group = group_of(op) if by_group else None
        if op.name == "prim.wait":
            op.set_operand(2, op.operand(1).op.results[2])  # type: ignore[attr-defined]
            continue
        place = next(i for i, x in enumerate(op.operands) if isinstance(x.type, TokenType))
        op.set_operand(place, last.get(group, first))
        last[group] = op.results[-1]
    for op in [op for op in block if op.name == "prim.create_token" and op.result is not first]:
        if not op.result.has_uses:
            op.erase()
