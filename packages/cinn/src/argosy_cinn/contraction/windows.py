"""Packing an operand that is seen through windows: the patches of an image as a matrix that is never in memory.

A vector of neighbouring places may lie on several rows of the image: it is read in *pieces*, one for each row that it
touches, under masks of the lanes on that row and inside the image. Where the result is as wide as the image, the next
row goes on in memory where the last one ended, and one read serves the pieces of an image. Masks depend on the place
and the tap, not on the channel, so that they are made once for all channels (the implicit product of Chetlur et al.,
2014, on vectors).

Where places of a panel hold several terms (`Format.terms`: pairs of bfloat16), vectors along the columns are
interleaved; those along the rows hold as many terms as a vector of places, and are transposed place by place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from argosy_cinn.contraction.problem import Block, Format
from argosy_cinn.forms.product import Axis, Window
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import I1, I32, Index, Value, bytes_of, vector

_PARAMETERS = [
    ("ptr noalias readonly", "source"),
    ("i64", "row"),
    ("i64", "column"),
    ("i64", "rows"),
    ("i64", "columns"),
    ("ptr noalias", "out"),
]


def pack_window(f: Function, block: Block, out: Value, width: int, lanes: int, format: Format) -> None:
    """Pack a block of B into panels ``[columns / width][rows / terms][width]`` of places at ``out``. Products of the
    same windows share the code."""
    window, element = block.matrix.window, block.matrix.element
    assert window is not None

    def define(unique: str) -> None:
        with f.module.function(unique, _PARAMETERS, export=False, attributes="noinline") as g:
            packing = _PackingEmitter(g, window, element, lanes, width, format)
            (packing.along_rows if window.runs_along_rows else packing.along_columns)()

    name = f"pack_window_{element}"
    unique = f.module.shared_function(("window", window, element, lanes, width, format), name, define)
    sizes = [f.index(x) for x in (block.row, block.column, block.rows, block.columns)]
    f.call(unique, "void", block.origin, *sizes, out)


@dataclass(slots=True)
class _Place:
    """A place along some axes: elements from the origin, and its coordinates along the bounds."""

    offset: Index
    coordinates: list[Index]

    def plus(self, f: Function, other: _Place) -> _Place:
        """The place of both indices."""
        both = zip(self.coordinates, other.coordinates, strict=True)
        return _Place(f.add(self.offset, other.offset), [f.add(x, y) for x, y in both])


@dataclass(slots=True)
class _Piece:
    """Lanes of a vector on one row of the image: the place of lane 0, were it there, and which lanes are."""

    place: _Place
    lanes: Value


@dataclass(slots=True)
class _VisiblePieces:
    """What a panel sees: the pieces that its vectors are read in, where the taps begin, and masks of every tap and
    piece, of which there are ``count``."""

    vectors: list[list[_Piece]]
    offsets: Value
    table: Value
    count: int


class _PackingEmitter:
    """The body of one copying function."""

    def __init__(self, f: Function, window: Window, element: str, lanes: int, width: int, format: Format) -> None:
        self.f, self.window, self.element, self.lanes, self.width = f, window, element, lanes, width
        self.source, self.row, self.column, self.rows, self.columns, self.out = f.arguments
        self.compute, self.terms = format.compute, format.terms
        self.span = lanes * format.terms if window.runs_along_rows else lanes  # elements of a vector that is read
        self.type = vector(element, self.span)

    def along_columns(self) -> None:
        """Vectors lie along the columns: places of the result. Masks wait in a table, from which all channels take
        them, so that both the image and the panel are passed over in order."""
        f, window = self.f, self.window
        period, along = window.period, window.columns[-1]
        count = self.width // self.lanes * self._reads(window.columns)
        offsets = f.alloca("i64", period)
        table = f.alloca("i8", period * count * self._mask_bytes(along))
        with f.loop(0, self.columns, self.width) as j:
            vectors = [
                self._pieces(
                    window.columns, f.add(self.column, f.add(j.index, v)), f.sub(f.sub(self.columns, j.index), v)
                )
                for v in range(0, self.width, self.lanes)
            ]
            with f.loop(0, period) as tap:
                place = self._place(window.rows[1:], tap.index)
                f.store(f.index(place.offset), f.gep(offsets, tap.index, "i64"))
                masks = [mask for pieces in vectors for mask in self._masks(pieces, place, window.columns)]
                self._keep(masks, table, tap.index, along)
            seen = _VisiblePieces(
                [self._read_pieces(pieces, window.columns) for pieces in vectors], offsets, table, count
            )
            panel = f.gep(self.out, f.mul(j.index, f.ceil_div(self.rows, self.terms)), self.compute)
            (self._single_terms if self.terms == 1 else self._several_terms)(seen, panel)

    def _single_terms(self, seen: _VisiblePieces, panel: Value) -> None:
        """The rows of a panel whose places hold one term: channel after channel, tap after tap."""
        f, period = self.f, self.window.period
        with f.loop(0, f.div(self.rows, period)) as c, f.loop(0, period) as tap:
            row = self._row(seen, c.index, tap.index)
            self._store_row([row], panel, f.add(f.mul(c.index, period), tap.index))

    def _several_terms(self, seen: _VisiblePieces, panel: Value) -> None:
        """The rows of a panel whose places hold several terms; terms after the last one are zero."""
        f, period, last = self.f, self.window.period, self.f.sub(self.rows, 1)
        with f.loop(0, f.ceil_div(self.rows, self.terms)) as place:
            terms = []
            for u in range(self.terms):
                k = f.add(f.mul(place.index, self.terms), u)
                at = f.minimum(k, last)
                terms.append(self._row(seen, f.div(at, period), f.rem(at, period), f.icmp("sle", f.index(k), last)))
            self._store_row(terms, panel, place.index)

    def _row(self, seen: _VisiblePieces, c: Index, tap: Index, exists: Value | None = None) -> list[Value]:
        """The elements of a panel at a channel and a tap; zero unless they exist."""
        f, along = self.f, self.window.columns[-1]
        masks = self._load_masks(seen.table, tap, along, seen.count)
        if exists is not None:
            masks = [f.binary("and", mask, f.splat(exists, self._mask_bytes(along))) for mask in masks]
        channel = f.add(f.div(self.row, self.window.period), c)
        start = f.add(f.mul(channel, self.window.rows[0].stride), f.load("i64", f.gep(seen.offsets, tap, "i64")))
        image, left, made = f.gep(self.source, start, self.element), iter(masks), []
        for pieces in seen.vectors:
            sources = [f.gep(image, piece.place.offset, self.element) for piece in pieces]
            made.append(self._read(sources, [next(left) for _ in pieces], 0, along.stride))
        return made

    def _store_row(self, terms: list[list[Value]], panel: Value, place: Index) -> None:
        """Store a row of places: the vectors of each of its terms."""
        f, row = self.f, self.f.gep(panel, self.f.mul(place, self.width), self.compute)
        for v, parts in enumerate(zip(*terms, strict=True)):
            value = parts[0]
            if len(parts) == 2:
                value = f.shuffle(parts[0], parts[1], [i // 2 + self.lanes * (i % 2) for i in range(2 * self.lanes)])
            f.store(self._places(value), f.gep(row, v * self.lanes, self.compute))

    def _places(self, value: Value) -> Value:
        """Elements as the places that they fill."""
        if self.terms > 1:
            return self.f.bitcast(value, vector(self.compute, self.lanes))
        return value if self.element == self.compute else self.f.widen_float(value, self.compute)

    def _mask_bytes(self, along: Axis) -> int:
        return self.lanes * (2 if along.stride == 2 else 1)

    def _keep(self, masks: list[Value], table: Value, tap: Index, along: Axis) -> None:
        """Write the masks of a tap to the table, a byte for each lane."""
        f, size = self.f, self._mask_bytes(along)
        for i, mask in enumerate(masks):
            place = f.gep(table, f.mul(f.add(f.mul(tap, len(masks)), i), size), "i8")
            f.store(f.convert("sext", mask, "i8"), place)

    def _load_masks(self, table: Value, tap: Index, along: Axis, count: int) -> list[Value]:
        f, size = self.f, self._mask_bytes(along)
        places = [f.gep(table, f.mul(f.add(f.mul(tap, count), i), size), "i8") for i in range(count)]
        return [f.icmp("slt", f.load(vector("i8", size), place), 0) for place in places]

    def along_rows(self) -> None:
        """Vectors lie along the rows (terms of k, in a gradient of weights): square blocks are transposed."""
        f = self.f
        places = f.ceil_div(self.rows, self.terms)
        with f.loop(0, self.columns, self.lanes) as j, f.loop(0, places, self.lanes) as k:
            first = f.mul(k.index, self.terms)
            pieces = self._pieces(self.window.rows, f.add(self.row, first), f.sub(self.rows, first))
            block = f.transpose([self._places(column) for column in self._columns(pieces, j.index)])
            lane = f.rem(j.index, self.width)
            panel = f.add(f.mul(f.sub(j.index, lane), places), f.add(lane, f.mul(k.index, self.width)))
            self._store(block, f.gep(self.out, panel, self.compute), f.sub(places, k.index))

    def _store(self, block: list[Value], target: Value, left: Index) -> None:
        """The rows of a transposed block, as many as there are."""
        f = self.f

        def store_whole() -> list[Value]:
            for i, value in enumerate(block):
                f.store(value, f.gep(target, i * self.width, self.compute))
            return []

        def some() -> list[Value]:
            for i, value in enumerate(block[:-1]):
                with f.if_then(f.icmp("sgt", left, i)):
                    f.store(value, f.gep(target, i * self.width, self.compute))
            return []

        f.either(f.icmp("sge", left, self.lanes), store_whole, some)

    def _columns(self, pieces: list[_Piece], j: Index) -> list[Value]:
        """Columns from ``j`` on, as vectors along the rows; those beyond the last ones repeat these. Neighbours that
        differ in the channel only have the same masks."""
        f, axes, along = self.f, self.window.columns, self.window.rows[-1]
        alike = 1 if any(axes[-1].steps) else gcd(axes[-1].extent, self.lanes)
        last = f.sub(self.columns, alike)
        found = []
        for i in range(0, self.lanes, alike):
            place = self._place(axes, f.add(self.column, f.minimum(f.add(j, i), last)))
            sources, masks = self._sources(pieces, place)
            found += [self._read(sources, masks, c * axes[-1].stride, along.stride) for c in range(alike)]
        return found

    def _place(self, axes: Sequence[Axis], index: Index) -> _Place:
        """The place of a row-major index along some axes."""
        f = self.f
        place = _Place(0, [0] * len(self.window.bounds))
        for position, axis in enumerate(reversed(axes)):
            last = position == len(axes) - 1
            i = index if last else f.rem(index, axis.extent)
            index = f.div(index, axis.extent)
            steps = axis.steps or (0,) * len(self.window.bounds)
            place = place.plus(f, _Place(f.mul(i, axis.stride), [f.mul(i, step) for step in steps]))
        return place

    def _pieces(self, axes: tuple[Axis, ...], start: Index, left: Index) -> list[_Piece]:
        """The pieces of a vector that begins at an index along some axes, of which ``left`` lanes exist."""
        f, lanes = self.f, self.span
        *outer, inner = axes
        extent = inner.extent
        row, column = f.div(start, extent), f.rem(start, extent)
        exists = f.tail_mask(left, lanes)
        if not outer:
            return [_Piece(self._place([inner], start), exists)]
        count = _most_pieces(extent, lanes, len(axes))
        found = []
        for r in range(count):
            first = f.sub(column, r * extent)
            steps = inner.steps or (0,) * len(self.window.bounds)
            at = _Place(f.mul(first, inner.stride), [f.mul(first, step) for step in steps])
            inside = exists
            if count > 1:
                inside = f.binary("and", exists, self._bounds_mask(first, 1, extent))
            found.append(_Piece(self._place(outer, f.add(row, r)).plus(f, at), inside))
        return found

    def _bounds_mask(self, first: Index, step: int, size: int) -> Value:
        """Lanes for which ``0 <= first + lane * step < size``."""
        f = self.f
        start = f.splat(f.convert("trunc", f.index(first), I32), self.span)
        return f.icmp("ult", f.binary("add", start, f.binary("mul", f.iota(I32, self.span), step)), size)

    def _sources(self, pieces: list[_Piece], place: _Place) -> tuple[list[Value], list[Value]]:
        """Where a vector along the rows is read at a place along the other axes, and the masks of these reads."""
        f, axes = self.f, self.window.rows
        offsets = [f.add(piece.place.offset, place.offset) for piece in self._read_pieces(pieces, axes)]
        return [f.gep(self.source, offset, self.element) for offset in offsets], self._masks(pieces, place, axes)

    def _reads(self, axes: Sequence[Axis]) -> int:
        """How many reads the pieces of a vector along some axes take. Rows that follow each other in memory are one
        read; of several images, two, where one has as many places as a vector."""
        pieces = _most_pieces(axes[-1].extent, self.span, len(axes))
        if pieces == 1 or axes[-2].stride != axes[-1].extent * axes[-1].stride:
            return pieces
        if len(axes) == 2:
            return 1
        return min(2, pieces) if axes[-2].extent * axes[-1].extent >= self.span else pieces

    def _read_pieces(self, pieces: list[_Piece], axes: Sequence[Axis]) -> list[_Piece]:
        """The pieces whose places are read from: all, or the first (and the last) for all."""
        reads = self._reads(axes)
        return pieces if reads == len(pieces) else [pieces[0], pieces[-1]][:reads]

    def _masks(self, pieces: list[_Piece], place: _Place, axes: Sequence[Axis]) -> list[Value]:
        """The masks of the reads of a vector along some axes, at a place along the others."""
        f, reads = self.f, self._reads(axes)
        first, *others = (self._mask(piece, place, axes[-1]) for piece in pieces)
        if reads == len(pieces):
            return [first, *others]
        if reads == 1:
            for mask in others:
                first = f.binary("or", first, mask)
            return [first]
        *middle, last = others  # each is on the first image or on the last
        none = f.constant(first.type, False)
        for piece, mask in zip(pieces[1:-1], middle, strict=True):
            here = f.icmp("eq", f.index(piece.place.offset), f.index(pieces[0].place.offset))
            first = f.binary("or", first, f.select(here, mask, none))
            last = f.binary("or", last, f.select(here, none, mask))
        return [first, last]

    def _mask(self, piece: _Piece, place: _Place, along: Axis) -> Value:
        """The lanes that a piece loads at a place along the other axes: those inside the image."""
        f, mask, lanes = self.f, piece.lanes, self.span
        coordinates = piece.place.plus(f, place).coordinates
        steps = along.steps or (0,) * len(self.window.bounds)
        for (first, size), step, coordinate in zip(self.window.bounds, steps, coordinates, strict=True):
            where = f.add(coordinate, first)
            inside = (
                self._bounds_mask(where, step, size) if step else f.splat(f.icmp("ult", f.index(where), size), lanes)
            )
            mask = f.binary("and", mask, inside)
        if along.stride != 2:
            return mask
        none = f.constant(vector(I1, lanes), False)
        return f.shuffle(mask, none, [i // 2 + lanes * (i % 2) for i in range(2 * lanes)])

    def _read(self, sources: list[Value], masks: list[Value], offset: Index, stride: int) -> Value:
        """One vector from its pieces, ``offset`` elements further on; lanes outside are zero."""
        f, lanes = self.f, self.span
        value: Value | None = None
        for source, mask in zip(sources, masks, strict=True):
            place = f.gep(source, offset, self.element)
            if stride == 1:
                value = f.masked_load(self.type, place, mask, 0 if value is None else value)
            elif stride == 2:  # one load of twice the size
                wide = f.masked_load(vector(self.element, 2 * lanes), place, mask)
                part = f.shuffle(wide, None, list(range(0, 2 * lanes, 2)))
                value = part if value is None else self._either(value, part)
            else:
                steps = f.binary("mul", f.iota("i64", lanes), stride)
                value = f.gather(self.type, place, steps, mask, 0 if value is None else value)
        assert value is not None
        return value

    def _either(self, x: Value, y: Value) -> Value:
        """Lanes of two pieces, of which at least one is zero."""
        f, bits = self.f, vector(f"i{8 * bytes_of(self.element)}", self.span)
        return f.bitcast(f.binary("or", f.bitcast(x, bits), f.bitcast(y, bits)), self.type)


def _most_pieces(extent: int, lanes: int, axes: int) -> int:
    """How many rows of the image a vector touches at most."""
    return 1 if extent % lanes == 0 or axes == 1 else -(-(lanes - 1) // extent) + 1
