"""A panel of places: scores of keys, their powers, sums of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from argosy_cinn import functions
from argosy_cinn.contraction.tile import multiply_add
from argosy_cinn.loops.elementwise import convert
from argosy_cinn.paged_attention.memory import PANEL_VECTORS, STREAMS, VALUE_VECTORS, Memory
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import (
    BFLOAT,
    DOUBLE,
    FLOAT,
    I8,
    I32,
    I64,
    Index,
    Value,
    bytes_of,
    constant,
    vector,
    vector_constant,
)

#: The first place of a panel that rows see, and the one behind the last; None where they see all of it.
Seen: TypeAlias = "tuple[Index, Index] | None"
#: Vectors of what lies at a place of a key or value, from a number on, under a mask.
Load: TypeAlias = Callable[[Value, Index, "Value | None"], "list[Value]"]
_LINE = 64
#: The second-level cache, as `Function.prefetch` counts: keys of one head are as far apart as tokens are, so that they
#: share few sets of the first one.
_SECOND_LEVEL = 2


class Cache(NamedTuple):
    """Keys or values of ``width`` used numbers: ``head`` gives those of a head in the first place, from which others
    are as far as ``offsets`` says for each number of a panel. ``ahead``: the offsets of what is to be asked for, those
    of the next panel's keys or of this one's values; None where values are read as keys. ``scales``: the same of
    their factors, or None."""

    head: Callable[[Value], Value]
    element: str
    width: int
    offsets: Value
    ahead: Value | None
    scales: Cache | None


class Strip(NamedTuple):
    """Some numbers of a panel's places, from ``start`` on and before ``end``."""

    start: Value
    end: Index


class Heads(NamedTuple):
    """``size`` heads from the ``first`` one on and before ``end``, whose caches lie side by side."""

    first: Value
    size: Index
    end: Index


class Rule(NamedTuple):
    """What makes weights of products, the least and largest position of the run, and where its places end."""

    scale: float
    window: int
    softcap: float
    low: Value
    high: Value
    end: Index


class Panel:
    """Some places of one sequence that begin at ``start``, for all rows of a run and one head; ``position`` gives that
    of a row."""

    def __init__(
        self,
        b: Function,
        memory: Memory,
        rule: Rule,
        start: Value,
        position: Callable[[Index], Value],
        head: Value,
        heads: Heads,
    ) -> None:
        self.b, self.memory, self.rule, self.start, self.position = b, memory, rule, start, position
        self.head, self.heads, self.lanes, self.real = head, heads, memory.lanes, memory.real

    def _entry(self, cache: Cache, offsets: Value, number: Index) -> Value:
        b = self.b
        return b.gep(cache.head(self.head), b.load(I64, b.gep(offsets, number, I64)), cache.element)

    def _prefetch(self, cache: Cache, strip: Strip) -> None:
        """Ask for what is read next at these numbers."""
        b = self.b
        if cache.ahead is None:
            return
        with b.loop(strip.start, strip.end) as loop:
            self._prefetch_entry(cache, loop.index, self.head)

    def _prefetch_share(self, cache: Cache, strip: Strip, part: Index, parts: Index) -> None:
        """The same where each head passes over the whole panel: as much, a part at a time, in the order of memory."""
        b, (first, count, _) = self.b, self.heads
        if cache.ahead is None:
            return
        passed, places = b.mul(b.sub(self.head, first), self.memory.panel), b.sub(strip.end, strip.start)
        begin, end = (b.add(strip.start, b.div(b.mul(places, n), parts)) for n in (part, b.add(part, 1)))
        with b.loop(begin, end) as loop:
            number = b.add(passed, loop.index)
            self._prefetch_entry(cache, b.div(number, count), b.index(b.add(first, b.rem(number, count))))

    def _prefetch_entry(self, cache: Cache, number: Index, head: Value) -> None:
        b, ahead = self.b, cache.ahead
        assert ahead is not None
        entry = b.gep(cache.head(head), b.load(I64, b.gep(ahead, number, I64)), cache.element)
        for at in range(0, cache.width * bytes_of(cache.element), _LINE):
            b.prefetch(b.gep(entry, at, I8), level=_SECOND_LEVEL)

    def _copy_scales(self, cache: Cache, target: Value) -> None:
        """The factors of the panel's places, beside each other."""
        b, scales = self.b, cache.scales
        if scales is None:
            return
        with b.loop(0, self.memory.panel) as loop:
            scale = b.load(FLOAT, self._entry(scales, scales.offsets, loop.index))
            scale = convert(b, scale, "float32", "float64") if self.real == DOUBLE else scale
            b.store(scale, b.gep(target, loop.index, self.real))

    def scored(self) -> Index:
        """Where the numbers of places before the last one end, as whole vectors."""
        b, lanes = self.b, self.lanes
        left = b.minimum(b.sub(self.rule.end, self.start), self.memory.panel // STREAMS)
        return b.mul(b.ceil_div(b.mul(left, STREAMS), lanes), lanes)

    def seen(self) -> Index:
        """Where the numbers of places that any row sees end."""
        return self._numbers(self._bounds(self.rule.high, self.rule.high)[1])

    def _numbers(self, behind: Index) -> Index:
        """Where the numbers of the places before the ``behind``-th end."""
        b = self.b
        return b.mul(b.minimum(behind, self.memory.panel // STREAMS), STREAMS)

    def _copy_keys(self, keys: Cache, values: Cache) -> None:
        """Keys as numbers beside each other, for many rows; values are asked for meanwhile."""
        b, memory, lanes = self.b, self.memory, self.lanes
        with b.loop(0, self.scored()) as loop:
            self._prefetch_share(values, Strip(loop.index, b.add(loop.index, 1)), 0, 1)
            source, target = self._entry(keys, keys.offsets, loop.index), memory.key(loop.index)

            def convert_key(at: Index, mask: Value | None) -> None:
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
            if isinstance(some, Value):
                with b.if_then(b.icmp("ne", some, 0)):
                    build(at, height)
            elif some:
                build(at, height)
            at = b.add(at, some)

    def _tile_count(self, rows: Index) -> Index:
        """Tiles of so many rows, at least: smaller ones at their end count as one."""
        return self.b.ceil_div(rows, self.memory.height)

    def score_copied(self, rows: Index, keys: Cache, values: Cache) -> None:
        """Products of queries and copied keys of the whole panel."""
        b, memory = self.b, self.memory
        self._copy_keys(keys, values)
        type, depth = vector(self.real, self.lanes), memory.padded_width(memory.depth)

        def load(key: Value, at: Index, mask: Value | None) -> list[Value]:
            starts = range(0, memory.unit, self.lanes)
            return [b.load(type, b.gep(key, b.add(at, start), self.real)) for start in starts]

        def tile(row: Index, height: int) -> None:
            with b.loop(0, self.scored(), self.lanes) as loop:
                parts = self._parts(row, height, loop.index, self.lanes, memory.key, load, depth)
                self._store_scores(row, parts, loop.index)

        self._tiles(rows, tile)

    def score_strip(self, rows: Index, keys: Cache, values: Cache, start: Value) -> None:
        """Products of queries and a vector of keys, where they are cached."""
        b, strip = self.b, Strip(start, self.b.add(start, self.lanes))
        steps = self.lanes // self.memory.keys_at_once

        def tile(row: Index, height: int) -> None:
            def ahead(step: int) -> None:
                part = b.add(b.mul(b.div(row, self.memory.height), steps), step)
                self._prefetch_share(values, strip, part, b.mul(self._tile_count(rows), steps))

            self._store_scores(row, self._parts_cached(row, height, start, self.lanes, keys, ahead), start)

        self._tiles(rows, tile)

    def score_part(self, rows: Index, keys: Cache, values: Cache, start: Value) -> None:
        """The same of as few keys as are summed at a time: sums that `join_parts` adds."""
        b, memory, count = self.b, self.memory, self.memory.keys_at_once
        self._prefetch(values, Strip(start, b.add(start, count)))
        number = b.div(b.rem(start, self.lanes), count)

        def tile(row: Index, height: int) -> None:
            (parts,) = self._parts_cached(row, height, start, count, keys, lambda step: None)
            for i, part in enumerate(parts):
                b.store(part, memory.part(b.add(row, i), number))

        self._tiles(rows, tile)

    def join_parts(self, rows: Index, start: Value) -> None:
        """Scores of a vector of places."""
        b, memory, count = self.b, self.memory, self.memory.keys_at_once
        with b.loop(0, rows) as loop:
            places = [memory.part(loop.index, number) for number in range(self.lanes // count)]
            parts = [[b.load(vector(self.real, self.lanes), place)] for place in places]
            self._store_scores(loop.index, parts, start)

    def _parts_cached(
        self, row: Index, height: int, start: Value, count: int, keys: Cache, ahead: Callable[[int], None]
    ) -> list[list[Value]]:
        load = self.memory.load_pairs if self.memory.pairs else self.memory.load_cached
        key = lambda n: self._entry(keys, keys.offsets, n)  # noqa: E731
        return self._parts(row, height, start, count, key, load, keys.width, ahead)

    def _parts(
        self, row: Index, height: int, start: Value, keys: int, key: Callable[[Index], Value], load: Load, depth: int,
        ahead: Callable[[int], None] = lambda step: None,
    ) -> list[list[Value]]:  # fmt: skip
        """Of so many keys, some at a time, a vector for each row: a sum for each lane of a key, and neighbours added
        until there is one lane of each key in turns. ``ahead`` asks for memory at each step."""
        b, parts = self.b, []
        queries = [self.memory.query(b.add(row, i)) for i in range(height)]
        count = self.memory.keys_at_once
        for step in range(keys // count):
            ahead(step)
            places = [b.add(start, step * count + i) for i in range(count)]
            sums = self._products(queries, [key(place) for place in places], load, depth)
            parts.append([self._add_neighbours(sums[i * count : (i + 1) * count], 1) for i in range(height)])
        return parts

    def _store_scores(self, row: Index, parts: list[list[Value]], start: Value) -> None:
        """The scores of rows at a vector of places, of the `_parts` of all of its keys."""
        b = self.b
        for i, part in enumerate(zip(*parts, strict=True)):
            total = self._add_neighbours(list(part), self.memory.keys_at_once)
            b.store(total, self.memory.score(b.add(row, i), start))

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

    def _place(self, number: int) -> int:
        """The place in the panel that has a number: numbers go through the panel's parts in turns."""
        return number % STREAMS * (self.memory.panel // STREAMS) + number // STREAMS

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
            place = vector_constant(I32, [self._place(v * lanes + i) for i in range(lanes)])
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

    def add_values(self, rows: Index, keys: Cache, values: Cache, strip: Strip) -> None:
        """Sums of a strip's values by powers: of all rows together where they see the whole panel, or are a known
        number of rows and thus of one token, else row by row."""
        b, rule = self.b, self.rule
        few = isinstance(rows, int) and rows <= self.memory.few_rows
        bounds, tiles = self._bounds(rule.low, rule.high), self._tile_count(rows)
        if few:
            self._prefetch(keys, strip)

        def ahead(row: Index, step: Index, steps: int) -> None:
            if not few:
                part = b.add(b.mul(b.div(row, self.memory.height), steps), step)
                self._prefetch_share(keys, strip, part, b.mul(tiles, steps))

        def add_tiles(seen: Seen) -> list[Value]:
            def add_tile(row: Index, height: int) -> None:
                self._add(row, height, seen, values, strip, lambda *step: ahead(row, *step))

            self._tiles(rows, add_tile)
            return []

        def add_rows() -> list[Value]:
            with b.loop(0, rows) as loop:
                position = self.position(loop.index)
                self._add(loop.index, 1, self._bounds(position, position), values, strip)
            return []

        some = (lambda: add_tiles(bounds)) if isinstance(rows, int) else add_rows
        whole = b.icmp("eq", b.sub(bounds[1], bounds[0]), self.memory.panel)
        b.either(whole, lambda: add_tiles(None), some)

    def _add(
        self, row: Index, height: int, seen: Seen, values: Cache, strip: Strip,
        ahead: Callable[[Index, int], None] = lambda step, steps: None,
    ) -> None:  # fmt: skip
        """The sums of some rows over the strip's places up to the last one that they see. ``ahead`` asks for memory at
        each of so many steps."""
        b, lanes = self.b, self.lanes
        if seen is not None:
            strip = Strip(strip.start, b.minimum(strip.end, self._numbers(seen[1])))
        count = min(self.memory.height * PANEL_VECTORS // height, VALUE_VECTORS)
        (steps, rest), width = divmod(values.width, count * lanes), count * lanes
        with b.loop(0, steps) as loop:
            ahead(loop.index, steps)
            none: list[Value | None] = [None] * count
            self._add_columns(row, height, seen, values, b.index(b.mul(loop.index, width)), none, strip)
        if rest:
            left = range(rest, 0, -lanes)
            masks = [b.tail_mask(n, lanes) if n < lanes else None for n in left]
            self._add_columns(row, height, seen, values, constant(I64, steps * width), masks, strip)

    def _add_columns(
        self, row: Index, height: int, seen: Seen, values: Cache, column: Value,
        masks: list[Value | None], strip: Strip,
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
        with b.loop(strip.start, strip.end, STREAMS, carry) as loop:
            sums, entries = list(loop.carry), self._seen_entries(values, column, loop.index, seen)
            for i in range(0, STREAMS, terms):
                powers = [self._power(score, b.add(loop.index, i)) for score in scores]
                found = self._values(entries[i : i + terms], masks)
                pairs = zip([(x, y) for x in powers for y in found], sums, strict=True)
                sums = [multiply_add(b, terms, x, y, total) for (x, y), total in pairs]
            loop.yield_values(*sums)
        for place, total in zip(places, loop.results, strict=True):
            b.store(total, place)

    def _seen_entries(self, values: Cache, column: Value, number: Value, seen: Seen) -> list[Value]:
        """The values from a column on at the places of some numbers: zeros where a row does not see them, for what lies
        there may be anything."""
        b, found = self.b, []
        for i in range(STREAMS):
            entry = b.gep(self._entry(values, values.offsets, b.add(number, i)), column, values.element)
            if seen is not None:
                place = b.index(b.add(b.div(number, STREAMS), self._place(i)))
                is_seen = b.binary("and", b.icmp("sge", place, seen[0]), b.icmp("slt", place, seen[1]))
                entry = b.select(is_seen, entry, self.memory.zeros)
            found.append(entry)
        return found

    def _power(self, score: Value, number: Index) -> Value:
        """The power of a place in a row, or of two: in all lanes."""
        b = self.b
        type, element = (I32, BFLOAT) if self.memory.pairs else (self.real, self.real)
        return b.splat(b.load(type, b.gep(score, number, element)), self.lanes)

    def _values(self, entries: list[Value], masks: list[Value | None]) -> list[Value]:
        """Vectors of the values at one place, or of two in turns."""
        memory, lanes = self.memory, self.lanes
        units = range(0, len(masks), memory.unit // lanes)
        if memory.pairs:
            return [x for v in units for x in memory.load_places(entries, v * lanes)]
        return [x for v in units for x in memory.load_cached(entries[0], v * lanes, masks[v])]
