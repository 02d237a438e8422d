"""Offsets of a skinny product's groups: what they add is a product of its own with the sums of each group's terms of
the skinny vectors, of as many terms as there are groups."""

from __future__ import annotations

from argosy_cinn.contraction.problem import Contraction, Matrix
from argosy_cinn.contraction.terms import Operands
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import Index, Value, bytes_of, vector

_LINE = 64


class GroupOffsets:
    """The sums of ``count`` skinny vectors' groups, in memory, and what offsets make of them."""

    def __init__(self, b: Function, problem: Contraction, count: int, lanes: int) -> None:
        self.b, self.problem, self.count, self.lanes = b, problem, count, lanes

    def bytes(self) -> Index:
        """Memory that `prepare` needs, in whole cache lines; 0 where no product has offsets."""
        if all(product.offsets is None for product in (self.problem, *self.problem.siblings)):
            return 0
        size = self.b.mul(self._groups(), self.count * bytes_of(self.problem.compute))
        return self.b.mul(self.b.ceil_div(size, _LINE), _LINE)

    def prepare(self, memory: Value, operands: Operands) -> None:
        """Sum the groups of the skinny vectors of ``operands``."""
        b, group, kind = self.b, self.problem.group, vector(self.problem.compute, self.lanes)
        self._memory, self._operands = memory, operands
        with b.loop(0, self.count) as t, b.loop(0, self._groups()) as number:
            k = b.mul(number.index, group)
            with b.loop(0, group, self.lanes, [b.zero(kind)]) as terms:
                x = operands.skinny_vector(t.index, b.add(k, terms.index), self.lanes, None)
                terms.yield_values(b.fadd(terms.carry[0], x))
            b.store(b.reduce("fadd", terms.results[0]), self._place(t.index, number.index))

    def add_to(self, value: Value, offsets: Matrix, t: Index, row: Index, mask: Value | None) -> Value:
        """``value``, results of skinny vector ``t`` and the wide rows from ``row`` on, plus what offsets add."""
        b = self.b
        with b.loop(0, self._groups(), 1, [value]) as group:
            total = b.splat(b.load(self.problem.compute, self._place(t, group.index)), self.lanes)
            factor = self._operands.scales_vector(offsets, group.index, row, self.lanes, mask)
            group.yield_values(b.fma(total, factor, group.carry[0]))
        return group.results[0]

    def _groups(self) -> Index:
        return self.b.div(self.problem.k, self.problem.group)

    def _place(self, t: Index, group: Index) -> Value:
        place = self.b.add(self.b.mul(t, self._groups()), group)
        return self.b.gep(self._memory, place, self.problem.compute)
