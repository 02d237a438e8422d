"""A chunk of a convolution by minimal filtering (`plan`): transforms, products, and transforms back.

A chunk is some rows of tiles (of 4 x 4 places of the result) of some images, and some filters. It transforms the
image's tiles once, into panels ``[panel][36][channels][width]`` of scratch memory that stay in the last-level cache,
then goes through its filters in blocks: their taps are transformed, 36 products of the register tile follow for every
panel, and sums are transformed back and given to the epilogue in rows of the image. Nothing of this is in memory beyond
a chunk.

An element of the result is one sequence of operations whatever the chunks: the bits depend on nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from argosy_cinn.contraction.packing import SLACK, pack_a
from argosy_cinn.contraction.problem import Block, Cells, Contraction, Format, coordinates, origin
from argosy_cinn.contraction.tile import NULL, TileArguments
from argosy_cinn.contraction.winograd.blocking import POINTS, VECTORS, WinogradBlocking
from argosy_cinn.contraction.winograd.direct_sums import Line, PlainSums, not_finite
from argosy_cinn.contraction.winograd.tiles import ROWS, Part, Tiles, call_vectors
from argosy_cinn.contraction.winograd.transforms import MADE, SEEN, TAPS, of_products, of_taps, side_by_side
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import FLOAT, I1, Index, Value, vector
from argosy_cinn.runtime.workers import scratch, thread_count

#: Rows of a block of filters.
_FILTERS = 16
#: Elements between matrices of a point, so that they do not fight for the same cache sets.
_STAGGER = 16
#: Chunks for each thread.
_CHUNKS_PER_THREAD = 2


def winograd_grid(b: Function, problem: Contraction, plan: WinogradBlocking) -> Index:
    """The number of chunks: parts of the images, and of the filters where threads want more."""
    others = _others(problem, plan)
    assert isinstance(problem.m, int)
    wanted = b.div(b.add(b.mul(thread_count(b), _CHUNKS_PER_THREAD), others - 1), others)
    return b.mul(others, b.minimum(wanted, -(-problem.m // (2 * _FILTERS))))


def _others(problem: Contraction, plan: WinogradBlocking) -> int:
    """Chunks for each part of the filters."""
    return plan.blocks * prod(n for i, n in enumerate(problem.batch) if i != plan.seen.axis)  # type: ignore[misc]


@dataclass(slots=True)
class _Chunk:
    """Its batch coordinates (that of the images is its first one), first image and how many, first row of tiles and how
    many, first filter and the end of them."""

    batch: tuple[Index, ...]
    image: Index
    images: Index
    row: Index
    rows: Index
    filter: Index
    end: Index


def emit_winograd(b: Function, problem: Contraction, plan: WinogradBlocking, chunk: Value, chunks: Value) -> None:
    """Emit the code of one chunk into a kernel."""
    _Winograd(b, problem, plan).emit(chunk, chunks)


class _Winograd:
    def __init__(self, b: Function, problem: Contraction, plan: WinogradBlocking) -> None:
        self.b, self.problem, self.plan, self.seen = b, problem, plan, plan.seen
        assert isinstance(problem.m, int)
        self.filters = problem.m
        self.lanes = plan.lanes
        self.type = vector(FLOAT, plan.lanes)
        self.width = min(plan.vectors, VECTORS) * plan.lanes  # of a panel
        self.places = plan.vectors * plan.lanes  # of a chunk
        self.point = self.seen.channels * self.width + _STAGGER  # from point to point in a panel
        self.taps = self.seen.channels * ROWS + _STAGGER  # the same of transformed taps
        self.sums = _FILTERS * self.places + _STAGGER  # and of sums
        self.tiles = Tiles(plan.seen, SEEN, plan.lanes, plan.vectors, self.point, f"panels of {self.width}")

    def emit(self, chunk: Value, chunks: Value) -> None:
        self._allocate()
        at = self._chunk(chunk, chunks)
        b, seen = self.b, self.seen
        with b.if_then(b.icmp("slt", b.index(at.filter), b.index(at.end))):
            source = origin(b, self.problem.b, at.batch)
            if seen.axis is None:
                source = b.gep(source, b.mul(at.image, seen.steps[1]))
            part = Part(source, at.row, at.rows, at.images, seen.channels)
            self.tiles.transform(b, part, self.lines, self.panels, self._place)
            count = b.ceil_div(b.mul(b.mul(at.images, at.rows), seen.tiles_across), self.lanes)
            rows = origin(b, self.problem.a, at.batch)
            with b.loop(at.filter, at.end, _FILTERS) as block:
                filters = b.minimum(_FILTERS, b.sub(at.end, block.index))
                with b.loop(0, filters, ROWS) as r:
                    self._taps(rows, at.batch, b.add(block.index, r.index), r.index)
                self._products(count, filters)
                with b.loop(0, filters) as r:
                    self._result(count, r.index)
                    filter = b.add(block.index, r.index)
                    self._finish(at, filter, source, b.gep(rows, b.mul(filter, self.problem.a.row)))

    def _allocate(self) -> None:
        """Panels of the image, transformed taps, sums, then rows of elements: of the image before they are transformed
        along the other axis, or of the result; taps as they are copied share the place of sums."""
        panels = -(-self.plan.vectors * self.lanes // self.width)
        copied = ROWS * self.seen.channels * TAPS * TAPS + SLACK
        sizes = [
            panels * POINTS * self.point,
            _FILTERS // ROWS * POINTS * self.taps,
            max(POINTS * self.sums, copied),
            self.tiles.buffer,
        ]
        starts = [sum(sizes[:i]) + 208 * i for i in range(len(sizes) + 1)]
        slab = scratch(self.b, 4 * starts[-1])
        self.panels, self.factors, self.products, self.lines = (self.b.gep(slab, start) for start in starts[:-1])

    def _chunk(self, chunk: Value, chunks: Value) -> _Chunk:
        b, plan, seen = self.b, self.plan, self.seen
        others, parts = _others(self.problem, plan), -(-self.filters // _FILTERS)
        split = b.div(chunks, others)
        height = b.mul(b.div(b.sub(b.add(parts, split), 1), split), _FILTERS)
        part, number = b.rem(chunk, split), b.div(chunk, split)
        first = b.mul(part, height)
        block, rest = b.rem(number, plan.blocks), b.div(number, plan.blocks)
        bands = -(-seen.tile_rows // plan.rows)
        image, row = b.mul(b.div(block, bands), plan.images), b.mul(b.rem(block, bands), plan.rows)
        reduced = tuple(1 if i == seen.axis else n for i, n in enumerate(self.problem.batch))
        batch = list(coordinates(b, replace(self.problem, batch=reduced), rest))
        if seen.axis is not None:
            batch[seen.axis] = image
        return _Chunk(
            tuple(batch), image, b.minimum(plan.images, b.sub(seen.images, image)),
            row, b.minimum(plan.rows, b.sub(seen.tile_rows, row)), first, b.minimum(b.add(first, height), self.filters),
        )  # fmt: skip

    def _place(self, f: Function, v: Index, point: Index, channel: Index) -> Index:
        """Where a vector of tiles lies in the panels."""
        per = self.width // self.lanes
        panel = f.add(f.mul(f.div(v, per), POINTS), point)
        within = f.add(f.mul(channel, self.width), f.mul(f.rem(v, per), self.lanes))
        return f.add(f.mul(panel, self.point), within)

    def _taps(self, rows: Value, batch: tuple[Index, ...], first: Index, position: Index) -> None:
        """Transform the taps of a register tile's filters."""
        b, channels = self.b, self.seen.channels
        count = b.minimum(ROWS, b.sub(self.filters, first))
        block = Block(self.problem.a, rows, first, 0, count, channels * TAPS * TAPS, batch)
        pack_a(b, block, self.products, ROWS, Format(FLOAT))
        type = vector(FLOAT, ROWS)

        def define(name: str) -> None:
            parameters = [("ptr noalias readonly", "source"), ("ptr noalias", "out")]
            with (
                b.module.function(name, parameters, export=False, attributes="noinline") as f,
                f.loop(0, channels) as c,
            ):
                source = f.gep(f.arguments[0], f.mul(c.index, TAPS * TAPS * ROWS))
                taps = [f.load(type, f.gep(source, i * ROWS)) for i in range(TAPS * TAPS)]
                columns = [of_taps(f, taps[i::TAPS]) for i in range(TAPS)]
                for u in range(SEEN):
                    for v, value in enumerate(of_taps(f, [column[u] for column in columns])):
                        place = f.add(f.mul(c.index, ROWS), (u * SEEN + v) * self.taps)
                        f.store(value, f.gep(f.arguments[1], place))

        name = b.module.shared_function(("winograd taps", channels), "winograd_taps", define)
        out = b.gep(self.factors, b.mul(b.div(position, ROWS), POINTS * self.taps))
        b.call(name, "void", self.products, out)

    def _products(self, count: Index, filters: Index) -> None:
        """The sums over channels of every point, for a block of filters."""
        b, per = self.b, self.width // self.lanes
        with b.loop(0, count, per) as v, b.loop(0, POINTS) as point, b.loop(0, filters, ROWS) as r:
            panel = b.gep(self.panels, self._place(b, v.index, point.index, 0))
            tile = b.add(b.mul(b.div(r.index, ROWS), POINTS), point.index)
            taps = b.gep(self.factors, b.mul(tile, self.taps))
            sums = b.add(b.mul(point.index, self.sums), b.add(b.mul(r.index, self.places), b.mul(v.index, self.lanes)))
            operands = TileArguments(taps, 0, panel, 0, self.seen.channels, ROWS, self.width, NULL,
                                     b.gep(self.products, sums), self.places, NULL)  # fmt: skip
            call_vectors(b, b.minimum(per, b.sub(count, v.index)), per, self.lanes, "packed", operands)

    def _result(self, count: Index, r: Index) -> None:
        """Transform the sums of a filter to lines of the result."""
        b = self.b

        def define(name: str) -> None:
            parameters = [("ptr noalias readonly", "sums"), ("ptr noalias", "out"), ("i64", "count")]
            with (
                b.module.function(name, parameters, export=False, attributes="noinline") as f,
                f.loop(0, f.arguments[2]) as v,
            ):
                sums = f.gep(f.arguments[0], f.mul(v.index, self.lanes))
                columns = []
                for j in range(SEEN):
                    read = [f.load(self.type, f.gep(sums, (i * SEEN + j) * self.sums)) for i in range(SEEN)]
                    columns.append(of_products(f, read))
                for i in range(MADE):
                    made = of_products(f, [column[i] for column in columns])
                    place = f.gep(f.arguments[1], f.add(f.mul(v.index, MADE * self.lanes), i * self.tiles.line))
                    for j, value in enumerate(side_by_side(f, made)):
                        f.store(value, f.gep(place, j * self.lanes))

        name = b.module.shared_function(("winograd result", self.places), "winograd_result", define)
        b.call(name, "void", b.gep(self.products, b.mul(r, self.places)), self.lines, b.index(count))

    def _finish(self, at: _Chunk, row: Index, first: Value, taps: Value) -> None:
        """Give the lines of the result of a filter to the epilogue. ``first``: the chunk's first image."""
        b, seen = self.b, self.seen
        with b.loop(0, at.images) as n, b.loop(0, at.rows) as r:
            top = b.mul(b.add(at.row, r.index), MADE)
            line = b.mul(b.add(b.mul(n.index, at.rows), r.index), MADE * seen.tiles_across)
            image = b.gep(first, b.mul(n.index, seen.steps[1]))
            with b.loop(0, b.minimum(MADE, b.sub(seen.height, top))) as i:
                place = b.gep(self.lines, b.add(line, b.mul(i.index, self.tiles.line)))
                made = Line(place, image, b.add(top, i.index), 0, seen.width)
                self._finish_line(at, row, b.add(at.image, n.index), made, taps)

    def _finish_line(self, at: _Chunk, row: Index, image: Index, line: Line, taps: Value) -> None:
        b, seen, lanes = self.b, self.seen, self.lanes
        batch = tuple(image if i == seen.axis else x for i, x in enumerate(at.batch))
        column = b.mul(line.row, seen.width)
        if seen.axis is None:
            column = b.add(column, b.mul(image, seen.height * seen.width))
        vectors = min(-(-seen.width // lanes), MADE)
        with b.loop(0, seen.width, vectors * lanes) as x:
            left: Index = seen.width if vectors * lanes >= seen.width else b.sub(seen.width, x.index)
            masks = [self._mask(left, v * lanes) for v in range(vectors)]
            place = b.gep(line.place, x.index)
            some = replace(line, place=place, column=x.index, count=b.minimum(left, vectors * lanes))
            with b.if_then(self._some_not_finite(place, masks)):
                PlainSums(seen, lanes).mend(b, some, (taps, self.problem.a.column))
            values = [b.load(self.type, b.gep(place, v * lanes)) for v in range(vectors)]
            self.problem.epilogue(b, Cells(batch, row, b.add(column, x.index), values, masks))

    def _some_not_finite(self, place: Value, masks: list[Value | None]) -> Value:
        """Whether a place of the image is not finite; beyond it there may be anything."""
        b = self.b
        found = b.constant(vector(I1, self.lanes), False)
        for v, mask in enumerate(masks):
            lanes = not_finite(b, b.load(self.type, b.gep(place, v * self.lanes)))
            found = b.binary("or", found, lanes if mask is None else b.binary("and", lanes, mask))
        return b.reduce("or", found)

    def _mask(self, left: Index, lane: int) -> Value | None:
        """Lanes of a vector of a line that are in the image."""
        if isinstance(left, int) and left - lane >= self.lanes:
            return None
        return self.b.tail_mask(self.b.sub(left, lane), self.lanes)
