"""Sums of the segments of a context, merged in pairs, pairs of pairs, and so on: a binary tree over all places from the
first one on, whatever is computed at once and where.

Softmax of parts is merged by their largest scores and sums of powers, as in Flash-Decoding (Dao, Haziza, Massa and
Sizov, 2023, https://crfm.stanford.edu/2023/10/12/flashdecoding.html). What is not there, as before a window, counts as
a part that sees nothing, which changes no bit of what it is merged with: neither which segments a chunk passes over nor
how many follow does. A chunk passes over its segments one after the other and remembers a subtree for each bit of their
number, as a binary counter does.
"""

from __future__ import annotations

from collections.abc import Callable

from argosy_cinn import functions
from argosy_cinn.forms.paged_attention import SEGMENT
from argosy_cinn.paged_attention.memory import Memory, Sums
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import I1, I64, Index, Value, constant, vector

_NOTHING = float("-inf")


def clear_sums(memory: Memory, sums: Sums, rows: Index) -> None:
    """Sums of rows that see nothing."""
    b, lanes, type = memory.b, memory.lanes, vector(memory.real, memory.lanes)
    with b.loop(0, rows) as row:
        one = memory.row(sums, row.index)
        b.store(constant(memory.real, _NOTHING), one.tops)
        b.store(constant(memory.real, 0.0), one.totals)
        with b.loop(0, memory.width, lanes) as loop:
            b.store(b.zero(type), b.gep(one.values, loop.index, memory.real))


def copy_sums(memory: Memory, sums: Sums, target: Sums, rows: Index) -> None:
    """Those of some rows to another place."""
    b, lanes, real = memory.b, memory.lanes, memory.real
    with b.loop(0, rows) as row:
        one, other = memory.row(sums, row.index), memory.row(target, row.index)
        for source, place in zip(one[:2], other[:2], strict=True):
            b.store(b.load(real, source), place)
        with b.loop(0, memory.width, lanes) as loop:
            value = b.load(vector(real, lanes), b.gep(one.values, loop.index, real))
            b.store(value, b.gep(other.values, loop.index, real))


def merge_sums(memory: Memory, left: Sums, right: Sums, target: Sums, rows: Index) -> None:
    """The sums of two parts of the context of each row, the left one before the right one; ``target`` may be one."""
    b, lanes, real, type = memory.b, memory.lanes, memory.real, vector(memory.real, memory.lanes)
    with b.loop(0, rows, lanes) as loop:
        mask = b.tail_mask(b.sub(rows, loop.index), lanes)
        tops, totals = (
            [b.masked_load(type, b.gep(base, loop.index, real), mask) for base in pair]
            for pair in ((left.tops, right.tops), (left.totals, right.totals))
        )
        top, factors = relate(b, *tops)
        total = b.fma(totals[0], factors[0], b.fmul(totals[1], factors[1]))
        for value, base in ((top, target.tops), (total, target.totals)):
            b.masked_store(value, b.gep(base, loop.index, real), mask)
        for value, base in zip(factors, memory.factors, strict=True):
            b.store(value, b.gep(base, loop.index, real))
    with b.loop(0, rows) as row:
        first, second = (b.splat(b.load(real, b.gep(base, row.index, real)), lanes) for base in memory.factors)
        x, y, made = (memory.row(sums, row.index).values for sums in (left, right, target))
        with b.loop(0, memory.width, lanes) as loop:
            one, other = (b.load(type, b.gep(base, loop.index, real)) for base in (x, y))
            b.store(b.fma(one, first, b.fmul(other, second)), b.gep(made, loop.index, real))


def relate(b: Function, left: Value, right: Value) -> tuple[Value, tuple[Value, Value]]:
    """The larger of two largest scores, and what makes sums relative to each relative to that."""
    top = b.fmax(left, right)
    shift = b.select(b.fcmp("oeq", top, _NOTHING), b.zero(top.type), top)
    less, other = (functions.apply(b, "exp", b.fsub(x, shift)) for x in (left, right))
    return top, (less, other)


class SegmentTree:
    """What is remembered of the segments from number ``first`` on, a multiple of the next power of two of how many
    there are, for so many rows."""

    def __init__(self, memory: Memory, rows: Index, first: Index) -> None:
        self.b, self.memory, self.rows, self.first = memory.b, memory, rows, first

    def begin(self, start: Index) -> None:
        """Before the segment of a place: those before it see nothing."""
        self._at_bits(self._number(start), lambda level: clear_sums(self.memory, self.memory.level(level), self.rows))

    def add_before(self, place: Value, start: Index) -> None:
        """Where a place begins a segment behind that of ``start``: the segment before it, and sums are begun again."""
        b = self.b
        if self.memory.levels == 0:
            return
        is_border = b.icmp("eq", b.rem(place, SEGMENT), 0)
        with b.if_then(b.binary("and", is_border, b.icmp("sgt", place, start))):
            self._add(place)

    def _add(self, place: Value) -> None:
        b, memory = self.b, self.memory
        number = b.index(b.sub(self._number(place), 1))
        pairs = b.intrinsic("llvm.cttz", I64, b.index(b.add(number, 1)), constant(I1, 0))
        with b.loop(0, pairs) as loop:
            self._merge(loop.index)
        copy_sums(memory, memory.sums, memory.level(pairs), self.rows)
        clear_sums(memory, memory.sums, self.rows)

    def end(self, last: Index) -> None:
        """The sums of all segments, of which the last one has a place and is not added."""
        self._at_bits(self._number(last), self._merge)

    def _at_bits(self, number: Index, build: Callable[[Value], None]) -> None:
        """``build`` for each bit of a number that is one, the least first."""
        b = self.b
        if self.memory.levels == 0:
            return
        with b.loop(0, self.memory.levels) as loop:
            bit = b.binary("and", b.binary("lshr", b.index(number), loop.index), 1)
            with b.if_then(b.icmp("ne", bit, 0)):
                build(loop.index)

    def _number(self, place: Index) -> Index:
        return self.b.sub(self.b.div(place, SEGMENT), self.first)

    def _merge(self, level: Index) -> None:
        memory = self.memory
        merge_sums(memory, memory.level(level), memory.sums, memory.sums, self.rows)
