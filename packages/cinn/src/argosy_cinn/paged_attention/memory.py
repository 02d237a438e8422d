"""What a thread remembers of paged attention, and how numbers of caches are read and stored."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import NamedTuple

from argosy_cinn.forms.paged_attention import PagedAttentionForm
from argosy_cinn.loops.elementwise import load_element
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import (
    BFLOAT,
    DOUBLE,
    FLOAT,
    I1,
    I8,
    I16,
    I32,
    I64,
    LLVM_TYPES,
    Index,
    Value,
    bytes_of,
    constant,
    vector,
)
from argosy_cinn.runtime.workers import scratch

#: Vectors of places in a panel: as many sums as hide the latency of one row's.
PANEL_VECTORS = 4
#: Parts of a panel whose places are read in turns: a processor reads ahead along several streams of addresses at once,
#: of each only so far, and a block is too short a one to come up to speed.
STREAMS = 4
#: Vectors of a value that are added at a time, at most.
VALUE_VECTORS = 8
#: Rows of a head up to which those of all heads of a chunk pass over a panel before the next one.
FEW_ROWS = 16
_MANY_REGISTERS = 32
#: Numbers of two places in turns: the first and the last four of each eight, and these beside each other again.
_LOW, _HIGH = ([i + 32 * of for i in range(32) if i // 4 % 2 == half for of in (0, 1)] for half in (0, 1))
_JOINED = [i // 8 * 4 + i % 4 + i // 4 % 2 * 16 for i in range(32)]


class Sums(NamedTuple):
    """Of rows, some places each: the largest score, the sum of powers relative to it, and those of values."""

    tops: Value
    totals: Value
    values: Value


class Memory:
    """A thread's scratch memory: a panel's keys and scores, where it is cached and its scales, and the rows' queries
    and sums, those of a segment and, for each power of two, those of so many segments before it."""

    def __init__(self, b: Function, form: PagedAttentionForm) -> None:
        self.b, self.dtype = b, form.result.dtype
        self.element = LLVM_TYPES[self.dtype]
        self.cached = form.operands[1].dtype
        self.real = DOUBLE if self.dtype == "float64" else FLOAT
        self.lanes = b.module.target.lanes(self.real)
        self.vector = vector(self.element, self.lanes)
        self.panel = PANEL_VECTORS * self.lanes
        #: Keys whose products with some rows are summed at a time.
        self.keys_at_once = min(STREAMS, self.lanes)
        whole = not any(size % (2 * self.lanes) for size in (form.query[3], form.width))
        #: Numbers of a cache that are read at a time; sums over channels and those of values are in that order.
        self.unit = self.lanes * (2 if self.cached == "bfloat16" and whole else 1)
        target, exact = b.module.target, self.cached == self.dtype and self.unit > self.lanes
        #: Whether scores are sums of pairs of products, of numbers of a query and a key, and sums of values are, of two
        #: places: no number that is cached is converted, and powers are rounded to bfloat16.
        self.pairs = exact and target.multiplies_pairs
        #: Whether scores are sums of pairs of products of integers, of bytes and of a query in 16 bits.
        self.words = whole and (self.cached, self.dtype, target.vector_bits) == ("int8", "bfloat16", 512)
        self.words = self.words and target.has("avx512vnni")
        self.height = 4 if b.module.target.registers >= _MANY_REGISTERS else 2
        #: Rows of a head up to which a few places of all heads are passed over before the next ones. With more, sums
        #: had better stay in registers where pairs are multiplied.
        self.few_rows = self.height if self.pairs else FEW_ROWS
        self.depth, self.width = form.query[3], self.padded_width(form.width)
        depth, rows = self.padded_width(self.depth), max(form.rows, min(form.rows, FEW_ROWS) * form.most_heads)
        padded = self._rows = self.padded_width(rows)
        parts = min(form.part, self.few_rows) * form.most_heads * self._part_numbers
        counts = [depth * self.panel, rows * self.panel, rows * depth, rows * self.width, padded, padded, parts]
        counts += [self.panel, self.panel, padded, padded, padded]
        size, zeros = bytes_of(self.real), VALUE_VECTORS * self.lanes * bytes_of(LLVM_TYPES[self.cached])
        known = sum(counts) * size + 6 * self.panel * 8 + zeros
        self.levels = self._count_levels(form)
        slab = scratch(b, b.add(known, b.mul(self.levels, self._level_numbers * size)))
        places = [b.gep(slab, sum(counts[:i]) * size, I8) for i in range(len(counts) + 1)]
        self.keys, self.scores, self._queries, self._sums, self.tops, self.totals, self._sum_parts, *rest = places
        self.key_scales, self.value_scales, *factors, self.query_scales, table = rest
        #: What the sums of two parts of a context are multiplied by as they are merged.
        self.factors = (factors[0], factors[1])
        #: Where the places of two panels in turn are cached: offsets of keys, values and scales.
        self.offsets = (table, b.gep(table, 3 * self.panel, I64))
        #: Values of a place that a row does not see.
        self.zeros = b.gep(table, 6 * self.panel, I64)
        for at in range(0, zeros, self.lanes):
            b.store(b.zero(vector(I8, self.lanes)), b.gep(self.zeros, at, I8))
        self._levels = b.gep(slab, known, I8)

    def _count_levels(self, form: PagedAttentionForm) -> Index:
        """Levels of a binary tree of the segments of the longest context."""
        b, segments = self.b, form.segments
        if isinstance(segments, int):
            return max(segments - 1, 0).bit_length()
        last = b.index(b.sub(b.number(segments), 1))
        return b.sub(64, b.intrinsic("llvm.ctlz", I64, last, constant(I1, 0)))

    @property
    def _level_numbers(self) -> int:
        return self._rows * (self.width + 2)

    @property
    def sums(self) -> Sums:
        """Those of the present segment, of all rows."""
        return Sums(self.tops, self.totals, self._sums)

    def level(self, number: Index) -> Sums:
        """The sums of 2 to the ``number`` segments."""
        return self.sums_at(self.b.gep(self._levels, self.b.mul(number, self._level_numbers), self.real), self._rows)

    def sums_at(self, base: Value, rows: int, first: Index = 0) -> Sums:
        """The sums that lie at an address, of so many rows, from the ``first`` one on."""
        b = self.b
        starts = first, b.add(rows, first), b.add(2 * rows, b.mul(first, self.width))
        return Sums(*(b.gep(base, start, self.real) for start in starts))

    @property
    def _part_numbers(self) -> int:
        """Numbers of the sums that a row has of a vector of keys, some keys at a time."""
        return self.lanes // self.keys_at_once * self.lanes

    def rows_from(self, first: Index) -> Memory:
        """The same memory, whose rows begin at number ``first``."""
        b, same = self.b, copy(self)
        same._queries, same._sums = self.query(first), self.sum(first)
        same.scores, same._sum_parts = self.score(first), self.part(first, 0)
        numbers = self.tops, self.totals, self.query_scales
        same.tops, same.totals, same.query_scales = (b.gep(place, first, self.real) for place in numbers)
        return same

    def load_cached(self, base: Value, at: Index, mask: Value | None) -> list[Value]:
        """The ``unit`` numbers of a cache from ``at`` on, as vectors: of pairs of bfloat16 the first ones, and the
        second ones."""
        b, element = self.b, LLVM_TYPES[self.cached]
        place = b.gep(base, at, element)
        if self.unit > self.lanes:
            both = b.load(vector(I32, self.lanes), place)
            halves = b.binary("shl", both, 16), b.binary("and", both, -(1 << 16))
            return [b.bitcast(half, vector(FLOAT, self.lanes)) for half in halves]
        found = b.masked_load(vector(element, self.lanes), place, mask)
        return [
            load_element(b, found, self.cached) if self.cached == self.dtype else b.convert("sitofp", found, self.real)
        ]

    def load_pairs(self, base: Value, at: Index, mask: Value | None) -> list[Value]:
        """The ``unit`` numbers of bfloat16 from ``at`` on, as they are."""
        return [self.b.load(vector(BFLOAT, self.unit), self.b.gep(base, at, BFLOAT))]

    def load_words(self, base: Value, at: Index, mask: Value | None) -> list[Value]:
        """Two vectors of bytes from ``at`` on, as integers of 16 bits."""
        b = self.b
        return [b.convert("sext", b.load(vector(I8, 2 * self.lanes), b.gep(base, at, I8)), I16)]

    def load_places(self, bases: list[Value], at: int) -> list[Value]:
        """The ``unit`` numbers of bfloat16 from ``at`` on at each of two places, in turns."""
        b, type = self.b, vector(I16, self.unit)
        x, y = (b.load(type, b.gep(base, at, I16)) for base in bases)
        return [b.shuffle(x, y, order) for order in (_LOW, _HIGH)]

    def store_unit(self, values: list[Value], place: Value, mask: Value | None) -> None:
        """Store ``unit`` sums of values, as they are stored."""
        b = self.b
        if self.pairs:
            b.store(b.shuffle(values[0], values[1], _JOINED), place)
        elif len(values) > 1:
            b.store_alternately(values[0], values[1], place)
        else:
            b.masked_store(values[0], place, mask)

    def vectors(self, width: int, build: Callable[[Index, Value | None], None]) -> None:
        """``build`` for each unit of a row, the last one under a mask."""
        whole = width // self.lanes * self.lanes
        with self.b.loop(0, whole, self.unit) as loop:
            build(loop.index, None)
        if whole < width:
            build(whole, self.b.tail_mask(width - whole, self.lanes))

    def padded_width(self, width: int) -> int:
        """Whole vectors."""
        return -(-width // self.lanes) * self.lanes

    def query(self, row: Index) -> Value:
        """A row's query, in ``real`` or as pairs are multiplied."""
        return self.b.gep(self._queries, self.b.mul(row, self.padded_width(self.depth)), self.real)

    def key(self, place: Index) -> Value:
        """A copied key."""
        return self.b.gep(self.keys, self.b.mul(place, self.padded_width(self.depth)), self.real)

    def sum(self, row: Index) -> Value:
        """A row's sums of values."""
        return self.row(self.sums, row).values

    def row(self, sums: Sums, row: Index) -> Sums:
        """Those of one row, and what follows it."""
        b = self.b
        starts = row, row, b.mul(row, self.width)
        return Sums(*(b.gep(base, start, self.real) for base, start in zip(sums, starts, strict=True)))

    def score(self, row: Index, place: Index = 0) -> Value:
        """A row's scores in the panel, later their powers."""
        return self.b.gep(self.scores, self.b.add(self.b.mul(row, self.panel), place), self.real)

    def part(self, row: Index, number: Index) -> Value:
        """The vector of a row's sums of some keys of a vector of keys."""
        at = self.b.add(self.b.mul(row, self._part_numbers), self.b.mul(number, self.lanes))
        return self.b.gep(self._sum_parts, at, self.real)

    def store_powers(self, powers: Value, row: Index, place: int) -> None:
        """Store a vector of a row's powers over its scores: as bfloat16 where pairs are multiplied."""
        b = self.b
        if self.pairs:
            b.store(b.convert("fptrunc", powers, BFLOAT), b.gep(self.score(row), place, BFLOAT))
        else:
            b.store(powers, self.score(row, place))
