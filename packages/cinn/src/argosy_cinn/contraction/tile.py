"""The register tile: ``out[rows][columns] = partial + A[rows, k] B[k, columns]``, accumulators in vector
registers.

One internal function per shape of tile serves every product of a module: accumulators come from and go to a
small buffer in the first-level cache, where the epilogue picks them up row by row. That costs some 2 % of a
tile at k = 64 and nothing at 512, and keeps generated code small: loop nests and epilogues are emitted once
per product, arithmetic once per module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from argosy_cinn.contraction.packing import byte_products
from argosy_cinn.printers.llvm import Function, Module
from argosy_cinn.printers.types import PTR, Index, Value, bytes_of, element_of, is_float, lanes_of, vector

#: Multiplications in one pass of the loop over k, so that counting costs nothing beside them; more are only more code.
_PASS = 16
#: Bytes of a cache line.
LINE = 64
NULL = Value(PTR, "null")


@dataclass(frozen=True, slots=True)
class Tile:
    """A kind of tile function.

    ``a_order``: A comes "packed" as [k][rows], or is read in place with its "rows" contiguous along k, or
    with its "columns" contiguous (then all rows exist). ``b_packed``: B comes as [k][``leading``], else its
    rows lie ``b_step`` elements apart; ``masked``: the last vector of B's rows ends inside (only in place).
    ``leading``: elements between rows of ``partial``, ``out`` and packed B. ``terms`` of k share
    a place (see `Format`); ``shifted``: packed B begins with corrections; ``product``: the instruction of tile
    registers that it is made of, if it is (`amx`).
    """

    compute: str
    lanes: int
    rows: int
    vectors: int
    leading: int
    a_order: str
    b_packed: bool = True
    masked: bool = False
    terms: int = 1
    shifted: bool = False
    product: str = ""

    @property
    def name(self) -> str:
        """A name that tells what it is."""
        parts = [f"tile_{self.compute}_{self.rows}x{self.vectors * self.lanes}", self.a_order]
        return "_".join(
            parts
            + ["inplace"] * (not self.b_packed)
            + ["masked"] * self.masked
            + [f"by{self.terms}"] * (self.terms > 1)
            + [self.product] * bool(self.product)
        )


@dataclass(frozen=True, slots=True)
class Lines:
    """Cache lines to ask for while a tile is made, so that few are on their way at a time: for each of its rows
    ``count`` lines, ``line`` bytes apart, from ``start`` on; ``row``: bytes from those of one row to the next."""

    start: Value = NULL
    row: Index = 0
    line: Index = 0
    count: Index = 0


@dataclass(frozen=True, slots=True)
class TileArguments:
    """``a``, ``b``: first elements; ``a_step``: bytes between A's rows (or columns, where they are
    contiguous); ``b_step``: elements between B's rows; ``k``: length of the sum; ``rows``: how many rows of A
    exist (others repeat the last, their results are not used); ``columns``: how many of B's (masked tiles);
    ``partial``: start values or null for zero; ``out``: where the tile goes; ``out_step``: elements between
    the rows of both; ``ahead``: where the next tile goes, or null; ``upcoming``: what later tiles read. Both are
    prefetched.
    """

    a: Value
    a_step: Index
    b: Value
    b_step: Index
    k: Index
    rows: Index
    columns: Index
    partial: Value
    out: Value
    out_step: Index
    ahead: Value
    upcoming: Lines = field(default_factory=Lines)


def call_tile(
    b: Function, tile: Tile, arguments: TileArguments, define: Callable[[Module, str, Tile], None] | None = None
) -> None:
    """Emit a call of the tile function, defining it in the module when it is new (with ``define``, or as vector
    code)."""
    name = b.module.shared_function(tile, tile.name, lambda name: (define or _define)(b.module, name, tile))
    x, lines = arguments, arguments.upcoming
    operands = (x.a, x.a_step, x.b, x.b_step, x.k, x.rows, x.columns, x.partial, x.out, x.out_step, x.ahead)
    b.call(name, "void", *map(b.index, (*operands, lines.start, lines.row, lines.line, lines.count)))


#: Of a tile function, as in `TileArguments`.
PARAMETERS = [
    ("ptr noalias readonly", "a"),
    ("i64", "a_step"),
    ("ptr noalias readonly", "b"),
    ("i64", "b_step"),
    ("i64", "k"),
    ("i64", "rows"),
    ("i64", "columns"),
    ("ptr", "partial"),
    ("ptr", "out"),
    ("i64", "out_step"),
    ("ptr", "ahead"),
    ("ptr", "upcoming"),
    ("i64", "upcoming_row"),
    ("i64", "upcoming_line"),
    ("i64", "upcoming_count"),
]


def tile_arguments(f: Function) -> TileArguments:
    """The arguments of a tile function in its body."""
    a, a_step, b, b_step, k, rows, columns, partial, out, out_step, ahead, *lines = f.arguments
    return TileArguments(a, a_step, b, b_step, k, rows, columns, partial, out, out_step, ahead, Lines(*lines))


def _define(module: Module, name: str, tile: Tile) -> None:
    with module.function(name, PARAMETERS, export=False, attributes="noinline") as f:
        body = _Body(f, tile, tile_arguments(f))
        body.store(body.sums())


def inline_tile(b: Function, tile: Tile, arguments: TileArguments) -> list[list[Value]]:
    """Emit the tile's arithmetic in place: its rows as vectors in registers, stored nowhere."""
    sums = _Body(b, tile, arguments).sums()
    return [sums[i : i + tile.vectors] for i in range(0, len(sums), tile.vectors)]


class _Body:
    """The code of one tile."""

    def __init__(self, f: Function, tile: Tile, arguments: TileArguments) -> None:
        self.f, self.tile, self.x = f, tile, arguments
        self.type = vector(tile.compute, tile.lanes)
        self.unroll = -(-_PASS // (tile.rows * tile.vectors))
        self.offsets = [self._row_offset(i) for i in range(tile.rows)]
        last = tile.vectors - 1
        self.mask = f.tail_mask(f.sub(self.x.columns, last * tile.lanes), tile.lanes) if tile.masked else None

    def _row_offset(self, row: int) -> Index:
        """Where row i of A begins, in bytes; rows that do not exist read the last one."""
        f, size = self.f, bytes_of(self.tile.compute)
        if self.tile.a_order != "rows":
            return row * size
        return f.mul(f.minimum(row, f.sub(self.x.rows, 1)), self.x.a_step) if row else 0

    def _a_advance(self, terms: int) -> Index:
        """Bytes from one term of k to a later one."""
        size = bytes_of(self.tile.compute)
        if self.tile.a_order == "columns":
            return self.f.mul(terms, self.x.a_step)
        return terms * size * (self.tile.rows if self.tile.a_order == "packed" else 1)

    def sums(self) -> list[Value]:
        """The accumulators after all terms, row by row."""
        f, tile = self.f, self.tile
        zeros = [f.zero(self.type)] * (tile.rows * tile.vectors)
        sums = zeros
        if self.x.partial is not NULL:
            sums = f.either(f.icmp("ne", self.x.partial, NULL), self._load_partial, lambda: zeros)
        if tile.shifted:
            sums = self._correct(sums)
        first = f.gep(self.x.b, tile.leading * tile.shifted, tile.compute)
        whole = f.mul(f.div(self.x.k, self.unroll), self.unroll)
        state = self._asking_steps(whole, [*sums, self.x.a, first])
        if whole is not self.x.k and whole != self.x.k:
            state = self._steps(whole, self.x.k, 1, state)
        return state[: len(sums)]

    def _asking_steps(self, whole: Index, state: list[Value]) -> list[Value]:
        """The steps over k, in as many parts as the tile has rows: each begins by asking for lines of one row. There is
        one loop for all, since its body is most of a tile's code."""
        f, rows, unroll = self.f, self.tile.rows, self.unroll
        if self.x.ahead is NULL and self.x.upcoming.start is NULL:
            return self._steps(0, whole, unroll, state)
        part = f.mul(f.ceil_div(whole, rows * unroll), unroll)
        even = isinstance(part, int) and rows * part == whole
        with f.loop(0, rows, 1, state) as row:
            ask(f, self.tile, self.x, row.index)
            left = part if even else f.minimum(part, f.sub(whole, f.mul(row.index, part)))
            row.yield_values(*self._steps(0, left, unroll, row.carry))
        return row.results

    def store(self, sums: list[Value]) -> None:
        """Write the accumulators to ``out``."""
        for position, value in enumerate(sums):
            i, v = divmod(position, self.tile.vectors)
            self.f.store(value, self._place(self.x.out, i, v))

    def _place(self, base: Value, row: int, v: int) -> Value:
        offset = self.f.add(self.f.mul(row, self.x.out_step), v * self.tile.lanes)
        return self.f.gep(base, offset, self.tile.compute)

    def _load_partial(self) -> list[Value]:
        cells = [(i, v) for i in range(self.tile.rows) for v in range(self.tile.vectors)]
        return [self.f.load(self.type, self._place(self.x.partial, i, v)) for i, v in cells]

    def _correct(self, sums: list[Value]) -> list[Value]:
        """Add the corrections at the head of the panel to every row."""
        lanes, vectors = self.tile.lanes, self.tile.vectors
        heads = [self.f.load(self.type, self.f.gep(self.x.b, v * lanes, self.tile.compute)) for v in range(vectors)]
        return [self.f.binary("add", x, heads[i % vectors]) for i, x in enumerate(sums)]

    def _steps(self, start: Index, stop: Index, unroll: int, state: list[Value]) -> list[Value]:
        """A loop over k from start to stop, carrying accumulators and the pointers into A and B."""
        f, tile = self.f, self.tile
        with f.loop(start, stop, unroll, state) as loop:
            *sums, a, b = loop.carry
            for u in range(unroll):
                self._step(sums, a, b, u)
            a_next = f.gep(a, self._a_advance(unroll), "i8")
            loop.yield_values(*sums, a_next, f.gep(b, self._b_offset(unroll, 0), tile.compute))
        return loop.results

    def _b_offset(self, step: int, v: int) -> Index:
        f, tile = self.f, self.tile
        row = step * tile.leading if tile.b_packed else f.mul(step, self.x.b_step)
        return f.add(row, v * tile.lanes)

    def _step(self, sums: list[Value], a: Value, b: Value, u: int) -> None:
        """One k: a rank-1 update of the accumulators."""
        f, tile = self.f, self.tile
        columns = [self._load_b(f.gep(b, self._b_offset(u, v), tile.compute), v) for v in range(tile.vectors)]
        for i in range(tile.rows):
            scalar = f.splat(self._load_a(a, i, u), tile.lanes)
            for v in range(tile.vectors):
                sums[i * tile.vectors + v] = multiply_add(f, tile.terms, scalar, columns[v], sums[i * tile.vectors + v])

    def _load_a(self, a: Value, row: int, u: int) -> Value:
        place = self.f.gep(a, self.f.add(self.offsets[row], self._a_advance(u)), "i8")
        return self.f.load(self.tile.compute, place, bytes_of(self.tile.compute) // self.tile.terms)

    def _load_b(self, place: Value, v: int) -> Value:
        if self.tile.b_packed:
            return self.f.load(self.type, place, self.tile.lanes * bytes_of(self.tile.compute))
        return self.f.masked_load(self.type, place, self.mask if v == self.tile.vectors - 1 else None)


def ask(f: Function, tile: Tile, x: TileArguments, row: Index, level: int = 3) -> None:
    """Prefetch one row of what the next tile starts from, whose sums cannot begin before it arrives, and of what is
    ``upcoming``, to a ``level`` of the caches."""
    size = bytes_of(tile.compute)
    with f.if_then(f.icmp("ne", x.ahead, NULL)):
        first = f.gep(x.ahead, f.mul(row, x.out_step), tile.compute)
        for line in range(0, tile.vectors * tile.lanes * size, LINE):
            f.prefetch(f.gep(first, line, "i8"))
    upcoming = f.gep(x.upcoming.start, f.mul(row, x.upcoming.row), "i8")
    with f.loop(0, x.upcoming.count) as i:
        f.prefetch(f.gep(upcoming, f.mul(i.index, x.upcoming.line), "i8"), level=level)


def multiply_add(f: Function, terms: int, x: Value, y: Value, total: Value) -> Value:
    """``total`` plus the products of two vectors of places with ``terms`` terms of k each (see `Format`)."""
    if terms == 4:
        return byte_products(f, total, x, y)
    if terms == 2:
        halves = vector("bfloat", 2 * lanes_of(total.type))
        x, y = f.bitcast(x, halves), f.bitcast(y, halves)
        return f.call(f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes_of(total.type)}", total.type, total, x, y)
    if is_float(element_of(total.type)):
        return f.fma(x, y, total)
    return f.binary("add", f.binary("mul", x, y), total)


def transpose_tile(
    b: Function, source: Value, step: Index, out: Value, shape: tuple[int, int, int], compute: str
) -> None:
    """Emit a call of a function that copies a tile to ``out`` with its columns as rows. ``shape``: rows, columns, and
    the lanes of a vector, of which both are multiples; ``step``: elements between rows of the source."""
    rows, columns, lanes = shape

    def define(name: str) -> None:
        with b.module.function(name, parameters, export=False, attributes="noinline") as f:
            start, between, to = f.arguments
            with f.loop(0, rows, lanes) as i, f.loop(0, columns, lanes) as j:
                block = f.gep(start, f.add(f.mul(i.index, between), j.index), compute)
                lines = [f.load(vector(compute, lanes), f.gep(block, f.mul(r, between), compute)) for r in range(lanes)]
                place = f.gep(to, f.add(f.mul(j.index, rows), i.index), compute)
                for c, line in enumerate(f.transpose(lines)):
                    f.store(line, f.gep(place, c * rows, compute))

    parameters = [("ptr noalias readonly", "source"), ("i64", "step"), ("ptr noalias", "out")]
    name = b.module.shared_function(("transpose", shape, compute), f"transpose_{compute}_{rows}x{columns}", define)
    b.call(name, "void", source, b.index(step), out)
