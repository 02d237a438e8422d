"""Collectives of a partitioned program made in few: what is communicated separately may be communicated together.

What is asked for first takes those along whose operands were ready by then, in the order in which they would have
come, in buckets of bounded size; the bits are those of collectives alone, since sums are elementwise. Gradients are
ready when the backward pass has ended, and each is asked for by its own update.

All ranks must come to the same buckets. What decides is therefore the order in which the partitioner works and global
sizes, which are the same on all ranks, and never a local program, which is not: a rank may have nothing to compute. The
partitioner leaves that with the program (attribute ``collectives``).

Sums whose result is split are made where their terms are ready, in that order: only a part of them has to be kept.
With ``early`` other sums are, too, so that what follows can overlap with them (pass ``overlap``). Gathers are made
where they are asked for, since what they give is larger than what they are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from math import prod
from types import MappingProxyType
from typing import Any

from argosy_autoparallel.passes.tokens import builder_at, communicates_within, materialize_before, thread_tokens
from argosy_autoparallel.resharding.emitter import CollectiveNote, static_shape
from argosy_autoparallel.value_layouts import bytes_of
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir import Operation, Program, Value
from argosy_pir.errors import PassError
from argosy_pir.passes import Pass, register_pass

__all__ = ["CombineCollectives", "note_collectives"]

_ATTRIBUTE = "collectives"
_NAMES = ("prim.all_reduce", "prim.reduce_scatter", "prim.all_gather")
_SUMS, _GATHERS, _SMALLEST = 8, 16, 1 << 16
"""How many buckets of early sums and of gathers there should be, so that something is left to hide each behind and few
are held at a time (of gathers the parts are held as well), and their least size in bytes."""
_LARGE, _LINE = 1 << 14, 64
"""Bytes from which on a part of a bucket is worth a place of its own there, and those of a cache line."""
_VECTORS = 1 / 32
"""The share of a bucket up to which what is gathered is put together with its like only: biases are read again later,
and would keep the weights beside them in memory."""


@register_pass("combine-collectives")
@dataclass(frozen=True)
class CombineCollectives(Pass):
    """Joins reduce-scatters and all-gathers of a rank's program in buckets of at most ``limit`` bytes, all-reduces that
    nothing overlaps with in buckets of ``sums``, the same on all ranks; the pass ``spmd-partition`` notes which may be.

    Copying larger tensors into a bucket and out of it costs more than another collective takes to start. The parts of a
    bucket of sums lie one after the other, so that a compiler has them made there. With ``early`` gathers of at least
    ``divided`` bytes that products need travel alone: `chunk-products` divides them.
    """

    limit: int = 1 << 20
    sums: int = 25 << 20
    early: bool = False
    divided: int = 1 << 19

    def run(self, program: Program) -> bool:
        """Join what is noted, and forget the notes; True where there were any."""
        notes = _read_notes(program)
        kinds = ("all_reduce", "reduce_scatter") if self.early else ("reduce_scatter",)
        done = frozenset() if communicates_within(program) else _make_early(program, notes, self.limit, kinds)
        alone = frozenset(i for i, n in enumerate(notes) if self.early and self._is_divided(n))
        limits = {"all_reduce": self.limit if self.early else self.sums}
        for members in _buckets(notes, self.limit, done, alone, limits):
            if len(members) > 1:
                ops = [notes[i].op for i in members]
                _replace(ops, *_emit(ops, ops[0]))
        if done:
            thread_tokens(program, by_group=self.early)
        return program.attributes.pop(_ATTRIBUTE, None) is not None

    def _is_divided(self, note: CollectiveNote) -> bool:
        needed_by = note.op.annotations.get("needed_by")
        whole = note.nbytes * note.op.attributes["size"]
        return note.op.kind == "all_gather" and needed_by == ("prim.dot_general",) and whole >= self.divided


def note_collectives(program: Program, notes: Sequence[CollectiveNote]) -> None:
    """Leave what decides about the collectives of a program, in the order of their emission, with the program: one
    entry for each (the number of its key, and what :class:`CollectiveNote` has besides), None for those that it had
    itself."""
    if not notes:
        return
    keys: dict[Any, int] = {}
    entries = {n.op: (keys.setdefault(n.key, len(keys)), *n[2:]) for n in notes}
    program.attributes[_ATTRIBUTE] = tuple(entries.get(op) for op in _collectives(program))


def _read_notes(program: Program) -> list[CollectiveNote]:
    entries, ops = program.attributes.get(_ATTRIBUTE), _collectives(program)
    if entries is None:
        return []
    if len(entries) != len(ops):
        raise PassError(f"program '{program.name}' has {len(ops)} collectives, but notes of {len(entries)}")
    return [CollectiveNote(op, *entry) for op, entry in zip(ops, entries, strict=True) if entry is not None]


def _collectives(program: Program) -> list[Operation]:
    return [op for op in program.block if op.name in _NAMES]


def _bucket_size(limit: int, notes: Sequence[CollectiveNote], buckets: int) -> float:
    """The size of buckets of which there should be several."""
    return min(limit, max(_SMALLEST, sum(n.nbytes for n in notes) / buckets))


def _make_early(program: Program, notes: Sequence[CollectiveNote], limit: int, kinds: Sequence[str]) -> frozenset[int]:
    """Make the sums whose terms are there long before they are asked for; returns their numbers."""
    numbers = [
        i
        for i, n in enumerate(notes)
        if n.op.kind in kinds and n.after is None and n.ready is not None and n.ready < n.wanted
    ]
    operations = list(program.block)
    made = []
    for members in _by_readiness(notes, numbers, _bucket_size(limit, [notes[i] for i in numbers], _SUMS)):
        ops = [notes[i].op for i in members]
        made.append((ops, *_emit(ops, operations[notes[members[-1]].place])))
    for ops, values, token in made:
        _replace(ops, values, token)
    return frozenset(numbers)


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
    limits: Mapping[str, int] = MappingProxyType({}),
) -> list[list[int]]:
    """The numbers of collectives that will be one, where the first of them is: all but those that are ``done``. What
    takes more than half a bucket, or is to be ``single``, travels alone, and others are put together across it.
    ``limits``: of those kinds that have another one than ``limit``."""
    gathers = _bucket_size(limit, [n for n in notes if n.op.kind == "all_gather"], _GATHERS)
    found: list[list[int]] = []
    last: dict[Any, list[int]] = {}  # by key and size
    place: list[int] = []  # of each: the number of the one whose place it takes
    for number, each in enumerate(notes):
        gathered = each.op.kind == "all_gather"
        most = gathers if gathered else limits.get(each.op.kind, limit)
        key = each.key, gathered and each.nbytes <= most * _VECTORS
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


def _emit(ops: Sequence[Operation], before: Operation) -> tuple[list[Value], Value]:
    """One collective instead of several; its parts, where the first of them is asked for, and the token after it."""
    first = ops[0]
    attributes = dict(first.attributes)
    with emit_at(builder_at(before, first)):
        operands = [materialize_before(op.operand(0), before) for op in ops]
        if len(ops) == 1:
            whole, token = getattr(prim, first.kind)(operands[0], first.operand(1), **attributes)
            whole.op.annotations = first.annotations
            return [whole], token
        attributes |= {"axis": 0} if "axis" in attributes else {}
        if first.kind == "reduce_scatter":
            joined, starts = _join_rows_of(operands, ops)
        else:
            joined, starts = _join_end_to_end(operands)
        whole, token = getattr(prim, first.kind)(joined, first.operand(1), **attributes)
    needed_by = tuple(sorted({name for op in ops for name in op.annotations.get("needed_by", ())}))
    if needed_by:
        whole.op.annotate(needed_by=needed_by)
    asked = reduce(lambda one, other: other if other.is_before(one) else one, ops)
    with emit_at(builder_at(asked, first)):
        rows = attributes["size"] if first.kind == "all_gather" else 1
        table = prim.reshape(whole, shape=(rows, prod(static_shape(whole)) // rows))
        return [_part(table, start, op) for op, start in zip(ops, starts, strict=True)], token


def _join_rows_of(operands: Sequence[Value], ops: Sequence[Operation]) -> tuple[Value, list[int]]:
    """Parts for each rank, one rank's behind another's, as one tensor without other axes, and where each operand's
    begin among a rank's."""
    rows = ops[0].attributes["size"]
    tables = [_rows_first(x, op.attributes["axis"], rows) for x, op in zip(operands, ops, strict=True)]
    starts = [*accumulate((static_shape(table)[1] for table in tables), initial=0)]
    return prim.reshape(prim.concat(*tables, axis=1), shape=(rows * starts.pop(),)), starts


def _join_end_to_end(operands: Sequence[Value]) -> tuple[Value, list[int]]:
    """Operands as one tensor without other axes, and where each begins. What is large comes first, then all that is
    small as one: each may be made in its place, at the start of a cache line, and little is left to be copied."""
    flat = [prim.reshape(x, shape=(prod(static_shape(x)),)) for x in operands]
    order = sorted(range(len(flat)), key=lambda i: not _has_lines(flat[i]))
    starts = [0] * len(flat)
    for i, start in zip(order, accumulate((static_shape(flat[i])[0] for i in order), initial=0), strict=False):
        starts[i] = start
    large = [flat[i] for i in order if _has_lines(flat[i])]
    small = [flat[i] for i in order[len(large) :]]
    rest = [prim.concat(*small, axis=0)] if len(small) > 1 else small
    return (prim.concat(*large, *rest, axis=0) if large else rest[0]), starts


def _has_lines(x: Value) -> bool:
    """Whether a part is large, and whole cache lines long."""
    nbytes = bytes_of(x)
    return nbytes >= _LARGE and nbytes % _LINE == 0


def _part(table: Value, start: int, op: Operation) -> Value:
    """The result of ``op``, from column ``start`` of a bucket on."""
    shape, rows = static_shape(op.results[0]), static_shape(table)[0]
    stop = start + prod(shape) // rows
    part = prim.slice(table, start=(0, start), limit=(rows, stop), stride=(1, 1))
    return _join_rows(part, shape, op.attributes.get("axis", 0))


def _rows_first(x: Value, axis: int, rows: int) -> Value:
    """``x`` as a table of as many rows as ``axis`` has equal parts, each part one row."""
    shape = static_shape(x)
    if axis:
        x = prim.reshape(x, shape=(*shape[:axis], rows, shape[axis] // rows, *shape[axis + 1 :]))
        x = prim.transpose(x, permutation=(axis, *[i for i in range(len(shape) + 1) if i != axis]))
    return prim.reshape(x, shape=(rows, prod(shape) // rows))  # type: ignore[no-any-return]


def _join_rows(table: Value, shape: tuple[int, ...], axis: int) -> Value:
    """The rows as parts of a tensor of ``shape``, one behind the other along ``axis``."""
    rows = static_shape(table)[0]
    if axis and rows > 1:
        parts = prim.reshape(table, shape=(rows, *shape[:axis], shape[axis] // rows, *shape[axis + 1 :]))
        table = prim.transpose(parts, permutation=(*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1)))
    return prim.reshape(table, shape=shape)  # type: ignore[no-any-return]


def _replace(ops: Sequence[Operation], made: Sequence[Value], token: Value) -> None:
    for op, value in zip(ops, made, strict=True):
        after = token if op is ops[0] else op.operand(1)
        op.results[1].replace_all_uses_with(after)
        op.results[0].replace_all_uses_with(value)
    for op in ops:
        op.erase()
