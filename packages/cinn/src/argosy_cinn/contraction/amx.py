"""Register tiles of a product in the tile registers of x86 (AMX): 16 rows of 16 places of four bytes each.

Eight registers hold up to four tiles of sums, one or two of A, and of B what is left. A tile instruction adds to
16 x 16 sums the products of 16 places along k: of bfloat16 pairs in float32, or of four bytes in int32, exactly. A
sum is a chain over k in ascending order here, too, so that blocks and threads change no bit.

Every tile register has the same shape for a whole chunk: edges are padding in packed operands, and sums of them end
in scratch memory. Intrinsics name registers by number; LLVM leaves those alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from argosy_cinn.contraction.problem import TILE, Contraction
from argosy_cinn.contraction.tile import LINE, NULL, PARAMETERS, Tile, TileArguments, ask, call_tile, tile_arguments
from argosy_cinn.printers.llvm import Function, Module
from argosy_cinn.printers.types import I8, VOID, Index, Value, constant, vector_constant

#: Bytes of one row of a tile register.
_ROW_BYTES = 64
_REGISTERS = 8
#: Blocks of 16 places along k from what is multiplied to what is asked for of B.
_BLOCKS_AHEAD = 4
#: Palette 1; then 16 bytes in, bytes of a row as 16-bit numbers, and 48 bytes in, rows as bytes.
_SHAPES = [1, *[0] * 15, *[_ROW_BYTES, 0] * _REGISTERS, *[0] * 16, *[TILE] * _REGISTERS, *[0] * 8]


@contextmanager
def configure_tiles(b: Function) -> Iterator[None]:
    """Give every tile register 16 rows of 64 bytes for the code of the block, and their state back after it."""
    shapes = b.alloca(I8, len(_SHAPES))
    b.store(vector_constant(I8, _SHAPES), shapes, 1)
    b.call("llvm.x86.ldtilecfg", VOID, shapes)
    yield
    b.call("llvm.x86.tilerelease", VOID)


def tile_product(problem: Contraction) -> str:
    """The instruction that multiplies tiles of a product's operands."""
    if problem.compute == "float":
        return "tdpbf16ps"
    a, b = ("u" if matrix.unsigned else "s" for matrix in (problem.a, problem.b))
    return f"tdpb{a}{b}d"


def call_amx_tile(b: Function, tile: Tile, arguments: TileArguments) -> None:
    """Emit a call of a function that computes a tile of 16 or 32 rows; ``arguments.k`` counts places, in whole blocks
    of 16. A lies as `pack_tiles` leaves it, or its "rows" are read in place: then all of them exist.
    """
    call_tile(b, tile, arguments, _define)


def _define(module: Module, name: str, tile: Tile) -> None:
    with module.function(name, PARAMETERS, export=False, attributes="noinline") as f:
        _AmxBody(f, tile, tile_arguments(f)).emit()


class _AmxBody:
    """The code of one tile: registers count sums row by row, then tiles of A, then those that B passes through."""

    def __init__(self, f: Function, tile: Tile, arguments: TileArguments) -> None:
        self.f, self.tile, self.x = f, tile, arguments
        self.rows, self.columns = tile.rows // TILE, tile.vectors
        self.step = f.mul(arguments.out_step, 4)
        self.in_place = tile.a_order == "rows"

    def emit(self) -> None:
        """Sums from ``partial`` or zero, all products, and the sums to ``out``."""
        f = self.f
        f.either(f.icmp("ne", self.x.partial, NULL), self._load_sums, self._zero_sums)
        block_a = _ROW_BYTES if self.in_place else _ROW_BYTES * self.tile.rows
        block_b = self.tile.leading * TILE
        with f.loop(0, self.x.k, TILE, [self.x.a, self.x.b]) as loop:
            a, b = loop.carry
            self._ask(loop.index)
            self._block(a, b)
            loop.yield_values(f.gep(a, block_a, I8), f.gep(b, block_b))
        for register, place in self._sums(self.x.out):
            f.call("llvm.x86.tilestored64", VOID, _number(register), place, f.index(self.step))

    def _block(self, a: Value, b: Value) -> None:
        """Sixteen places along k: every tile of B times every tile of A."""
        ahead = self.f.gep(b, _BLOCKS_AHEAD * TILE * self.tile.leading)
        for line in range(0, TILE * self.tile.leading * 4, LINE):
            self.f.prefetch(self.f.gep(ahead, line, I8))
        first_a = self.rows * self.columns
        first_b = first_a + self.rows
        for v in range(self.columns):
            right = first_b + v % (_REGISTERS - first_b)
            self._load(right, self.f.gep(b, v * TILE), self.tile.leading * 4)
            for i in range(self.rows):
                left = first_a + i
                if v == 0:
                    self._load(left, self._part_of_a(a, i), self.x.a_step if self.in_place else _ROW_BYTES)
                numbers = (_number(n) for n in (i * self.columns + v, left, right))
                self.f.call(f"llvm.x86.{self.tile.product}", VOID, *numbers)

    def _part_of_a(self, a: Value, i: int) -> Value:
        """Where 16 rows of a block of A begin."""
        return self.f.gep(a, self.f.mul(i * TILE, self.x.a_step) if self.in_place else i * TILE * _ROW_BYTES, I8)

    def _ask(self, k: Value) -> None:
        """Ask for what belongs to the share of rows that a block of k is of all."""
        f, rows = self.f, self.tile.rows
        first, last = (f.div(f.mul(place, rows), self.x.k) for place in (k, f.add(k, TILE)))
        with f.loop(first, last) as row:
            ask(f, self.tile, self.x, row.index, level=2)

    def _sums(self, base: Value) -> Iterator[tuple[int, Value]]:
        """Each register of sums with its place in memory."""
        f = self.f
        for i in range(self.rows):
            row = f.gep(base, f.mul(i * TILE, self.x.out_step))
            for v in range(self.columns):
                yield i * self.columns + v, f.gep(row, v * TILE)

    def _load_sums(self) -> list[Value]:
        for register, place in self._sums(self.x.partial):
            self._load(register, place, self.step)
        return []

    def _zero_sums(self) -> list[Value]:
        for register in range(self.rows * self.columns):
            self.f.call("llvm.x86.tilezero", VOID, _number(register))
        return []

    def _load(self, register: int, place: Value, step: Index) -> None:
        self.f.call("llvm.x86.tileloadd64", VOID, _number(register), place, self.f.index(step))


def _number(register: int) -> Value:
    return constant(I8, register)
