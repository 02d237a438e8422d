"""Skinny products in pairs of bfloat16 (AVX512_BF16): what is multiplied is exact in bfloat16, sums are float32.

A step takes a cache line of the wide operand. One of bfloat16 is multiplied as it lies. Bytes become bfloat16 by
look-ups: of the bytes in 16 bits, five bits of one choose among 32 numbers (``vpermw``). What depends on five of a
byte's bits (a number of four bits, on either side) takes one look-up, and what is a sum over its low three and its high
five bits takes two. Both parts are multiplied and added, which is exact but for the rounding of sums: that of ``k``
terms is at most about ``k * 2**-24 * sum(|x| * (|w| + 14))`` away. Even bytes of a line and odd ones are multiplied
with even and odd terms, which are put side by side once for all rows.

Of an int8, seven bits choose both bytes of a magnitude (``vpermi2b``) and the highest one is its sign (`SignedTable`):
that of ``v + 1/2`` is the magnitude of ``~v + 1/2``. It is one part for two look-ups, and sums begin with what the half
adds, negated, lane by lane.

Two parts of opposite signs overflow where their sum would not: skinny vectors with a number of 2**119 or more, or one
that is not finite, take the long way (`PairTerms.unsafe`). Products of denormal numbers are zero, as the machine has
it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import copysign, frexp

from argosy_cinn.contraction.problem import Contraction, Matrix, exact_in_bfloat
from argosy_cinn.contraction.terms import Operands
from argosy_cinn.contraction.tile import multiply_add
from argosy_cinn.printers.types import BFLOAT, FLOAT, I8, I16, I64, Index, Value, vector, vector_constant
from argosy_cinn.target import Target

#: Pairs of bfloat16 in a register, twice.
_HALVES = 32
_LINE = 64
#: Bytes of a line that instructions put side by side with others: the first and the last eight of each sixteen.
_LOW, _HIGH = ([i for i in range(_LINE) if i // 8 % 2 == half] for half in (0, 1))
#: Rows a power of two apart that the sets of a cache hold beside what streams through it.
_WAYS = 4
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


@dataclass(frozen=True, slots=True)
class SignedTable:
    """Numbers of a byte: one of 128 ``magnitudes``, chosen by the byte or, where that is negative, by its complement,
    with the byte's sign, less ``offset``."""

    magnitudes: tuple[float, ...]
    offset: float

    def bytes(self) -> tuple[list[int], list[int]]:
        """The low and the high bytes of the magnitudes."""
        words = [struct.unpack("<I", struct.pack("<f", x))[0] >> 16 for x in self.magnitudes]
        return [word & 0xFF for word in words], [word >> 8 for word in words]


def signed_table(numbers: tuple[float, ...]) -> SignedTable | None:
    """The table of ``numbers`` [256] for every byte, in bfloat16; None where there is none."""
    offset = -(numbers[0] + numbers[255]) / 2
    magnitudes = tuple(x + offset for x in numbers[:128])
    fine = all(_is_bfloat(x) and copysign(1, x) > 0 for x in magnitudes) and _is_bfloat(offset)
    is_mirrored = numbers[128:] == tuple(-x - offset for x in magnitudes[::-1])
    return SignedTable(magnitudes, offset) if fine and is_mirrored else None


def numbers_in(matrix: Matrix) -> tuple[float, ...] | None:
    """What each byte of an operand stands for; None where it holds none, or that is not known."""
    if matrix.element != I8:
        return None
    if matrix.prologue is not None:
        return matrix.numbers
    return tuple(float(i if matrix.unsigned or i < 128 else i - 256) for i in range(256))


def lookups_of(matrix: Matrix) -> tuple[Lookup, ...] | None:
    """How bytes of an operand become bfloat16; None where it holds no bytes, or they do not."""
    numbers = numbers_in(matrix)
    return None if numbers is None else lookups(numbers)


def table_of(matrix: Matrix, target: Target) -> SignedTable | None:
    """The table of an operand's bytes, where the machine looks up bytes; numbers of few bits are chosen by one look-up
    of their own."""
    numbers, few = numbers_in(matrix), lookups_of(matrix)
    if numbers is None or not target.has("avx512vbmi") or (few is not None and len(few) == 1):
        return None
    return signed_table(numbers)


def multiplies_pairs(problem: Contraction, few_rows: bool, target: Target) -> bool:
    """Whether a product of few rows and its siblings are computed in pairs: the wide operand is contiguous along k."""
    wide, skinny = (problem.b, problem.a) if few_rows else (problem.a, problem.b)
    machine = target.multiplies_pairs and target.has("avx512bw")
    exact = problem.narrow or (exact_in_bfloat(skinny.element) and skinny.prologue is None)
    if not machine or not exact or problem.compute != FLOAT:
        return False
    if wide.element == BFLOAT:
        return wide.prologue is None
    if not problem.siblings and table_of(wide, target) is not None:
        return True
    return all(lookups_of(p.b if few_rows else p.a) is not None for p in (problem, *problem.siblings))


class PairTerms:
    """See `terms.Terms`; ``group``: terms of a group, 0 for one of all. Lanes of a sum take terms that follow each
    other, in order, so that it holds those of several groups of 16 or 32. ``unsafe`` is None, or tells once skinny
    vectors are prepared of which of them, a bit each, a part may overflow."""

    block = 0

    def __init__(self, operands: Operands, group: int) -> None:
        self.operands = operands
        self.is_bytes = operands.wide.element == I8
        self.width = 2 * _HALVES if self.is_bytes else _HALVES
        self.group = max(group, self.width) if group else 0
        self.table = table_of(operands.wide, operands.b.module.target) if len(operands.products) == 1 else None
        self.lookups = [lookups_of(operands.wide_of(p)) or () for p in operands.products]
        self.unsafe: Value | None = None
        parts = 1 if self.table is not None else max(1, *map(len, self.lookups))
        self.may_overflow = parts > 1 or self.offset != 0
        self.registers = 5 if self.table is not None else 2 * parts if self.is_bytes else 0
        self.registers_of_row = (2 if self.is_bytes else 1) * parts * len(operands.products)
        skinny, stride = operands.skinny, operands.skinny_stride
        plain = skinny.element == BFLOAT and skinny.prologue is None and isinstance(stride, int) and stride == 1
        self._in_place = plain and not self.is_bytes and operands.count <= _WAYS
        self._vectors = operands.skinny_origin

    @property
    def offset(self) -> float:
        """What the numbers that are multiplied have too much."""
        return 0.0 if self.table is None else self.table.offset

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
        """See `Terms`: terms, and what the sums of each group begin with."""
        if self._in_place:
            return 0
        b = self.operands.b
        starts = b.mul(self._groups(), _LINE) if self.offset else 0
        return b.mul(b.add(b.mul(self._padded_depth(), 2), starts), self.operands.count)

    def _groups(self) -> Index:
        return self.operands.b.div(self.operands.k, self.group) if self.group else 1

    def prepare(self, memory: Value) -> None:
        """See `Terms`."""
        if self._in_place:
            return
        x, b = self.operands, self.operands.b
        self._vectors = memory
        unsafe = b.constant(I64, 0)
        for t in range(x.count):
            with b.loop(0, x.k, self.width, [b.zero(vector(I16, self.width))]) as k:
                value = self._narrow_terms(t, k.index)
                b.store(self._sort(value), self._place(t, k.index), 64)
                size = b.binary("and", b.bitcast(value, k.carry[0].type), 0x7FFF)
                k.yield_values(b.intrinsic("llvm.umax", size.type, k.carry[0], size))
            is_large = b.icmp("uge", b.reduce("umax", k.results[0]), _LARGE)
            unsafe = b.binary("or", unsafe, b.select(is_large, b.constant(I64, 1 << t), b.constant(I64, 0)))
            if self.offset:
                self._prepare_starts(t)
        if self.may_overflow:
            self.unsafe = unsafe

    def _prepare_starts(self, t: int) -> None:
        """Store what ``offset`` takes from the sums of each group, lane by lane."""
        b, depth = self.operands.b, self._padded_depth()
        taken = b.constant(vector(BFLOAT, _HALVES), -self.offset)
        with b.loop(0, self._groups()) as group:
            k = b.mul(group.index, self.group)
            zero = b.zero(vector(FLOAT, _HALVES // 2))
            with b.loop(k, b.add(k, self.group or depth), self.width, [zero]) as terms:
                (total,) = terms.carry
                for half in self._skinny_terms(t, terms.index, None):
                    total = multiply_add(b, 2, taken, half, total)
                terms.yield_values(total)
            b.store(terms.results[0], self._start_place(t, group.index), _LINE)

    def _start_place(self, t: int, group: Index) -> Value:
        b = self.operands.b
        starts = b.gep(self._vectors, b.mul(self._padded_depth(), self.operands.count), BFLOAT)
        return b.gep(starts, b.mul(b.add(b.mul(self._groups(), t), group), _LINE), I8)

    def start(self, t: int, k: Index) -> Value:
        """See `Terms`."""
        b, kind = self.operands.b, vector(FLOAT, _HALVES // 2)
        if not self.offset:
            return b.zero(kind)
        return b.load(kind, self._start_place(t, b.div(k, self.group) if self.group else 0), _LINE)

    def _narrow_terms(self, t: int, k: Index) -> Value:
        """Terms of a skinny vector in bfloat16, zero beyond the last one."""
        x, b = self.operands, self.operands.b
        mask = x.tail_mask(k, self.width)
        if x.skinny.element == BFLOAT and x.skinny.prologue is None:
            return x.skinny_elements(t, k, self.width, mask).values[0]
        value = b.convert("fptrunc", x.skinny_vector(t, k, self.width, mask), BFLOAT)
        return value if mask is None else b.select(mask, value, b.zero(value.type))

    def _sort(self, value: Value) -> Value:
        """The terms of each half of a line's bytes side by side: even ones and odd ones, or as a table's are."""
        if not self.is_bytes:
            return value
        order = [*range(0, self.width, 2), *range(1, self.width, 2)]
        return self.operands.b.shuffle(value, None, order if self.table is None else [*_LOW, *_HIGH])

    def _place(self, t: int, k: Index) -> Value:
        """Where terms are from k on: copies of all skinny vectors lie side by side, a step after the other."""
        x, b = self.operands, self.operands.b
        if self._in_place:
            return b.gep(self._vectors, b.add(b.mul(x.numbers[t], x.skinny_step), k), BFLOAT)
        return b.gep(self._vectors, b.add(b.mul(k, x.count), t * self.width), BFLOAT)

    def step(self, rows: list[Index], k: Index, mask: Value | None, sums: list[Value]) -> list[Value]:
        """See `Terms`."""
        x, found = self.operands, list(sums)
        lines = [x.wide_vector(row, k, True, self.width, mask).values[0] for row in rows]
        wide = [parts for line in lines for parts in self._factors(line)]
        for t in range(x.count):
            for half, terms in enumerate(self._skinny_terms(t, k, mask)):
                for place, parts in zip(range(t, len(found), x.count), wide, strict=True):
                    for factor in parts[half]:
                        found[place] = multiply_add(x.b, 2, factor, terms, found[place])
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
        if self.table is not None:
            return [[[half] for half in self._signed_halves(self.table, line)]]
        words = b.bitcast(line, vector(I16, _HALVES))
        shifted = {0: words}

        def look_up(lookup: Lookup, shift: int) -> Value:
            if shift not in shifted:
                shifted[shift] = b.binary("lshr", words, shift)
            table = b.bitcast(vector_constant(BFLOAT, list(lookup.numbers)), words.type)
            return b.call("llvm.x86.avx512.permvar.hi.512", words.type, table, shifted[shift])

        return [[[look_up(x, x.shift + half) for x in found] for half in (0, 8)] for found in self.lookups]

    def _signed_halves(self, table: SignedTable, line: Value) -> tuple[Value, Value]:
        """The numbers of a line's bytes, of which each half comes from every second eight."""
        b = self.operands.b
        index = b.intrinsic("llvm.smax", line.type, line, b.binary("xor", line, -1))

        def look_up(numbers: list[int]) -> Value:
            parts = [vector_constant(I8, numbers[i : i + _LINE]) for i in (0, _LINE)]
            return b.call("llvm.x86.avx512.vpermi2var.qi.512", line.type, parts[0], index, parts[1])

        low, high = map(look_up, table.bytes())
        high = b.binary("or", high, b.binary("and", line, -128))
        return tuple(b.shuffle(low, high, [j for i in half for j in (i, _LINE + i)]) for half in (_LOW, _HIGH))  # type: ignore[return-value]
