"""Skinny products of bytes in sums of int32 (VNNI): a lane takes four products of unsigned with signed bytes, exactly.

The signed ones are the skinny vectors'. A signed wide operand is read plus 128, and sums begin with what that adds,
negated: 128 times the sum of the skinny vector's terms, lane by lane.
"""

from __future__ import annotations

from argosy_cinn.contraction.packing import byte_products
from argosy_cinn.contraction.problem import Contraction
from argosy_cinn.contraction.terms import Operands
from argosy_cinn.printers.types import I8, I32, Index, Value, vector
from argosy_cinn.target import Target

_LINE, _LANES = 64, 16


def multiplies_bytes(problem: Contraction, few_rows: bool, target: Target) -> bool:
    """Whether a skinny product is computed so: the wide operand is contiguous along k."""
    wide, skinny = (problem.b, problem.a) if few_rows else (problem.a, problem.b)
    machine = target.vector_bits == 512 and target.has("avx512vnni")
    plain = wide.element == skinny.element == I8 and wide.prologue is None and skinny.prologue is None
    return machine and plain and problem.compute == I32 and not skinny.unsigned and not problem.siblings


class ByteTerms:
    """See `terms.Terms`."""

    width, block = _LINE, 0
    #: The constant that makes bytes unsigned, and a line of a wide row.
    registers, registers_of_row = 1, 1
    may_overflow = False
    unsafe: Value | None = None

    def __init__(self, operands: Operands) -> None:
        self.operands = operands
        self._shifted = not operands.wide.unsigned

    @property
    def bytes_of_term(self) -> int:
        """See `Terms`."""
        return 1

    @property
    def units(self) -> list[float]:
        """See `Terms`."""
        return [1.0]

    def group_scale(self, t: Index, k: Index) -> None:
        """See `Terms`."""

    def _padded_depth(self) -> Index:
        b = self.operands.b
        return b.mul(b.ceil_div(self.operands.k, _LINE), _LINE)

    def bytes(self) -> Index:
        """See `Terms`: terms, and what sums begin with."""
        return self.operands.b.mul(self.operands.b.add(self._padded_depth(), _LINE), self.operands.count)

    def prepare(self, memory: Value) -> None:
        """See `Terms`."""
        x, b = self.operands, self.operands.b
        self._vectors = memory
        offset = b.constant(vector(I8, _LINE), -128)
        for t in range(x.count):
            with b.loop(0, x.k, _LINE, [b.zero(vector(I32, _LANES))]) as k:
                mask = x.tail_mask(k.index, _LINE)
                terms = x.skinny_elements(t, k.index, _LINE, mask).values[0]
                b.store(terms, self._place(t, k.index), _LINE)
                k.yield_values(byte_products(b, k.carry[0], offset, terms))
            (added,) = k.results
            b.store(b.binary("sub", b.zero(added.type), added), self._start_place(t), _LINE)

    def _place(self, t: int, k: Index) -> Value:
        """Where terms are from k on: all skinny vectors' side by side, a step after the other."""
        b = self.operands.b
        return b.gep(self._vectors, b.add(b.mul(k, self.operands.count), t * _LINE), I8)

    def _start_place(self, t: int) -> Value:
        b = self.operands.b
        return b.gep(self._vectors, b.add(b.mul(self._padded_depth(), self.operands.count), t * _LINE), I8)

    def start(self, t: int, k: Index) -> Value:
        """See `Terms`."""
        b, kind = self.operands.b, vector(I32, _LANES)
        return b.load(kind, self._start_place(t), _LINE) if self._shifted else b.zero(kind)

    def step(self, rows: list[Index], k: Index, mask: Value | None, sums: list[Value]) -> list[Value]:
        """See `Terms`."""
        x, b, found = self.operands, self.operands.b, list(sums)
        lines = [x.wide_vector(row, k, True, _LINE, mask).values[0] for row in rows]
        wide = [b.binary("xor", line, -128) if self._shifted else line for line in lines]
        for t in range(x.count):
            terms = b.load(vector(I8, _LINE), self._place(t, k), _LINE)
            for place, line in zip(range(t, len(found), x.count), wide, strict=True):
                found[place] = byte_products(b, found[place], line, terms)
        return found
