"""The code of paged attention: a chunk is a tile of tokens and some cached heads, with all or some of the heads that
share one.

Tokens of a tile that belong to one sequence (a run) pass over its places together, panel by panel: scores and their
powers are made for all rows, sums of values are rescaled where a larger score has come (Milakov and Gimelshein, 2018).
A panel has four parts whose places are numbered in turns: a processor reads ahead along some streams of addresses at
once, so that scattered blocks are read at .85 of the rate of memory in one piece in four streams, and at .65 one after
the other. Where a token's heads have few rows, a few places of all heads, whose caches lie side by side, are passed
over before the next ones: first keys, while the panel's values are asked for, then values, while the next panel's keys
are; all are asked for twice more shortly before they are read, for a processor that waits for many lines drops
requests. Keys are copied as floats for rows of several tiles, unless the machine multiplies pairs of bfloat16 as they
are: powers, which are at most 1, are then rounded to it, as fused attention does, and products of denormal numbers are
zero. Panels begin at multiples of their width, every score is one tree of sums and every sum of values one chain, and a
row leaves out what it does not see: a token's bits depend on nothing but its own sequence up to its position, whatever
else is computed beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from argosy_cinn.emitter import Emitter
from argosy_cinn.forms.paged_attention import PagedAttentionForm
from argosy_cinn.loops.elementwise import load_element, store_element
from argosy_cinn.loops.nest import PARAMETERS, Pointers
from argosy_cinn.paged_attention.memory import FEW_ROWS, STREAMS, Memory
from argosy_cinn.paged_attention.panels import Cache, Heads, Rule, Strip
from argosy_cinn.paged_attention.powers import Powers
from argosy_cinn.paged_attention.scores import Scores
from argosy_cinn.paged_attention.values import Values
from argosy_cinn.printers.llvm import Function, Module
from argosy_cinn.printers.types import FLOAT, I64, LLVM_TYPES, Index, Value, constant, vector
from argosy_cinn.shapes import ceil_div, sizes
from argosy_phi_ops.primitives.attention import split_others


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


class _Chunk:
    def __init__(self, b: Function, form: PagedAttentionForm, pointers: Pointers) -> None:
        self.b, self.form, self.dtype = b, form, form.result.dtype
        self.tokens, self.cached, self.shared, self.depth = form.query
        self.part, self.width = form.part, form.width
        sinks, scales = split_others(form.operands[6:])
        names = ("query", "keys", "values", "positions", "rows", "tables", *["sinks"] * len(sinks))
        names += ("key scales", "value scales") if scales else ()
        self.at = {name: pointers(v) for name, v in zip(names, form.operands, strict=True)}
        self.out = pointers(form.result)
        self.memory = Memory(b, form)
        self.lanes, self.real = self.memory.lanes, self.memory.real

    def emit(self, chunk: Value) -> None:
        """Run after run of the tile."""
        b, heads = self.b, self.form.heads
        groups = ceil_div(self.cached, heads)
        self.first_shared = b.mul(b.rem(chunk, self.form.parts), self.part)
        chunk = b.index(b.div(chunk, self.form.parts))
        first_head = b.mul(b.rem(chunk, groups), heads)
        self.heads = first_head, b.minimum(b.add(first_head, heads), self.cached)
        begin = b.mul(b.div(chunk, groups), self.form.tile_tokens)
        end = b.index(b.minimum(b.add(begin, self.form.tile_tokens), b.number(self.tokens)))

        def run(carry: list[Value]) -> list[Value]:
            row, first = self._row(carry[0]), carry[0]
            behind, low, high = self._extent(first, end, row)
            self._run(first, b.sub(behind, first), row, low, high)
            return [behind]

        b.repeat([b.index(begin)], lambda carry: b.icmp("slt", carry[0], end), run)

    def _row(self, token: Value) -> Value:
        return self.b.load(I64, self.b.gep(self.at["rows"], token, I64))

    def _position(self, token: Index) -> Value:
        return self.b.load(I64, self.b.gep(self.at["positions"], token, I64))

    def _extent(self, first: Value, end: Value, row: Value) -> list[Value]:
        """Where the run of tokens of one row that begins at ``first`` ends, and its least and largest position."""
        b, start = self.b, self._position(first)

        def goes_on(carry: list[Value]) -> Value:
            there = self._row(b.index(b.minimum(carry[0], b.sub(end, 1))))
            return b.binary("and", b.icmp("slt", carry[0], end), b.icmp("eq", there, row))

        def step(carry: list[Value]) -> list[Value]:
            place = self._position(carry[0])
            return [b.add(carry[0], 1), b.minimum(carry[1], place), b.maximum(carry[2], place)]  # type: ignore[list-item]

        return b.repeat([b.index(b.add(first, 1)), start, start], goes_on, step)

    def _run(self, first: Value, count: Index, row: Value, low: Value, high: Value) -> None:
        """``count`` tokens of one row of the tables: one token is a case of its own, whose number of rows is known."""
        b, several = self.b, self.b.index(self.b.mul(count, self.part))

        def attend(rows: Index) -> list[Value]:
            self._attend(first, rows, row, (low, high))
            return []

        if self.form.tile_tokens == 1:
            attend(self.part)
        else:
            b.either(b.icmp("eq", b.index(count), 1), lambda: attend(self.part), lambda: attend(several))

    def _attend(self, first: Value, rows: Index, row: Value, positions: tuple[Value, Value]) -> None:
        """So many rows of each head: heads together where these are few, which read what lies side by side, else one
        after the other."""
        b = self.b
        most, (first_head, end) = self.form.heads, self.heads
        several: Index = b.select(b.icmp("sle", b.index(rows), FEW_ROWS), constant(I64, most), constant(I64, 1))
        if isinstance(rows, int):
            several = most if rows <= FEW_ROWS else 1
        is_whole = isinstance(several, int) and self.cached % several == 0
        with b.loop(first_head, end, several) as loop:
            count = several if is_whole else b.minimum(several, b.sub(end, loop.index))
            heads = Heads(loop.index, count, b.index(b.add(loop.index, count)))
            self._each_row(heads, rows, first, self._begin)
            self._panels(heads, rows, first, row, positions)
            self._each_row(heads, rows, first, self._end)

    def _panels(self, heads: Heads, rows: Index, first: Value, row: Value, positions: tuple[Value, Value]) -> None:
        """All places that tokens at these positions see, panel by panel and head by head."""
        b, form, (low, high) = self.b, self.form, positions
        columns, block = sizes(form.operands[5])[1], sizes(form.operands[1])[1]
        end = b.minimum(b.add(high, 1), b.mul(b.number(columns), block))
        before = b.maximum(b.sub(low, form.window - 1), 0) if form.window else 0
        width = self.memory.panel
        known = b.minimum(b.maximum(row, 0), b.sub(b.number(sizes(form.operands[5])[0]), 1))
        table = b.gep(self.at["tables"], b.mul(known, b.number(columns)), I64)
        rule = Rule(form.scale, form.window, form.softcap, low, high, end)
        start = b.mul(b.div(before, width), width)
        self._find_offsets(self.memory.offsets[0], start, end, table)
        position = lambda r: self._position(b.add(first, b.div(r, self.part)))  # noqa: E731
        with b.loop(start, end, width, self.memory.offsets) as places:
            offsets, ahead = places.carry
            self._find_offsets(ahead, b.add(places.index, width), end, table)

            def panel(head: Value) -> _Panel:
                memory = self.memory.rows_from(b.mul(b.sub(head, heads.first), rows))
                return _Panel(b, memory, rule, places.index, position, head, heads)

            self._panel(heads, rows, panel, self._cache(1, offsets, ahead), self._cache(2, offsets, ahead))
            places.yield_values(ahead, offsets)

    def _panel(self, heads: Heads, rows: Index, panel: Callable[[Value], _Panel], keys: Cache, values: Cache) -> None:
        """What a panel's places give to the rows of some heads. Where these are one tile, a few places of all heads,
        which lie side by side, are passed over before the next ones."""
        b, memory, each = self.b, self.memory, panel(heads.first)
        few = isinstance(rows, int) and rows <= memory.few_rows
        if few:
            self._score_parts(heads, rows, panel, keys, values)
        elif memory.pairs:
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
                    b.prefetch(b.gep(self.at[name], b.add(first, self.heads[0]), FLOAT))

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

    def _each_row(self, heads: Heads, rows: Index, first: Value, build: Callable[[Value, Value, Index], None]) -> None:
        """``build`` for each row of scores, with the number of its head, and of that among those of all tokens."""
        b = self.b
        with b.loop(heads.first, heads.end) as head, b.loop(0, rows) as loop:
            token = b.add(first, b.div(loop.index, self.part))
            group = b.add(self.first_shared, b.rem(loop.index, self.part))
            place = b.add(b.mul(b.add(b.mul(token, self.cached), head.index), self.shared), group)
            row = b.index(b.add(b.mul(b.sub(head.index, heads.first), rows), loop.index))
            sink = b.index(b.add(b.mul(head.index, self.shared), group))
            build(row, sink, place)

    def _begin(self, row: Value, sink: Value, head: Index) -> None:
        """The row's query, and sums of nothing, or of its sink."""
        b, memory, lanes = self.b, self.memory, self.lanes
        source = b.gep(self.at["query"], b.mul(head, self.depth), memory.element)
        target = memory.query(row)

        def copy(at: Index, mask: Value | None) -> None:
            if memory.pairs:
                b.store(memory.load_pairs(source, at, mask)[0], b.gep(target, at, memory.element))
                return
            found = memory.load_cached(source, at, mask) if memory.unit > lanes else [self._load(source, at, mask)]
            for v, x in enumerate(found):
                b.store(x, b.gep(target, b.add(at, v * lanes), self.real))

        self._vectors(self.depth, copy)
        with b.loop(0, memory.padded_width(self.width), lanes) as loop:
            b.store(b.zero(vector(self.real, lanes)), b.gep(memory.sum(row), loop.index, self.real))
        top, total = constant(self.real, float("-inf")), constant(self.real, 0.0)
        if "sinks" in self.at:
            found = b.load(LLVM_TYPES[self.dtype], b.gep(self.at["sinks"], sink, memory.element))
            top, total = load_element(b, found, self.dtype), constant(self.real, 1.0)
        b.store(top, b.gep(memory.tops, row, self.real))
        b.store(total, b.gep(memory.totals, row, self.real))

    def _end(self, row: Value, _sink: Value, head: Index) -> None:
        """The sums of values by that of powers."""
        b, memory = self.b, self.memory
        target = b.gep(self.out, b.mul(head, self.width), memory.element)
        total = b.splat(b.load(self.real, b.gep(memory.totals, row, self.real)), self.lanes)

        def store(at: Index, mask: Value | None) -> None:
            places = [b.gep(memory.sum(row), b.add(at, v), self.real) for v in range(0, memory.unit, self.lanes)]
            made = [b.fdiv(b.load(vector(self.real, self.lanes), place), total) for place in places]
            memory.store_unit([store_element(b, x, self.dtype) for x in made], b.gep(target, at, memory.element), mask)

        self._vectors(self.width, store)

    def _load(self, base: Value, at: Index, mask: Value | None) -> Value:
        b, memory = self.b, self.memory
        return load_element(b, b.masked_load(memory.vector, b.gep(base, at, memory.element), mask), self.dtype)

    def _vectors(self, width: int, build: Callable[[Index, Value | None], None]) -> None:
        """``build`` for each unit of a row, the last one under a mask."""
        whole = width // self.lanes * self.lanes
        with self.b.loop(0, whole, self.memory.unit) as loop:
            build(loop.index, None)
        if whole < width:
            build(whole, self.b.tail_mask(width - whole, self.lanes))
