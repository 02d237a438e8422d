"""Collectives of a rank's program that are started early and waited for late: what lies between runs meanwhile.

All ranks start the collectives of a group in the order in which the program had them, starts only move up and waits
only down: whoever waits for a collective has started every one that came before it, so that nobody waits for ever.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import NamedTuple

from argosy_autoparallel.passes.tokens import (
    COMMUNICATION,
    builder_at,
    communicates_within,
    group_of,
    materialize_before,
    takes_no_time,
    thread_tokens,
)
from argosy_autoparallel.value_layouts import bytes_of
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir import Operation, Program, TensorType, Value
from argosy_pir.passes import Pass, register_pass
from argosy_pir.values import OpResult

__all__ = ["Overlap", "total_work"]

_STARTED = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast_rank", "permute", "recv")


@register_pass("overlap")
@dataclass(frozen=True)
class Overlap(Pass):
    """Starts collectives and receipts when their operand is there, at most one in a group before the one before it is
    waited for, and waits for them before their result is read. One with fewer than ``least`` numbers computed meanwhile
    stays as it is: it would only be copied. Gathers, whose results are larger than what they are given, start no
    earlier than the most that the program holds allows. Sums of gradients are early where
    ``combine-collectives{early=true}`` made them so.
    """

    least: int = 4096

    def run(self, program: Program) -> bool:
        """True where anything is started."""
        if communicates_within(program):
            return False
        block = list(program.block)
        moves = [m for m in _moves(block) if total_work(block[m.start : m.wait]) >= self.least]
        for move in moves:
            _emit(block, move)
        for move in moves:
            block[move.number].erase()
        if moves:
            thread_tokens(program)
        return bool(moves)


class _Move(NamedTuple):
    """A collective at ``number`` of a block that is to begin before ``start`` and end before ``wait``."""

    number: int
    start: int
    wait: int


def _moves(block: Sequence[Operation]) -> list[_Move]:
    number = {op: at for at, op in enumerate(block)}
    before: dict[tuple[int, ...] | None, int] = {}
    held = _held_bytes(block, number)
    peak = max(held)
    found = []
    for at, op in enumerate(block):
        if op.name not in COMMUNICATION:
            continue
        group = group_of(op)
        if op.kind in _STARTED and op.attributes.get("size", 2) > 1:
            makers = [maker for x in op.operands for maker in _makers(x, number) if isinstance(x.type, TensorType)]
            chained = any(x.name in COMMUNICATION for x in makers)  # what is to be waited for just before
            start = at if chained else max(before.get(group, -1), *map(number.__getitem__, makers), -1) + 1
            if op.kind == "all_gather":
                start = _earliest_within(peak, held, bytes_of(op.results[0]), start, at)
            users = op.results[0].users
            found.append(_Move(at, start, min((number[_ancestor_in_block(u, block[0])] for u in users), default=at)))
        before[group] = at
    return found


def _held_bytes(block: Sequence[Operation], number: Mapping[Operation, int]) -> list[float]:
    """Of each operation of the block, the bytes in memory while it runs. Elementwise ones are taken to be computed
    where they are read, so that what they give takes memory only where others read it."""
    change = [0.0] * (len(block) + 1)
    for at, op in enumerate(block):
        if takes_no_time(op) and op.name not in COMMUNICATION:
            continue
        for x in op.results:
            users = {_ancestor_in_block(u, op) for u in x.users}
            if isinstance(x.type, TensorType) and not all(map(_is_fused, (op, *users))):
                change[at] += bytes_of(x)
                change[max((number[u] for u in users), default=at) + 1] -= bytes_of(x)
    return [*accumulate(change)][:-1]


def _is_fused(op: Operation) -> bool:
    primitive = PRIMITIVES.get(op.kind) if op.dialect == "prim" else None
    return primitive is not None and primitive.category in ("elementwise", "layout")


def _earliest_within(peak: float, held: list[float], size: float, start: int, at: int) -> int:
    """The earliest place from ``start`` on from where on ``size`` further bytes may be held up to ``at``, which then
    are."""
    while at > start and held[at - 1] + size <= peak:
        at -= 1
        held[at] += size
    return at


def _makers(value: Value, block: Container[Operation]) -> Iterator[Operation]:
    """The operations of the block that make a value, or what is put into another form for it."""
    if isinstance(value, OpResult) and value.op in block:
        if takes_no_time(value.op) and not value.op.regions and value.op.name not in COMMUNICATION:
            for x in value.op.operands:
                yield from _makers(x, block)
        else:
            yield value.op


def _ancestor_in_block(op: Operation, like: Operation) -> Operation:
    """The operation of the block of ``like`` that has ``op``, at whatever depth."""
    while op.parent is not like.parent:
        parent = op.parent_op
        assert parent is not None
        op = parent
    return op


def total_work(between: Sequence[Operation]) -> int:
    """How many numbers are computed: of a product, as many as it takes operations."""
    return sum(_work(op) for op in between)


def _work(op: Operation) -> int:
    if takes_no_time(op):
        return 0
    steps = 1
    if op.kind == "dot_general":
        shape = op.operand(0).shape
        steps = prod(n for i in op.attributes["lhs_contract"] if isinstance(n := shape[i], int))
    return steps * sum(_size(x) for x in op.results)


def _size(x: Value) -> int:
    return prod(n for n in x.type.shape if isinstance(n, int)) if isinstance(x.type, TensorType) else 0


def _emit(block: Sequence[Operation], move: _Move) -> None:
    op = block[move.number]
    a = dict(op.attributes)
    if "split_axis" in a:
        a["axis"] = a.pop("split_axis")
    with emit_at(builder_at(block[move.start], op)):
        if op.kind == "recv":
            begun, handle, token = prim.start_recv(op.operand(0), **a)
        else:
            given = materialize_before(op.operand(0), block[move.start])
            begun, handle, token = prim.start(given, op.operand(1), collective=op.kind, **a)
        begun.op.annotations = op.annotations
    with emit_at(builder_at(block[move.wait], op)):
        result, _ = prim.wait(begun, handle, token)
    op.results[0].replace_all_uses_with(result)
    op.results[1].replace_all_uses_with(token)
