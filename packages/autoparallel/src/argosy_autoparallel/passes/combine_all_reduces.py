"""Sums over ranks of a partitioned program made in few collectives: what is summed separately may be summed together.

Gradients are ready when the backward pass has ended, and each is asked for by its own update. The sum that is asked for
first takes those along that were ready by then, in the order in which they would have come, in buckets of bounded size;
its bits are those of sums alone, since sums are elementwise.

All ranks must come to the same buckets. What decides is therefore the order in which the partitioner works and global
sizes, which are the same on all ranks, and never a local program, which is not: a rank may have nothing to compute. The
partitioner leaves that with the program (attribute ``all_reduces``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from argosy_autoparallel.resharding.emitter import Sum, static_shape
from argosy_phi_ops import prim
from argosy_phi_ops.context import building
from argosy_pir import Builder, Operation, Program, Value
from argosy_pir.errors import PassError
from argosy_pir.passes import Pass, register_pass

__all__ = ["CombineAllReduces", "note_all_reduces"]

_ATTRIBUTE = "all_reduces"
_NAME = "prim.all_reduce"


@register_pass("combine-all-reduces")
@dataclass(frozen=True)
class CombineAllReduces(Pass):
    """Joins all-reduces of a rank's program in buckets of at most ``limit`` bytes, the same on all ranks; the pass
    ``spmd-partition`` notes which may be.

    Copying larger tensors into a bucket and out of it costs more than another collective takes to start.
    """

    limit: int = 1 << 20

    def run(self, program: Program) -> bool:
        """Join what is noted, and forget the notes; True where there were any."""
        sums = _noted(program)
        for bucket in _buckets(sums, self.limit):
            if len(bucket.members) > 1:
                _emit([sums[i].op for i in bucket.members])
        return program.attributes.pop(_ATTRIBUTE, None) is not None


def note_all_reduces(program: Program, sums: Sequence[Sum]) -> None:
    """Leave what decides about the ``sums`` of a program, in the order of their emission, with the program: one entry
    for each of its all-reduces (the number of its key, and what :class:`Sum` has besides), None for those that it had
    itself."""
    if not sums:
        return
    lines: dict[Any, int] = {}
    entries = {s.op: (lines.setdefault(s.key, len(lines)), s.wanted, s.ready, s.after, s.nbytes) for s in sums}
    program.attributes[_ATTRIBUTE] = tuple(entries.get(op) for op in _all_reduces(program))


def _noted(program: Program) -> list[Sum]:
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


def _buckets(sums: Sequence[Sum], limit: int) -> list[_Bucket]:
    found: list[_Bucket] = []
    last: dict[Any, _Bucket] = {}  # by key
    place: list[int] = []  # of each sum: the number of the one whose place it takes
    for number, each in enumerate(sums):
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


def _emit(ops: Sequence[Operation]) -> None:
    """One all-reduce in place of several, where the first is."""
    first = ops[0]
    with building(Builder.before(first)):
        terms = [op.operand(0) for op in ops]
        shapes = [static_shape(x) for x in terms]
        flat = prim.concat(*[prim.reshape(x, shape=(prod(s),)) for x, s in zip(terms, shapes, strict=True)], axis=0)
        whole, token = prim.all_reduce(flat, first.operand(1), **dict(first.attributes))
        made, start = [], 0
        for shape in shapes:
            part = prim.slice(whole, start=(start,), limit=(start + prod(shape),), stride=(1,))
            made.append(prim.reshape(part, shape=shape))
            start += prod(shape)
    _replace(ops, made, token)


def _replace(ops: Sequence[Operation], made: Sequence[Value], token: Value) -> None:
    for op, value in zip(ops, made, strict=True):
        after = token if op is ops[0] else op.operand(1)
        op.results[1].replace_all_uses_with(after)
        op.results[0].replace_all_uses_with(value)
    for op in ops:
        op.erase()
