"""Skinny products in pairs of bfloat16 (AVX512_BF16): what is multiplied is exact in bfloat16, sums are float32.

A step takes a cache line of the wide operand. One of bfloat16 is multiplied as it lies. Bytes become bfloat16 by
look-ups: of the bytes in 16 bits, five bits of one choose among 32 numbers (``vpermw``). What depends on five of a
byte's bits (a number of four bits, on either side) takes one look-up, and what is a sum over its low three and its high
five bits takes two: a whole int8 is ``8 * (v >> 3) + (v & 7)``. Both parts are multiplied and added, which is exact but
for the rounding of sums: that of ``k`` terms is at most about ``k * 2**-24 * sum(|x| * (|w| + 14))`` away. Even bytes
of a line and odd ones are multiplied with even and odd terms, which are put side by side once for all rows.

Two parts of opposite signs overflow where their sum would not: skinny vectors with a number of 2**119 or more, or one
that is not finite, take the long way (`PairTerms.safe`). Products of denormal numbers are zero, as the machine has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp

from argosy_cinn.contraction.problem import Contraction, Matrix, exact_in_bfloat
from argosy_cinn.contraction.terms import Operands
from argosy_cinn.contraction.tile import multiply_add
from argosy_cinn.printers.types import BFLOAT, FLOAT, I8, I16, Index, Value, vector, vector_constant
from argosy_cinn.target import Target

#: Pairs of bfloat16 in a register, twice.
_HALVES = 32
#: 2**119 as bfloat16.
_LARGE = (119 + 127) << 7
_LARGEST_PART = 256
#: Terms of a step, of whatever the wide operand is made.
PAIRED_TERMS = 2 * _HALVES


@dataclass(frozen=True, slots=True)
class Lookup:
    """Numbers chosen by five bits of a byte, the lowest of which is ``shift``."""

    shift: int
    numbers: tuple[float, ...]


def lookups(numbers: tuple[float, ...]) -> tuple[Lookup, ...] | None:
    """Look-ups that add up to ``numbers`` [256] for every byte, in bfloat16; None where there are none."""
    low = tuple(x - numbers[0] for x in numbers[:8]) * 4
    for found in (
        (Lookup(0, numbers[:32]),),
        (Lookup(3, numbers[::8]),),
        (Lookup(3, numbers[::8]), Lookup(0, low)),
    ):
        parts = [x for lookup in found for x in lookup.numbers]
        small = len(found) == 1 or max(map(abs, parts)) <= _LARGEST_PART
        if small and all(map(_is_bfloat, parts)) and all(x == _sum(found, byte) for byte, x in enumerate(numbers)):
            return found
    return None


def _sum(lookups: tuple[Lookup, ...], byte: int) -> float:
    return sum(lookup.numbers[byte >> lookup.shift & 31] for lookup in lookups)


def _is_bfloat(x: float) -> bool:
    """Whether a number is zero or a bfloat16 far from the smallest and the largest ones."""
    mantissa, exponent = frexp(x)
    return (mantissa * 256).is_integer() and abs(exponent) < 100


def lookups_of(matrix: Matrix) -> tuple[Lookup, ...] | None:
    """How bytes of an operand become bfloat16; None where it holds no bytes, or they do not."""
    if matrix.element != I8:
        return None
    if matrix.prologue is not None:
        return None if matrix.numbers is None else lookups(matrix.numbers)
    return lookups(tuple(float(i if matrix.unsigned or i < 128 else i - 256) for i in range(256)))


def multiplies_pairs(problem: Contraction, few_rows: bool, target: Target) -> bool:
    """Whether a product of few rows and its siblings are computed in pairs: the wide operand is contiguous along k."""
    wide, skinny = (problem.b, problem.a) if few_rows else (problem.a, problem.b)
    machine = target.vector_bits == 512 and target.has("avx512bf16") and target.has("avx512bw")
    exact = problem.narrow or (exact_in_bfloat(skinny.element) and skinny.prologue is None)
    if not machine or not exact or problem.compute != FLOAT:
        return False
    if wide.element == BFLOAT:
        return wide.prologue is None
    return all(lookups_of(p.b if few_rows else p.a) is not None for p in (problem, *problem.siblings))


class PairTerms:
    """See `terms.Terms`. ``safe`` is None, or tells once skinny vectors are prepared whether no part overflows."""

    def __init__(self, operands: Operands) -> None:
        self.operands = operands
        self.is_bytes = operands.wide.element == I8
        self.width = 2 * _HALVES if self.is_bytes else _HALVES
        self.lookups = [lookups_of(operands.wide_of(p)) or () for p in operands.products]
        self.safe: Value | None = None
        self.may_overflow = any(len(found) > 1 for found in self.lookups)
        skinny, stride = operands.skinny, operands.skinny_stride
        plain = skinny.element == BFLOAT and skinny.prologue is None and isinstance(stride, int) and stride == 1
        self._in_place = plain and not self.is_bytes
        self._vectors, self._between = operands.skinny_origin, operands.skinny_step

    @property
    def bytes_of_term(self) -> int:
        """See `Terms`."""
        return 2

    @property
    def units(self) -> list[float]:
        """See `Terms`."""
        return [1.0] * len(self.lookups)

    def _padded_depth(self) -> Index:
        b = self.operands.b
        return b.mul(b.ceil_div(self.operands.k, self.width), self.width)

    def group_scale(self, t: Index, k: Index) -> None:
        """See `Terms`."""

    def bytes(self) -> Index:
        """See `Terms`."""
        return 0 if self._in_place else self.operands.b.mul(self._padded_depth(), 2 * self.operands.count)

    def prepare(self, memory: Value) -> None:
        """See `Terms`."""
        if self._in_place:
            return
        x, b = self.operands, self.operands.b
        self._vectors, self._between = memory, self._padded_depth()
        largest = b.zero(vector(I16, self.width))
        for t in range(x.count):
            with b.loop(0, x.k, self.width, [largest]) as k:
                value = self._narrow_terms(t, k.index)
                b.store(self._sort(value), self._place(t, k.index), 64)
                size = b.binary("and", b.bitcast(value, largest.type), 0x7FFF)
                k.yield_values(b.intrinsic("llvm.umax", size.type, k.carry[0], size))
            (largest,) = k.results
        if self.may_overflow:
            self.safe = b.icmp("ult", b.reduce("umax", largest), _LARGE)

    def _narrow_terms(self, t: int, k: Index) -> Value:
        """Terms of a skinny vector in bfloat16, zero beyond the last one."""
        x, b = self.operands, self.operands.b
        mask = b.tail_mask(b.sub(x.k, k), self.width)
        wide = x.skinny_vector(t, k, self.width, mask)
        value = b.convert("fptrunc", wide, BFLOAT)
        return b.select(mask, value, b.zero(value.type))

    def _sort(self, value: Value) -> Value:
        """Even terms in front of odd ones, for bytes."""
        if not self.is_bytes:
            return value
        return self.operands.b.shuffle(value, None, [*range(0, self.width, 2), *range(1, self.width, 2)])

    def _place(self, t: int, k: Index) -> Value:
        x, b = self.operands, self.operands.b
        number = x.numbers[t] if self._in_place else t
        return b.gep(self._vectors, b.add(b.mul(number, self._between), k), BFLOAT)

    def step(self, rows: list[Index], k: Index, mask: Value | None, sums: list[Value]) -> list[Value]:
        """See `Terms`."""
        x, b = self.operands, self.operands.b
        skinny = [self._skinny_terms(t, k, mask) for t in range(x.count)]
        found = list(sums)
        for r, row in enumerate(rows):
            line = x.wide_vector(row, k, True, self.width, mask).values[0]
            for p, parts in enumerate(self._factors(line)):
                for t in range(x.count):
                    place = (r * len(self.lookups) + p) * x.count + t
                    for half, factors in enumerate(parts):
                        for factor in factors:
                            found[place] = multiply_add(b, 2, factor, skinny[t][half], found[place])
        return found

    def _skinny_terms(self, t: int, k: Index, mask: Value | None) -> list[Value]:
        """Terms of a skinny vector for each half of a line, as it is laid out."""
        b, place = self.operands.b, self._place(t, k)
        type = vector(BFLOAT, _HALVES)
        if self._in_place:
            return [b.masked_load(type, place, mask)]
        return [b.load(type, b.gep(place, i, BFLOAT), 64) for i in range(0, self.width, _HALVES)]

    def _factors(self, line: Value) -> list[list[list[Value]]]:
        """For each product and each half of a line, what is multiplied with the terms of that half."""
        b = self.operands.b
        if not self.is_bytes:
            return [[[line]]]
        words = b.bitcast(line, vector(I16, _HALVES))
        shifted = {0: words}

        def look_up(lookup: Lookup, shift: int) -> Value:
            if shift not in shifted:
                shifted[shift] = b.binary("lshr", words, shift)
            table = b.bitcast(vector_constant(BFLOAT, list(lookup.numbers)), words.type)
            return b.call("llvm.x86.avx512.permvar.hi.512", words.type, table, shifted[shift])

        return [[[look_up(x, x.shift + half) for x in found] for half in (0, 8)] for found in self.lookups]
