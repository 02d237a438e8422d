"""The code of paged attention: a chunk is a tile of tokens and some cached heads, with all or some of the heads that
share one, and with all of their contexts or a part of them.

Tokens of a tile that belong to one sequence (a run) pass over its places together, panel by panel: scores and their
powers are made for all rows, sums of values are rescaled where a larger score has come (Milakov and Gimelshein, 2018).
A panel has four parts whose places are numbered in turns: a processor reads ahead along some streams of addresses at
once, so that scattered blocks are read at .85 of the rate of memory in one piece in four streams, and at .65 one after
the other. Where a token's heads have few rows, a few places of all heads, whose caches lie side by side, are passed
over before the next ones: first keys, while the panel's values are asked for, then values, while the next panel's keys
are; all are asked for twice more shortly before they are read, for a processor that waits for many lines drops
requests. Keys are copied as floats for rows of several tiles, unless the machine multiplies pairs of bfloat16 as they
are: powers, which are at most 1, are then rounded to it, as fused attention does, and products of denormal numbers are
zero. Bytes are multiplied by queries that are rounded to integers of 16 bits where the machine adds such products.
Panels begin at multiples of their width, every score is one tree of sums, every sum of a segment's values one
chain, sums of segments are merged as a binary tree, and a row leaves out what it does not see: a token's bits depend on
nothing but its own sequence up to its position, whatever else is computed beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from argosy_cinn.emitter import Emitter
from argosy_cinn.forms.paged_attention import SEGMENT, PagedAttentionForm
from argosy_cinn.loops.nest import PARAMETERS, Pointers
from argosy_cinn.paged_attention.memory import FEW_ROWS, STREAMS
from argosy_cinn.paged_attention.panels import Cache, Heads, Rule, Strip
from argosy_cinn.paged_attention.powers import Powers
from argosy_cinn.paged_attention.queries import copy_query
from argosy_cinn.paged_attention.scores import Scores
from argosy_cinn.paged_attention.segments import SegmentTree, clear_sums, copy_sums
from argosy_cinn.paged_attention.tiles import Row, Tiles
from argosy_cinn.paged_attention.values import Values
from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import FLOAT, I64, LLVM_TYPES, Index, Value, constant
from argosy_cinn.shapes import sizes


def emit_paged_attention(module: Module, name: str, form: PagedAttentionForm, slots: Mapping[Any, int]) -> None:
    """Define the kernel function ``name``."""
    with module.function(name, PARAMETERS, export=False, attributes="noinline") as b:
        table, chunk, _ = b.arguments
        b.sizes_from(table, len(slots))
        _Chunk(b, form, Pointers(b, table, slots)).emit(chunk)


EMITTER = Emitter(emit_paged_attention, lambda form, target: form.chunks)
"""For `argosy_cinn.kinds`."""


class _Panel(Scores, Powers, Values):
    """All of a panel."""


class _Part(NamedTuple):
    """A part of the contexts: its ``number`` among those of the tile, and whether there are others; its first
    ``segment``, and the place behind it, None behind them all."""

    segment: Index
    end: Value | None
    number: Index
    is_partial: Value | None


_WHOLE = _Part(0, None, 0, None)


class _Chunk(Tiles):
    def emit(self, chunk: Value) -> None:
        """Run after run of the tile, and all of its contexts or a part of them."""
        b = self.b
        number, division = self.locate(chunk, b.number(self.form.splits)), self.divide()
        self.heads = self.group(b.rem(number, division.groups), division.heads)
        if not self.form.is_split:
            self._runs(_WHOLE)
            return
        number = b.div(number, division.groups)
        with b.if_then(b.icmp("slt", number, division.parts)):
            segment = b.binary("shl", b.index(b.add(division.first, number)), division.level)
            end = b.binary("shl", b.index(b.add(b.add(division.first, number), 1)), division.level)
            self._runs(_Part(segment, b.index(b.mul(end, SEGMENT)), number, b.icmp("sgt", division.parts, 1)))

    def _runs(self, part: _Part) -> None:
        b, end = self.b, self.end

        def run(carry: list[Value]) -> list[Value]:
            row, first = self._row(carry[0]), carry[0]
            behind, low, high = self._extent(first, end, row)
            self._run(part, first, b.sub(behind, first), row, low, high)
            return [behind]

        b.repeat([self.begin], lambda carry: b.icmp("slt", carry[0], end), run)

    def _row(self, token: Value) -> Value:
        return self.b.load(I64, self.b.gep(self.at["rows"], token, I64))

    def _extent(self, first: Value, end: Value, row: Value) -> list[Value]:
        """Where the run of tokens of one row that begins at ``first`` ends, and its least and largest position."""
        b, start = self.b, self.position(first)

        def goes_on(carry: list[Value]) -> Value:
            there = self._row(b.index(b.minimum(carry[0], b.sub(end, 1))))
            return b.binary("and", b.icmp("slt", carry[0], end), b.icmp("eq", there, row))

        def step(carry: list[Value]) -> list[Value]:
            place = self.position(carry[0])
            return [b.add(carry[0], 1), b.minimum(carry[1], place), b.maximum(carry[2], place)]  # type: ignore[list-item]

        return b.repeat([b.index(b.add(first, 1)), start, start], goes_on, step)

    def _run(self, part: _Part, first: Value, count: Index, row: Value, low: Value, high: Value) -> None:
        """``count`` tokens of one row of the tables: one token is a case of its own, whose number of rows is known."""
        b, several = self.b, self.b.index(self.b.mul(count, self.part))

        def attend(rows: Index) -> list[Value]:
            self._attend(part, first, rows, row, (low, high))
            return []

        if self.form.tile_tokens == 1:
            attend(self.part)
        else:
            b.either(b.icmp("eq", b.index(count), 1), lambda: attend(self.part), lambda: attend(several))

    def _attend(self, part: _Part, first: Value, rows: Index, row: Value, positions: tuple[Value, Value]) -> None:
        """So many rows of each head: heads together where these are few, which read what lies side by side, else one
        after the other."""
        b, memory, (first_head, most, end) = self.b, self.memory, self.heads
        several: Index = b.select(b.icmp("sle", b.index(rows), FEW_ROWS), b.index(most), constant(I64, 1))
        if isinstance(rows, int):
            several = most if rows <= FEW_ROWS else 1
        is_whole = isinstance(several, int) and self.cached % several == 0
        with b.loop(first_head, end, several) as loop:
            count = several if is_whole else b.minimum(several, b.sub(end, loop.index))
            heads = Heads(loop.index, count, b.index(b.add(loop.index, count)))
            self.each_row(heads, rows, first, self._copy_query)
            clear_sums(memory, memory.sums, b.mul(rows, heads.size))
            self._panels(part, heads, rows, first, row, positions)
            self._finish(part, heads, rows, first)

    def _finish(self, part: _Part, heads: Heads, rows: Index, first: Value) -> None:
        """Results, or partial sums where other chunks have the rest of the contexts."""
        b, memory = self.b, self.memory

        def store_results() -> list[Value]:
            self.each_row(heads, rows, first, lambda row: self.store_result(row, memory.sums))
            return []

        def store_sums() -> list[Value]:
            with b.loop(heads.first, heads.end) as head:
                own = memory.row(memory.sums, b.mul(b.sub(head.index, heads.first), rows))
                copy_sums(memory, own, self.partial_sums(part.number, head.index, first), rows)
            return []

        if part.is_partial is None:
            store_results()
        else:
            b.either(part.is_partial, store_sums, store_results)

    def _panels(
        self, part: _Part, heads: Heads, rows: Index, first: Value, row: Value, positions: tuple[Value, Value]
    ) -> None:
        """All places of the part that tokens at these positions see, panel by panel and head by head."""
        b, form, (low, high) = self.b, self.form, positions
        columns, width = sizes(form.operands[5])[1], self.memory.panel
        end = b.minimum(b.add(high, 1), self.places)
        before = b.maximum(b.sub(low, form.window - 1), 0) if form.window else 0
        start = b.mul(b.div(before, width), width)
        if part.end is not None:
            start, end = b.maximum(start, b.mul(part.segment, SEGMENT)), b.minimum(end, part.end)
        known = b.minimum(b.maximum(row, 0), b.sub(b.number(sizes(form.operands[5])[0]), 1))
        table = b.gep(self.at["tables"], b.mul(known, b.number(columns)), I64)
        rule = Rule(form.scale, form.window, form.softcap, low, high, end)
        self._find_offsets(self.memory.offsets[0], start, end, table)
        position = lambda r: self.position(b.add(first, b.div(r, self.part)))  # noqa: E731
        tree = SegmentTree(self.memory, b.mul(rows, heads.size), part.segment)
        tree.begin(start)
        with b.loop(start, end, width, self.memory.offsets) as places:
            offsets, ahead = places.carry
            tree.add_before(places.index, start)
            self._find_offsets(ahead, b.add(places.index, width), end, table)

            def panel(head: Value) -> _Panel:
                memory = self.memory.rows_from(b.mul(b.sub(head, heads.first), rows))
                return _Panel(b, memory, rule, places.index, position, head, heads)

            self._panel(heads, rows, panel, self._cache(1, offsets, ahead), self._cache(2, offsets, ahead))
            places.yield_values(ahead, offsets)
        tree.end(b.maximum(b.sub(end, 1), start))

    def _panel(self, heads: Heads, rows: Index, panel: Callable[[Value], _Panel], keys: Cache, values: Cache) -> None:
        """What a panel's places give to the rows of some heads. Where these are one tile, a few places of all heads,
        which lie side by side, are passed over before the next ones."""
        b, memory, each = self.b, self.memory, panel(heads.first)
        few = isinstance(rows, int) and rows <= memory.few_rows
        if few:
            self._score_parts(heads, rows, panel, keys, values)
        elif memory.pairs or memory.words:
            with b.loop(heads.first, heads.end) as head, b.loop(0, each.scored(), memory.lanes) as loop:
                panel(head.index).score_strip(rows, keys, values, loop.index)
        else:
            with b.loop(heads.first, heads.end) as head:
                panel(head.index).score_copied(rows, keys, values)
        with b.loop(heads.first, heads.end) as head:
            panel(head.index).weigh(rows, keys, values)
        if few:
            with b.loop(0, each.seen(), STREAMS) as loop, b.loop(heads.first, heads.end) as head:
                panel(head.index).add_values(rows, keys, values, Strip(loop.index, b.add(loop.index, STREAMS)))
        else:
            width = max(memory.lanes, STREAMS)
            with b.loop(heads.first, heads.end) as head, b.loop(0, each.seen(), width) as loop:
                panel(head.index).add_values(rows, keys, values, Strip(loop.index, b.add(loop.index, width)))

    def _score_parts(
        self, heads: Heads, rows: Index, panel: Callable[[Value], _Panel], keys: Cache, values: Cache
    ) -> None:
        """Scores of all heads, some keys of each at a time."""
        b, lanes, count = self.b, self.memory.lanes, self.memory.keys_at_once
        with b.loop(0, panel(heads.first).scored(), lanes) as loop:
            with b.loop(loop.index, b.add(loop.index, lanes), count) as part, b.loop(heads.first, heads.end) as head:
                panel(head.index).score_part(rows, keys, values, part.index)
            with b.loop(heads.first, heads.end) as head:
                panel(head.index).join_parts(rows, loop.index)

    def _find_offsets(self, offsets: Value, start: Index, end: Index, table: Value) -> None:
        """How far what is cached at each number of a panel is from what is cached first: keys, values and scales.
        Places behind the last one are the last one's."""
        b, (blocks, block) = self.b, sizes(self.form.operands[1])[:2]
        panel, part = self.memory.panel, self.memory.panel // STREAMS
        with b.loop(0, panel) as loop:
            place = b.add(b.mul(b.rem(loop.index, STREAMS), part), b.div(loop.index, STREAMS))
            place = b.minimum(b.add(start, place), b.sub(end, 1))
            entry = b.load(I64, b.gep(table, b.div(place, block), I64))
            known = b.minimum(b.maximum(entry, 0), b.sub(b.number(blocks), 1))
            first = b.mul(b.add(b.mul(known, block), b.rem(place, block)), self.cached)
            for i, width in enumerate((*(sizes(x)[3] for x in self.form.operands[1:3]), 1)):
                b.store(b.index(b.mul(first, width)), b.gep(offsets, b.add(loop.index, i * panel), I64))
            for name in ("key scales", "value scales"):
                if name in self.at:
                    b.prefetch(b.gep(self.at[name], b.add(first, self.heads.first), FLOAT))

    def _cache(self, number: int, offsets: Value, ahead: Value) -> Cache:
        """The keys (1) or values (2) of a panel and the next one: keys of that are asked for, and values of this."""
        b, operand, panel = self.b, self.form.operands[number], self.memory.panel
        name, used = (("keys", self.depth), ("values", self.width))[number - 1]
        width, element, scales = sizes(operand)[3], LLVM_TYPES[self.memory.cached], self.at.get(f"{name[:-1]} scales")
        own, ones = (b.gep(offsets, at * panel, I64) for at in (number - 1, 2))
        factors = Cache(lambda head: b.gep(scales, head, FLOAT), FLOAT, 1, ones, None, None) if scales else None
        is_key = number == 2 and operand is self.form.operands[1]
        first = lambda head: b.gep(self.at[name], b.mul(head, width), element)  # noqa: E731
        return Cache(first, element, used, own, ahead if number == 1 else None if is_key else own, factors)

    def _copy_query(self, row: Row) -> None:
        """The row's query, as it is multiplied."""
        source = self.b.gep(self.at["query"], self.b.mul(row.place, self.depth), self.memory.element)
        copy_query(self.memory, source, row.number)
