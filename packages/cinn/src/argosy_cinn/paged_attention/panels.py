"""A panel of places: keys in reading order, scores and their powers, sums of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from argosy_cinn import math
from argosy_cinn.forms.paged_attention import PagedAttentionForm
from argosy_cinn.loops.elementwise import load_element
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import DOUBLE, FLOAT, I8, I32, I64, LLVM_TYPES, Index, Value, bytes_of, constant, vector
from argosy_cinn.runtime.workers import scratch

#: Vectors of places in a panel: as many sums as hide the latency of one row's.
PANEL_VECTORS = 4
_MANY_REGISTERS = 32


class Memory:
    """A thread's scratch memory: a panel's keys and scores, and the rows' queries and sums."""

    def __init__(self, b: Function, form: PagedAttentionForm) -> None:
        self.b, self.dtype = b, form.result.dtype
        self.element = LLVM_TYPES[self.dtype]
        self.cached = form.operands[1].dtype
        self.real = DOUBLE if self.dtype == "float64" else FLOAT
        self.lanes = b.module.target.lanes(self.real)
        self.vector = vector(self.element, self.lanes)
        self.panel = PANEL_VECTORS * self.lanes
        self.height = 4 if b.module.target.registers >= _MANY_REGISTERS else 2
        self._depth, self._width = form.query[3], self.padded_width(form.width)
        depth, rows = self.padded_width(self._depth), self.padded_width(form.rows)
        counts = (depth * self.panel, form.rows * self.panel, form.rows * depth, form.rows * self._width, rows, rows)
        size = bytes_of(self.real)
        slab = scratch(b, sum(counts) * size + self.panel * 8)
        places = [b.gep(slab, sum(counts[:i]) * size, I8) for i in range(len(counts) + 1)]
        self.keys, self.scores, self._queries, self._sums, self.tops, self.totals, self.slots = places

    def load_cached(self, place: Value, mask: Value | None) -> Value:
        """A vector of a cache, as numbers."""
        found = self.b.masked_load(vector(LLVM_TYPES[self.cached], self.lanes), place, mask)
        return (
            load_element(self.b, found, self.cached)
            if self.cached == self.dtype
            else self.b.convert("sitofp", found, self.real)
        )

    def padded_width(self, width: int) -> int:
        """Whole vectors."""
        return -(-width // self.lanes) * self.lanes

    def query(self, row: Index) -> Value:
        """A row's query."""
        return self.b.gep(self._queries, self.b.mul(row, self.padded_width(self._depth)), self.real)

    def sum(self, row: Index) -> Value:
        """A row's sums of values."""
        return self.b.gep(self._sums, self.b.mul(row, self._width), self.real)

    def score(self, row: Index, place: Index = 0) -> Value:
        """A row's scores in the panel, later their powers."""
        return self.b.gep(self.scores, self.b.add(self.b.mul(row, self.panel), place), self.real)


#: Where a place's value lies, what it is multiplied with, and how many channels it has.
Values: TypeAlias = "tuple[Callable[[Value], Value], Callable[[Value], Value | None], int]"


class Rule(NamedTuple):
    """What makes weights of products, the least and largest position of the run, and where its places end."""

    scale: float
    window: int
    softcap: float
    low: Value
    high: Value
    end: Index


class Panel:
    """Some places of one sequence that begin at ``start``, for all rows of a run; ``position`` gives that of a row."""

    def __init__(
        self, b: Function, memory: Memory, rule: Rule, start: Value, position: Callable[[Index], Value]
    ) -> None:
        self.b, self.memory, self.rule, self.start, self.position = b, memory, rule, start, position
        self.lanes, self.real = memory.lanes, memory.real

    def find_slots(self, table: Value, block: int, blocks: Index) -> None:
        """Where each place is cached; those behind the last one are the last one's."""
        b = self.b
        last = b.sub(self.rule.end, 1)
        with b.loop(0, self.memory.panel) as loop:
            place = b.minimum(b.add(self.start, loop.index), last)
            entry = b.load(I64, b.gep(table, b.div(place, block), I64))
            known = b.minimum(b.maximum(entry, 0), b.sub(blocks, 1))
            b.store(b.index(b.add(b.mul(known, block), b.rem(place, block))), b.gep(self.memory.slots, loop.index, I64))

    def _slot(self, place: Index) -> Value:
        return self.b.load(I64, self.b.gep(self.memory.slots, place, I64))

    def copy_keys(self, entry: Callable[[Value], Value], scale: Callable[[Value], Value | None], depth: int) -> None:
        """Keys, times their scales where they have some, with places along the vectors."""
        b, memory, lanes = self.b, self.memory, self.lanes
        with (
            b.loop(0, memory.panel, lanes) as group,
            b.if_then(b.icmp("slt", b.add(self.start, group.index), self.rule.end)),
        ):
            slots = [self._slot(b.add(group.index, i)) for i in range(lanes)]
            keys, scales = [entry(slot) for slot in slots], [scale(slot) for slot in slots]

            def copy(at: Index, mask: Value | None) -> None:
                element = LLVM_TYPES[memory.cached]
                found = [memory.load_cached(b.gep(key, at, element), mask) for key in keys]
                found = [x if s is None else b.fmul(x, b.splat(s, lanes)) for x, s in zip(found, scales, strict=True)]
                for i, column in enumerate(b.transpose(found)):
                    place = b.add(b.mul(b.add(at, i), memory.panel), group.index)
                    b.store(column, b.gep(memory.keys, place, self.real))

            whole = depth // lanes * lanes
            with b.loop(0, whole, lanes) as loop:
                copy(loop.index, None)
            if whole < depth:
                copy(whole, b.tail_mask(depth - whole, lanes))

    def _tiles(self, rows: Index, build: Callable[[Index, int], None]) -> None:
        """``build`` for tiles of rows and their height, which changes no sum."""
        b, height = self.b, self.memory.height
        at = b.mul(b.div(rows, height), height)
        with b.loop(0, at, height) as loop:
            build(loop.index, height)
        while height > 1:
            height //= 2
            some = b.mul(b.rem(b.div(rows, height), 2), height)
            with b.if_then(b.icmp("ne", b.index(some), 0)):
                build(at, height)
            at = b.add(at, some)

    def score(self, rows: Index, depth: int) -> None:
        """Products of queries and keys."""
        b, memory = self.b, self.memory
        type = vector(self.real, self.lanes)

        def tile(row: Index, height: int) -> None:
            queries = [memory.query(b.add(row, i)) for i in range(height)]
            with b.loop(0, depth, carry=[b.zero(type)] * (height * PANEL_VECTORS)) as loop:
                line = b.gep(memory.keys, b.mul(loop.index, memory.panel), self.real)
                keys = [b.load(type, b.gep(line, v * self.lanes, self.real)) for v in range(PANEL_VECTORS)]
                sums = []
                for i, query in enumerate(queries):
                    factor = b.splat(b.load(self.real, b.gep(query, loop.index, self.real)), self.lanes)
                    sums += [b.fma(factor, key, loop.carry[i * PANEL_VECTORS + v]) for v, key in enumerate(keys)]
                loop.yield_values(*sums)
            for i, total in enumerate(loop.results):
                place = memory.score(b.add(row, i // PANEL_VECTORS), i % PANEL_VECTORS * self.lanes)
                b.store(total, place)

        self._tiles(rows, tile)

    def _bounds(self, low: Value, high: Value) -> tuple[Index, Index]:
        """The panel's places that positions from ``low`` to ``high`` all see."""
        b, width = self.b, self.memory.panel
        first: Index = 0
        if self.rule.window:
            first = b.minimum(b.maximum(b.sub(b.sub(high, self.rule.window - 1), self.start), 0), width)
        behind = b.minimum(b.add(low, 1), self.rule.end)
        return first, b.minimum(b.maximum(b.sub(behind, self.start), 0), width)

    def weigh(self, rows: Index) -> None:
        """Powers of scores, and sums so far rescaled to them."""
        b, memory, lanes = self.b, self.memory, self.lanes
        with b.loop(0, rows) as loop:
            row = loop.index
            position = self.position(row)
            scores = self._masked_scores(row, *self._bounds(position, position))
            top = scores[0]
            for x in scores[1:]:
                top = b.fmax(top, x)
            before = b.load(self.real, b.gep(memory.tops, row, self.real))
            after = b.fmax(before, b.reduce("fmax", top))
            shift = b.select(b.fcmp("oeq", after, float("-inf")), b.zero(self.real), after)
            powers = [self._function("exp", b.fsub(x, b.splat(shift, lanes))) for x in scores]
            total = powers[0]
            for v, x in enumerate(powers):
                b.store(x, memory.score(row, v * lanes))
                total = b.fadd(total, x) if v else x
            less = self._function("exp", b.fsub(before, shift))
            place = b.gep(memory.totals, row, self.real)
            b.store(after, b.gep(memory.tops, row, self.real))
            b.store(b.fma(b.load(self.real, place), less, b.reduce("fadd", total)), place)
            with b.if_then(b.fcmp("une", less, 1.0)):
                self._rescale(row, b.splat(less, lanes))

    def _masked_scores(self, row: Value, first: Index, behind: Index) -> list[Value]:
        """A row's scores, minus infinity where it does not see."""
        b, lanes, rule = self.b, self.lanes, self.rule
        bounds = [b.splat(b.convert("trunc", b.index(x), I32), lanes) for x in (first, behind)]
        made = []
        for v in range(PANEL_VECTORS):
            x = b.fmul(b.load(vector(self.real, lanes), self.memory.score(row, v * lanes)), rule.scale)
            if rule.softcap:
                x = b.fmul(self._function("tanh", b.fmul(x, 1 / rule.softcap)), rule.softcap)
            place = b.binary("add", b.iota(I32, lanes), v * lanes)
            inside = b.icmp("slt", place, bounds[1])
            if rule.window:
                inside = b.binary("and", inside, b.icmp("sge", place, bounds[0]))
            made.append(b.select(inside, x, constant(x.type, float("-inf"))))
        return made

    def _function(self, name: str, x: Value) -> Value:
        return math.FLOAT32[name](self.b, x) if self.real == FLOAT else math.library(self.b, math.LIBRARY[name], x)

    def _rescale(self, row: Value, factor: Value) -> None:
        b, sums = self.b, self.memory.sum(row)
        with b.loop(0, self.memory._width, self.lanes) as loop:
            place = b.gep(sums, loop.index, self.real)
            b.store(b.fmul(b.load(factor.type, place), factor), place)

    def add_values(
        self, rows: Index, entry: Callable[[Value], Value], scale: Callable[[Value], Value | None], width: int
    ) -> None:
        """Sums of values by powers: of all rows together where they see the same places of the panel, else row by row,
        so that what a row does not see is not even multiplied by zero."""
        b, rule = self.b, self.rule
        first, behind = self._bounds(rule.low, rule.high)
        alike = b.icmp("eq", b.sub(behind, first), self.memory.panel)
        alike = b.binary("or", alike, b.icmp("eq", rule.low, rule.high))
        values = (entry, scale, width)

        def add_tiles() -> list[Value]:
            self._tiles(rows, lambda row, height: self._add(row, height, first, behind, values))
            return []

        def add_rows() -> list[Value]:
            with b.loop(0, rows) as loop:
                position = self.position(loop.index)
                self._add(loop.index, 1, *self._bounds(position, position), values)
            return []

        b.either(alike, add_tiles, add_rows)

    def _add(self, row: Index, height: int, first: Index, behind: Index, values: Values) -> None:
        """The sums of some rows over places that all of them see."""
        width = values[2]
        step = PANEL_VECTORS * self.lanes
        whole = width // step * step
        with self.b.loop(0, whole, step) as loop:
            self._add_columns(row, height, first, behind, values, loop.index, [None] * PANEL_VECTORS)
        if whole < width:
            rest = width - whole
            masks = [
                self.b.tail_mask(rest - at, self.lanes) if rest - at < self.lanes else None
                for at in range(0, rest, self.lanes)
            ]
            self._add_columns(row, height, first, behind, values, whole, masks)

    def _add_columns(
        self, row: Index, height: int, first: Index, behind: Index, values: Values, column: Index,
        masks: list[Value | None],
    ) -> None:  # fmt: skip
        b, memory, lanes, count = self.b, self.memory, self.lanes, len(masks)
        places = [
            b.gep(memory.sum(b.add(row, i)), b.add(column, v * lanes), self.real)
            for i in range(height)
            for v in range(count)
        ]
        scores = [memory.score(b.add(row, i)) for i in range(height)]
        with b.loop(first, behind, carry=[b.load(vector(self.real, lanes), place) for place in places]) as loop:
            entry, scale, _ = values
            slot = self._slot(loop.index)
            value, factor = entry(slot), scale(slot)
            element = LLVM_TYPES[memory.cached]
            found = [
                memory.load_cached(b.gep(value, b.add(column, v * lanes), element), m) for v, m in enumerate(masks)
            ]
            sums = []
            for i, score in enumerate(scores):
                power = b.load(self.real, b.gep(score, loop.index, self.real))
                power = b.splat(power if factor is None else b.fmul(power, factor), lanes)
                sums += [b.fma(power, x, loop.carry[i * count + v]) for v, x in enumerate(found)]
            loop.yield_values(*sums)
        for place, total in zip(places, loop.results, strict=True):
            b.store(total, place)
