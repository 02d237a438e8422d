"""Skinny products of bytes with floats in sums of int32 (VNNI): a lane takes two products of words, exactly.

The skinny vectors are bfloat16, and become integers of 16 bits times a power of two for each block of terms, or each
group where weights have scales of these (`block_integers`); bytes of the wide operand are extended to words as they are
read. The sum of a block is rounded once, when it becomes a float. Where pairs of bfloat16 are fast those are taken
(`pairs`): a byte takes a look-up there.

Of weights of four bits without groups the even bytes of a line are multiplied, then the odd ones, with terms in this
order; sums begin with what ``zero`` takes from each lane (`byte_panels` has those of groups).
"""

from __future__ import annotations

from argosy_cinn.contraction.block_floats import Nibble, nibbles_of
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
#: What the unit of a number of four bits is at most, or its inverse: times the scale of a block it is a float.
_MOST_UNIT = 2.0**32
_SIGNED, _UNSIGNED = (tuple(map(float, range(least, least + 256))) for least in (-128, 0))


def multiplies_words(problem: Contraction, few_rows: bool, target: Target) -> bool:
    """Whether a skinny product is computed so: the wide operand is contiguous along k."""
    machine = target.vector_bits == 512 and target.has("avx512vnni") and not target.multiplies_pairs
    is_plain = problem.compute == FLOAT and becomes_integers(problem, few_rows)
    wide = [each.b if few_rows else each.a for each in (problem, *problem.siblings)]
    is_of_bytes = not problem.siblings and _extension(wide[0]) is not None
    is_known = is_of_bytes or (not problem.group and len(_nibbles(wide)) > 0)
    return machine and is_plain and is_known and _block(problem.k, problem.group) > 0


def _nibbles(wide: list[Matrix]) -> list[Nibble]:
    found = nibbles_of(wide)
    return found if all(1 / _MOST_UNIT <= nibble.unit <= _MOST_UNIT for nibble in found) else []


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
    registers = 0
    bytes_of_term = 2
    may_overflow = True

    def __init__(self, operands: Operands, group: int) -> None:
        self.operands = operands
        self.block = _block(operands.k, group)
        self.unsafe: Value | None = None
        self._extend = _extension(operands.wide)
        self._nibbles = [] if self._extend else _nibbles([operands.wide_of(each) for each in operands.products])
        # Both halves of a line.
        self.registers_of_row = 2 * len(operands.products)

    @property
    def units(self) -> list[float]:
        """See `Terms`."""
        return [nibble.unit for nibble in self._nibbles] or [1.0]

    def group_scale(self, t: Index, k: Index) -> Value:
        """See `Terms`: a power of two."""
        b = self.operands.b
        return b.splat(b.load(FLOAT, self._scale_place(t, k)), _LANES)

    def start(self, t: int, k: Index) -> Value:
        """See `Terms`."""
        b, kind = self.operands.b, vector(I32, _LANES)
        return b.load(kind, self._start_place(t, k), _LINE) if self._nibbles else b.zero(kind)

    def bytes(self) -> Index:
        """See `Terms`: terms, what the sums of blocks begin with, and their scales."""
        b, x = self.operands.b, self.operands
        return b.mul(b.add(b.mul(x.k, 2), b.mul(b.div(x.k, self.block), _LINE + 4)), x.count)

    def prepare(self, memory: Value) -> None:
        """See `Terms`."""
        self._memory = memory
        self.unsafe = prepare_groups(self.operands, self.block, self._prepare_block)

    def _prepare_block(self, t: Index, k: Index) -> Value:
        """Store a block; whether it has no scale."""
        b = self.operands.b
        integers, scale, has_no_scale = block_integers(self.operands, t, k, self.block, _LANES)
        for i, integer in enumerate(integers):
            line, first = b.add(k, i * _LANES // _LINE * _LINE), i * _LANES % _LINE
            words = b.convert("trunc", integer, I16)
            if not self._nibbles:
                b.store(words, self._place(t, line, first), 2 * _LANES)
                continue
            for odd in range(2):
                part = b.shuffle(words, None, list(range(odd, _LANES, 2)))
                b.store(part, self._place(t, line, odd * _HALF + first // 2), _LANES)
        if self._nibbles:
            self._store_start(t, k)
        b.store(scale, self._scale_place(t, k))
        return has_no_scale

    def _store_start(self, t: Index, k: Index) -> None:
        """Store what ``zero`` takes from each lane of the sums of a block."""
        b = self.operands.b
        zeros, taken = b.constant(vector(I16, _HALF), -self._nibbles[0].zero), b.zero(vector(I32, _LANES))
        for i in range(0, self.block, _HALF):
            terms = b.load(zeros.type, self._place(t, b.add(k, i // _LINE * _LINE), i % _LINE), _LINE)
            taken = word_products(b, zeros, terms, taken)
        b.store(taken, self._start_place(t, k), _LINE)

    def _place(self, t: Index, k: Index, first: int) -> Value:
        """A line's terms from ``first`` on: all skinny vectors' side by side, a line after the other."""
        b = self.operands.b
        return b.gep(self._memory, b.add(b.add(b.mul(k, self.operands.count), b.mul(t, _LINE)), first), I16)

    def _start_place(self, t: Index, k: Index) -> Value:
        b, x = self.operands.b, self.operands
        number = b.add(b.mul(b.div(k, self.block), x.count), t)
        return b.gep(b.gep(self._memory, b.mul(x.k, x.count), I16), b.mul(number, _LINE), I8)

    def _scale_place(self, t: Index, k: Index) -> Value:
        b, x = self.operands.b, self.operands
        scales = self._start_place(0, x.k)  # behind the last one
        return b.gep(scales, b.add(b.mul(b.div(k, self.block), x.count), t), FLOAT)

    def step(self, rows: list[Index], k: Index, mask: Value | None, sums: list[Value]) -> list[Value]:
        """See `Terms`."""
        x, b, found = self.operands, self.operands.b, list(sums)
        for half in range(2):
            wide = [words for row in rows for words in self._words(row, k, half)]
            for t in range(x.count):
                terms = b.load(vector(I16, _HALF), self._place(t, k, half * _HALF), _LINE)
                for place, words in zip(range(t, len(found), x.count), wide, strict=True):
                    found[place] = word_products(b, words, terms, found[place])
        return found

    def _words(self, row: Index, k: Index, half: int) -> list[Value]:
        """Half of a line of a wide row, for each product."""
        b = self.operands.b
        if self._extend:
            place = self.operands.wide_place(row, b.add(k, half * _HALF))
            return [b.convert(self._extend, b.load(vector(I8, _HALF), place), I16)]
        line = b.load(vector(I8, _LINE), self.operands.wide_place(row, k))
        if flip := self._nibbles[0].flip:
            line = b.binary("xor", line, flip * 0x11)
        words = b.bitcast(line, vector(I16, _HALF))
        return [b.binary("and", b.binary("lshr", words, each.shift + 8 * half), 15) for each in self._nibbles]
