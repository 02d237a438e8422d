"""Tiles of tokens: how chunks divide their heads and contexts, partial sums, and results.

Where there are few tiles, each is divided by its longest context, which is read where it is needed. Of a long one, a
chunk has all cached heads, whose keys of one token lie side by side, and a part of the context: a power of two of
segments. Of a shorter one it has a group of heads, and a part of the context only if groups are too few to fill the
cores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from argosy_cinn.forms.paged_attention import SEGMENT, PagedAttentionForm
from argosy_cinn.loops.elementwise import load_element, store_element
from argosy_cinn.loops.nest import Pointers
from argosy_cinn.paged_attention.memory import Memory, Sums
from argosy_cinn.paged_attention.panels import Heads
from argosy_cinn.paged_attention.segments import relate
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import I64, LLVM_TYPES, Index, Value, constant, vector
from argosy_cinn.shapes import sizes
from argosy_phi_ops.primitives.attention import split_others


class Division(NamedTuple):
    """``groups`` of so many ``heads``, and ``parts`` of the contexts, which count from the ``first`` one on: each has 2
    to the ``level`` segments."""

    groups: Index
    heads: Index
    parts: Index = 1
    first: Index = 0
    level: Index = 0


class Row(NamedTuple):
    """A row of scores: its ``number`` among those of the heads at hand, its ``token`` and ``head`` among those that are
    cached, that among all, and its ``place`` among the heads of all tokens."""

    number: Value
    token: Index
    cached: Value
    head: Index
    place: Index


class Tiles:
    """A tile of tokens, and a part of the heads that share a cached one."""

    def __init__(self, b: Function, form: PagedAttentionForm, pointers: Pointers) -> None:
        self.b, self.form, self.dtype = b, form, form.result.dtype
        self.tokens, self.cached, self.shared, self.depth = form.query
        self.part, self.width = form.part, form.width
        sinks, scales = split_others(form.operands[6:])
        names = ("query", "keys", "values", "positions", "rows", "tables", *["sinks"] * len(sinks))
        names += ("key scales", "value scales") if scales else ()
        self.at = {name: pointers(v) for name, v in zip(names, form.operands, strict=True)}
        self.out = pointers(form.result)
        self.partial = pointers(form.partial_sums) if form.is_split else None
        self.memory = Memory(b, form)
        self.lanes, self.real = self.memory.lanes, self.memory.real

    def locate(self, chunk: Value, chunks: Index) -> Index:
        """Find the tile of a chunk, of so many that each has; the number of the chunk among those."""
        b, form = self.b, self.form
        part, rest = b.rem(chunk, form.parts), b.div(chunk, form.parts)
        number, tile = b.rem(rest, chunks), b.div(rest, chunks)
        self.first_shared = b.mul(part, self.part)
        self.begin = b.index(b.mul(tile, form.tile_tokens))
        self.end = b.index(b.minimum(b.add(self.begin, form.tile_tokens), b.number(self.tokens)))
        self.slot = b.mul(b.add(b.mul(tile, form.parts), part), b.number(form.splits))
        return number

    def divide(self) -> Division:
        """How the tile is divided."""
        b, form = self.b, self.form
        if not form.is_split:
            return Division(form.groups, form.heads)
        (first, last), splits, tiles = self._segments(), b.index(form.splits), b.number(form.tiles)
        count = b.index(b.mul(b.sub(b.add(last, 1), first), tiles))
        is_long = b.binary("and", b.icmp("sge", count, form.long), b.icmp("sgt", splits, form.groups))
        groups: Index = b.select(is_long, constant(I64, 1), constant(I64, form.groups))
        heads: Index = b.select(is_long, constant(I64, self.cached), constant(I64, form.heads))
        are_many = b.icmp("sge", b.index(b.mul(tiles, form.groups)), form.cores)
        each = b.select(are_many, constant(I64, 1), b.index(b.div(splits, form.groups)))
        most = b.select(is_long, splits, each)

        def parts(level: Value) -> Index:
            return b.add(b.sub(b.binary("lshr", last, level), b.binary("lshr", first, level)), 1)

        (level,) = b.repeat(
            [constant(I64, 0)],
            lambda carry: b.icmp("sgt", parts(carry[0]), most),
            lambda carry: [b.index(b.add(carry[0], 1))],
        )
        return Division(groups, heads, parts(level), b.binary("lshr", first, level), level)

    def _segments(self) -> tuple[Value, Value]:
        """The first and the last segment that any token sees, or the first one of all."""
        b = self.b
        start = self.position(self.begin)
        with b.loop(self.begin, self.end, 1, [start, start]) as loop:
            place, (low, high) = self.position(loop.index), loop.carry
            loop.yield_values(b.index(b.minimum(low, place)), b.index(b.maximum(high, place)))
        low, high = loop.results
        last = b.div(b.maximum(b.minimum(high, b.sub(self.places, 1)), 0), SEGMENT)
        if not self.form.window:
            return constant(I64, 0), b.index(last)
        first = b.div(b.maximum(b.sub(low, self.form.window - 1), 0), SEGMENT)
        return b.index(b.minimum(first, last)), b.index(last)

    @property
    def places(self) -> Index:
        """Of the longest context that the tables can hold."""
        columns, block = sizes(self.form.operands[5])[1], sizes(self.form.operands[1])[1]
        return self.b.mul(self.b.number(columns), block)

    def position(self, token: Index) -> Value:
        """Of a token."""
        return self.b.load(I64, self.b.gep(self.at["positions"], token, I64))

    def group(self, number: Index, heads: Index) -> Heads:
        """So many cached heads."""
        b = self.b
        first = b.index(b.mul(number, heads))
        end = b.index(b.minimum(b.add(first, heads), self.cached))
        return Heads(first, b.sub(end, first), end)

    def partial_sums(self, part: Index, head: Index, token: Index) -> Sums:
        """Those of a part of the tile's contexts, from the rows of a cached head and a token on."""
        b, rows = self.b, self.memory.padded_width(self.form.rows * self.cached)
        assert self.partial is not None
        at = b.mul(b.add(self.slot, part), rows * (self.memory.width + 2))
        tokens = b.add(b.mul(head, b.sub(self.end, self.begin)), b.sub(token, self.begin))
        return self.memory.sums_at(b.gep(self.partial, at, self.real), rows, b.mul(tokens, self.part))

    def each_row(self, heads: Heads, rows: Index, first: Index, build: Callable[[Row], None]) -> None:
        """``build`` for each row of scores of the tokens from the first one on."""
        b = self.b
        with b.loop(heads.first, heads.end) as head, b.loop(0, rows) as loop:
            token = b.add(first, b.div(loop.index, self.part))
            group = b.add(self.first_shared, b.rem(loop.index, self.part))
            place = b.add(b.mul(b.add(b.mul(token, self.cached), head.index), self.shared), group)
            number = b.index(b.add(b.mul(b.sub(head.index, heads.first), rows), loop.index))
            build(Row(number, token, head.index, b.add(b.mul(head.index, self.shared), group), place))

    def store_result(self, row: Row, sums: Sums) -> None:
        """Of one row: the sums of values by that of powers, beside its sink."""
        b, memory, one = self.b, self.memory, self.memory.row(sums, row.number)
        target = b.gep(self.out, b.mul(row.place, self.width), memory.element)
        total, factor = b.load(self.real, one.totals), None
        if "sinks" in self.at:
            found = b.load(LLVM_TYPES[self.dtype], b.gep(self.at["sinks"], row.head, memory.element))
            _, (less, sink) = relate(b, b.load(self.real, one.tops), load_element(b, found, self.dtype))
            total, factor = b.fma(total, less, sink), b.splat(less, self.lanes)
        divisor = b.splat(total, self.lanes)

        def made(at: Index) -> Value:
            x = b.load(vector(self.real, self.lanes), b.gep(one.values, at, self.real))
            x = x if factor is None else b.fmul(x, factor)
            # Zeros are positive, as those are that were merged.
            return store_element(b, b.fdiv(b.fadd(x, 0.0), divisor), self.dtype)

        def store(at: Index, mask: Value | None) -> None:
            unit = [made(b.add(at, v)) for v in range(0, memory.unit, self.lanes)]
            memory.store_unit(unit, b.gep(target, at, memory.element), mask)

        memory.vectors(self.width, store)
