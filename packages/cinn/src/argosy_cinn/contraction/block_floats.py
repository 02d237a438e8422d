"""Skinny products of weights of four bits by integer arithmetic: the terms of a group become block floating point.

The skinny vectors are bfloat16. The terms of a group of k become integers of 16 bits times a power of two
(`block_integers`). An integer is two digits of eight bits. Its products with weights, which are numbers of four bits
less a constant, are summed by ``pmaddubsw`` in 16 bits and by ``pmaddwd`` in 32 bits, without an error: a group's sum
is rounded once, when it becomes a float.

Skinny vectors of bytes are integers of one digit as they are, and have no scale. A machine that adds products to sums
of 32 bits has `byte_panels` for both.

A byte of the wide operand holds the weights of two products, so that 32 of them are unpacked by three instructions,
where floats take four for each eight weights and product. Groups without a scale send their skinny vector the long way
(`BlockFloatTerms.unsafe`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import frexp

from argosy_cinn.contraction.block_integers import becomes_integers, block_integers, prepare_groups
from argosy_cinn.contraction.problem import Contraction, Matrix
from argosy_cinn.contraction.terms import Operands
from argosy_cinn.printers.types import FLOAT, I8, I16, I32, Index, Value, vector
from argosy_cinn.target import Target

_DIGIT = 8
#: Products of a digit and a weight, two of which are added at a time, in 16 bits: 8 * 2 * 128 * 15 < 2**15.
_STEPS = 8
#: Skinny vectors whose sums are in registers at a time, at least, and registers for a digit of each of more.
_TOGETHER, _REGISTERS = 2, 8


@dataclass(frozen=True, slots=True)
class Nibble:
    """``unit`` times the number that four bits of a byte from ``shift`` on, exclusive or ``flip``, make less
    ``zero``."""

    shift: int
    flip: int
    zero: int
    unit: float


def nibble_of(matrix: Matrix) -> Nibble | None:
    """How a byte of an operand holds its weight; None where it is no number of four bits."""
    numbers = matrix.numbers
    if matrix.element != I8 or matrix.prologue is None or numbers is None:
        return None
    for shift in (0, 4):
        for flip in (0, 8):
            least, next_one = (numbers[(weight ^ flip) << shift] for weight in (0, 1))
            unit = next_one - least
            zero = -least / unit if unit else -1
            made = (((byte >> shift & 15 ^ flip) - zero) * unit for byte in range(256))
            if zero in range(16) and frexp(unit)[0] == 0.5 and numbers == tuple(made):
                return Nibble(shift, flip, int(zero), unit)
    return None


def nibbles_of(matrices: list[Matrix]) -> list[Nibble]:
    """How the bytes of an operand hold the weights of each product that reads it; none where that differs in more than
    where they are, or they are no numbers of four bits."""
    found = [nibble_of(each) for each in matrices]
    nibbles = [nibble for nibble in found if nibble is not None]
    alike = {(nibble.flip, nibble.zero) for nibble in nibbles}
    return nibbles if len(alike) == 1 and len(nibbles) == len(found) else []


def multiplies_block_floats(problem: Contraction, target: Target) -> bool:
    """Whether a product of few rows with scales of groups and its siblings are computed in integers."""
    line = target.vector_bits // 8
    machine = target.has("avx2") and (line == 32 or (line == 64 and target.has("avx512bw")))
    if not machine or not becomes_integers(problem) or problem.compute != FLOAT or not problem.group:
        return False
    is_whole = problem.group % line == 0 and problem.group <= _STEPS * line
    return is_whole and len(nibbles_of([each.b for each in (problem, *problem.siblings)])) > 0


def is_of_bytes(matrix: Matrix) -> bool:
    """Whether elements are signed bytes, as they are."""
    return matrix.element == I8 and matrix.prologue is None and not matrix.unsigned


class BlockFloatTerms:
    """See `terms.Terms`: a step takes a whole group. ``unsafe`` tells once skinny vectors are prepared which of them, a
    bit each, have a group without a scale."""

    block = 0

    def __init__(self, operands: Operands, group: int, lanes: int) -> None:
        self.operands, self.width, self.lanes = operands, group, lanes
        self.line = 4 * lanes
        self.digits = 1 if is_of_bytes(operands.skinny) else 2
        target = operands.b.module.target
        self.nibbles = nibbles_of([operands.wide_of(each) for each in operands.products])
        self.unsafe: Value | None = None
        self.may_overflow = self.digits == 2
        # Sums of integers are in them, of one wide row at a time.
        self.registers, self.registers_of_row = 0, target.registers
        self._together = max(_TOGETHER, target.registers // (_REGISTERS * self.digits))
        b, words = operands.b, vector(I16, self.line // 2)
        # The factors of the digits, which LLVM else makes anew for each group.
        self._factors = [b.pin(b.constant(words, factor)) for factor in (1 << _DIGIT, 1)[-self.digits :]]

    @property
    def bytes_of_term(self) -> int:
        """See `Terms`."""
        return self.digits

    @property
    def units(self) -> list[float]:
        """See `Terms`."""
        return [nibble.unit for nibble in self.nibbles]

    def group_scale(self, t: Index, k: Index) -> Value | None:
        """See `Terms`: a power of two."""
        if self.digits == 1:
            return None
        return self.operands.b.load(vector(FLOAT, self.lanes), self._scale_place(self._place(t, k)), self.line)

    def start(self, t: int, k: Index) -> Value:
        """See `Terms`."""
        return self.operands.b.zero(vector(FLOAT, self.lanes))

    def _groups(self) -> Index:
        b = self.operands.b
        return b.mul(b.div(self.operands.k, self.width), self.operands.count)

    def bytes(self) -> Index:
        """See `Terms`: of a group its digits, first the high ones, then what ``zero`` takes from each lane, and its
        scale, in every lane."""
        return self.operands.b.mul(self._groups(), self._group_bytes())

    def _group_bytes(self) -> int:
        return self.digits * (self.width + self.line)

    def prepare(self, memory: Value) -> None:
        """See `Terms`."""
        b = self.operands.b
        self._memory = memory
        if self.digits == 1:
            with b.loop(0, self.operands.count) as row, b.loop(0, self.operands.k, self.width) as k:
                self._copy_group(row.index, k.index)
            return
        self.unsafe = prepare_groups(self.operands, self.width, self._prepare_group)

    def _place(self, t: Index, k: Index) -> Value:
        """The memory of a group of a skinny vector."""
        b = self.operands.b
        number = b.add(b.mul(b.div(self.operands.k, self.width), t), b.div(k, self.width))
        return b.gep(self._memory, b.mul(number, self._group_bytes()), I8)

    def _copy_group(self, t: Index, k: Index) -> None:
        """Store a group of bytes."""
        b, place = self.operands.b, self._place(t, k)
        for i in range(0, self.width, self.line):
            terms = self.operands.skinny_elements(t, b.add(k, i), self.line, None).values[0]
            b.store(terms, b.gep(place, i, I8), self.line)
        self._store_zero(place)

    def _store_zero(self, group: Value) -> None:
        """Store what ``zero`` takes from each lane of a group."""
        b = self.operands.b
        zeros = b.constant(vector(I8, self.line), self.nibbles[0].zero)
        ((taken,),) = self._sums([group], lambda _: [zeros], [b.zero(vector(I32, self.lanes))])
        b.store(b.binary("sub", b.zero(taken.type), taken), self._zero_place(group), self.line)

    def _prepare_group(self, t: Index, k: Index) -> Value:
        """Store a group; whether it has no scale."""
        b, lanes = self.operands.b, self.lanes
        integers, scale, has_no_scale = block_integers(self.operands, t, k, self.width, lanes)
        place = self._place(t, k)
        for i, integer in enumerate(integers):
            for digit, rest in enumerate(
                (b.binary("ashr", b.binary("add", integer, 1 << _DIGIT - 1), _DIGIT), integer)
            ):
                b.store(b.convert("trunc", rest, I8), b.gep(place, digit * self.width + i * lanes, I8), lanes)
        self._store_zero(place)
        b.store(b.splat(scale, lanes), self._scale_place(place), self.line)
        return has_no_scale

    def _zero_place(self, group: Value) -> Value:
        return self.operands.b.gep(group, self.digits * self.width, I8)

    def _scale_place(self, group: Value) -> Value:
        return self.operands.b.gep(group, self.digits * self.width + self.line, I8)

    def _sums(
        self, groups: list[Value], weights: Callable[[int], list[Value]], starts: list[Value]
    ) -> list[list[Value]]:
        """The sums of products of the integers of some ``groups`` with each of the weights that ``weights`` makes of
        the bytes from a place in the group on, lane by lane, beside what each group ``starts`` with."""
        b, found = self.operands.b, list[Value]()
        for i in range(0, self.width, self.line):
            lines = weights(i)
            places = [b.gep(g, digit * self.width + i, I8) for g, digit in product(groups, range(self.digits))]
            terms = [b.load(lines[0].type, place, self.line) for place in places]
            found = self._add_products(found, [(line, each) for each in terms for line in lines])
            found = [b.pin(x) for x in found]
        count = len(found) // (self.digits * len(groups))
        sums = []
        for number, start in enumerate(starts):
            first = number * self.digits * count
            digits = [found[first + d * count : first + (d + 1) * count] for d in range(self.digits)]
            sums.append([b.binary("add", self._integer(*each), start) for each in zip(*digits, strict=True)])
        return sums

    def _add_products(self, sums: list[Value], factors: list[tuple[Value, Value]]) -> list[Value]:
        """``sums`` (none at first) plus the products of weights and terms."""
        b = self.operands.b
        products = [self._call("pmadd.ub.sw", "pmaddubs.w", I16, *pair) for pair in factors]
        return [b.binary("add", *pair) for pair in zip(sums, products, strict=True)] if sums else products

    def _integer(self, *digits: Value) -> Value:
        """A sum from those of its digits, high ones first."""
        pairs = zip(digits, self._factors, strict=True)
        parts = [self._call("pmadd.wd", "pmaddw.d", I32, digit, factor) for digit, factor in pairs]
        return parts[0] if len(parts) == 1 else self.operands.b.binary("add", parts[0], parts[1])

    def _call(self, name: str, wide_name: str, element: str, x: Value, y: Value) -> Value:
        """A multiplication of the machine that adds neighbouring products."""
        full = f"llvm.x86.avx512.{wide_name}.512" if self.line == 64 else f"llvm.x86.avx2.{name}"
        lanes = self.line * 8 // (16 if element == I16 else 32)
        return self.operands.b.call(full, vector(element, lanes), x, y)

    def step(self, rows: list[Index], k: Index, mask: Value | None, sums: list[Value]) -> list[Value]:
        """See `Terms`."""
        b, found, count = self.operands.b, list(sums), self.operands.count

        def weights(i: int) -> list[Value]:
            return [line for row in rows for line in self._weights(row, b.add(k, i))]

        for first in range(0, count, self._together):
            numbers = range(first, min(first + self._together, count))
            groups = [self._place(t, k) for t in numbers]
            starts = [b.load(vector(I32, self.lanes), self._zero_place(group), self.line) for group in groups]
            for t, integers in zip(numbers, self._sums(groups, weights, starts), strict=True):
                found[t::count] = [b.convert("sitofp", x, FLOAT) for x in integers]
        return found

    def _weights(self, row: Index, k: Index) -> list[Value]:
        """The weights of a line of a wide row for each product, as they are before ``zero`` is taken from them."""
        b = self.operands.b
        line = self.operands.wide_vector(row, k, True, self.line, None).values[0]
        if flip := self.nibbles[0].flip:
            line = b.binary("xor", line, flip * 0x11)
        words = b.bitcast(line, vector(I16, self.line // 2))
        shifted = {0: line, 4: b.bitcast(b.binary("lshr", words, 4), line.type)}
        return [b.binary("and", shifted[nibble.shift], 15) for nibble in self.nibbles]
