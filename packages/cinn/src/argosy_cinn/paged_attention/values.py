"""Sums of a panel's values by powers."""

from __future__ import annotations

from collections.abc import Callable

from argosy_cinn.contraction.tile import multiply_add
from argosy_cinn.paged_attention.memory import PANEL_VECTORS, STREAMS, VALUE_VECTORS
from argosy_cinn.paged_attention.panels import Cache, Seen, Strip
from argosy_cinn.paged_attention.prefetch import Prefetch
from argosy_cinn.printers.types import BFLOAT, I32, I64, Index, Value, constant, vector


class Values(Prefetch):
    """Sums of values of all rows together, or row by row."""

    def add_values(self, rows: Index, keys: Cache, values: Cache, strip: Strip) -> None:
        """Sums of a strip's values by powers: of all rows together where they see the whole panel, or are a known
        number of rows and thus of one token, else row by row."""
        b, rule = self.b, self.rule
        few = isinstance(rows, int) and rows <= self.memory.few_rows
        bounds, tiles = self._bounds(rule.low, rule.high), self._tile_count(rows)
        if few:
            self._prefetch(keys, strip)
            if values.ahead is not None:
                self._prefetch_again(values, strip.start)

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
