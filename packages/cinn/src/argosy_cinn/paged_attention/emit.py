"""The code of paged attention: a chunk is a tile of tokens and one cached head.

Tokens of a tile that belong to one sequence (a run) pass over its places together, panel by panel: keys are copied
with places along the vectors, scores and their powers are made for all rows, sums of values are rescaled where a larger
score has come (Milakov and Gimelshein, 2018). Panels begin at multiples of their width, every score is one chain of
sums and every sum of values another, and a row leaves out what it does not see: a token's bits depend on nothing but
its own sequence up to its position, whatever else is computed beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from argosy_cinn.emitter import Emitter
from argosy_cinn.forms.paged_attention import PagedAttentionForm
from argosy_cinn.loops.elementwise import convert, load_element, store_element
from argosy_cinn.loops.nest import PARAMETERS, Pointers
from argosy_cinn.paged_attention.panels import Memory, Panel, Rule
from argosy_cinn.printers.llvm import Function, Module
from argosy_cinn.printers.types import DOUBLE, FLOAT, I64, LLVM_TYPES, Index, Value, constant, vector
from argosy_cinn.shapes import sizes
from argosy_phi_ops.primitives.attention import split_others


def emit_paged_attention(module: Module, name: str, form: PagedAttentionForm, slots: Mapping[Any, int]) -> None:
    """Define the kernel function ``name``."""
    with module.function(name, PARAMETERS, export=False, attributes="noinline") as b:
        table, chunk, _ = b.arguments
        b.sizes_from(table, len(slots))
        _Chunk(b, form, Pointers(b, table, slots)).emit(chunk)


EMITTER = Emitter(emit_paged_attention, lambda form, target: form.chunks)
"""For `argosy_cinn.kinds`."""


class _Chunk:
    def __init__(self, b: Function, form: PagedAttentionForm, pointers: Pointers) -> None:
        self.b, self.form, self.dtype = b, form, form.result.dtype
        self.tokens, self.cached, self.shared, self.depth = form.query
        self.width = form.width
        sinks, scales = split_others(form.operands[6:])
        names = ("query", "keys", "values", "positions", "rows", "tables", *["sinks"] * len(sinks))
        names += ("key scales", "value scales") if scales else ()
        self.at = {name: pointers(v) for name, v in zip(names, form.operands, strict=True)}
        self.out = pointers(form.result)
        self.memory = Memory(b, form)
        self.lanes, self.real = self.memory.lanes, self.memory.real

    def emit(self, chunk: Value) -> None:
        """Run after run of the tile."""
        b = self.b
        self.head = b.rem(chunk, self.cached)
        begin = b.mul(b.div(chunk, self.cached), self.form.tile_tokens)
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
        """``count`` tokens of one row of the tables."""
        b, form = self.b, self.form
        entries, block = sizes(form.operands[5])[1], sizes(form.operands[1])[1]
        rows = b.mul(count, self.shared)
        self._each_row(rows, first, self._begin)
        end = b.minimum(b.add(high, 1), b.mul(b.number(entries), block))
        before = b.maximum(b.sub(low, form.window - 1), 0) if form.window else 0
        width = self.memory.panel
        known = b.minimum(b.maximum(row, 0), b.sub(b.number(sizes(form.operands[5])[0]), 1))
        table = b.gep(self.at["tables"], b.mul(known, b.number(entries)), I64)
        with b.loop(b.mul(b.div(before, width), width), end, width) as places:
            rule = Rule(form.scale, form.window, form.softcap, low, high, end)
            panel = Panel(
                b, self.memory, rule, places.index, lambda r: self._position(b.add(first, b.div(r, self.shared)))
            )
            panel.find_slots(table, block, b.number(sizes(form.operands[1])[0]))
            panel.copy_keys(
                lambda slot: self._entry("keys", slot), lambda slot: self._scale("key scales", slot), self.depth
            )
            panel.score(rows, self.depth)
            panel.weigh(rows)
            panel.add_values(
                rows,
                lambda slot: self._entry("values", slot),
                lambda slot: self._scale("value scales", slot),
                self.width,
            )
        self._each_row(rows, first, self._end)

    def _entry(self, cache: str, slot: Value) -> Value:
        """What is cached of the chunk's head at a place."""
        b, width = self.b, sizes(self.form.operands[1 if cache == "keys" else 2])[3]
        place = b.mul(b.add(b.mul(slot, self.cached), self.head), width)
        return b.gep(self.at[cache], place, LLVM_TYPES[self.memory.cached])

    def _scale(self, name: str, slot: Value) -> Value | None:
        """What it is multiplied with, where caches hold bytes."""
        b = self.b
        if name not in self.at:
            return None
        scale = b.load(FLOAT, b.gep(self.at[name], b.add(b.mul(slot, self.cached), self.head), FLOAT))
        return convert(b, scale, "float32", "float64") if self.real == DOUBLE else scale

    def _each_row(self, rows: Index, first: Value, build: Callable[[Value, Index], None]) -> None:
        """``build`` for each row of scores, with the number of its head of a token in query and result."""
        b = self.b
        with b.loop(0, rows) as loop:
            token, group = b.add(first, b.div(loop.index, self.shared)), b.rem(loop.index, self.shared)
            build(loop.index, b.add(b.mul(b.add(b.mul(token, self.cached), self.head), self.shared), group))

    def _begin(self, row: Value, head: Index) -> None:
        """The row's query, and sums of nothing, or of its sink."""
        b, memory, lanes = self.b, self.memory, self.lanes
        source = b.gep(self.at["query"], b.mul(head, self.depth), memory.element)
        target = memory.query(row)
        self._vectors(self.depth, lambda at, mask: b.masked_store(
            self._load(b.gep(source, at, memory.element), mask), b.gep(target, at, self.real), mask
        ))  # fmt: skip
        with b.loop(0, memory.padded_width(self.width), lanes) as loop:
            b.store(b.zero(vector(self.real, lanes)), b.gep(memory.sum(row), loop.index, self.real))
        top, total = constant(self.real, float("-inf")), constant(self.real, 0.0)
        if "sinks" in self.at:
            place = b.add(b.mul(self.head, self.shared), b.rem(row, self.shared))
            sink = b.load(LLVM_TYPES[self.dtype], b.gep(self.at["sinks"], place, memory.element))
            top, total = load_element(b, sink, self.dtype), constant(self.real, 1.0)
        b.store(top, b.gep(memory.tops, row, self.real))
        b.store(total, b.gep(memory.totals, row, self.real))

    def _end(self, row: Value, head: Index) -> None:
        """The sums of values by that of powers."""
        b, memory = self.b, self.memory
        target = b.gep(self.out, b.mul(head, self.width), memory.element)
        total = b.splat(b.load(self.real, b.gep(memory.totals, row, self.real)), self.lanes)

        def store(at: Index, mask: Value | None) -> None:
            made = b.fdiv(b.load(vector(self.real, self.lanes), b.gep(memory.sum(row), at, self.real)), total)
            b.masked_store(store_element(b, made, self.dtype), b.gep(target, at, memory.element), mask)

        self._vectors(self.width, store)

    def _load(self, place: Value, mask: Value | None) -> Value:
        return load_element(self.b, self.b.masked_load(self.memory.vector, place, mask), self.dtype)

    def _vectors(self, width: int, build: Callable[[Index, Value | None], None]) -> None:
        """``build`` for each vector of a row, the last one under a mask."""
        whole = width // self.lanes * self.lanes
        with self.b.loop(0, whole, self.lanes) as loop:
            build(loop.index, None)
        if whole < width:
            build(whole, self.b.tail_mask(width - whole, self.lanes))
