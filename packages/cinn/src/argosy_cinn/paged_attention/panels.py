"""A panel of places: scores of keys, their powers, sums of values."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import NamedTuple, TypeAlias

from argosy_cinn import functions
from argosy_cinn.contraction.tile import multiply_add
from argosy_cinn.forms.paged_attention import PagedAttentionForm
from argosy_cinn.loops.elementwise import convert, load_element
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import (
    BFLOAT,
    DOUBLE,
    FLOAT,
    I1,
    I8,
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

#: Vectors of what lies at a place of a key or value, from a number on, under a mask.
Load: TypeAlias = Callable[[Value, Index, "Value | None"], "list[Value]"]
#: Vectors of places in a panel: as many sums as hide the latency of one row's.
PANEL_VECTORS = 4
#: Keys whose products with some rows are summed at a time.
_KEYS = 4
#: Rows of a head up to which those of all heads of a chunk pass over a panel before the next one.
FEW_ROWS = 16
_MANY_REGISTERS = 32
_LINE = 64
#: The second-level cache, as `Function.prefetch` counts: keys of one head are as far apart as tokens are, so that they
#: share few sets of the first one.
_SECOND_LEVEL = 2


class Memory:
    """A thread's scratch memory: a panel's keys and scores, where it is cached and its scales, and the rows' queries
    and sums."""

    def __init__(self, b: Function, form: PagedAttentionForm) -> None:
        self.b, self.dtype = b, form.result.dtype
        self.element = LLVM_TYPES[self.dtype]
        self.cached = form.operands[1].dtype
        self.real = DOUBLE if self.dtype == "float64" else FLOAT
        self.lanes = b.module.target.lanes(self.real)
        self.vector = vector(self.element, self.lanes)
        self.panel = PANEL_VECTORS * self.lanes
        whole = not any(size % (2 * self.lanes) for size in (form.query[3], form.width))
        #: Numbers of a cache that are read at a time; sums over channels and those of values are in that order.
        self.unit = self.lanes * (2 if self.cached == "bfloat16" and whole else 1)
        target, exact = b.module.target, self.cached == self.dtype and self.unit > self.lanes
        #: Whether scores are sums of pairs of products: no number of a query or a key is converted.
        self.pairs = exact and target.vector_bits == 512 and target.has("avx512bf16")
        self.height = 4 if b.module.target.registers >= _MANY_REGISTERS else 2
        self.depth, self._width = form.query[3], self.padded_width(form.width)
        depth, rows = self.padded_width(self.depth), max(form.rows, min(form.rows, FEW_ROWS) * form.heads)
        padded = self.padded_width(rows)
        counts = [depth * self.panel, rows * self.panel, rows * depth, rows * self._width, padded, padded]
        counts += [self.panel, self.panel]
        size, entries = bytes_of(self.real), self.panel * form.heads
        slab = scratch(b, sum(counts) * size + 2 * entries * 8)
        places = [b.gep(slab, sum(counts[:i]) * size, I8) for i in range(len(counts) + 1)]
        self.keys, self.scores, self._queries, self._sums, self.tops, self.totals, *rest = places
        self.key_scales, self.value_scales, table = rest
        #: Where the places of two panels in turn are cached.
        self.entries = (table, b.gep(table, entries, I64))

    def rows_from(self, first: Index) -> Memory:
        """The same memory, whose rows begin at number ``first``."""
        b, same = self.b, copy(self)
        same._queries, same._sums = self.query(first), self.sum(first)
        same.scores = self.score(first)
        same.tops, same.totals = (b.gep(place, first, self.real) for place in (self.tops, self.totals))
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
        return self.b.gep(self._sums, self.b.mul(row, self._width), self.real)

    def score(self, row: Index, place: Index = 0) -> Value:
        """A row's scores in the panel, later their powers."""
        return self.b.gep(self.scores, self.b.add(self.b.mul(row, self.panel), place), self.real)


class Cache(NamedTuple):
    """Keys or values: ``entry`` gives the ``width`` numbers of an entry; ``scales`` of entries or None; ``ahead``: the
    entries of the next panel's keys, or of this panel's values, that are to be asked for, in the order of memory, or
    None where values are read as keys."""

    entry: Callable[[Value], Value]
    width: int
    scales: Value | None
    ahead: Value | None


class Strip(NamedTuple):
    """``places`` of a panel, so many, from ``start`` on; what is asked for beside them begins with number ``ahead``."""

    start: Value
    places: Value
    ahead: Index


class Rule(NamedTuple):
    """What makes weights of products, the least and largest position of the run, and where its places end."""

    scale: float
    window: int
    softcap: float
    low: Value
    high: Value
    end: Index


class Panel:
    """Some places of one sequence that begin at ``start``, for all rows of a run; ``position`` gives that of a row;
    ``entries``: where a head is cached at each place, which lie ``heads`` apart."""

    def __init__(
        self,
        b: Function,
        memory: Memory,
        rule: Rule,
        start: Value,
        position: Callable[[Index], Value],
        entries: Value,
        heads: Index,
    ) -> None:
        self.b, self.memory, self.rule, self.start, self.position = b, memory, rule, start, position
        self.entries, self.heads = entries, heads
        self.lanes, self.real = memory.lanes, memory.real

    def _entry(self, place: Index) -> Value:
        return self.b.load(I64, self.b.gep(self.entries, self.b.mul(place, self.heads), I64))

    def _prefetch(self, cache: Cache, strip: Strip, number: Index, condition: Value) -> None:
        """Ask for an entry of a cache that is read later, where that is not asked for otherwise."""
        b = self.b
        if cache.ahead is None:
            return
        with b.if_then(condition):
            base = cache.entry(b.load(I64, b.gep(cache.ahead, b.add(strip.ahead, number), I64)))
            for at in range(0, cache.width * bytes_of(LLVM_TYPES[self.memory.cached]), _LINE):
                b.prefetch(b.gep(base, at, I8), level=_SECOND_LEVEL)

    def _prefetch_between(
        self, cache: Cache, strip: Strip, row: Index, width: int, column: Index, place: Value
    ) -> None:
        """The same in even steps, while columns of ``width`` are passed over one after the other, and places of each,
        for the first row."""
        b, passes = self.b, -(-width // (PANEL_VECTORS * self.lanes))
        passed = b.sub(place, strip.start)
        turn = b.binary("and", b.icmp("eq", b.index(b.rem(passed, passes)), 0), b.icmp("eq", b.index(row), 0))
        first = b.mul(b.div(column, PANEL_VECTORS * self.lanes), b.ceil_div(strip.places, passes))
        number = b.minimum(b.add(first, b.div(passed, passes)), b.sub(strip.places, 1))
        self._prefetch(cache, strip, number, turn)

    def _copy_scales(self, cache: Cache, target: Value) -> None:
        """The factors of the panel's places, beside each other."""
        b = self.b
        if cache.scales is None:
            return
        with b.loop(0, self.memory.panel) as loop:
            scale = b.load(FLOAT, b.gep(cache.scales, self._entry(loop.index), FLOAT))
            scale = convert(b, scale, "float32", "float64") if self.real == DOUBLE else scale
            b.store(scale, b.gep(target, loop.index, self.real))

    def _groups(self) -> Index:
        """Places up to the last one's vector."""
        b, lanes = self.b, self.lanes
        left = b.minimum(b.sub(self.rule.end, self.start), self.memory.panel)
        return b.mul(b.ceil_div(left, lanes), lanes)

    def _copy_keys(self, keys: Cache, values: Cache, strip: Strip) -> None:
        """Keys as numbers beside each other, for many rows; values are asked for meanwhile."""
        b, memory, lanes = self.b, self.memory, self.lanes
        with b.loop(0, self._groups()) as loop:
            place = loop.index
            self._prefetch(values, strip, place, constant(I1, 1))
            source, target = keys.entry(self._entry(place)), memory.key(place)

            def convert_key(at: Index, mask: Value | None, source: Value = source, target: Value = target) -> None:
                for v, found in enumerate(memory.load_cached(source, at, mask)):
                    b.store(found, b.gep(target, b.add(at, v * lanes), self.real))

            whole = keys.width // lanes * lanes
            with b.loop(0, whole, memory.unit) as columns:
                convert_key(columns.index, None)
            if whole < keys.width:
                convert_key(whole, b.tail_mask(keys.width - whole, lanes))

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

    def score_copied(self, rows: Index, keys: Cache, values: Cache, strip: Strip) -> None:
        """Products of queries and copied keys of the whole panel."""
        b, memory = self.b, self.memory
        self._copy_keys(keys, values, strip)
        type, depth = vector(self.real, self.lanes), memory.padded_width(memory.depth)

        def load(key: Value, at: Index, mask: Value | None) -> list[Value]:
            starts = range(0, memory.unit, self.lanes)
            return [b.load(type, b.gep(key, b.add(at, start), self.real)) for start in starts]

        def tile(row: Index, height: int) -> None:
            with b.loop(0, self._groups(), self.lanes) as loop:
                self._score(row, height, loop.index, memory.key, load, depth)

        self._tiles(rows, tile)

    def score_cached(self, rows: Index, keys: Cache, values: Cache, strip: Strip) -> None:
        """Products of queries and a strip's keys where they are cached; values are asked for meanwhile."""
        b, load = self.b, self.memory.load_pairs if self.memory.pairs else self.memory.load_cached
        end = b.minimum(b.add(strip.start, strip.places), self._groups())

        def tile(row: Index, height: int) -> None:
            is_first = b.icmp("eq", b.index(row), 0)
            with b.loop(strip.start, end, self.lanes) as loop:
                entry = lambda place: keys.entry(self._entry(place))  # noqa: E731
                ahead = lambda place: self._prefetch(values, strip, b.sub(place, strip.start), is_first)  # noqa: E731
                self._score(row, height, loop.index, entry, load, keys.width, ahead)

        self._tiles(rows, tile)

    def _score(
        self, row: Index, height: int, place: Index, key: Callable[[Index], Value],
        load: Load, depth: int,
        ahead: Callable[[Index], None] = lambda place: None,
    ) -> None:  # fmt: skip
        """Scores of some rows at a vector of places: of each, a sum for each lane of a key, and neighbours added."""
        b, lanes = self.b, self.lanes
        queries = [self.memory.query(b.add(row, i)) for i in range(height)]
        count, parts = min(_KEYS, lanes), []
        for first in range(0, lanes, count):
            places = [b.add(place, first + i) for i in range(count)]
            for each in places:
                ahead(each)
            sums = self._products(queries, [key(each) for each in places], load, depth)
            parts.append([self._add_neighbours(sums[i * count : (i + 1) * count], 1) for i in range(height)])
        for i in range(height):
            total = self._add_neighbours([part[i] for part in parts], count)
            b.store(total, self.memory.score(b.add(row, i), place))

    def _products(self, queries: list[Value], keys: list[Value], load: Load, depth: int) -> list[Value]:
        """For each query and key the sums of products of their lanes."""
        b, lanes = self.b, self.lanes
        type = vector(self.real, lanes)

        def step(at: Index, mask: Value | None, sums: list[Value]) -> list[Value]:
            rows = [self._query_vectors(query, at) for query in queries]
            sums = list(sums)
            for j, key in enumerate(keys):
                for v, found in enumerate(load(key, at, mask)):
                    for i, row in enumerate(rows):
                        place = i * len(keys) + j
                        sums[place] = multiply_add(b, 2 if self.memory.pairs else 1, row[v], found, sums[place])
            return sums

        whole = depth // lanes * lanes
        with b.loop(0, whole, self.memory.unit, [b.zero(type)] * (len(queries) * len(keys))) as loop:
            loop.yield_values(*step(loop.index, None, list(loop.carry)))
        if whole == depth:
            return list(loop.results)
        return step(whole, b.tail_mask(depth - whole, lanes), list(loop.results))

    def _query_vectors(self, query: Value, at: Index) -> list[Value]:
        b, memory, type = self.b, self.memory, vector(self.real, self.lanes)
        if memory.pairs:
            return memory.load_pairs(query, at, None)
        return [b.load(type, b.gep(query, b.add(at, v), self.real)) for v in range(0, memory.unit, self.lanes)]

    def _add_neighbours(self, sums: list[Value], distance: int) -> Value:
        """The n vectors' lanes that are ``distance`` apart added, then those twice as far, until lane i has sums of
        vector i / distance (mod n)."""
        b, lanes = self.b, self.lanes
        while len(sums) > 1:
            low = [j if not j & distance else lanes + (j ^ distance) for j in range(lanes)]
            high = [j | distance if not j & distance else lanes + j for j in range(lanes)]
            sums = [
                b.fadd(b.shuffle(x, y, low), b.shuffle(x, y, high)) for x, y in zip(sums[::2], sums[1::2], strict=True)
            ]
            distance *= 2
        return sums[0]

    def _bounds(self, low: Value, high: Value) -> tuple[Index, Index]:
        """The panel's places that positions from ``low`` to ``high`` all see."""
        b, width = self.b, self.memory.panel
        first: Index = 0
        if self.rule.window:
            first = b.minimum(b.maximum(b.sub(b.sub(high, self.rule.window - 1), self.start), 0), width)
        behind = b.minimum(b.add(low, 1), self.rule.end)
        return first, b.minimum(b.maximum(b.sub(behind, self.start), 0), width)

    def weigh(self, rows: Index, keys: Cache, values: Cache) -> None:
        """Powers of scores, times their values' scales, and sums so far rescaled to them."""
        b, memory, lanes = self.b, self.memory, self.lanes
        self._copy_scales(keys, memory.key_scales)
        self._copy_scales(values, memory.value_scales)
        with b.loop(0, rows) as loop:
            row = loop.index
            position = self.position(row)
            scores = self._masked_scores(row, keys, *self._bounds(position, position))
            top = scores[0]
            for x in scores[1:]:
                top = b.fmax(top, x)
            before = b.load(self.real, b.gep(memory.tops, row, self.real))
            after = b.fmax(before, b.reduce("fmax", top))
            shift = b.select(b.fcmp("oeq", after, float("-inf")), b.zero(self.real), after)
            powers = [self._function("exp", b.fsub(x, b.splat(shift, lanes))) for x in scores]
            total = powers[0]
            for v, x in enumerate(powers):
                b.store(self._scale(x, values, memory.value_scales, v), memory.score(row, v * lanes))
                total = b.fadd(total, x) if v else x
            less = self._function("exp", b.fsub(before, shift))
            place = b.gep(memory.totals, row, self.real)
            b.store(after, b.gep(memory.tops, row, self.real))
            b.store(b.fma(b.load(self.real, place), less, b.reduce("fadd", total)), place)
            with b.if_then(b.fcmp("une", less, 1.0)):
                self._rescale(row, b.splat(less, lanes))

    def _scale(self, x: Value, cache: Cache, scales: Value, number: int) -> Value:
        """A vector of the panel's scores or powers times the scales of a cache, where it has some."""
        b = self.b
        return x if cache.scales is None else b.fmul(x, b.load(x.type, b.gep(scales, number * self.lanes, self.real)))

    def _masked_scores(self, row: Value, keys: Cache, first: Index, behind: Index) -> list[Value]:
        """A row's scores, minus infinity where it does not see."""
        b, lanes, rule = self.b, self.lanes, self.rule
        bounds = [b.splat(b.convert("trunc", b.index(x), I32), lanes) for x in (first, behind)]
        made = []
        for v in range(PANEL_VECTORS):
            x = b.fmul(b.load(vector(self.real, lanes), self.memory.score(row, v * lanes)), rule.scale)
            x = self._scale(x, keys, self.memory.key_scales, v)
            if rule.softcap:
                x = b.fmul(self._function("tanh", b.fmul(x, 1 / rule.softcap)), rule.softcap)
            place = b.binary("add", b.iota(I32, lanes), v * lanes)
            inside = b.icmp("slt", place, bounds[1])
            if rule.window:
                inside = b.binary("and", inside, b.icmp("sge", place, bounds[0]))
            made.append(b.select(inside, x, constant(x.type, float("-inf"))))
        return made

    def _function(self, name: str, x: Value) -> Value:
        return functions.apply(self.b, name, x)

    def _rescale(self, row: Value, factor: Value) -> None:
        b, sums = self.b, self.memory.sum(row)
        with b.loop(0, self.memory._width, self.lanes) as loop:
            place = b.gep(sums, loop.index, self.real)
            b.store(b.fmul(b.load(factor.type, place), factor), place)

    def add_values(self, rows: Index, values: Cache, keys: Cache, strip: Strip) -> None:
        """Sums of a strip's values by powers: of all rows together where they see the same places of the panel, else
        row by row, so that what a row does not see is not even multiplied by zero; keys are asked for meanwhile."""
        b, rule = self.b, self.rule
        first, behind = self._bounds(rule.low, rule.high)
        alike = b.icmp("eq", b.sub(behind, first), self.memory.panel)
        alike = b.binary("or", alike, b.icmp("eq", rule.low, rule.high))

        def add_tiles() -> list[Value]:
            self._tiles(rows, lambda row, height: self._add(row, height, (first, behind), values, keys, strip))
            return []

        def add_rows() -> list[Value]:
            with b.loop(0, rows) as loop:
                position = self.position(loop.index)
                self._add(loop.index, 1, self._bounds(position, position), values, keys, strip)
            return []

        b.either(alike, add_tiles, add_rows)

    def _add(
        self, row: Index, height: int, seen: tuple[Index, Index], values: Cache, keys: Cache, strip: Strip
    ) -> None:
        """The sums of some rows over the strip's places from the first one that all of them see up to the last one."""
        b = self.b
        places = b.maximum(seen[0], strip.start), b.minimum(seen[1], b.add(strip.start, strip.places))
        step = PANEL_VECTORS * self.lanes
        whole, rest = values.width // step * step, values.width % step
        with self.b.loop(0, whole, step) as loop:
            none: list[Value | None] = [None] * PANEL_VECTORS
            self._add_columns(row, height, places, values, loop.index, none, keys, strip)
        if rest:
            masks = [
                self.b.tail_mask(rest - at, self.lanes) if rest - at < self.lanes else None
                for at in range(0, rest, self.lanes)
            ]
            self._add_columns(row, height, places, values, whole, masks, keys, strip)

    def _add_columns(
        self, row: Index, height: int, seen: tuple[Index, Index], values: Cache, column: Index,
        masks: list[Value | None], keys: Cache, strip: Strip,
    ) -> None:  # fmt: skip
        b, memory, lanes, count = self.b, self.memory, self.lanes, len(masks)
        places = [
            b.gep(memory.sum(b.add(row, i)), b.add(column, v * lanes), self.real)
            for i in range(height)
            for v in range(count)
        ]
        scores = [memory.score(b.add(row, i)) for i in range(height)]
        with b.loop(*seen, carry=[b.load(vector(self.real, lanes), place) for place in places]) as loop:
            self._prefetch_between(keys, strip, row, values.width, column, loop.index)
            entry = values.entry(self._entry(loop.index))
            units = range(0, count, memory.unit // lanes)
            parts = [memory.load_cached(entry, b.add(column, v * lanes), masks[v]) for v in units]
            found = [x for part in parts for x in part]
            sums = []
            for i, score in enumerate(scores):
                power = b.splat(b.load(self.real, b.gep(score, loop.index, self.real)), lanes)
                sums += [b.fma(power, x, loop.carry[i * count + v]) for v, x in enumerate(found)]
            loop.yield_values(*sums)
        for place, total in zip(places, loop.results, strict=True):
            b.store(total, place)
