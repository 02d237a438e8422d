"""Collectives of a partitioned program made in few: what is communicated separately may be communicated together.

What is asked for first takes those along whose operands were ready by then, in the order in which they would have
come, in buckets of bounded size; the bits are those of collectives alone, since sums are elementwise. Gradients are
ready when the backward pass has ended, and each is asked for by its own update.

All ranks must come to the same buckets. What decides is therefore the order in which the partitioner works and global
sizes, which are the same on all ranks, and never a local program, which is not: a rank may have nothing to compute. The
partitioner leaves that with the program (attribute ``collectives``).

Sums whose result is split are made where their terms are ready, in that order: only a part of them has to be kept.
With ``early`` other sums are, too, so that what follows can overlap with them (pass ``overlap``). Gathers are made
where they are asked for, since what they give is larger than what they are given: buckets are small, but for those that
one place asks for, new states for instance, which are all there then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from argosy_autoparallel.passes.bucket_emission import emit_bucket
from argosy_autoparallel.passes.tokens import communicates_within, thread_tokens
from argosy_autoparallel.resharding.emitter import CollectiveNote
from argosy_pir import Operation, Program, Value
from argosy_pir.errors import PassError
from argosy_pir.passes import Pass, register_pass
from argosy_tensorcore.dtype import as_dtype

__all__ = ["CombineCollectives", "note_collectives"]

_ATTRIBUTE = "collectives"
_NAMES = ("prim.all_reduce", "prim.reduce_scatter", "prim.all_gather")
_SUMS, _GATHERS, _SMALLEST = 8, 16, 1 << 16
"""How many buckets of early sums and of gathers there should be, so that something is left to hide each behind and few
are held at a time (of gathers the parts are held as well), and their least size in bytes."""
_VECTORS = 1 / 32
"""The share of a bucket up to which what is gathered is put together with its like only: biases are read again later,
and would keep the weights beside them in memory."""


@register_pass("combine-collectives")
@dataclass(frozen=True)
class CombineCollectives(Pass):
    """Joins reduce-scatters and all-gathers of a rank's program, and all-reduces, the same on all ranks; the pass
    ``spmd-partition`` notes which may be.

    Where nothing overlaps a bucket has at most ``sums`` bytes: sums, whose parts lie one after the other, so that a
    compiler has them made there, and coalesced collectives of several tensors. Otherwise, and of gathers for several
    places, it has at most ``limit``: copying larger tensors into a bucket and out of it costs more than another
    collective takes to start. With ``early`` gathers of at least ``divided`` bytes that products need travel alone:
    `chunk-products` divides them.
    """

    limit: int = 1 << 20
    sums: int = 25 << 20
    early: bool = False
    divided: int = 1 << 19

    def run(self, program: Program) -> bool:
        """Join what is noted, and forget the notes; True where there were any."""
        notes = _read_notes(program)
        done = frozenset() if communicates_within(program) else self._make_early(program, notes)
        alone = frozenset(i for i, n in enumerate(notes) if self.early and self._is_divided(n))
        for members in _buckets(notes, self.limit, done, alone, None if self.early else self.sums):
            if len(members) > 1:
                ops = [notes[i].op for i in members]
                _replace(ops, *emit_bucket(ops, ops[0], coalesces=not self.early))
        if done:
            thread_tokens(program, by_group=self.early)
        return program.attributes.pop(_ATTRIBUTE, None) is not None

    def _make_early(self, program: Program, notes: Sequence[CollectiveNote]) -> frozenset[int]:
        """Make the sums whose terms are there long before they are asked for; returns their numbers. Where nothing
        overlaps these are those whose result is split, and scalars, losses for example, which they take along."""
        if not self.early:
            notes = _scalars_with_parts(notes)
        kinds = ("all_reduce", "reduce_scatter") if self.early else ("reduce_scatter",)
        numbers = [
            i
            for i, n in enumerate(notes)
            if n.key[0] in kinds and n.after is None and n.ready is not None and n.ready < n.wanted
        ]
        limit = _bucket_size(self.limit, [notes[i] for i in numbers], _SUMS) if self.early else self.sums
        operations = list(program.block)
        made = []
        for members in _by_readiness(notes, numbers, limit):
            ops = [notes[i].op for i in members]
            made.append((ops, *emit_bucket(ops, operations[notes[members[-1]].place], coalesces=not self.early)))
        for ops, values, token in made:
            _replace(ops, values, token)
        return frozenset(numbers)

    def _is_divided(self, note: CollectiveNote) -> bool:
        needed_by = note.op.annotations.get("needed_by")
        whole = note.nbytes * note.op.attributes["size"]
        return note.op.kind == "all_gather" and needed_by == ("prim.dot_general",) and whole >= self.divided


def note_collectives(program: Program, notes: Sequence[CollectiveNote]) -> None:
    """Leave what decides about the collectives of a program, in the order of their emission, with the program: one
    entry for each (a number for what its key says but the kind, and what :class:`CollectiveNote` has besides), None for
    those that it had itself."""
    if not notes:
        return
    keys: dict[Any, int] = {}
    entries = {n.op: (keys.setdefault(n.key[1:], len(keys)), *n[2:]) for n in notes}
    program.attributes[_ATTRIBUTE] = tuple(entries.get(op) for op in _collectives(program))


def _read_notes(program: Program) -> list[CollectiveNote]:
    entries, ops = program.attributes.get(_ATTRIBUTE), _collectives(program)
    if entries is None:
        return []
    if len(entries) != len(ops):
        raise PassError(f"program '{program.name}' has {len(ops)} collectives, but notes of {len(entries)}")
    return [
        CollectiveNote(op, (op.kind, entry[0]), *entry[1:])
        for op, entry in zip(ops, entries, strict=True)
        if entry is not None
    ]


def _collectives(program: Program) -> list[Operation]:
    return [op for op in program.block if op.name in _NAMES]


def _scalars_with_parts(notes: Sequence[CollectiveNote]) -> list[CollectiveNote]:
    """Sums of one number in the buckets of those whose result is split: each rank then has it as part of its own."""
    split = {n.key[1:] for n in notes if n.key[0] == "reduce_scatter"}

    def joins(n: CollectiveNote) -> bool:
        kind, *line = n.key
        return kind == "all_reduce" and n.nbytes == as_dtype(n.op.operand(0).dtype).itemsize and tuple(line) in split

    return [n._replace(key=("reduce_scatter", *n.key[1:])) if joins(n) else n for n in notes]


def _bucket_size(limit: int, notes: Sequence[CollectiveNote], buckets: int) -> float:
    """The size of buckets of which there should be several."""
    return min(limit, max(_SMALLEST, sum(n.nbytes for n in notes) / buckets))


def _by_readiness(notes: Sequence[CollectiveNote], numbers: Sequence[int], limit: float) -> list[list[int]]:
    """Buckets of sums in the order in which their terms are ready, ordered by their last ones, as `_buckets`."""
    found: list[list[int]] = []
    last: dict[Any, list[int]] = {}
    for i in sorted(numbers, key=lambda i: (notes[i].ready, i)):
        bucket = last.get(notes[i].key, [])
        ready, alone = notes[i].ready, notes[i].nbytes > limit / 2
        assert ready is not None
        in_time = all(ready < notes[other].wanted for other in bucket)
        if not bucket or alone or not in_time or sum(notes[other].nbytes for other in [*bucket, i]) > limit:
            found.append([i])
            if not alone:
                last[notes[i].key] = found[-1]
        else:
            bucket.append(i)
    return sorted(found, key=lambda bucket: (notes[bucket[-1]].ready, bucket[-1]))


def _buckets(
    notes: Sequence[CollectiveNote],
    limit: int,
    done: frozenset[int],
    single: frozenset[int] = frozenset(),
    together: int | None = None,
) -> list[list[int]]:
    """The numbers of collectives that will be one, where the first of them is: all but those that are ``done``. What
    takes more than half a bucket, or is to be ``single``, travels alone, and others are put together across it.
    ``together``: the size of buckets of sums, and of gathers for one place, where that is not ``limit``."""
    gathers = [n for n in notes if n.op.kind == "all_gather"]
    size, places = _bucket_size(limit, gathers, _GATHERS), Counter(n.wanted for n in gathers)

    def bucket_of(each: CollectiveNote) -> tuple[Any, float]:
        """Which buckets are this one's, and how large they are."""
        if each.op.kind != "all_gather":
            return each.key, limit if together is None else together
        if together is not None and places[each.wanted] > 1:
            return (each.key, each.wanted), together
        return (each.key, each.nbytes <= size * _VECTORS), size

    found: list[list[int]] = []
    last: dict[Any, list[int]] = {}  # by key
    place: list[int] = []  # of each: the number of the one whose place it takes
    for number, each in enumerate(notes):
        key, most = bucket_of(each)
        bucket = last.get(key, [])
        alone = each.nbytes > most / 2 or number in single
        fits = each.nbytes + sum(notes[i].nbytes for i in bucket) <= most
        if number in done:
            place.append(number)  # at the latest
        elif bucket and not alone and fits and _is_ready(each, bucket[0], notes, place):
            bucket.append(number)
            place.append(bucket[0])
        else:
            found.append([number])
            place.append(number)
            if not alone:
                last[key] = found[-1]
    return found


def _is_ready(each: CollectiveNote, first: int, notes: Sequence[CollectiveNote], place: Sequence[int]) -> bool:
    """Whether the operand of a collective is there where the ``first`` of a bucket is."""
    if each.after is not None:
        return place[each.after] < first
    return each.ready is not None and each.ready < notes[first].wanted


def _replace(ops: Sequence[Operation], made: Sequence[Value], token: Value) -> None:
    for op, value in zip(ops, made, strict=True):
        after = token if op is ops[0] else op.operand(1)
        op.results[1].replace_all_uses_with(after)
        op.results[0].replace_all_uses_with(value)
    for op in ops:
        op.erase()
