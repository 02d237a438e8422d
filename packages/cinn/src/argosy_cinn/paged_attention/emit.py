"""The code of paged attention: a chunk is a tile of tokens and some cached heads, with all or some of the heads that
share one.

Tokens of a tile that belong to one sequence (a run) pass over its places together, panel by panel: scores and their
powers are made for all rows, sums of values are rescaled where a larger score has come (Milakov and Gimelshein, 2018).
Where a head has few rows, those of all heads of the chunk, whose caches lie side by side, pass over some places of a
panel before the next ones: first over keys, while the panel's values are prefetched in the order of memory, then over
values, while the next panel's keys are. Keys are copied as floats for rows of several tiles, unless the machine
multiplies pairs of bfloat16 as they are: powers, which are at most 1, are then rounded to it, as fused attention does,
and products of denormal numbers are zero.
Panels begin at multiples of their width, every score is one tree of sums and every sum of values one chain, and a row
leaves out what it does not see: a token's bits depend on nothing but its own sequence up to its position, whatever else
is computed beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from argosy_cinn.emitter import Emitter
from argosy_cinn.forms.paged_attention import PagedAttentionForm
from argosy_cinn.loops.elementwise import load_element, store_element
from argosy_cinn.loops.nest import PARAMETERS, Pointers
from argosy_cinn.paged_attention.memory import FEW_ROWS, Memory
from argosy_cinn.paged_attention.panels import Cache, Panel, Rule, Strip
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

#: Places of which the values of all heads are read before the next ones.
_VALUES = 8


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
        """``count`` tokens of one row of the tables: heads together where they have few rows each, which read what lies
        side by side, else one after the other."""
        b, rows = self.b, self.b.index(self.b.mul(count, self.part))
        few = b.icmp("sle", rows, FEW_ROWS)
        step = b.select(few, constant(I64, self.form.heads), constant(I64, 1))
        with b.loop(*self.heads, step) as loop:
            heads = loop.index, b.minimum(b.add(loop.index, step), self.heads[1])
            self._each_row(heads, rows, first, self._begin)
            self._panels(heads, rows, first, row, (low, high))
            self._each_row(heads, rows, first, self._end)

    def _panels(
        self, heads: tuple[Value, Index], rows: Index, first: Value, row: Value, positions: tuple[Value, Value]
    ) -> None:
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
        self._find_entries(self.memory.entries[0], heads, start, end, table)
        position = lambda r: self._position(b.add(first, b.div(r, self.part)))  # noqa: E731
        with b.loop(start, end, width, self.memory.entries) as places:
            entries, ahead = places.carry
            self._find_entries(ahead, heads, b.add(places.index, width), end, table)

            def panel(head: Value) -> Panel:
                number = b.sub(head, heads[0])
                memory = self.memory.rows_from(b.mul(number, rows))
                own, count = b.gep(entries, number, I64), b.sub(heads[1], heads[0])
                return Panel(b, memory, rule, places.index, position, own, count)

            self._panel(heads, rows, panel, self._cache(1, ahead), self._cache(2, entries))
            places.yield_values(ahead, entries)

    def _panel(
        self,
        heads: tuple[Value, Index],
        rows: Index,
        panel: Callable[[Value], Panel],
        keys: Cache,
        values: Cache,
    ) -> None:
        """What a panel's places give to the rows of some heads. Those of one tile read what is cached where it lies, in
        the order of memory: a few places of all heads, then the next ones; values are asked for while keys are read,
        and the next panel's keys while values are."""
        b, lanes = self.b, self.lanes
        few = b.icmp("sle", rows, self.memory.height)
        whole = constant(I64, self.memory.panel)
        tiles, some = b.div(rows, self.memory.height), [constant(I64, n) for n in (0, 1, 3)]
        turns = b.select(b.icmp("sge", tiles, 4), some[2], b.select(b.icmp("sge", tiles, 2), some[1], some[0]))

        def each_strip(count: int, build: Callable[[Panel, Strip], None]) -> None:
            """``build`` for ``count`` places of each head, then the next ones; for all of them where rows are many."""
            step = b.select(few, constant(I64, count), whole)
            with b.loop(0, whole, step) as strip, b.loop(*heads) as head:
                number = b.add(b.mul(strip.index, b.sub(heads[1], heads[0])), b.mul(b.sub(head.index, heads[0]), step))
                build(panel(head.index), Strip(strip.index, step, number, turns))

        def score_strips() -> list[Value]:
            each_strip(lanes, lambda part, strip: part.score_cached(rows, keys, values, strip))
            return []

        def score_copied() -> list[Value]:
            each_strip(self.memory.panel, lambda part, strip: part.score_copied(rows, keys, values, strip))
            return []

        if self.memory.pairs:
            score_strips()
        else:
            b.either(few, score_strips, score_copied)
        with b.loop(*heads) as loop:
            panel(loop.index).weigh(rows, keys, values)
        each_strip(_VALUES, lambda part, strip: part.add_values(rows, values, keys, strip))

    def _find_entries(self, entries: Value, heads: tuple[Value, Index], start: Index, end: Index, table: Value) -> None:
        """Where some heads are cached at each place of a panel, counted in heads; those behind the last place are the
        last one's."""
        b, (blocks, block) = self.b, sizes(self.form.operands[1])[:2]
        with b.loop(0, self.memory.panel) as loop:
            place = b.minimum(b.add(start, loop.index), b.sub(end, 1))
            entry = b.load(I64, b.gep(table, b.div(place, block), I64))
            known = b.minimum(b.maximum(entry, 0), b.sub(b.number(blocks), 1))
            slot = b.add(b.mul(known, block), b.rem(place, block))
            first, number = b.mul(slot, self.cached), b.mul(loop.index, b.sub(heads[1], heads[0]))
            with b.loop(*heads) as head:
                target = b.gep(entries, b.add(number, b.sub(head.index, heads[0])), I64)
                b.store(b.index(b.add(first, head.index)), target)
            for name in ("key scales", "value scales"):
                if name in self.at:
                    b.prefetch(b.gep(self.at[name], b.add(first, heads[0]), FLOAT))

    def _cache(self, number: int, ahead: Value) -> Cache:
        """The keys (1) or values (2); ``ahead``: the entries that are to be asked for."""
        b, operand = self.b, self.form.operands[number]
        name, used = (("keys", self.depth), ("values", self.width))[number - 1]
        width, element = sizes(operand)[3], LLVM_TYPES[self.memory.cached]
        is_key = number == 2 and operand is self.form.operands[1]
        entry = lambda number: b.gep(self.at[name], b.mul(number, width), element)  # noqa: E731
        return Cache(entry, used, self.at.get(f"{name[:-1]} scales"), None if is_key else ahead)

    def _each_row(
        self, heads: tuple[Value, Index], rows: Index, first: Value, build: Callable[[Value, Value, Index], None]
    ) -> None:
        """``build`` for each row of scores, with the number of its head, and of that among those of all tokens."""
        b = self.b
        with b.loop(*heads) as head, b.loop(0, rows) as loop:
            token = b.add(first, b.div(loop.index, self.part))
            group = b.add(self.first_shared, b.rem(loop.index, self.part))
            place = b.add(b.mul(b.add(b.mul(token, self.cached), head.index), self.shared), group)
            row = b.index(b.add(b.mul(b.sub(head.index, heads[0]), rows), loop.index))
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
