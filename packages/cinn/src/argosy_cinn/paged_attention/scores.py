"""Scores of a panel: products of queries and keys."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from argosy_cinn.contraction.packing import word_products
from argosy_cinn.contraction.tile import multiply_add
from argosy_cinn.paged_attention.panels import Cache, Strip
from argosy_cinn.paged_attention.prefetch import Prefetch
from argosy_cinn.printers.types import I16, I32, Index, Value, vector

#: Vectors of what lies at a place of a key or value, from a number on, under a mask.
Load: TypeAlias = Callable[[Value, Index, "Value | None"], "list[Value]"]


class Scores(Prefetch):
    """Products of a panel's keys, as they are cached or as copies."""

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
        self._prefetch_again(keys, start)
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

    def _parts_cached(
        self, row: Index, height: int, start: Value, count: int, keys: Cache, ahead: Callable[[int], None]
    ) -> list[list[Value]]:
        memory = self.memory
        load = memory.load_pairs if memory.pairs else memory.load_words if memory.words else memory.load_cached
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
        b, lanes, memory = self.b, self.lanes, self.memory
        type, unit = (vector(I32, lanes), 2 * lanes) if memory.words else (vector(self.real, lanes), memory.unit)
        add = partial(word_products, b) if memory.words else partial(multiply_add, b, 2 if memory.pairs else 1)

        def step(at: Index, mask: Value | None, sums: list[Value]) -> list[Value]:
            rows = [self._query_vectors(query, at) for query in queries]
            sums = list(sums)
            for j, key in enumerate(keys):
                for v, found in enumerate(load(key, at, mask)):
                    for i, row in enumerate(rows):
                        place = i * len(keys) + j
                        sums[place] = add(row[v], found, sums[place])
            return sums

        whole = depth // lanes * lanes
        with b.loop(0, whole, unit, [b.zero(type)] * (len(queries) * len(keys))) as loop:
            loop.yield_values(*step(loop.index, None, list(loop.carry)))
        if memory.words:
            return [b.convert("sitofp", total, self.real) for total in loop.results]
        if whole == depth:
            return list(loop.results)
        return step(whole, b.tail_mask(depth - whole, lanes), list(loop.results))

    def _query_vectors(self, query: Value, at: Index) -> list[Value]:
        b, memory, type = self.b, self.memory, vector(self.real, self.lanes)
        if memory.pairs:
            return memory.load_pairs(query, at, None)
        if memory.words:
            return [b.load(vector(I16, 2 * self.lanes), b.gep(query, at, I16))]
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
