"""A panel of places: scores of keys, their powers, sums of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from argosy_cinn import functions
from argosy_cinn.contraction.tile import multiply_add
from argosy_cinn.loops.elementwise import convert
from argosy_cinn.paged_attention.memory import PANEL_VECTORS, Memory
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import (
    BFLOAT,
    DOUBLE,
    FLOAT,
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

#: Vectors of what lies at a place of a key or value, from a number on, under a mask.
Load: TypeAlias = Callable[[Value, Index, "Value | None"], "list[Value]"]
#: Keys whose products with some rows are summed at a time.
_KEYS = 4
_LINE = 64
#: The second-level cache, as `Function.prefetch` counts: keys of one head are as far apart as tokens are, so that they
#: share few sets of the first one.
_SECOND_LEVEL = 2


class Cache(NamedTuple):
    """Keys or values: ``entry`` gives the ``width`` numbers of an entry; ``scales`` of entries or None; ``ahead``: the
    entries of the next panel's keys, or of this panel's values, that are to be asked for, in the order of memory, or
    None where values are read as keys."""

    entry: Callable[[Value], Value]
    width: int
    scales: Value | None
    ahead: Value | None


class Strip(NamedTuple):
    """``places`` of a panel, so many, from ``start`` on; what is asked for beside them begins with number ``ahead``, by
    ``turns`` + 1 tiles of rows in turns, a power of two."""

    start: Value
    places: Value
    ahead: Index
    turns: Value


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

    def _prefetch(self, cache: Cache, strip: Strip, number: Index) -> None:
        """Ask for an entry of a cache that is read later."""
        b = self.b
        if cache.ahead is None:
            return
        base = cache.entry(b.load(I64, b.gep(cache.ahead, b.add(strip.ahead, number), I64)))
        for at in range(0, cache.width * bytes_of(LLVM_TYPES[self.memory.cached]), _LINE):
            b.prefetch(b.gep(base, at, I8), level=_SECOND_LEVEL)

    def _is_turn(self, strip: Strip, row: Index, number: Index) -> Value:
        """Whether it is for the tile of rows that begins at ``row`` to ask for an entry."""
        b = self.b
        turn = b.binary("and", b.index(number), strip.turns)
        return b.icmp("eq", b.index(row), b.mul(turn, self.memory.height))

    def _prefetch_between(
        self, cache: Cache, strip: Strip, row: Index, width: int, column: Index, place: Value
    ) -> None:
        """The same in even steps, while columns of ``width`` are passed over one after the other, and places of
        each."""
        b, passes = self.b, -(-width // (PANEL_VECTORS * self.lanes))
        passed = b.sub(place, strip.start)
        first = b.mul(b.div(column, PANEL_VECTORS * self.lanes), b.ceil_div(strip.places, passes))
        number = b.minimum(b.add(first, b.div(passed, passes)), b.sub(strip.places, 1))
        is_even = b.icmp("eq", b.index(b.rem(passed, passes)), 0)
        with b.if_then(b.binary("and", is_even, self._is_turn(strip, row, number))):
            self._prefetch(cache, strip, number)

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
            self._prefetch(values, strip, place)
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
            def ahead(place: Index) -> None:
                number = b.sub(place, strip.start)
                with b.if_then(self._is_turn(strip, row, number)):
                    self._prefetch(values, strip, number)

            with b.loop(strip.start, end, self.lanes) as loop:
                entry = lambda place: keys.entry(self._entry(place))  # noqa: E731
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
                memory.store_powers(self._scale(x, values, memory.value_scales, v), row, v * lanes)
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
        terms = 2 if memory.pairs else 1
        carry = [b.load(vector(self.real, lanes), place) for place in places]
        with b.loop(b.sub(seen[0], b.rem(seen[0], terms)), seen[1], terms, carry) as loop:
            for i in range(terms):
                self._prefetch_between(keys, strip, row, values.width, column, b.index(b.add(loop.index, i)))
            if memory.pairs:
                factors, found = self._paired(scores, seen, values, column, loop.index, count)
            else:
                factors, found = self._single(scores, values, column, loop.index, masks)
            sums = zip([(x, y) for x in factors for y in found], loop.carry, strict=True)
            loop.yield_values(*(multiply_add(b, terms, x, y, total) for (x, y), total in sums))
        for place, total in zip(places, loop.results, strict=True):
            b.store(total, place)

    def _single(
        self, scores: list[Value], values: Cache, column: Index, place: Value, masks: list[Value | None]
    ) -> tuple[list[Value], list[Value]]:
        """The power of a place in each row, and its values."""
        b, memory, lanes = self.b, self.memory, self.lanes
        entry = values.entry(self._entry(place))
        units = range(0, len(masks), memory.unit // lanes)
        parts = [memory.load_cached(entry, b.add(column, v * lanes), masks[v]) for v in units]
        powers = [b.splat(b.load(self.real, b.gep(score, place, self.real)), lanes) for score in scores]
        return powers, [x for part in parts for x in part]

    def _paired(
        self, scores: list[Value], seen: tuple[Index, Index], values: Cache, column: Index, place: Value, count: int
    ) -> tuple[list[Value], list[Value]]:
        """The powers of two places in each row, and their values, of which those that are not seen are zero."""
        b, memory = self.b, self.memory
        entries = []
        for each in (place, b.index(b.add(place, 1))):
            is_seen = b.binary("and", b.icmp("sge", each, seen[0]), b.icmp("slt", each, seen[1]))
            entries.append(b.select(is_seen, b.gep(values.entry(self._entry(each)), column, BFLOAT), memory.zeros))
        found = [x for at in range(0, count * self.lanes, memory.unit) for x in memory.load_places(entries, at)]
        powers = [b.splat(b.load(I32, b.gep(score, place, BFLOAT)), self.lanes) for score in scores]
        return powers, found
