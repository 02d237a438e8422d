"""Tiles of images as the factors of minimal filtering: a transform along columns, then one along rows.

Rows of tiles follow each other in lines ``[6][rows of tiles][4 * tiles across]``, so that vectors hold neighbouring
tiles however narrow the image is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from argosy_cinn.contraction.tile import Tile, TileArguments, call_tile
from argosy_cinn.contraction.winograd.blocking import Images
from argosy_cinn.contraction.winograd.transforms import MADE, SEEN, every_fourth, of_gradient, of_image
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import FLOAT, I1, I32, Index, Value, vector

#: ``place(f, v, point, channel)``: where vector ``v`` of a channel's tiles goes for a point, in elements. Points that
#: follow each other in a row are ``step`` elements apart.
Place: TypeAlias = Callable[[Function, Index, Index, Index], Index]
_PARAMETERS = [
    ("ptr noalias readonly", "source"),
    ("i64", "first"),
    ("i64", "rows"),
    ("i64", "images"),
    ("i64", "channels"),
    ("ptr noalias", "lines"),
    ("ptr noalias", "out"),
]


@dataclass(frozen=True, slots=True)
class Part:
    """The part of some images to transform: rows of tiles of images from a first one on, and channels."""

    source: Value
    first: Index
    rows: Index
    images: Index
    channels: Index


@dataclass(frozen=True, slots=True)
class Tiles:
    """Tiles of ``side`` x ``side`` elements (6: of what is convolved, 4: of the result's gradient), 4 apart, of the
    images ``seen``; at most ``vectors`` vectors of them at a time; ``step``: elements between points of a row;
    ``layout`` names the `Place` that they go to."""

    seen: Images
    side: int
    lanes: int
    vectors: int
    step: int
    layout: str

    @property
    def line(self) -> int:
        """Elements of a line, with what is stored beyond its end."""
        return MADE * self.lanes * (self.vectors + 2)

    @property
    def buffer(self) -> int:
        """Elements that lines need."""
        return 2 * SEEN * self.line

    def transform(self, b: Function, part: Part, lines: Value, out: Value, place: Place) -> None:
        """Emit the call of a function that transforms a part; there is one for equal tiles."""

        def define(name: str) -> None:
            with b.module.function(name, _PARAMETERS, export=False, attributes="noinline") as f:
                self._define(f, place)

        name = b.module.shared_function(("winograd tiles", self), f"winograd_tiles_{self.side}", define)
        numbers = map(b.index, (part.first, part.rows, part.images, part.channels))
        b.call(name, "void", part.source, *numbers, lines, out)

    def _define(self, f: Function, place: Place) -> None:
        source, first, rows, images, channels, lines, out = f.arguments
        seen = self.seen
        tiles = f.mul(f.mul(rows, images), seen.tiles_across)
        with f.loop(0, channels) as c:
            image = f.gep(source, f.mul(c.index, seen.steps[0]))
            with f.loop(0, images) as n, f.loop(0, rows) as r:
                row = f.add(f.mul(n.index, rows), r.index)
                line = f.gep(lines, f.mul(row, MADE * seen.tiles_across))
                self._transform_columns(f, f.gep(image, f.mul(n.index, seen.steps[1])), f.add(first, r.index), line)
            with f.loop(0, f.ceil_div(tiles, self.lanes)) as v, f.loop(0, SEEN) as u:
                line = f.gep(lines, f.add(f.mul(u.index, self.line), f.mul(v.index, MADE * self.lanes)))
                self._transform_line(f, line, f.gep(out, place(f, v.index, f.mul(u.index, SEEN), c.index)))

    def _transform_columns(self, f: Function, image: Value, row: Index, out: Value) -> None:
        """Transform a row of tiles along the columns of an image, into six lines, and where tiles overlap into six that
        begin four elements later: there the last two elements of each tile are beside each other, too."""
        seen, lanes, type = self.seen, self.lanes, vector(FLOAT, self.lanes)
        (first_row, height), (first_column, width) = seen.bounds
        top = f.mul(row, MADE)
        inside = [f.icmp("ult", f.index(f.add(f.add(top, i), first_row)), height) for i in range(self.side)]
        corner = f.gep(image, f.mul(top, seen.steps[2]))
        with f.loop(0, MADE * seen.tiles_across + self.side - MADE, lanes) as x:
            columns = f.binary("add", f.splat(f.convert("trunc", x.index, I32), lanes), f.iota(I32, lanes))
            mask = f.icmp("ult", f.binary("add", columns, first_column), width)
            none = f.constant(vector(I1, lanes), False)
            start = f.gep(corner, x.index)
            read = [
                f.masked_load(type, f.gep(start, i * seen.steps[2]), f.select(exists, mask, none))
                for i, exists in enumerate(inside)
            ]
            behind, place = f.icmp("uge", columns, MADE), f.gep(out, x.index)
            for i, value in enumerate(self._factors(f, read)):
                f.store(value, f.gep(place, i * self.line))
                if self.side == SEEN:
                    f.masked_store(value, f.gep(place, (SEEN + i) * self.line - MADE), behind)

    def _transform_line(self, f: Function, line: Value, out: Value) -> None:
        """Transform a vector of tiles along a line."""
        tiles = every_fourth(f, self._load(f, line))
        if self.side == SEEN:
            tiles += every_fourth(f, self._load(f, f.gep(line, SEEN * self.line)), SEEN - MADE)
        for i, value in enumerate(self._factors(f, tiles)):
            f.store(value, f.gep(out, i * self.step))

    def _load(self, f: Function, line: Value) -> list[Value]:
        return [f.load(vector(FLOAT, self.lanes), f.gep(line, i * self.lanes)) for i in range(MADE)]

    def _factors(self, f: Function, elements: list[Value]) -> list[Value]:
        return of_image(f, elements) if self.side == SEEN else of_gradient(f, elements)


#: Rows of the register tile of points.
ROWS = 8


def call_vectors(b: Function, vectors: Index, most: int, lanes: int, a_order: str, operands: TileArguments) -> None:
    """Emit the call of a register tile of as many vectors as there are, in panels of ``most`` vectors."""

    def call(many: int) -> list[Value]:
        call_tile(b, Tile(FLOAT, lanes, ROWS, many, most * lanes, a_order), operands)
        return []

    def choose(many: int) -> list[Value]:
        if many == 1:
            return call(1)
        return b.either(b.icmp("eq", b.index(vectors), many), lambda: call(many), lambda: choose(many - 1))

    choose(most)
