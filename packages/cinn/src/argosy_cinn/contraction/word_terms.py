"""Skinny products of bytes with floats in sums of int32 (VNNI): a lane takes two products of words, exactly.

The skinny vectors are bfloat16, and become integers of 16 bits times a power of two for each block of terms, or each
group where weights have scales of these (`block_integers`); bytes of the wide operand are extended to words as they are
read. The sum of a block is rounded once, when it becomes a float. Where pairs of bfloat16 are fast those are taken
(`pairs`): a byte takes a look-up there.
"""

from __future__ import annotations

from argosy_cinn.contraction.block_integers import becomes_integers, block_integers, prepare_groups
from argosy_cinn.contraction.packing import word_products
from argosy_cinn.contraction.pairs import numbers_in
from argosy_cinn.contraction.problem import Contraction, Matrix
from argosy_cinn.contraction.terms import Operands
from argosy_cinn.printers.types import FLOAT, I8, I16, I32, Index, Value, vector
from argosy_cinn.target import Target

_LINE, _HALF, _LANES = 64, 32, 16
#: Most terms of a block: the more, the fewer sums become floats, and the less is left of terms far below the largest.
#: Eight rows take 12% less time with 512 of them.
_BLOCK = 256
_SIGNED, _UNSIGNED = (tuple(map(float, range(least, least + 256))) for least in (-128, 0))


def multiplies_words(problem: Contraction, few_rows: bool, target: Target) -> bool:
    """Whether a skinny product is computed so: the wide operand is contiguous along k."""
    machine = target.vector_bits == 512 and target.has("avx512vnni") and not target.multiplies_pairs
    is_plain = problem.compute == FLOAT and not problem.siblings and becomes_integers(problem, few_rows)
    wide = problem.b if few_rows else problem.a
    return machine and is_plain and _extension(wide) is not None and _block(problem.k, problem.group) > 0


def _extension(wide: Matrix) -> str | None:
    """How bytes of the wide operand become words; None where they are other numbers."""
    numbers = numbers_in(wide)
    if numbers is None:
        return None
    return {_UNSIGNED: "zext", _SIGNED[128:] + _SIGNED[:128]: "sext"}.get(numbers)


def _block(k: Index, group: int) -> int:
    """Terms of a block, whole lines; 0 where there are none."""
    if group:
        return group if group % _LINE == 0 and group <= _BLOCK else 0
    sizes = range(_BLOCK, 0, -_LINE)
    return next((size for size in sizes if isinstance(k, int) and k % size == 0), 0)


class WordTerms:
    """See `terms.Terms`. ``unsafe`` tells once skinny vectors are prepared which of them, a bit each, have a block
    without a scale."""

    width = _LINE
    #: Those of each wide row are both halves of a line.
    registers, registers_of_row = 0, 2
    bytes_of_term = 2
    may_overflow = True

    def __init__(self, operands: Operands, group: int) -> None:
        self.operands = operands
        self.block = _block(operands.k, group)
        self.unsafe: Value | None = None
        self._extend = _extension(operands.wide) or ""

    @property
    def units(self) -> list[float]:
        """See `Terms`."""
        return [1.0]

    def group_scale(self, t: Index, k: Index) -> Value:
        """See `Terms`: a power of two."""
        b = self.operands.b
        return b.splat(b.load(FLOAT, self._scale_place(t, k)), _LANES)

    def start(self, t: int, k: Index) -> Value:
        """See `Terms`."""
        return self.operands.b.zero(vector(I32, _LANES))

    def bytes(self) -> Index:
        """See `Terms`: terms, and the scales of blocks."""
        b, x = self.operands.b, self.operands
        return b.mul(b.add(b.mul(x.k, 2), b.mul(b.div(x.k, self.block), 4)), x.count)

    def prepare(self, memory: Value) -> None:
        """See `Terms`."""
        self._memory = memory
        self.unsafe = prepare_groups(self.operands, self.block, self._prepare_block)

    def _prepare_block(self, t: Index, k: Index) -> Value:
        """Store a block; whether it has no scale."""
        b = self.operands.b
        integers, scale, has_no_scale = block_integers(self.operands, t, k, self.block, _LANES)
        for i, integer in enumerate(integers):
            line = b.add(k, i * _LANES // _LINE * _LINE)
            b.store(b.convert("trunc", integer, I16), self._place(t, line, i * _LANES % _LINE), 2 * _LANES)
        b.store(scale, self._scale_place(t, k))
        return has_no_scale

    def _place(self, t: Index, k: Index, first: int) -> Value:
        """A line's terms from ``first`` on: all skinny vectors' side by side, a line after the other."""
        b = self.operands.b
        return b.gep(self._memory, b.add(b.add(b.mul(k, self.operands.count), b.mul(t, _LINE)), first), I16)

    def _scale_place(self, t: Index, k: Index) -> Value:
        b, x = self.operands.b, self.operands
        scales = b.gep(self._memory, b.mul(x.k, x.count), I16)
        return b.gep(scales, b.add(b.mul(b.div(k, self.block), x.count), t), FLOAT)

    def step(self, rows: list[Index], k: Index, mask: Value | None, sums: list[Value]) -> list[Value]:
        """See `Terms`."""
        x, b, found = self.operands, self.operands.b, list(sums)
        for first in range(0, _LINE, _HALF):
            wide = [self._words(row, b.add(k, first)) for row in rows]
            for t in range(x.count):
                terms = b.load(vector(I16, _HALF), self._place(t, k, first), _LINE)
                for place, words in zip(range(t, len(found), x.count), wide, strict=True):
                    found[place] = word_products(b, words, terms, found[place])
        return found

    def _words(self, row: Index, k: Index) -> Value:
        b = self.operands.b
        return b.convert(self._extend, b.load(vector(I8, _HALF), self.operands.wide_place(row, k)), I16)
