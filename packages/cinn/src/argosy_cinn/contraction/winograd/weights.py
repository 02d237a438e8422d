"""Gradients of 3 x 3 weights by minimal filtering: sums over tiles of the products of two transforms.

The product's rows are filters, its columns the channels of every tap, and its terms the places of all images. A chunk
is some filters and some channels: step by step, it transforms tiles of the image and of the result's gradient, and adds
36 products over the tiles of a step to its sums; these are transformed to taps in the end, and given to the epilogue.

An element is one sequence of operations whatever the chunks: steps depend on the images alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from argosy_cinn.contraction.problem import Cells, Contraction, coordinates, origin
from argosy_cinn.contraction.tile import NULL, TileArguments
from argosy_cinn.contraction.winograd.blocking import (
    FEWEST,
    OF_IMAGE,
    OF_RESULT,
    POINTS,
    VECTORS,
    WORTHWHILE,
    Images,
    channels_first,
    cut,
    image_bounds,
    is_plain,
)
from argosy_cinn.contraction.winograd.tiles import ROWS, Part, Tiles, call_vectors
from argosy_cinn.contraction.winograd.transforms import MADE, SEEN, TAPS, as_taps
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import FLOAT, Index, Value, vector
from argosy_cinn.runtime.workers import scratch, thread_count
from argosy_cinn.target import Target

#: Filters and channels of a chunk at most; filters of one at least.
_MOST, _LEAST_FILTERS = 128, 32
#: Bytes of transformed tiles of a step.
_MOST_BYTES = 8 << 20
#: Elements between matrices of a point, so that they do not fight for the same cache sets.
_STAGGER = 16
#: What transposing a vector of tiles for each channel, and transforming sums to the taps of a channel and filter, cost
#: beside one multiply-add of a vector.
_OF_TRANSPOSE, _OF_TAPS = 220, 10
#: Chunks for each thread.
_CHUNKS_PER_THREAD = 2
_WINDOW = TAPS * TAPS


@dataclass(frozen=True, slots=True)
class WeightsBlocking:
    """How a gradient of weights runs: the images ``seen``, those of the result's ``gradient`` (its channels are the
    filters), ``images`` and ``rows`` of tiles of a step, ``filters`` and ``channels`` of a chunk at most, and the lanes
    of a vector."""

    seen: Images
    gradient: Images
    images: int
    rows: int
    filters: int
    channels: int
    lanes: int

    @property
    def vectors(self) -> int:
        """Vectors of tiles of a whole step."""
        return -(-self.images * self.rows * self.seen.tiles_across // self.lanes)

    @property
    def steps(self) -> tuple[int, int]:
        """Steps along the images, and along the rows of tiles of one."""
        return -(-self.seen.images // self.images), -(-self.seen.tile_rows // self.rows)


def plan_winograd_weights(problem: Contraction, target: Target) -> WeightsBlocking | None:
    """The plan of a gradient of weights that minimal filtering makes faster, or None."""
    found = _images(problem) if problem.minimal else None
    return plan_gradient(*found, target.vector_bits) if found is not None else None


def plan_gradient(seen: Images, gradient: Images, vector_bits: int) -> WeightsBlocking | None:
    """The plan of a gradient of weights that are seen by the images of a result's gradient, or None."""
    if vector_bits != 512 or min(seen.channels, gradient.channels) < FEWEST:
        return None
    lanes = vector_bits // 32
    channels = _equal_part(seen.channels, _MOST, lanes)
    filters = _equal_part(gradient.channels, _MOST, ROWS)
    most = max(_MOST_BYTES // (4 * POINTS * (channels + filters)), VECTORS * lanes)
    plan = WeightsBlocking(seen, gradient, *cut(seen, most), filters, channels, lanes)
    return plan if plan.vectors * lanes <= 4 * most and _share_of_plain(plan) < WORTHWHILE else None


def _equal_part(size: int, most: int, multiple: int) -> int:
    part = -(-size // -(-size // most))
    return -(-part // multiple) * multiple


def _images(problem: Contraction) -> tuple[Images, Images] | None:
    """The images that a gradient of weights is of, and the result's gradient as such."""
    window, a = problem.b.window, problem.a
    if window is None or not is_plain(problem) or a.column != 1:
        return None
    bounds = image_bounds(window, channels_first(window.columns), window.rows)
    if bounds is None:
        return None
    *outer, high, wide = window.rows
    images, step = (outer[0].extent, outer[0].stride) if outer else (1, 0)
    places = high.extent * wide.extent
    jump = a.jump if problem.run else places  # terms that come in no runs are contiguous
    if problem.run not in (0, places) or not isinstance(a.row, int) or not isinstance(jump, int):
        return None
    assert isinstance(problem.m, int)
    channels, size = window.columns[-1], (high.extent, wide.extent)
    seen = Images(channels.extent, images, *size, (channels.stride, step, high.stride), bounds, None)
    inside = (0, high.extent), (0, wide.extent)
    return seen, Images(problem.m, images, *size, (a.row, jump, wide.extent), inside, None)


def _share_of_plain(plan: WeightsBlocking) -> float:
    """The time of minimal filtering divided by that of a plain product, in multiply-adds of a vector."""
    seen, depth, filters = plan.seen, plan.seen.channels, plan.gradient.channels
    vectors = plan.vectors * prod(plan.steps)
    products = vectors * POINTS * filters * -(-depth // plan.lanes) * plan.lanes
    again = -(-filters // plan.filters), -(-depth // plan.channels)
    transforms = (OF_IMAGE + _OF_TRANSPOSE) * depth * again[0] + OF_RESULT * filters * again[1]
    plain = -(-seen.images * seen.height * seen.width // plan.lanes) * _WINDOW * filters * depth
    return (products + vectors * transforms + _OF_TAPS * filters * depth) / plain


def winograd_weights_grid(b: Function, problem: Contraction, plan: WeightsBlocking) -> Index:
    """The number of chunks: parts of the channels, and of the filters, more of these where threads want it."""
    filters, others = plan.gradient.channels, _others(problem, plan)
    wanted = b.div(b.add(b.mul(thread_count(b), _CHUNKS_PER_THREAD), others - 1), others)
    most, least = -(-filters // _LEAST_FILTERS), -(-filters // plan.filters)
    return b.mul(others, b.maximum(b.minimum(wanted, most), least))


def _others(problem: Contraction, plan: WeightsBlocking) -> int:
    """Chunks for each part of the filters."""
    return -(-plan.seen.channels // plan.channels) * prod(problem.batch)  # type: ignore[arg-type]


def emit_winograd_weights(
    b: Function, problem: Contraction, plan: WeightsBlocking, chunk: Value, chunks: Value
) -> None:
    """Emit the code of one chunk into a kernel."""
    _Weights(b, problem, plan).emit(chunk, chunks)


@dataclass(slots=True)
class _Chunk:
    """Its batch coordinates, first filter and how many, first channel and how many."""

    batch: tuple[Index, ...]
    filter: Index
    filters: Index
    channel: Index
    channels: Index


class _Weights:
    def __init__(self, b: Function, problem: Contraction, plan: WeightsBlocking) -> None:
        self.b, self.problem, self.plan, self.lanes = b, problem, plan, plan.lanes
        self.type = vector(FLOAT, plan.lanes)
        self.tiles = plan.vectors * plan.lanes  # of a step
        vectors = -(-plan.channels // plan.lanes)
        self.per_panel = 2 if vectors % VECTORS == 1 and vectors % 2 == 0 else min(vectors, VECTORS)
        self.width = self.per_panel * plan.lanes
        self.panel = self.tiles * self.width
        self.point = -(-vectors // self.per_panel) * self.panel + _STAGGER  # from point to point in the panels,
        self.some = plan.lanes * self.tiles + _STAGGER  # of as many channels as a vector has lanes,
        self.factor = plan.filters * self.tiles + _STAGGER  # of filters,
        self.sum = plan.filters * plan.channels + _STAGGER  # of sums
        self.of_image = Tiles(plan.seen, SEEN, plan.lanes, plan.vectors, self.some, "channels")
        self.of_gradient = Tiles(plan.gradient, MADE, plan.lanes, plan.vectors, self.factor, "filters")

    def emit(self, chunk: Value, chunks: Value) -> None:
        self._allocate()
        b, plan, at = self.b, self.plan, self._chunk(chunk, chunks)
        image, gradient = origin(b, self.problem.b, at.batch), origin(b, self.problem.a, at.batch)
        image = b.gep(image, b.mul(at.channel, plan.seen.steps[0]))
        gradient = b.gep(gradient, b.mul(at.filter, plan.gradient.steps[0]))
        with b.if_then(b.icmp("sgt", b.index(at.filters), 0)):
            with b.loop(0, prod(plan.steps)) as step:
                count = self._transforms(image, gradient, at, step.index)
                self._products(at, count, b.icmp("eq", step.index, 0))
            with b.loop(0, at.filters) as r:
                self._finish(at, r.index)

    def _allocate(self) -> None:
        """Panels of tiles of the image, those of some channels before they are transposed, tiles of the gradient, sums,
        and lines: of images, or of the result."""
        plan = self.plan
        line = _WINDOW * plan.channels + MADE * self.lanes
        sizes = [POINTS * self.point, POINTS * self.some, POINTS * self.factor, POINTS * self.sum,
                 max(self.of_image.buffer, self.of_gradient.buffer, line)]  # fmt: skip
        starts = [sum(sizes[:i]) + 208 * i for i in range(len(sizes) + 1)]
        slab = scratch(self.b, 4 * starts[-1])
        self.panels, self.few, self.factors, self.sums, self.lines = (self.b.gep(slab, start) for start in starts[:-1])

    def _chunk(self, chunk: Value, chunks: Value) -> _Chunk:
        b, plan = self.b, self.plan
        filters, channels = plan.gradient.channels, plan.seen.channels
        split = b.div(chunks, _others(self.problem, plan))
        tiles = -(-filters // ROWS)
        height = b.mul(b.div(b.sub(b.add(tiles, split), 1), split), ROWS)
        first, number = b.mul(b.rem(chunk, split), height), b.div(chunk, split)
        parts = -(-channels // plan.channels)
        channel = b.mul(b.rem(number, parts), plan.channels)
        batch = coordinates(b, self.problem, b.div(number, parts))
        return _Chunk(batch, first, b.minimum(height, b.sub(filters, first)), channel,
                      b.minimum(plan.channels, b.sub(channels, channel)))  # fmt: skip

    def _transforms(self, image: Value, gradient: Value, at: _Chunk, step: Index) -> Index:
        """Transform the tiles of a step: how many there are."""
        b, plan, seen, lanes = self.b, self.plan, self.plan.seen, self.lanes
        _, bands = plan.steps
        first, row = b.mul(b.div(step, bands), plan.images), b.mul(b.rem(step, bands), plan.rows)
        images, rows = (
            b.minimum(plan.images, b.sub(seen.images, first)),
            b.minimum(plan.rows, b.sub(seen.tile_rows, row)),
        )
        count = b.mul(b.mul(images, rows), seen.tiles_across)
        vectors = b.ceil_div(count, lanes)
        with b.loop(0, at.channels, lanes) as c:
            source = b.gep(image, b.add(b.mul(first, seen.steps[1]), b.mul(c.index, seen.steps[0])))
            part = Part(source, row, rows, images, b.minimum(lanes, b.sub(at.channels, c.index)))
            self.of_image.transform(b, part, self.lines, self.few, lambda f, v, p, i: self._line(f, v, p, i, self.some))
            self._transpose(vectors, b.div(c.index, lanes))
        part = Part(b.gep(gradient, b.mul(first, plan.gradient.steps[1])), row, rows, images, at.filters)
        factors = lambda f, v, p, i: self._line(f, v, p, i, self.factor)  # noqa: E731
        self.of_gradient.transform(b, part, self.lines, self.factors, factors)
        return count

    def _line(self, f: Function, v: Index, point: Index, channel: Index, step: int) -> Index:
        """Where a vector of tiles lies in ``[36][channels][tiles]``."""
        return f.add(f.mul(point, step), f.add(f.mul(channel, self.tiles), f.mul(v, self.lanes)))

    def _transpose(self, vectors: Index, position: Index) -> None:
        """Copy the tiles of as many channels as a vector has lanes to the panels, where channels are neighbours."""
        b, lanes = self.b, self.lanes
        parameters = [("ptr noalias readonly", "source"), ("ptr noalias", "out"), ("i64", "vectors")]

        def define(name: str) -> None:
            with (
                b.module.function(name, parameters, export=False, attributes="noinline") as f,
                f.loop(0, POINTS) as point,
                f.loop(0, f.arguments[2]) as v,
            ):
                source = f.gep(f.arguments[0], self._line(f, v.index, point.index, 0, self.some))
                rows = [f.load(self.type, f.gep(source, i * self.tiles)) for i in range(lanes)]
                place = f.add(f.mul(point.index, self.point), f.mul(v.index, lanes * self.width))
                out = f.gep(f.arguments[1], place)
                for i, row in enumerate(f.transpose(rows)):
                    f.store(row, f.gep(out, i * self.width))

        key = ("winograd transpose", self.tiles, self.width, self.point, self.some)
        name = b.module.shared_function(key, "winograd_transpose", define)
        panel, within = b.div(position, self.per_panel), b.rem(position, self.per_panel)
        out = b.gep(self.panels, b.add(b.mul(panel, self.panel), b.mul(within, lanes)))
        b.call(name, "void", self.few, out, b.index(vectors))

    def _products(self, at: _Chunk, count: Index, first: Value) -> None:
        """Add the products over the tiles of a step to the sums of every point."""
        b, lanes = self.b, self.lanes
        vectors = b.ceil_div(at.channels, lanes)
        with b.loop(0, POINTS) as point, b.loop(0, vectors, self.per_panel) as v, b.loop(0, at.filters, ROWS) as r:
            rows = b.gep(self.factors, self._line(b, 0, point.index, r.index, self.factor))
            panel = b.add(b.mul(point.index, self.point), b.mul(b.div(v.index, self.per_panel), self.panel))
            place = b.add(b.mul(r.index, self.plan.channels), b.mul(v.index, lanes))
            out = b.gep(self.sums, b.add(b.mul(point.index, self.sum), place))
            operands = TileArguments(
                rows, 4 * self.tiles, b.gep(self.panels, panel), 0, count, b.minimum(ROWS, b.sub(at.filters, r.index)),
                self.width, b.select(first, NULL, out), out, self.plan.channels, NULL,
            )  # fmt: skip
            call_vectors(b, b.minimum(self.per_panel, b.sub(vectors, v.index)), self.per_panel, lanes, "rows", operands)

    def _finish(self, at: _Chunk, r: Index) -> None:
        """Transform the sums of a filter to taps, and give them to the epilogue, tap by tap."""
        b, plan, lanes = self.b, self.plan, self.lanes

        def define(name: str) -> None:
            parameters = [("ptr noalias readonly", "sums"), ("ptr noalias", "out"), ("i64", "vectors")]
            with (
                b.module.function(name, parameters, export=False, attributes="noinline") as f,
                f.loop(0, f.arguments[2]) as v,
            ):
                sums, out = (f.gep(start, f.mul(v.index, lanes)) for start in f.arguments[:2])
                self._taps(f, sums, out)

        name = b.module.shared_function(("winograd gradient", plan.channels, self.sum), "winograd_gradient", define)
        sums = b.gep(self.sums, b.mul(r, plan.channels))
        b.call(name, "void", sums, self.lines, b.index(b.ceil_div(at.channels, lanes)))
        with b.loop(0, _WINDOW) as tap, b.loop(0, at.channels, MADE * lanes) as c:
            line = b.gep(self.lines, b.add(b.mul(tap.index, plan.channels), c.index))
            values = [b.load(self.type, b.gep(line, v * lanes)) for v in range(MADE)]
            left = b.sub(at.channels, c.index)
            masks: list[Value | None] = [b.tail_mask(b.sub(left, v * lanes), lanes) for v in range(MADE)]
            column = b.add(b.mul(tap.index, plan.seen.channels), b.add(at.channel, c.index))
            self.problem.epilogue(b, Cells(at.batch, b.add(at.filter, r), column, values, masks))

    def _taps(self, f: Function, sums: Value, out: Value) -> None:
        """The taps of a vector of channels."""
        columns = []
        for j in range(SEEN):
            read = [f.load(self.type, f.gep(sums, (i * SEEN + j) * self.sum)) for i in range(SEEN)]
            columns.append(as_taps(f, read))
        taps = [tap for i in range(TAPS) for tap in as_taps(f, [column[i] for column in columns])]
        for i, tap in enumerate(taps):
            f.store(tap, f.gep(out, i * self.plan.channels))
