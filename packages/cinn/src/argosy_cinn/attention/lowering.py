"""From regions to attention forms: expressions over (outer..., row, column)."""

from __future__ import annotations

from collections.abc import Container
from math import prod
from typing import Any

from argosy_cinn.attention.bounds import find_bounds
from argosy_cinn.attention.operands import OuterAxes, operand_of
from argosy_cinn.attention.regions import Region, Sink
from argosy_cinn.forms.attention import AttentionForm, Bounds, RowReduction, Score, WeightedSum
from argosy_cinn.forms.expressions import Expression, Graph
from argosy_cinn.forms.indices import Position, SplitVariable, Variable, atom_index, linearise
from argosy_cinn.forms.nest import REDUCTIONS
from argosy_cinn.lowering.elements import ElementLowering, NotAligned
from argosy_cinn.shapes import sizes
from argosy_pir.core import Operation
from argosy_pir.values import OpResult, Value


def lower_attention(region: Region, memory: Container[Value], stored: Container[Value]) -> AttentionForm:
    """The form of a region. Raises `NotAligned` where a cell needs what another cell computes."""
    outer, split = OuterAxes(region.shape[:-2]), True
    while True:
        try:
            return _AttentionLowering(region, memory, stored, outer, split).form()
        except SplitVariable as request:
            split = outer.split(request)


class _AttentionLowering:
    def __init__(
        self, region: Region, memory: Container[Value], stored: Container[Value], outer: OuterAxes, split: bool
    ) -> None:
        self.region, self.memory, self.stored, self.outer = region, memory, stored, outer
        self.graph = Graph()
        self.variables = outer.variables()
        count, (rows, columns) = len(self.variables), region.shape[-2:]
        self.row, self.column = Variable(count, rows, rows), Variable(count + 1, columns, columns)
        axes = outer.coordinates(self.variables)
        self.row_flat = linearise([*axes, atom_index(self.row)], region.shape[:-1])
        self.flat = linearise([*axes, atom_index(self.row), atom_index(self.column)], region.shape)
        self.lowering = ElementLowering(self.graph, memory, self._resolve, split)
        self.cells: dict[Value, Expression] = {}
        self.reductions: dict[Value, RowReduction] = {}

    def form(self) -> AttentionForm:
        """Lower everything."""
        scores = [self._score(i, op) for i, op in enumerate(self.region.scores)]
        for op in self.region.reductions:
            self._reduction(op)
        sinks = [self._sink(sink) for sink in self.region.sinks]
        found = list(self.reductions.values())
        roots = [s.root for s in sinks]
        bounds = Bounds()
        if all(r.kind in ("sum", "max") for r in found):
            sums = [*roots, *(r.body for r in found if r.kind == "sum")]
            maxima = [r.body for r in found if r.kind == "max"]
            bounds = find_bounds(sums, maxima, self.row, self.column, self.graph.order)
        return AttentionForm(self.graph, self.variables, self.row, self.column, scores, found, sinks, bounds)

    def _score(self, number: int, op: Operation) -> Score:
        axes = range(len(self.region.shape) - 2)
        left, right = (operand_of(op, side, axes, self.outer, self.memory) for side in (0, 1))
        cell = self.graph.node("cell", op.result.dtype, (), number)
        cell.variables |= self.row.variables | self.column.variables | sum(v.variables for v in self.variables)
        self.cells[op.result] = cell
        return Score(left, right, sizes(op.operand(0))[op.attributes["lhs_contract"][0]], cell)

    def _reduction(self, op: Operation) -> Expression:
        found = self.reductions.get(op.result)
        if found is None:
            body = self.lowering.value(op.operand(0), Position(self.region.shape, self.flat, None, self.lowering.split))
            variables = self.row.variables | sum(v.variables for v in self.variables)
            number, dtype = len(self.reductions), op.result.dtype
            result = self.graph.reduction_result(number, dtype, variables, body.level + 1)
            buffer = op.result if op.result in self.stored else None
            found = RowReduction(REDUCTIONS[op.name], dtype, body, result, buffer, self.row_flat)
            self.reductions[op.result] = found
        return found.result

    def _resolve(self, value: Value, position: Position) -> Expression | None:
        if value in self.cells:
            if position.flat_index != self.flat:
                raise NotAligned(f"{value} is read at {position.flat_index}, made at {self.flat}")
            return self.cells[value]
        if value not in self.region.own or not isinstance(value, OpResult):
            return None
        if any(value is op.result for op in self.region.reductions):
            if position.flat_index != self.row_flat:
                raise NotAligned(f"{value} is read at {position.flat_index}, made at {self.row_flat}")
            return self._reduction(value.op)
        return self.lowering.operation(value, position)

    def _sink(self, sink: Sink) -> WeightedSum:
        side, attributes = sink.side, sink.op.attributes
        axes = attributes["rhs_batch" if side else "lhs_batch"]
        other = operand_of(sink.op, 1 - side, axes, self.outer, self.memory)
        root = self.lowering.value(sink.weights, Position(self.region.shape, self.flat, None, self.lowering.split))
        strides = _strides(sizes(sink.stored))
        if sink.stored is not sink.op.result:
            permutation = sink.stored.op.attributes["permutation"]
            strides = [strides[permutation.index(axis)] for axis in range(len(strides))]
        by_axis = {axis: strides[i] for i, axis in enumerate(axes)}
        parts = [by_axis[axis] * step for axis, part in enumerate(self.outer.parts) for step in _strides(part)]
        step, unit = (strides[-1], strides[-2]) if side else (strides[-2], strides[-1])
        width = sizes(sink.op.result)[-2 if side else -1]
        made = WeightedSum(sink.along, root, other, width, sink.stored, tuple(parts), step, unit)
        _move_factor(made, self.column.variables)
        return made


def _strides(shape: Any) -> list[int]:
    return [prod(shape[i + 1 :]) for i in range(len(shape))]


def _move_factor(sink: WeightedSum, column: int) -> None:
    """A factor of whole rows, or of everything, multiplies the result instead: fewer elements."""
    if sink.root.dtype != "float32" or sink.root.kind not in ("mul", "div"):
        return
    x, y = sink.root.arguments
    if _is_outside(sink, y, column):
        sink.root, sink.factor = x, (sink.root.kind, y)
    elif sink.root.kind == "mul" and _is_outside(sink, x, column):
        sink.root, sink.factor = y, ("mul", x)


def _is_outside(sink: WeightedSum, factor: Expression, column: int) -> bool:
    return factor.kind == "constant" if sink.along == "rows" else not factor.variables & column
