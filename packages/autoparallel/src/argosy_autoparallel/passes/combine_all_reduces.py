"""Sums over ranks of a partitioned program made in few collectives: what is summed separately may be summed together.

Gradients are ready when the backward pass has ended, and each is asked for by its own update. The sum that is asked for
first takes those along that were ready by then, in the order in which they would have come, in buckets of bounded size;
its bits are those of sums alone, since sums are elementwise.

All ranks must come to the same buckets. What decides is therefore the order in which the partitioner works and global
sizes, which are the same on all ranks, and never a local program, which is not: a rank may have nothing to compute. The
partitioner leaves that with the program (attribute ``all_reduces``).

With ``early`` sums are made where their terms are ready, in that order, so that what follows can overlap with them
(pass ``overlap``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any

from argosy_autoparallel.passes.tokens import builder_at, communicates_within, thread_tokens
from argosy_autoparallel.resharding.emitter import Sum, static_shape
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir import Operation, Program, Value
from argosy_pir.errors import PassError
from argosy_pir.passes import Pass, register_pass

__all__ = ["CombineAllReduces", "note_all_reduces"]

_ATTRIBUTE = "all_reduces"
_NAME = "prim.all_reduce"
_BUCKETS, _SMALLEST = 8, 1 << 16
"""Of early sums: how many buckets there should be, so that something is left to hide each behind, and their least size
in bytes."""


@register_pass("combine-all-reduces")
@dataclass(frozen=True)
class CombineAllReduces(Pass):
    """Joins all-reduces of a rank's program in buckets of at most ``limit`` bytes, the same on all ranks; the pass
    ``spmd-partition`` notes which may be.

    Copying larger tensors into a bucket and out of it costs more than another collective takes to start.
    """

    limit: int = 1 << 20
    early: bool = False

    def run(self, program: Program) -> bool:
        """Join what is noted, and forget the notes; True where there were any."""
        sums = _read_notes(program)
        done = (
            _make_early(program, sums, self.limit) if self.early and not communicates_within(program) else frozenset()
        )
        for bucket in _buckets(sums, self.limit, done):
            if len(bucket.members) > 1:
                ops = [sums[i].op for i in bucket.members]
                _replace(ops, *_emit(ops, ops[0]))
        return program.attributes.pop(_ATTRIBUTE, None) is not None


def note_all_reduces(program: Program, sums: Sequence[Sum]) -> None:
    """Leave what decides about the ``sums`` of a program, in the order of their emission, with the program: one entry
    for each of its all-reduces (the number of its key, and what :class:`Sum` has besides), None for those that it had
    itself."""
    if not sums:
        return
    lines: dict[Any, int] = {}
    entries = {s.op: (lines.setdefault(s.key, len(lines)), *s[2:]) for s in sums}
    program.attributes[_ATTRIBUTE] = tuple(entries.get(op) for op in _all_reduces(program))


def _read_notes(program: Program) -> list[Sum]:
    entries, ops = program.attributes.get(_ATTRIBUTE), _all_reduces(program)
    if entries is None:
        return []
    if len(entries) != len(ops):
        raise PassError(f"program '{program.name}' has {len(ops)} all-reduces, but notes of {len(entries)}")
    return [Sum(op, *entry) for op, entry in zip(ops, entries, strict=True) if entry is not None]


def _all_reduces(program: Program) -> list[Operation]:
    return [op for op in program.block if op.name == _NAME]


class _Bucket:
    """Sums that will be one, where the ``first`` of them is: a number in the order of emission."""

    def __init__(self, first: int, wanted: int, nbytes: float) -> None:
        self.first, self.wanted, self.nbytes = first, wanted, nbytes
        self.members = [first]


def _make_early(program: Program, sums: Sequence[Sum], limit: int) -> frozenset[int]:
    """Make the sums whose terms are there long before they are asked for; returns their numbers."""
    numbers = [i for i, s in enumerate(sums) if s.after is None and s.ready is not None and s.ready < s.wanted]
    operations = list(program.block)
    total = sum(sums[i].nbytes for i in numbers)
    made = []
    for members in _by_readiness(sums, numbers, min(limit, max(_SMALLEST, total / _BUCKETS))):
        ops = [sums[i].op for i in members]
        made.append((ops, *_emit(ops, operations[sums[members[-1]].place])))
    for ops, values, token in made:
        _replace(ops, values, token)
    thread_tokens(program)
    return frozenset(numbers)


def _by_readiness(sums: Sequence[Sum], numbers: Sequence[int], limit: float) -> list[list[int]]:
    """Buckets of sums in the order in which their terms are ready, ordered by their last ones."""
    found: list[list[int]] = []
    last: dict[Any, list[int]] = {}
    for i in sorted(numbers, key=lambda i: (sums[i].ready, i)):
        bucket = last.get(sums[i].key, [])
        ready = sums[i].ready
        assert ready is not None
        in_time = all(ready < sums[other].wanted for other in bucket)
        if not bucket or not in_time or sum(sums[other].nbytes for other in [*bucket, i]) > limit:
            bucket = last[sums[i].key] = []
            found.append(bucket)
        bucket.append(i)
    return sorted(found, key=lambda bucket: (sums[bucket[-1]].ready, bucket[-1]))


def _buckets(sums: Sequence[Sum], limit: int, done: frozenset[int]) -> list[_Bucket]:
    found: list[_Bucket] = []
    last: dict[Any, _Bucket] = {}  # by key
    place: list[int] = []  # of each sum: the number of the one whose place it takes
    for number, each in enumerate(sums):
        if number in done:
            place.append(-1)
            continue
        bucket = last.get(each.key)
        if bucket is None or not _is_ready(each, bucket, place) or bucket.nbytes + each.nbytes > limit:
            bucket = last[each.key] = _Bucket(number, each.wanted, each.nbytes)
            found.append(bucket)
        else:
            bucket.members.append(number)
            bucket.nbytes += each.nbytes
        place.append(bucket.first)
    return found


def _is_ready(each: Sum, bucket: _Bucket, place: Sequence[int]) -> bool:
    """Whether the terms of a sum are there where the bucket is."""
    if each.after is not None:
        return place[each.after] < bucket.first
    return each.ready is not None and each.ready < bucket.wanted


def _emit(ops: Sequence[Operation], before: Operation) -> tuple[list[Value], Value]:
    """One all-reduce instead of several; its parts, where the first of them is asked for, and the token after it."""
    first = ops[0]
    with emit_at(builder_at(before, first)):
        terms = [op.operand(0) for op in ops]
        if len(ops) == 1:
            whole, token = prim.all_reduce(terms[0], first.operand(1), **dict(first.attributes))
            return [whole], token
        shapes = [static_shape(x) for x in terms]
        flat = prim.concat(*[prim.reshape(x, shape=(prod(s),)) for x, s in zip(terms, shapes, strict=True)], axis=0)
        whole, token = prim.all_reduce(flat, first.operand(1), **dict(first.attributes))
    asked = reduce(lambda one, other: other if other.is_before(one) else one, ops)
    with emit_at(builder_at(asked, first)):
        made, start = [], 0
        for shape in shapes:
            part = prim.slice(whole, start=(start,), limit=(start + prod(shape),), stride=(1,))
            made.append(prim.reshape(part, shape=shape))
            start += prod(shape)
    return made, token


def _replace(ops: Sequence[Operation], made: Sequence[Value], token: Value) -> None:
    for op, value in zip(ops, made, strict=True):
        after = token if op is ops[0] else op.operand(1)
        op.results[1].replace_all_uses_with(after)
        op.results[0].replace_all_uses_with(value)
    for op in ops:
        op.erase()
