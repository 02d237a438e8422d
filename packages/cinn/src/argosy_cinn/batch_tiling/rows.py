"""Which operations of a program go row by row along an axis of an input, and which of them sum over the rows.

The axis notation of the primitives tells. What depends on a sum, or on several rows, comes after all rows are done.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from argosy_cinn.control import captured_values
from argosy_cinn.rewrites.builders import splat_of
from argosy_cinn.shapes import sizes
from argosy_phi_ops.declare.axes import AxisNotation
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import OpResult, Value

#: Primitives of other categories move rows or have a size that is no axis of an operand, but for those taken along
#: other axes.
_CATEGORIES = frozenset({"elementwise", "contraction", "reduction", "layout"})
_TAKEN = frozenset({"gather"})
_EXCLUDED = frozenset({"iota", "relayout", "to_local", "from_local", "dim_size", "conv"})
#: Narrower sums would be rounded after each block.
_SUMMED = frozenset({"float32", "float64", "int32", "int64"})


class RowWise:
    """What goes along ``axis`` of ``source``.

    ``axes`` gives the axis that the rows of a value run along; ``steps`` are the operations on rows, in the order of
    the program, those of ``totals`` sum over all rows; ``given`` are the values whose rows come from outside.
    """

    def __init__(self, program: Program, source: Value, axis: int) -> None:
        self.size: int = source.shape[axis]  # type: ignore[assignment]
        self.axes: dict[Value, int] = {source: axis}
        self.given: dict[Value, None] = {source: None}
        self.totals: dict[Value, None] = {}
        self._steps: set[Operation] = set()
        self._from_source: set[Value] = {source}
        self._late: set[Value] = set()
        operations = [op for op in program.block if op is not program.block.last]
        for op in operations:
            self._visit(op)
        self.steps = self._dependent_steps([op for op in operations if op in self._steps])
        self._inside = set(self.steps)
        read = {v for op in self.steps for v in op.operands}
        self.given = {v: None for v in self.given if v in read}
        self.late = [op for op in operations if op not in self._inside and self._is_late(op)]

    def _is_late(self, op: Operation) -> bool:
        if op.results:
            return any(r in self._late for r in op.results)
        return any(v in self._late or (v in self._from_source and v not in self.given) for v in op.operands)

    def escaping_values(self) -> list[Value]:
        """The values of rows that something else than operations on rows reads, in order."""
        return [op.result for op in self.steps if op.result in self._from_source and self._is_read_elsewhere(op.result)]

    def _is_read_elsewhere(self, value: Value) -> bool:
        return value not in self.totals and any(user not in self._inside for user in _users(value))

    def outer_operands(self) -> Iterator[Value]:
        """What operations on rows read that has no rows."""
        seen: set[Value] = set()
        for value in (v for op in self.steps for v in op.operands):
            if value not in self.axes and value not in seen:
                seen.add(value)
                yield value

    def is_number(self, value: Value) -> bool:
        """Whether the rows of a value are one number."""
        return isinstance(value, OpResult) and value.op.name == "builtin.constant" and value in self.axes

    def copies(self, value: Value) -> int:
        """How many values of rows a value stacks along axes before its rows."""
        return prod(sizes(value)[: self.axes[value]]) if value in self.axes else 1

    # -- finding

    def _dependent_steps(self, steps: list[Operation]) -> list[Operation]:
        """Those that depend on the source, and what these read: others were taken in for what could not be."""
        read: set[Value] = set()
        found: list[Operation] = []
        for op in reversed(steps):
            if op.result in self._from_source or op.result in read:
                found.append(op)
                read.update(op.operands)
        return found[::-1]

    def _visit(self, op: Operation) -> None:
        operands = [*op.operands, *captured_values(op)]
        if any(v in self._late for v in operands):
            self._late.update(op.results)
        elif op.results and any(v in self._from_source for v in operands) and not self._joins(op):
            self._late.update(op.results)

    def _joins(self, op: Operation) -> bool:
        """Take an operation in, with what its other operands are made by; whether that is possible."""
        notation = _notation(op)
        if notation is None:
            return False
        factor = self._factor(op, notation)
        if factor is None or not all(self._takes(v, a) for v, a in _places(op, notation, factor)):
            return False
        self._steps.add(op)
        self._from_source.add(op.result)
        (term,) = notation.results
        found = [i for i, axis in enumerate(term) if factor in axis]
        if found:
            self.axes[op.result] = found[0]
        else:
            self.totals[op.result] = None
            self._late.add(op.result)
        return True

    def _factor(self, op: Operation, notation: AxisNotation) -> str | None:
        """The factor that the rows of all operands run along; None where they differ, or are mixed or no axis of their
        own."""
        held = [(i, v) for i, v in enumerate(op.operands) if v in self._from_source]
        found = {notation.operands[i][self.axes[v]] for i, v in held}
        (axis,) = found if len(found) == 1 else ((),)
        return axis[0] if len(axis) == 1 and _is_own_axis(op, notation, axis[0]) else None

    def _takes(self, value: Value, axis: int) -> bool:
        """Give a value rows along an axis, made in each block where they can be."""
        if value in self.axes:
            return self.axes[value] == axis
        if value.shape[axis] != self.size:
            return False
        self.axes[value] = axis
        if splat_of(value) is not None and isinstance(value, OpResult) and value.op.name == "builtin.constant":
            return True
        if not (isinstance(value, OpResult) and self._is_row_source(value.op, axis)):
            self.given[value] = None
        return True

    def _is_row_source(self, op: Operation, axis: int) -> bool:
        """Whether an operation that does not depend on the source makes its rows one by one, too."""
        notation = _notation(op)
        if notation is None or not op.operands:
            return False
        (term,) = notation.results
        if len(term[axis]) != 1 or not _is_own_axis(op, notation, term[axis][0]):
            return False
        places = list(_places(op, notation, term[axis][0]))
        if any(self.axes.get(v, a) != a or v.shape[a] != self.size for v, a in places):
            return False
        for value, place in places:
            self._takes(value, place)
        self._steps.add(op)
        return True


def _notation(op: Operation) -> AxisNotation | None:
    """The axis notation of a primitive of one result that blocks have code for."""
    name = op.kind if op.dialect == "prim" else ""
    known = PRIMITIVES.get(name)
    if known is None or name in _EXCLUDED or len(op.results) != 1:
        return None
    if known.category not in _CATEGORIES and name not in _TAKEN:
        return None
    attributes = {key: value for key, value in op.attributes.items() if key in known.attributes}
    return known.notation([v.type for v in op.operands], attributes)


def _is_own_axis(op: Operation, notation: AxisNotation, factor: str) -> bool:
    """Whether a factor is an axis of its own wherever it is, once for each value, and unmixed; summed, if at all."""
    if factor in notation.mixing:
        return False
    for term in (*notation.operands, *notation.results):
        held = [axis for axis in term if factor in axis]
        if len(held) > 1 or any(axis != (factor,) for axis in held):
            return False
    if any((factor,) in term for term in notation.results):
        return True
    type = op.result.type
    return notation.reduction == "sum" and isinstance(type, TensorType) and type.dtype in _SUMMED


def _places(op: Operation, notation: AxisNotation, factor: str) -> Iterator[tuple[Value, int]]:
    """The operands that have a factor, with its axis."""
    for value, term in zip(op.operands, notation.operands, strict=True):
        if (factor,) in term:
            yield value, term.index((factor,))


def _users(value: Value) -> Iterator[Operation]:
    """The operations of a value's block that read it, also from within their regions."""
    for user in value.users:
        current = user
        assert isinstance(value, OpResult)
        while current.parent is not value.op.parent:
            above = current.parent_op
            assert above is not None
            current = above
        yield current
