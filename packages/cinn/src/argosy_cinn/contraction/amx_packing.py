"""Copying rows of A into the order of tile registers: ``[rows / height][k / 16][height][16]`` places.

A tile of 16 rows is one kilobyte without gaps. Where k is contiguous (or nothing is) a row is copied 16 places at a
time; where rows are, 16 places of 16 rows pass through a transpose in registers.
"""

from __future__ import annotations

from dataclasses import dataclass

from argosy_cinn.contraction.packing import Packer, pack, turn_panel
from argosy_cinn.contraction.problem import TILE, Block, Format
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import Index, Value, vector


def pack_tiles(f: Function, block: Block, out: Value, height: int, format: Format) -> None:
    """Pack rows of A for tiles of ``height`` rows at ``out``; what is beyond the last term is zero, and rows that do
    not exist are left as they are: no sum that is used reads them."""
    pack(f, turn_panel(block), out, _TilePacker(format, TILE, height, flipped=True))


@dataclass(frozen=True, slots=True)
class _TilePacker(Packer):
    """Sees A transposed, as its base class does: a block's rows are k, its columns are rows of A."""

    def columns(self, f: Function, block: Block, out: Value) -> None:
        """k is contiguous, or nothing is: row by row of A."""
        step = TILE * self.format.terms
        with f.loop(0, block.columns) as j, f.loop(0, block.rows, step) as k:
            mask = f.tail_mask(f.sub(block.rows, k.index), step)
            value = self._read(f, block, k.index, j.index, 0, step, mask)
            places = f.bitcast(f.select(mask, value, f.zero(value.type)), vector(self.format.compute, TILE))
            f.store(places, self._place(f, block, out, k.index, j.index))

    strided = columns

    def rows(self, f: Function, block: Block, out: Value) -> None:
        """Rows of A are contiguous."""
        step = TILE * self.format.terms
        with f.loop(0, block.rows, step) as k, f.loop(0, block.columns, TILE) as j:
            mask = f.tail_mask(f.sub(block.columns, j.index), TILE)
            terms = [f.add(k.index, u * self.format.terms) for u in range(TILE)]
            place = self._place(f, block, out, k.index, j.index)
            for i, row in enumerate(f.transpose([self._places(f, block, term, j.index, mask) for term in terms])):
                f.store(row, f.gep(place, i * TILE, self.format.compute))

    def _place(self, f: Function, block: Block, out: Value, k: Index, j: Index) -> Value:
        """Where the places of row j of A from k on begin, k the first term of a block."""
        inside = f.rem(j, self.width)
        tile = f.mul(f.sub(j, inside), self.format.places(f, block.rows))
        within = f.add(f.mul(f.div(k, self.format.terms), self.width), f.mul(inside, TILE))
        return f.gep(out, f.add(tile, within), self.format.compute)

    def fill(self, f: Function, block: Block, out: Value) -> None:
        """Nothing is left to fill: copies make whole blocks."""
