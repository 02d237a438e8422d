"""The loops around register tiles: what one chunk of a product does.

For each step of ``depth`` along k a chunk packs B; then each row tile of A (packed, when it is not read in
place) passes over the panels of B. Between steps the sums stay in the thread's scratch memory, or in C.
"""

from __future__ import annotations

from contextlib import nullcontext

from argosy_cinn.contraction.amx import configure_tiles
from argosy_cinn.contraction.amx_packing import pack_tiles
from argosy_cinn.contraction.blocking import Blocking
from argosy_cinn.contraction.orientation import order_of_a, turn_product
from argosy_cinn.contraction.packing import GROUP, SLACK, pack_a, pack_b
from argosy_cinn.contraction.problem import Block, Cells, Contraction, coordinates, origin
from argosy_cinn.contraction.stage import TURNED_VECTORS, Buffers, Chunk, Place, TileStage
from argosy_cinn.contraction.tile import LINE, Lines
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import I1, I32, Index, Value, bytes_of, is_float, vector
from argosy_cinn.runtime.workers import scratch

# Buffers that start at equal offsets within a page fight for the same cache sets.
_STAGGER = 832


class Nest:
    """Emits one chunk of a product."""

    def __init__(self, b: Function, problem: Contraction, blocking: Blocking) -> None:
        problem = turn_product(problem) if blocking.turned else problem
        self.b, self.problem, self.blocking = b, problem, blocking
        self.format = blocking.format
        self.several_steps = not isinstance(problem.k, int) or problem.k > blocking.depth
        assert problem.b.window is None or blocking.packs_b

    def emit(self, chunk: Value, chunks: Value) -> None:
        """Find the block of C that the chunk stands for and compute it."""
        b, problem, blocking = self.b, self.problem, self.blocking
        column_blocks = b.ceil_div(problem.n, blocking.columns)
        others = column_blocks
        for size in problem.batch:
            others = b.mul(others, size)
        row_blocks = b.div(chunks, others)
        tiles = b.ceil_div(b.div(b.sub(b.add(problem.m, row_blocks), 1), row_blocks), blocking.tile_rows)
        height = b.mul(tiles, blocking.tile_rows)
        position, row_block = b.div(chunk, row_blocks), b.rem(chunk, row_blocks)
        row0 = b.mul(row_block, height)
        column0 = b.mul(b.rem(position, column_blocks), blocking.columns)
        batch = coordinates(b, problem, b.div(position, column_blocks))
        rows = b.minimum(height, b.sub(problem.m, row0))
        columns = b.minimum(blocking.columns, b.sub(problem.n, column0))
        with b.if_then(b.icmp("sgt", rows, 0)):
            origins = origin(b, problem.a, batch), origin(b, problem.b, batch)
            order = order_of_a(problem, self.format, blocking.tile_rows)
            self.block = Chunk(batch, row0, column0, rows, columns, *origins, order, self._allocate(order))
            self.stage = TileStage(b, problem, blocking, self.block)
            with configure_tiles(b) if self.format.tiled else nullcontext():
                self._steps()
                if self.blocking.turns_last:
                    self.stage.finish_transposed()

    def _allocate(self, a_order: str) -> Buffers:
        blocking = self.blocking
        # What is turned in the end is read in whole blocks of rows.
        turning = TURNED_VECTORS * blocking.lanes
        waiting = -(-blocking.rows // turning) * turning if blocking.turns_last else blocking.rows
        sizes = [
            blocking.tile_rows * blocking.tile_columns,
            blocking.depth * blocking.tile_rows * GROUP + SLACK if a_order == "packed" else 0,
            (blocking.depth + 1) * blocking.columns + SLACK if blocking.packs_b else 0,
            waiting * blocking.columns if self.several_steps or blocking.turns_last else 0,
            blocking.columns if self.problem.column_sums is not None else 0,
            max(blocking.tile_rows, turning) * blocking.tile_columns if blocking.turned else 0,
        ]
        offsets, end = [], 0
        for i, size in enumerate(sizes):
            offsets.append(end + i * _STAGGER)
            end += (size * bytes_of(self.problem.compute) + 63) // 64 * 64
        slab = scratch(self.b, end + len(sizes) * _STAGGER)
        return Buffers(*(self.b.gep(slab, offset, "i8") for offset in offsets))

    def _steps(self) -> None:
        """The steps along k. An empty sum is one step of length 0."""
        b, problem, blocking = self.b, self.problem, self.blocking
        if problem.run:
            self._runs()
            return
        if not self.several_steps:
            self._step(0, problem.k, None, None)
            return
        with b.loop(0, b.maximum(problem.k, 1), blocking.depth) as loop:
            left = b.sub(problem.k, loop.index)
            first = b.icmp("eq", loop.index, 0)
            last = b.icmp("sle", left, blocking.depth)
            self._step(loop.index, b.minimum(left, blocking.depth), first, last)

    def _runs(self) -> None:
        """The steps along k where it comes in runs: none crosses from one to the next, so that within a step operands
        are matrices of one stride whose origins have moved."""
        b, problem, block = self.b, self.problem, self.block
        assert isinstance(problem.k, int)
        parts = -(-problem.run // self.blocking.depth)
        total = problem.k // problem.run * parts
        origins = block.a_origin, block.b_origin
        with b.loop(0, total) as step:
            run, start = b.div(step.index, parts), b.mul(b.rem(step.index, parts), self.blocking.depth)
            strides = problem.a.column, problem.b.row
            block.a_origin, block.b_origin = (
                b.gep(place, b.mul(run, b.sub(matrix.jump, b.mul(stride, problem.run))), matrix.element)
                for place, matrix, stride in zip(origins, (problem.a, problem.b), strides, strict=True)
            )
            depth = b.minimum(self.blocking.depth, b.sub(problem.run, start))
            first, last = (b.icmp("eq", step.index, end) for end in (0, total - 1))
            self._step(b.add(b.mul(run, problem.run), start), depth, first, last)

    def _step(self, k0: Index, depth: Index, first: Value | None, last: Value | None) -> None:
        """One step along k: pack B, then all row tiles. ``first`` and ``last`` are None where k is one
        step.
        """
        b, blocking = self.b, self.blocking
        if blocking.packs_b:
            block = Block(
                self.problem.b, self.block.b_origin, k0, self.block.column0, depth, self.block.columns, self.block.batch
            )
            pack_b(b, block, self.block.buffers.b, blocking.tile_columns, blocking.lanes, self.format)
            if self.problem.column_sums is not None:
                with b.if_then(b.icmp("eq", self.block.row0, 0)):
                    self._sum_columns(depth, first, last)
        if self.block.a_order != "packed":
            self._row_tiles(0, self.block.rows, k0, depth, first, last)
            return
        group = GROUP * blocking.tile_rows
        with b.loop(0, self.block.rows, group) as i:
            rows = b.minimum(group, b.sub(self.block.rows, i.index))
            row = b.add(self.block.row0, i.index)
            block = Block(self.problem.a, self.block.a_origin, row, k0, rows, depth, self.block.batch)
            (pack_tiles if self.format.tiled else pack_a)(
                b, block, self.block.buffers.a, blocking.tile_rows, self.format
            )
            self._row_tiles(i.index, rows, k0, depth, first, last)

    def _sum_columns(self, depth: Index, first: Value | None, last: Value | None) -> None:
        """Add the packed columns of B over this step, and hand on the sums after the last."""
        b, blocking, report = self.b, self.blocking, self.problem.column_sums
        assert report is not None
        type, terms = vector(self.problem.compute, blocking.lanes), self.format.places(b, depth)
        lanes = [v * blocking.lanes for v in range(blocking.vectors)]
        with b.loop(0, self.block.columns, blocking.tile_columns) as j:
            places = [b.gep(self.block.buffers.columns, b.add(j.index, lane), self.problem.compute) for lane in lanes]
            zeros = [b.zero(type)] * len(lanes)
            start = zeros
            if first is not None:
                start = b.either(first, lambda: zeros, lambda: [b.load(type, place) for place in places])
            panel = b.gep(self.block.buffers.b, b.mul(j.index, terms), self.problem.compute)
            with b.loop(0, terms, 1, start) as k:
                row = b.gep(panel, b.mul(k.index, blocking.tile_columns), self.problem.compute)
                loaded = [b.load(type, b.gep(row, lane, self.problem.compute)) for lane in lanes]
                k.yield_values(*(self._add_terms(x, y) for x, y in zip(k.carry, loaded, strict=True)))
            for place, value in zip(places, k.results, strict=True):
                b.store(value, place)
            column = b.add(self.block.column0, j.index)
            with b.if_then(last if last is not None else Value(I1, "true")):
                report(b, Cells(self.block.batch, 0, column, k.results, self.stage.masks(column)))

    def _add_terms(self, total: Value, terms: Value) -> Value:
        """A packed vector added to sums: one term a place, or the two bfloat16 halves of a place in order."""
        b = self.b
        if self.format.terms == 1:
            return b.binary("fadd" if is_float(self.problem.compute) else "add", total, terms)
        bits = b.bitcast(terms, vector(I32, self.blocking.lanes))
        low, high = b.binary("shl", bits, 16), b.binary("and", bits, -65536)
        return b.fadd(b.fadd(total, b.bitcast(low, terms.type)), b.bitcast(high, terms.type))

    def _row_tiles(
        self, start: Index, count: Index, k0: Index, depth: Index, first: Value | None, last: Value | None
    ) -> None:
        """Pass row tiles, ``count`` rows from ``start`` on, over all panels of B."""
        b, blocking = self.b, self.blocking
        with b.loop(start, b.add(start, count), blocking.tile_rows) as i:
            rows = b.minimum(blocking.tile_rows, b.sub(self.block.rows, i.index))
            with b.loop(0, self.block.columns, blocking.tile_columns) as j:
                place = Place(i.index, j.index, b.sub(i.index, start), rows, k0, depth)
                if self.block.a_order != "packed":
                    place.upcoming = self._next_of_a(place)
                self.stage.run(place, first, last)

    def _next_of_a(self, place: Place) -> Lines:
        """A share of the next row tile of A: each panel asks for another one."""
        b, a, blocking = self.b, self.problem.a, self.blocking
        size, height = bytes_of(a.element), blocking.tile_rows
        panels = b.ceil_div(self.block.columns, blocking.tile_columns)
        panel = b.div(place.j, blocking.tile_columns)
        row = b.add(self.block.row0, b.add(place.i, height))
        if self.block.a_order == "rows":
            lines = _share(b, b.ceil_div(b.mul(place.depth, size), LINE), panels)
            offset = b.add(b.mul(row, a.row), b.add(place.k0, b.mul(b.mul(panel, lines), LINE // size)))
            return Lines(b.gep(self.block.a_origin, offset, a.element), b.mul(a.row, size), LINE, lines)
        # The first columns of the next tile share lines with this one's; its last may not.
        lines = _share(b, place.depth, b.mul(panels, height))
        step = b.mul(a.column, size)
        offset = b.add(b.add(row, height - 1), b.mul(b.add(place.k0, b.mul(panel, b.mul(lines, height))), a.column))
        return Lines(b.gep(self.block.a_origin, offset, a.element), b.mul(step, lines), step, lines)


def _share(b: Function, total: Index, parts: Index) -> Index:
    """The larger share where ``total`` is cut into equal parts."""
    return b.div(b.sub(b.add(total, parts), 1), parts)
