"""Skinny products of a wide operand of bfloat16 in float32, where pairs are not multiplied faster: a register of it is
split into its even and its odd terms by a shift and a mask, for each half of a float32 is one of them."""

from __future__ import annotations

from argosy_cinn.contraction.problem import Contraction
from argosy_cinn.contraction.terms import Operands
from argosy_cinn.printers.types import BFLOAT, FLOAT, I16, I32, Index, Value, vector

_ODD = -1 << 16


def splits_bfloats(problem: Contraction, few_rows: bool) -> bool:
    """Whether a skinny product is computed so: the wide operand is contiguous along k."""
    wide = problem.b if few_rows else problem.a
    plain = wide.element == BFLOAT and wide.prologue is None
    return plain and problem.compute == FLOAT and not problem.siblings


class BfloatTerms:
    """See `terms.Terms`. A lane takes an even term, then the odd one behind it. ``rounded``: skinny vectors are rounded
    to bfloat16 first."""

    block = 0
    registers, registers_of_row = 0, 2
    may_overflow = False
    unsafe: Value | None = None

    def __init__(self, operands: Operands, lanes: int, rounded: bool) -> None:
        self.operands, self.lanes, self.rounded = operands, lanes, rounded
        self.width = 2 * lanes

    @property
    def bytes_of_term(self) -> int:
        """See `Terms`."""
        return 4

    @property
    def units(self) -> list[float]:
        """See `Terms`."""
        return [1.0]

    def group_scale(self, t: Index, k: Index) -> None:
        """See `Terms`."""

    def start(self, t: int, k: Index) -> Value:
        """See `Terms`."""
        return self.operands.b.zero(vector(FLOAT, self.lanes))

    def bytes(self) -> Index:
        """See `Terms`."""
        b, x = self.operands.b, self.operands
        return b.mul(b.mul(b.ceil_div(x.k, self.width), self.width), x.count * self.bytes_of_term)

    def prepare(self, memory: Value) -> None:
        """See `Terms`: of each step of a skinny vector the even terms, then the odd ones."""
        x, b = self.operands, self.operands.b
        self._vectors = memory
        for t in range(x.count):
            with b.loop(0, x.k, self.width) as k:
                value = self._terms(t, k.index)
                for odd in range(2):
                    half = b.shuffle(value, None, list(range(odd, self.width, 2)))
                    b.store(half, self._place(t, k.index, odd), self.lanes * self.bytes_of_term)

    def _terms(self, t: int, k: Index) -> Value:
        """Terms of a skinny vector, zero beyond the last one."""
        x, b = self.operands, self.operands.b
        mask = x.tail_mask(k, self.width)
        value = x.skinny_vector(t, k, self.width, mask)
        if self.rounded and x.skinny.element != BFLOAT:
            value = b.widen_float(b.narrow_float(value, BFLOAT), FLOAT)
        return value if mask is None else b.select(mask, value, b.zero(value.type))

    def _place(self, t: int, k: Index, odd: int) -> Value:
        """Where half of a step's terms are: all skinny vectors' side by side, a step after the other."""
        b = self.operands.b
        return b.gep(self._vectors, b.add(b.mul(k, self.operands.count), t * self.width + odd * self.lanes), FLOAT)

    def step(self, rows: list[Index], k: Index, mask: Value | None, sums: list[Value]) -> list[Value]:
        """See `Terms`."""
        x, b, found = self.operands, self.operands.b, list(sums)
        # As integers: old machines would convert a bfloat16 that a mask chooses to float32 and back.
        lines = [b.masked_load(vector(I16, self.width), x.wide_place(row, k), mask) for row in rows]
        wide = [self._halves(line) for line in lines]
        for t in range(x.count):
            for odd in range(2):
                terms = b.load(vector(FLOAT, self.lanes), self._place(t, k, odd), self.lanes * self.bytes_of_term)
                for place, halves in zip(range(t, len(found), x.count), wide, strict=True):
                    found[place] = b.fma(halves[odd], terms, found[place])
        return found

    def _halves(self, line: Value) -> tuple[Value, Value]:
        """The even and the odd terms of a line."""
        b = self.operands.b
        words = b.bitcast(line, vector(I32, self.lanes))
        even, odd = b.binary("shl", words, 16), b.binary("and", words, _ODD)
        return b.bitcast(even, vector(FLOAT, self.lanes)), b.bitcast(odd, vector(FLOAT, self.lanes))
