"""The loop nest of a matrix product: what one chunk computes, and how many chunks there are.

    chunks = grid(b, problem)                   # in the caller
    emit(b, problem, chunk, chunks)             # in the kernel that runs chunk after chunk

A chunk is a block of C of one batch element. For each step of ``depth`` along k it packs B, then for each
row tile of A (packed when it is not read in place) and each panel of B calls the register tile, and hands
the finished rows to the epilogue. Between steps the sums stay in the thread's scratch memory, tile by tile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from argosy_cinn.contraction.blocking import Blocking, choose
from argosy_cinn.contraction.packing import GROUP, SLACK, Block, pack_a, pack_b
from argosy_cinn.contraction.problem import Cells, Contraction, coordinates, origin, store_rows
from argosy_cinn.contraction.thin import emit_thin, plan_thin, thin_grid
from argosy_cinn.contraction.tile import NULL, Tile, TileArguments, call_tile, inline_tile
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import I1, I32, Index, Value, bytes_of, is_float, vector
from argosy_cinn.runtime.workers import scratch, thread_count

# Buffers that start at equal offsets within a page fight for the same cache sets.
_STAGGER = 832
#: Chunks for a balanced load.
_CHUNKS_PER_THREAD = 4
#: Rows for which packing a block of B does not show.
_WORTH_PACKING = 128
#: Operations of a chunk that outweigh handing it to another thread (about five microseconds).
_WORTH_WAKING = 1_000_000
#: Terms up to which passing a tile through scratch memory would show.
_SHORT_SUM = 512
#: Row tails are computed as whole tiles when that wastes at most this share of the arithmetic.
_TOLERATED_WASTE = 0.015


def grid(b: Function, problem: Contraction, blocking: Blocking | None = None) -> Index:
    """The number of chunks: batch elements x column blocks x row blocks.

    There are more row blocks for more threads. That moves no element between chains of sums, so it changes
    no bit.
    """
    if blocking is None and (thin := plan_thin(problem, b.module.target)) is not None:
        return thin_grid(b, problem, thin)
    blocking = blocking or choose(problem, b.module.target)
    others = b.ceil_div(problem.n, blocking.columns)
    for size in problem.batch:
        others = b.mul(others, size)
    fewest, rows = b.ceil_div(problem.m, blocking.rows), _fewest_rows(problem, blocking)
    if isinstance(problem.m, int) and problem.m <= rows:
        return b.mul(others, fewest)
    wanted = b.div(b.mul(thread_count(b), _CHUNKS_PER_THREAD), b.maximum(others, 1))
    several = b.minimum(b.maximum(wanted, 1), b.ceil_div(problem.m, rows))
    return b.mul(others, b.maximum(several, fewest))


def _fewest_rows(problem: Contraction, blocking: Blocking) -> int:
    """The least rows of a chunk: it must be worth a thread's while, and worth packing B for."""
    least = _WORTH_PACKING if blocking.packs_b else 2 * blocking.tile_rows
    if isinstance(problem.k, int):
        least = max(least, _WORTH_WAKING // (2 * blocking.columns * max(problem.k, 1)))
    return least


def emit(b: Function, problem: Contraction, chunk: Value, chunks: Value, blocking: Blocking | None = None) -> None:
    """Emit the code of one chunk into a kernel; ``chunks`` is their number, as `grid` gave it."""
    if problem.location:
        b.comment(problem.location)
    if blocking is None and (thin := plan_thin(problem, b.module.target)) is not None:
        emit_thin(b, problem, thin, chunk)
        return
    _Nest(b, problem, blocking or choose(problem, b.module.target)).emit(chunk, chunks)


@dataclass(slots=True)
class _Buffers:
    """The thread's scratch memory: a finished tile, a packed row tile of A, panels of B, sums between steps
    of k, sums of columns of B.
    """

    tile: Value
    a: Value
    b: Value
    sums: Value
    columns: Value


class _Nest:
    def __init__(self, b: Function, problem: Contraction, blocking: Blocking) -> None:
        self.b, self.problem, self.blocking = b, problem, blocking
        self.size = bytes_of(problem.compute)
        self.format = blocking.format
        self.several_steps = not isinstance(problem.k, int) or problem.k > blocking.depth
        self.a_order = _order_of_a(problem, blocking)

    def emit(self, chunk: Value, chunks: Value) -> None:
        """Find the block of C that the chunk stands for and compute it."""
        b, problem, blocking = self.b, self.problem, self.blocking
        column_blocks = b.ceil_div(problem.n, blocking.columns)
        others = column_blocks
        for size in problem.batch:
            others = b.mul(others, size)
        row_blocks = b.div(chunks, others)
        height = b.mul(
            b.ceil_div(b.div(b.sub(b.add(problem.m, row_blocks), 1), row_blocks), blocking.tile_rows),
            blocking.tile_rows,
        )
        position, row_block = b.div(chunk, row_blocks), b.rem(chunk, row_blocks)
        self.row0 = b.mul(row_block, height)
        self.column0 = b.mul(b.rem(position, column_blocks), blocking.columns)
        self.batch = coordinates(b, problem, b.div(position, column_blocks))
        self.rows = b.minimum(height, b.sub(problem.m, self.row0))
        self.columns = b.minimum(blocking.columns, b.sub(problem.n, self.column0))
        self.a_origin, self.b_origin = origin(b, problem.a, self.batch), origin(b, problem.b, self.batch)
        with b.when(b.icmp("sgt", self.rows, 0)):
            self.buffers = self._allocate()
            self._steps()

    def _allocate(self) -> _Buffers:
        blocking = self.blocking
        sizes = [
            blocking.tile_rows * blocking.tile_columns,
            blocking.depth * blocking.tile_rows * GROUP + SLACK if self.a_order == "packed" else 0,
            (blocking.depth + 1) * blocking.columns + SLACK if blocking.packs_b else 0,
            blocking.rows * blocking.columns if self.several_steps else 0,
            blocking.columns if self.problem.column_sums is not None else 0,
        ]
        offsets, end = [], 0
        for i, size in enumerate(sizes):
            offsets.append(end + i * _STAGGER)
            end += (size * self.size + 63) // 64 * 64
        slab = scratch(self.b, end + len(sizes) * _STAGGER)
        return _Buffers(*(self.b.at(slab, offset, "i8") for offset in offsets))

    def _steps(self) -> None:
        """The steps along k. An empty sum is one step of length 0."""
        b, problem, blocking = self.b, self.problem, self.blocking
        if not self.several_steps:
            self._step(0, problem.k, None, None)
            return
        with b.loop(0, b.maximum(problem.k, 1), blocking.depth) as loop:
            left = b.sub(problem.k, loop.index)
            first = b.icmp("eq", loop.index, 0)
            last = b.icmp("sle", left, blocking.depth)
            self._step(loop.index, b.minimum(left, blocking.depth), first, last)

    def _step(self, k0: Index, depth: Index, first: Value | None, last: Value | None) -> None:
        """One step along k: pack B, then all row tiles. ``first`` and ``last`` are None where k is one
        step.
        """
        b, blocking = self.b, self.blocking
        if blocking.packs_b:
            block = Block(self.problem.b, self.b_origin, k0, self.column0, depth, self.columns, self.batch)
            pack_b(b, block, self.buffers.b, blocking.tile_columns, blocking.lanes, self.format)
            if self.problem.column_sums is not None:
                with b.when(b.icmp("eq", self.row0, 0)):
                    self._sum_columns(depth, first, last)
        if self.a_order != "packed":
            self._row_tiles(0, self.rows, k0, depth, first, last)
            return
        group = GROUP * blocking.tile_rows
        with b.loop(0, self.rows, group) as i:
            rows = b.minimum(group, b.sub(self.rows, i.index))
            row = b.add(self.row0, i.index)
            block = Block(self.problem.a, self.a_origin, row, k0, rows, depth, self.batch)
            pack_a(b, block, self.buffers.a, blocking.tile_rows, self.format)
            self._row_tiles(i.index, rows, k0, depth, first, last)

    def _sum_columns(self, depth: Index, first: Value | None, last: Value | None) -> None:
        """Add the packed columns of B over this step, and hand on the sums after the last."""
        b, blocking, report = self.b, self.blocking, self.problem.column_sums
        assert report is not None
        type, terms = vector(self.problem.compute, blocking.lanes), b.ceil_div(depth, self.format.terms)
        lanes = [v * blocking.lanes for v in range(blocking.vectors)]
        with b.loop(0, self.columns, blocking.tile_columns) as j:
            places = [b.at(self.buffers.columns, b.add(j.index, lane), self.problem.compute) for lane in lanes]
            zeros = [b.zero(type)] * len(lanes)
            start = zeros
            if first is not None:
                start = b.either(first, lambda: zeros, lambda: [b.load(type, place) for place in places])
            panel = b.at(self.buffers.b, b.mul(j.index, terms), self.problem.compute)
            with b.loop(0, terms, 1, start) as k:
                row = b.at(panel, b.mul(k.index, blocking.tile_columns), self.problem.compute)
                loaded = [b.load(type, b.at(row, lane, self.problem.compute)) for lane in lanes]
                k.next(*(self._add_terms(x, y) for x, y in zip(k.carry, loaded, strict=True)))
            for place, value in zip(places, k.results, strict=True):
                b.store(value, place)
            column = b.add(self.column0, j.index)
            with b.when(last if last is not None else Value(I1, "true")):
                report(b, Cells(self.batch, 0, column, k.results, self._masks(column)))

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
            rows = b.minimum(blocking.tile_rows, b.sub(self.rows, i.index))
            with b.loop(0, self.columns, blocking.tile_columns) as j:
                place = _Place(i.index, j.index, b.sub(i.index, start), rows, k0, depth)
                if self.a_order != "packed":
                    self._prefetch_a(place)
                self._tile(place, first, last)

    def _prefetch_a(self, place: _Place) -> None:
        """Ask for a share of the next row tile of A: each panel for another one."""
        b, a, blocking = self.b, self.problem.a, self.blocking
        panels = b.ceil_div(self.columns, blocking.tile_columns)
        panel = b.div(place.j, blocking.tile_columns)
        row = b.add(self.row0, b.add(place.i, blocking.tile_rows))
        if self.a_order == "rows":
            line = 64 // bytes_of(a.element)
            with b.loop(panel, blocking.tile_rows, panels) as r, b.loop(0, place.depth, line) as k:
                offset = b.add(b.mul(b.add(row, r.index), a.row), b.add(place.k0, k.index))
                b.prefetch(b.at(self.a_origin, offset, a.element))
            return
        # The first columns of the next tile share lines with this one's; its last may not.
        last = b.add(row, blocking.tile_rows - 1)
        with b.loop(panel, place.depth, panels) as k:
            b.prefetch(b.at(self.a_origin, b.add(last, b.mul(b.add(place.k0, k.index), a.column)), a.element))

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
            self.a_order == "packed"
            or not isinstance(m, int)
            or m % full == 0
            or (self.a_order == "rows" and (full - m % full) / m <= _TOLERATED_WASTE)
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

    def _tile(self, place: _Place, first: Value | None, last: Value | None) -> None:
        """One register tile: whole ones are finished in registers where that pays, others pass through
        scratch memory.
        """
        b, blocking = self.b, self.blocking
        width = b.minimum(blocking.tile_columns, b.sub(self.columns, place.j))
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

    def _finish_in_registers(self, place: _Place, width: Index, first: Value | None) -> Callable[[], None] | None:
        """How a whole tile is finished without scratch memory: stored where a plain epilogue would, or, for
        short sums, given to the epilogue from registers; None where neither pays.
        """
        b, blocking, epilogue = self.b, self.blocking, self.problem.epilogue
        row, column = b.add(self.row0, place.i), b.add(self.column0, place.j)
        whole = _Kind(blocking.tile_rows, blocking.vectors, False)

        def store() -> None:
            assert isinstance(epilogue, store_rows)
            out = epilogue.place(b, self.batch, row, column)
            start = NULL if first is None else b.select(first, NULL, out)
            target = _Target(start, out, epilogue.leading, self._ahead(place, out, epilogue.leading))
            self._call(whole, place, width, target)

        def hand_over() -> None:
            if self.problem.touched:
                self._prefetch_touched(place)
            full = replace(place, rows=blocking.tile_rows)
            arguments = self._tile_arguments(full, width, _Target(NULL, NULL, 0, NULL))
            for i, values in enumerate(inline_tile(b, self._tile_kind(whole), arguments)):
                epilogue(b, Cells(self.batch, b.add(row, i), column, values, [None] * blocking.vectors))

        if isinstance(epilogue, store_rows):
            return store if epilogue.element == self.problem.compute else None
        short = isinstance(self.problem.k, int) and self.problem.k <= _SHORT_SUM and first is None
        return hand_over if short else None

    def _tile_in_scratch(self, place: _Place, width: Index, first: Value | None, last: Value | None) -> None:
        """One register tile, and the epilogue after the last step."""
        b, blocking, buffers = self.b, self.blocking, self.buffers
        target = _Target(NULL, buffers.tile, blocking.tile_columns, NULL)
        if first is not None:
            sums = b.at(buffers.sums, b.add(b.mul(place.i, blocking.columns), place.j), self.problem.compute)
            ahead = self._ahead(place, sums, blocking.columns)
            target = _Target(b.select(first, NULL, sums), sums, blocking.columns, ahead)
        if self.problem.touched:
            with b.when(last if last is not None else Value(I1, "true")):
                self._prefetch_touched(place)
        call = lambda kind: self._call(kind, place, width, target)  # noqa: E731
        self._by_rows(place.rows, lambda height: self._by_columns(width, height, call))
        if last is None:
            self._finish(place, target)
            return
        with b.when(last):
            self._finish(place, target)

    def _prefetch_touched(self, place: _Place) -> None:
        """Ask for what the epilogue of a tile will touch, before its sums are made."""
        b, blocking = self.b, self.blocking
        row, column = b.add(self.row0, place.i), b.add(self.column0, place.j)
        starts = [(m, origin(b, m, self.batch)) for m in self.problem.touched]
        with b.loop(0, place.rows) as r:
            for matrix, start in starts:
                offset = b.add(b.mul(b.add(row, r.index), matrix.row), b.mul(column, matrix.column))
                line = b.at(start, offset, matrix.element)
                for at in range(0, blocking.tile_columns * bytes_of(matrix.element), 64):
                    b.prefetch(b.at(line, at, "i8"), write=True)

    def _ahead(self, place: _Place, out: Value, leading: Index) -> Value:
        """Where the tile after this one goes: in the next panel, or the first panel of the next row tile."""
        b, blocking, compute = self.b, self.blocking, self.problem.compute
        down = b.sub(b.mul(blocking.tile_rows, leading), place.j)
        more = b.icmp("slt", b.add(place.j, blocking.tile_columns), b.index(self.columns))
        return b.select(more, b.at(out, blocking.tile_columns, compute), b.at(out, down, compute))

    def _call(self, kind: _Kind, place: _Place, width: Index, target: _Target) -> None:
        """Call the tile function of a kind on the operands at a place."""
        call_tile(self.b, self._tile_kind(kind), self._tile_arguments(place, width, target))

    def _tile_kind(self, kind: _Kind) -> Tile:
        blocking, format = self.blocking, self.format
        shape = (self.problem.compute, blocking.lanes, kind.rows, kind.vectors, blocking.tile_columns)
        return Tile(*shape, self.a_order, blocking.packs_b, kind.masked, format.terms, format.shifted)

    def _tile_arguments(self, place: _Place, width: Index, target: _Target) -> TileArguments:
        b, a, blocking, compute, format = self.b, self.problem.a, self.blocking, self.problem.compute, self.format
        terms = b.ceil_div(place.depth, format.terms)
        if self.a_order == "packed":
            rows = b.at(self.buffers.a, b.mul(place.packed, terms), compute)
        else:
            row = b.add(self.row0, place.i)
            rows = b.at(self.a_origin, b.add(b.mul(row, a.row), b.mul(place.k0, a.column)), a.element)
        if blocking.packs_b:
            panel = b.at(self.buffers.b, b.mul(place.j, b.add(terms, int(format.shifted))), compute)
        else:
            column = b.add(self.column0, place.j)
            panel = b.at(self.b_origin, b.add(b.mul(place.k0, self.problem.b.row), column), compute)
        return TileArguments(
            a=rows,
            a_step=b.mul(a.row if self.a_order == "rows" else a.column, bytes_of(a.element)),
            b=panel,
            b_step=self.problem.b.row,
            k=terms,
            rows=place.rows,
            columns=width,
            partial=target.start,
            out=target.out,
            out_step=target.leading,
            ahead=target.ahead,
        )

    def _masks(self, column: Index) -> list[Value | None]:
        """The lanes of a panel that begins at a column and lie inside C."""
        b, n, blocking = self.b, self.problem.n, self.blocking
        if isinstance(n, int) and n % blocking.tile_columns == 0:
            return [None] * blocking.vectors
        left = b.sub(n, column)
        return [b.tail_mask(b.sub(left, v * blocking.lanes), blocking.lanes) for v in range(blocking.vectors)]

    def _finish(self, place: _Place, target: _Target) -> None:
        """Hand the rows of a finished tile to the epilogue."""
        b, problem, blocking = self.b, self.problem, self.blocking
        column = b.add(self.column0, place.j)
        masks = self._masks(column)
        type = vector(problem.compute, blocking.lanes)
        with b.loop(0, place.rows) as r:
            source = b.at(target.out, b.mul(r.index, target.leading), problem.compute)
            lanes = [v * blocking.lanes for v in range(blocking.vectors)]
            values = [b.load(type, b.at(source, lane, problem.compute)) for lane in lanes]
            row = b.add(self.row0, b.add(place.i, r.index))
            problem.epilogue(b, Cells(self.batch, row, column, values, masks))


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


@dataclass(slots=True)
class _Place:
    """A register tile: at row ``i`` and column ``j`` of the chunk's block, ``rows`` high, summing ``depth``
    terms from ``k0``.
    """

    i: Index
    j: Index
    packed: Index
    rows: Index
    k0: Index
    depth: Index


def _order_of_a(problem: Contraction, blocking: Blocking) -> str:
    """How the tile reads A: its "rows" or "columns" in place where they are contiguous and of the right type,
    else "packed". Pairs must be complete, columns must not end inside a tile of unknown height.
    """
    a = problem.a
    format = blocking.format
    plain = a.prologue is None and a.element == problem.compute and not problem.narrow and format.terms == 1
    if isinstance(a.column, int) and a.column == 1 and a.prologue is None:
        small = format.terms > 1 and bytes_of(a.element) * format.terms == bytes_of(problem.compute)
        whole = isinstance(problem.k, int) and problem.k % format.terms == 0 and not format.shifted
        return "rows" if plain or (small and whole) else "packed"
    if plain and isinstance(a.row, int) and a.row == 1 and isinstance(problem.m, int) and isinstance(a.column, int):
        # Columns a multiple of a page apart would fall into few sets of the caches.
        return "columns" if a.column * bytes_of(a.element) % 4096 else "packed"
    return "packed"
