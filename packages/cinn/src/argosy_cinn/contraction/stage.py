"""One register tile of a product, from operands to epilogue: which tile function computes it, where its sums
start and go, and who gets them.

A whole tile with a plain epilogue stores itself where it belongs; one with a short sum hands its rows to the
epilogue from registers; any other leaves them in scratch memory, from where they go to the epilogue after the
last step along k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from argosy_cinn.contraction.amx import call_amx_tile, tile_product
from argosy_cinn.contraction.blocking import Blocking
from argosy_cinn.contraction.problem import Cells, Contraction, origin, store_rows
from argosy_cinn.contraction.tile import NULL, Lines, Tile, TileArguments, call_tile, inline_tile, transpose_tile
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import I1, Index, Value, bytes_of, vector

#: Terms up to which passing a tile through scratch memory shows clearly, and a little.
_SHORTEST_SUM = 96
_SHORT_SUM = 512
#: Lines of code for one vector that a small epilogue has at most, and one that costs so much itself that scratch memory
#: shows no more, whatever the sum: repeated for every row of a tile, it would be most of what a program compiles.
_SMALL_EPILOGUE = 24
_MIDDLING_EPILOGUE = 48
#: Row tails are computed as whole tiles when that wastes at most this share of the arithmetic.
_TOLERATED_WASTE = 0.015
#: Vectors of a row of the result that is made of sums of a turned product.
TURNED_VECTORS = 4


@dataclass(slots=True)
class Buffers:
    """The thread's scratch memory: a finished tile, packed row tiles of A, panels of B, sums between steps of
    k, sums of columns of B, a transposed tile.
    """

    tile: Value
    a: Value
    b: Value
    sums: Value
    columns: Value
    turned: Value


@dataclass(slots=True)
class Chunk:
    """The block of C that a chunk computes: ``rows`` x ``columns`` from (``row0``, ``column0``) of batch
    element ``batch``; ``a_origin``, ``b_origin``: addresses of the elements (0, 0) of its operands;
    ``a_order`` as in `Tile`.
    """

    batch: tuple[Index, ...]
    row0: Index
    column0: Index
    rows: Index
    columns: Index
    a_origin: Value
    b_origin: Value
    a_order: str
    buffers: Buffers


@dataclass(slots=True)
class Place:
    """A register tile: at row ``i`` and column ``j`` of the chunk's block, ``rows`` high, summing ``depth``
    terms from ``k0``; ``upcoming``: what later tiles read.
    """

    i: Index
    j: Index
    packed: Index
    rows: Index
    k0: Index
    depth: Index
    upcoming: Lines = field(default_factory=Lines)


class TileStage:
    """Emits register tiles of one chunk."""

    def __init__(self, b: Function, problem: Contraction, blocking: Blocking, block: Chunk) -> None:
        self.b, self.problem, self.blocking, self.block = b, problem, blocking, block
        self.format = blocking.format

    def run(self, place: Place, first: Value | None, last: Value | None) -> None:
        """One register tile: whole ones are finished in registers where that pays, others pass through
        scratch memory.
        """
        b, blocking = self.b, self.blocking
        width = b.minimum(blocking.tile_columns, b.sub(self.block.columns, place.j))
        finish = self._finish_in_registers(place, width, first)
        if finish is None:
            self._tile_in_scratch(place, width, first, last)
            return
        checks = [(place.rows, blocking.tile_rows, self.problem.m), (width, blocking.tile_columns, self.problem.n)]
        unsure = [(size, full) for size, full, total in checks if not isinstance(total, int) or total % full]
        if not unsure:
            finish()
            return
        whole = [b.icmp("eq", size, full) for size, full in unsure]
        condition = whole[0] if len(whole) == 1 else b.binary("and", whole[0], whole[1])
        self._choose(condition, finish, lambda: self._tile_in_scratch(place, width, first, last))

    def _finish_in_registers(self, place: Place, width: Index, first: Value | None) -> Callable[[], None] | None:
        """How a whole tile is finished without scratch memory: stored where a plain epilogue would, or, for
        short sums, given to the epilogue from registers; None where neither pays.
        """
        b, blocking, epilogue = self.b, self.blocking, self.problem.epilogue
        if blocking.turned:
            return None
        row, column = b.add(self.block.row0, place.i), b.add(self.block.column0, place.j)
        whole = _Kind(blocking.tile_rows, blocking.vectors, False)

        def store() -> None:
            assert isinstance(epilogue, store_rows)
            out = epilogue.place(b, self.block.batch, row, column)
            start = NULL if first is None else b.select(first, NULL, out)
            target = _Target(start, out, epilogue.leading, self._ahead(place, out, epilogue.leading))
            self._call(whole, place, width, target)

        def hand_over() -> None:
            if self.problem.touched:
                self._prefetch_touched(place)
            full = replace(place, rows=blocking.tile_rows)
            arguments = self._tile_arguments(full, width, _Target(NULL, NULL, 0, NULL))
            for i, values in enumerate(inline_tile(b, self._tile_kind(whole), arguments)):
                epilogue(b, self._cells(b.add(row, i), column, values, [None] * blocking.vectors))

        if isinstance(epilogue, store_rows):
            return store if epilogue.element == self.problem.compute else None
        return hand_over if first is None and self._pays_in_registers() else None

    def _pays_in_registers(self) -> bool:
        """Whether the epilogue takes whole tiles from registers: for short sums when it is small, since it is repeated
        for every row of the tile; for the shortest ones a larger one may, too.
        """
        k, epilogue, blocking = self.problem.k, self.problem.epilogue, self.blocking
        if not isinstance(k, int) or k > _SHORT_SUM or self.format.tiled:
            return False
        row = [self.b.zero(vector(self.problem.compute, blocking.lanes))] * blocking.vectors
        cells = Cells(self.block.batch, self.block.row0, self.block.column0, row, [None] * blocking.vectors)
        most = _SMALL_EPILOGUE if k > _SHORTEST_SUM else _MIDDLING_EPILOGUE
        return self.b.rehearse(lambda: epilogue(self.b, cells)) <= most * blocking.vectors

    def _tile_in_scratch(self, place: Place, width: Index, first: Value | None, last: Value | None) -> None:
        """One register tile, and the epilogue after the last step."""
        b, blocking, buffers = self.b, self.blocking, self.block.buffers
        target = _Target(NULL, buffers.tile, blocking.tile_columns, NULL)
        if first is not None or blocking.turns_last:
            sums = b.gep(buffers.sums, b.add(b.mul(place.i, blocking.columns), place.j), self.problem.compute)
            ahead = self._ahead(place, sums, blocking.columns)
            start = NULL if first is None else b.select(first, NULL, sums)
            target = _Target(start, sums, blocking.columns, ahead)
        if self.problem.touched:
            with b.if_then(last if last is not None else Value(I1, "true")):
                self._prefetch_touched(place)
        call = lambda kind: self._call(kind, place, width, target)  # noqa: E731
        self._by_rows(place.rows, lambda height: self._by_columns(width, height, call))
        if blocking.turns_last:
            return
        with b.if_then(last if last is not None else Value(I1, "true")):
            if blocking.turned:
                self._finish_transposed_tile(place, width, target)
            else:
                self._finish(place, target)

    def _prefetch_touched(self, place: Place) -> None:
        """Ask for what the epilogue of a tile will touch, before its sums are made."""
        b, blocking = self.b, self.blocking
        row, column = b.add(self.block.row0, place.i), b.add(self.block.column0, place.j)
        starts = [(m, origin(b, m, self.block.batch)) for m in self.problem.touched]
        with b.loop(0, place.rows) as r:
            for matrix, start in starts:
                offset = b.add(b.mul(b.add(row, r.index), matrix.row), b.mul(column, matrix.column))
                line = b.gep(start, offset, matrix.element)
                for at in range(0, blocking.tile_columns * bytes_of(matrix.element), 64):
                    b.prefetch(b.gep(line, at, "i8"))

    def _ahead(self, place: Place, out: Value, leading: Index) -> Value:
        """Where the tile after this one goes: in the next panel, or the first panel of the next row tile."""
        b, blocking, compute = self.b, self.blocking, self.problem.compute
        down = b.sub(b.mul(blocking.tile_rows, leading), place.j)
        more = b.icmp("slt", b.add(place.j, blocking.tile_columns), b.index(self.block.columns))
        return b.select(more, b.gep(out, blocking.tile_columns, compute), b.gep(out, down, compute))

    def _call(self, kind: _Kind, place: Place, width: Index, target: _Target) -> None:
        """Call the tile function of a kind on the operands at a place."""
        call = call_amx_tile if self.format.tiled else call_tile
        call(self.b, self._tile_kind(kind), self._tile_arguments(place, width, target))

    def _tile_kind(self, kind: _Kind) -> Tile:
        blocking, format = self.blocking, self.format
        shape = (self.problem.compute, blocking.lanes, kind.rows, kind.vectors, blocking.tile_columns)
        product = tile_product(self.problem) if format.tiled else ""
        return Tile(*shape, self.block.a_order, blocking.packs_b, kind.masked, format.terms, format.shifted, product)

    def _tile_arguments(self, place: Place, width: Index, target: _Target) -> TileArguments:
        b, a, blocking, compute, format = self.b, self.problem.a, self.blocking, self.problem.compute, self.format
        terms = format.places(b, place.depth)
        if self.block.a_order == "packed":
            rows = b.gep(self.block.buffers.a, b.mul(place.packed, terms), compute)
        else:
            row = b.add(self.block.row0, place.i)
            rows = b.gep(self.block.a_origin, b.add(b.mul(row, a.row), b.mul(place.k0, a.column)), a.element)
        if blocking.packs_b:
            panel = b.gep(self.block.buffers.b, b.mul(place.j, b.add(terms, int(format.shifted))), compute)
        else:
            column = b.add(self.block.column0, place.j)
            panel = b.gep(self.block.b_origin, b.add(b.mul(place.k0, self.problem.b.row), column), compute)
        return TileArguments(
            a=rows,
            a_step=b.mul(a.row if self.block.a_order == "rows" else a.column, bytes_of(a.element)),
            b=panel,
            b_step=self.problem.b.row,
            k=terms,
            rows=place.rows,
            columns=width,
            partial=target.start,
            out=target.out,
            out_step=target.leading,
            ahead=target.ahead,
            upcoming=place.upcoming,
        )

    def masks(self, column: Index) -> list[Value | None]:
        """The lanes of a panel that begins at a column and lie inside C."""
        b, n, blocking = self.b, self.problem.n, self.blocking
        if isinstance(n, int) and n % blocking.tile_columns == 0:
            return [None] * blocking.vectors
        left = b.sub(n, column)
        return [b.tail_mask(b.sub(left, v * blocking.lanes), blocking.lanes) for v in range(blocking.vectors)]

    def _finish(self, place: Place, target: _Target) -> None:
        """Hand the rows of a finished tile to the epilogue."""
        b, problem, blocking = self.b, self.problem, self.blocking
        column = b.add(self.block.column0, place.j)
        masks = self.masks(column)
        type = vector(problem.compute, blocking.lanes)
        with b.loop(0, place.rows) as r:
            source = b.gep(target.out, b.mul(r.index, target.leading), problem.compute)
            lanes = [v * blocking.lanes for v in range(blocking.vectors)]
            values = [b.load(type, b.gep(source, lane, problem.compute)) for lane in lanes]
            row = b.add(self.block.row0, b.add(place.i, r.index))
            problem.epilogue(b, self._cells(row, column, values, masks))

    def _finish_transposed_tile(self, place: Place, width: Index, target: _Target) -> None:
        """Hand over a finished tile of the transposed product."""
        rows, masks = self.blocking.tile_rows, [None] * (self.blocking.tile_rows // self.blocking.lanes)
        self._hand_over_transposed(target, (rows, self.blocking.tile_columns), (place.i, place.j), width, list(masks))

    def finish_transposed(self) -> None:
        """Hand over all sums of the chunk's block of the transposed product."""
        b, blocking, compute, lanes = self.b, self.blocking, self.problem.compute, self.blocking.lanes
        rows = TURNED_VECTORS * lanes
        with b.loop(0, self.block.rows, rows) as i:
            left = b.sub(self.block.rows, i.index)
            masks: list[Value | None] = [b.tail_mask(b.sub(left, v), lanes) for v in range(0, rows, lanes)]
            with b.loop(0, self.block.columns, lanes) as j:
                width = b.minimum(lanes, b.sub(self.block.columns, j.index))
                sums = b.gep(self.block.buffers.sums, b.add(b.mul(i.index, blocking.columns), j.index), compute)
                target = _Target(NULL, sums, blocking.columns, NULL)
                self._hand_over_transposed(target, (rows, lanes), (i.index, j.index), width, masks)

    def _hand_over_transposed(
        self, target: _Target, shape: tuple[int, int], at: tuple[Index, Index], width: Index, masks: list[Value | None]
    ) -> None:
        """Hand ``width`` columns of sums of the transposed product to the epilogue, as the rows that they are.
        ``shape``: rows and columns to transpose; ``at``: the first ones in the chunk's block; ``masks``: which rows
        exist."""
        b, problem, lanes, (rows, columns) = self.b, self.problem, self.blocking.lanes, shape
        tile, compute = self.block.buffers.turned, problem.compute
        transpose_tile(b, target.out, target.leading, tile, (rows, columns, lanes), compute)
        column = b.add(self.block.row0, at[0])
        with b.loop(0, width) as r:
            source = b.gep(tile, b.mul(r.index, rows), compute)
            values = [b.load(vector(compute, lanes), b.gep(source, v, compute)) for v in range(0, rows, lanes)]
            row = b.add(self.block.column0, b.add(at[1], r.index))
            problem.epilogue(b, self._cells(row, column, values, masks))

    def _cells(self, row: Index, column: Index, values: list[Value], masks: list[Value | None]) -> Cells:
        """Finished elements of a row of C."""
        return Cells(self.block.batch, row, column, values, masks, flushed=self.format.terms == 2)

    def _by_rows(self, rows: Index, emit: Callable[[int], None]) -> None:
        """Code for a whole row tile, and for the last one where its height is known and whole tiles would be
        waste.
        """
        full, rest = self.blocking.tile_rows, self._row_rest()
        if rest is None:
            emit(full)
            return
        self._choose(self.b.icmp("eq", rows, full), lambda: emit(full), lambda: emit(rest))

    def _row_rest(self) -> int | None:
        m, full = self.problem.m, self.blocking.tile_rows
        if (
            self.block.a_order == "packed"
            or not isinstance(m, int)
            or m % full == 0
            or (self.block.a_order == "rows" and (full - m % full) / m <= _TOLERATED_WASTE)
        ):
            return None
        return m % full

    def _by_columns(self, width: Index, height: int, emit: Callable[[_Kind], None]) -> None:
        """Code for a whole panel, and for the last one with fewer vectors where n is known."""
        blocking, n = self.blocking, self.problem.n
        whole = _Kind(height, blocking.vectors, False)
        rest = n % blocking.tile_columns if isinstance(n, int) else 0
        if rest == 0:
            emit(whole)
            return
        masked = not blocking.packs_b and rest % blocking.lanes != 0
        narrow = _Kind(height, -(-rest // blocking.lanes), masked)
        is_whole = self.b.icmp("eq", width, blocking.tile_columns)
        self._choose(is_whole, lambda: emit(whole), lambda: emit(narrow))

    def _choose(self, condition: Value, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
        def run(emit: Callable[[], None]) -> Callable[[], list[Value]]:
            def build() -> list[Value]:
                emit()
                return []

            return build

        self.b.either(condition, run(then), run(otherwise))


@dataclass(frozen=True, slots=True)
class _Kind:
    """Which register tile: its height, its vectors, and whether the last of them ends inside B."""

    rows: int
    vectors: int
    masked: bool


@dataclass(slots=True)
class _Target:
    """Where a tile starts from (or null), goes to (``leading`` elements between rows), and the next
    one starts.
    """

    start: Value
    out: Value
    leading: Index
    ahead: Value
