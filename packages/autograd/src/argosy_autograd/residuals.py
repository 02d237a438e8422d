"""Cutting a backward block loose from the forward block whose values it reads."""

from __future__ import annotations

from argosy_pir import Block, Operation, Value
from argosy_pir.values import OpResult

__all__ = ["captured_from", "rematerialise_constants", "replace_within"]


def captured_from(source: Block, user: Block) -> list[Value]:
    """The values of ``source`` (its arguments and results of its operations) that ``user`` reads, each once."""
    found: dict[Value, None] = {}
    for op in user.walk():
        for value in op.operands:
            owner = value.owner
            if owner is source or (isinstance(owner, Operation) and owner.parent is source):
                found[value] = None
    return list(found)


def replace_within(user: Block, old: Value, new: Value) -> None:
    """Make the operations of ``user`` and of its regions read ``new`` instead of ``old``."""
    for op, index in old.uses:
        if _is_inside(op, user):
            op.set_operand(index, new)


def _is_inside(op: Operation, block: Block) -> bool:
    current: Operation | None = op
    while current is not None:
        if current.parent is block:
            return True
        current = current.parent_op
    return False


def rematerialise_constants(source: Block, user: Block) -> None:
    """Copy what ``user`` reads of ``source`` and depends on constants alone into ``user``: cheaper than keeping
    it."""
    mapping: dict[Value, Value] = {}
    place = user.first
    for value in captured_from(source, user):
        if isinstance(value, OpResult) and _is_constant(value.op, source):
            _copy(value.op, user, place, mapping)
            replace_within(user, value, mapping[value])


def _is_constant(op: Operation, source: Block) -> bool:
    if op.regions or op.name in ("builtin.call", "prim.recv", "prim.start_recv", "prim.create_token"):
        return False
    return all(isinstance(v, OpResult) and v.op.parent is source and _is_constant(v.op, source) for v in op.operands)


def _copy(op: Operation, user: Block, place: Operation | None, mapping: dict[Value, Value]) -> None:
    """Put a copy of ``op``, after copies of what it reads, before ``place``."""
    if op.results[0] in mapping:
        return
    for value in op.operands:
        assert isinstance(value, OpResult)
        _copy(value.op, user, place, mapping)
    user.insert_before(place, op.clone(mapping))
