"""Coefficients that are asked for first and made later: in between, sums of them are one functional.

A Laplacian of a Laplacian asks for d^2 fourth derivatives, but wants only their sum. While requests are read, each
answer is a deferred coefficient, the operation ``ad.coefficient``; derivatives of sums of them are deferred
coefficients of the same value again. When all are read, those that are added anyway are joined, and what is left is
made.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from argosy_autograd.activity import postorder
from argosy_autograd.algebra import Value, constant_number, zeros_like
from argosy_autograd.errors import MissingRule
from argosy_autograd.insertion import erase_unused
from argosy_autograd.taylor.collapse import collapse
from argosy_autograd.taylor.families import Families, StackingError, homogeneous
from argosy_autograd.taylor.functional import VALUE, Functional, functional_of
from argosy_autograd.taylor.rows import is_carried, upstream
from argosy_autograd.taylor.stacks import Stacks
from argosy_autograd.taylor.sweep import Sweep
from argosy_phi_ops import prim
from argosy_phi_ops.context import context, emit_at
from argosy_pir import Builder, Operation, Program

__all__ = ["DeferredCoefficients", "MissingCoefficient"]

_SUMS = frozenset("add sub neg mul div reshape".split())


class MissingCoefficient(MissingRule):
    """There is no rule for a deferred coefficient that request number ``request`` led to."""

    def __init__(self, request: int, reason: MissingRule) -> None:
        super().__init__(str(reason))
        self.request = request


class DeferredCoefficients:
    """What was asked of ``sweep`` for the body of one program; ``request`` numbers the request that is being read."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.request = 0
        self._asked: dict[tuple[Value, Functional], Value] = {}
        self._made: dict[Hashable, Value] = {}
        self._read: dict[Value, tuple[Value, Functional] | None] = {}

    def derivative(self, value: Value, direction: int) -> Value:
        """The derivative of ``value`` along ``direction``, deferred at the ambient builder."""
        base, functional = self._sum(value) or (value, VALUE)
        made = self._defer(base, functional.after_direction(direction))
        return made if made.shape == value.shape else prim.reshape(made, shape=value.shape)

    def emit_once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """What ``make`` emits, the first time it is wanted: derivatives of one value belong together."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def keep(self, program: Program) -> None:
        """Join deferred_coefficients that are added in the body of ``program``, and put values in the place of all.

        Raises :class:`MissingCoefficient` where there is no rule; the program is of no use then.
        """
        erase_unused(program.block, self.sweep.seeds())
        collapse(program)
        deferred = [op for op in program.block if op.name == "ad.coefficient"]
        wanted = [functional_of(op) for op in deferred]
        if any(is_carried(op) for op in program.block):
            self._before_loops(deferred)
            self.sweep.expect(wanted)
        stacks = self._stacks(wanted)
        for op in deferred:
            op.replace_with([self._stacked_value(op, stacks)])
        erase_unused(program.block)

    def _before_loops(self, deferred: list[Operation]) -> None:
        """Put what directions move by, which are constants, before the first deferred coefficient: a loop carries all
        directions."""
        for op in postorder(self.sweep.seeds(), None):
            if deferred and deferred[0].is_before(op):
                op.move_before(deferred[0])

    def _stacks(self, wanted: list[Functional]) -> Stacks | None:
        """Directions as an axis, where that pays."""
        families = Families(part for functional in wanted for part in homogeneous(functional))
        return Stacks(self.sweep, families) if families.is_costly else None

    def _stacked_value(self, op: Operation, stacks: Stacks | None) -> Value:
        base, functional = op.operand(0), functional_of(op)
        with emit_at(Builder.before(op), op.location):
            try:
                found = self._coefficient(base, functional, stacks)
            except MissingRule as error:
                raise MissingCoefficient(op.attributes["request"], error) from error
            value = zeros_like(base) if found is None else found
        self.sweep.know(value, base, functional)
        return value

    def _coefficient(self, base: Value, functional: Functional, stacks: Stacks | None) -> Value | None:
        if stacks is not None:
            try:
                return stacks.coefficient(base, functional)
            except StackingError:
                pass
        return self.single_coefficient(base, functional)

    def single_coefficient(self, base: Value, functional: Functional) -> Value | None:
        """The coefficient made by itself, of other single ones."""
        return self.sweep.coefficient(base, functional)

    def _defer(self, base: Value, functional: Functional) -> Value:
        known = self._asked.get((base, functional))
        if known is None:
            builder = context().builder
            assert builder is not None
            attributes = {"terms": functional.terms, "request": self.request}
            known = builder.create("ad.coefficient", [base], attributes, location=context().location).result
            self._asked[base, functional] = known
            self.sweep.know(known, base, functional)
        return known

    def _sum(self, value: Value) -> tuple[Value, Functional] | None:
        """``value`` as a functional of another one, up to its shape; None where it is no sum of coefficients of one."""
        for op in upstream(value, self._read.__contains__, _sum_operands):
            self._read[op.results[0]] = self._functional(op)
        return self._read.get(value)

    def _functional(self, op: Operation) -> tuple[Value, Functional] | None:
        if op.name == "ad.coefficient":
            return op.operand(0), functional_of(op)
        if op.dialect != "prim" or op.kind not in _SUMS:
            return None
        name, known = op.kind, [self._read.get(x) for x in op.operands]
        first = known[0]
        if first is None:
            return None
        base, functional = first
        if name == "reshape":
            return first
        if name == "neg":
            return base, functional * -1.0
        second = known[1]
        if name in ("add", "sub"):
            same = second is not None and second[0] is base
            return (base, functional + second[1] * (1.0 if name == "add" else -1.0)) if second and same else None
        factor = constant_number(op.operand(1))
        if not isinstance(factor, float) or not factor:
            return None
        return base, functional * (factor if name == "mul" else 1 / factor)


def _sum_operands(op: Operation) -> tuple[Value, ...]:
    return op.operands if op.dialect == "prim" and op.kind in _SUMS else ()
