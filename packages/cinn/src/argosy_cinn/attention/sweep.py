"""One phase of a tile: every row's expressions, along the columns that the row can see."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from argosy_cinn.forms.attention import AttentionForm, Bound
from argosy_cinn.forms.cost import COSTS
from argosy_cinn.forms.dtypes import NARROW
from argosy_cinn.forms.expressions import Expression, children
from argosy_cinn.loops import elementwise, reductions
from argosy_cinn.loops.elementwise import REGISTER
from argosy_cinn.loops.vectorize import Evaluator
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import BFLOAT, FLOAT, I1, I32, Index, Value, constant, vector

#: Vectors of a panel: what is computed at the end of a row is whole panels.
PANEL_VECTORS = 2
#: Vectors of one iteration, for light and for heavy expressions.
_LIGHT_UNROLL, _HEAVY_UNROLL, _LIGHT_COST = 4, 2, 14


class CellEvaluator(Evaluator):
    """Values of cells: nodes that lie in the tile's buffers are read there, and a quotient by a row's reduction
    is a product with its reciprocal (one more rounding)."""

    round_stored: Callable[[Expression], Value | None] = staticmethod(lambda node: None)
    reciprocals: dict[int, Value] = {}  # noqa: RUF012  (replaced, never written)

    def _compute(self, node: Expression) -> Value:
        found = self.round_stored(node)
        if found is not None:
            return found
        if node.kind == "div" and node.number in self.reciprocals:
            return self.b.fmul(
                self.full_vector(node.arguments[0]), self.b.splat(self.reciprocals[node.number], self.lanes)
            )
        return super()._compute(node)


class Sweep:
    """Emits the phases of one tile. ``buffers``: addresses of the tile's buffers; ``row_values``: that of the
    finished reductions, ``[reduction][tile]``; ``leading``: elements between rows of a buffer; ``seen(i)`` gives the
    columns [from, to) that are computed for the register tile that row ``i`` lies in; ``pairs``: nodes that
    are stored as bfloat16."""

    def __init__(
        self,
        b: Function,
        kernel: AttentionForm,
        pointers: Callable[[Any], Value],
        outer: Sequence[Index],
        buffers: Sequence[Value],
        row_values: Value,
        leading: int,
        seen: Callable[[Index], tuple[Index, Index]],
        pairs: Container[int],
    ) -> None:
        self.b, self.kernel, self.pointers, self.outer = b, kernel, pointers, outer
        self.buffers, self.row_values, self.leading, self.seen = buffers, row_values, leading, seen
        self.pairs = pairs
        self.lanes = b.module.target.lanes(FLOAT)
        self.column = kernel.column

    def phase(self, phase: int, row0: Value, rows: Index) -> None:
        """All rows of the tile."""
        with self.b.loop(0, rows) as i:
            self._row(phase, self.b.index(self.b.add(row0, i.index)), i.index)

    def row_scope(self, row: Index, place: Index, phase: int) -> CellEvaluator:
        """Values that are one for a row, after the reductions of earlier phases."""
        b = self.b
        variables = {v.number: at for v, at in zip(self.kernel.outer, self.outer, strict=True)}
        scope = CellEvaluator(b, self.pointers, {**variables, self.kernel.row.number: row})
        for number, r in enumerate(self.kernel.reductions):
            if r.result.level <= phase:
                element = REGISTER[r.dtype]
                scope.known[r.result.number] = b.load(element, self._row_value(number, place, element))
        return scope

    def _row_value(self, number: int, place: Index, element: str) -> Value:
        return self.b.gep(self.row_values, self.b.add(place, number * self.kernel.tiles.rows), element)

    def _row(self, phase: int, row: Value, place: Value) -> None:
        b, kernel = self.b, self.kernel
        roots = kernel.phase_roots(phase)
        roots += [n for n in kernel.graph.order if n.number in kernel.tiles.writes[phase]]
        scope = self.row_scope(row, place, phase)
        scope.prepare(roots, self.column.variables, phase)
        self._prepare_reciprocals(scope, roots)
        start, stop = self.seen(place)
        inner_start, inner_stop, unroll = self._interior(row, start, stop, roots)
        bodies = [r for r in kernel.reductions if r.body.level == phase]
        lanes = self.lanes
        state = [reductions.identity(r.kind, r.dtype, lanes) for r in bodies for _ in range(unroll)]

        def run(state: list[Value], begin: Index, end: Index, count: int, inside: bool) -> list[Value]:
            with b.loop(begin, end, count * lanes, state) as loop:
                self._cells(phase, scope, row, place, loop, bodies, count, unroll, inside)
            return loop.results

        if kernel.bounds.low:
            state = run(state, start, inner_start, 1, False)
        state = run(state, inner_start, inner_stop, unroll, True)
        state = run(state, inner_stop, stop, 1, False)
        self._finish(bodies, state, unroll, row, place)

    def _prepare_reciprocals(self, scope: CellEvaluator, roots: Sequence[Expression]) -> None:
        results = {r.result.number for r in self.kernel.reductions}
        found: dict[int, Value] = {}
        seen: set[int] = set()
        stack = list(roots)
        while stack:
            node = stack.pop()
            if node.number in seen or not node.variables & self.column.variables:
                continue
            seen.add(node.number)
            stack += children(node)
            if node.kind == "div" and node.dtype == "float32":
                divisor = node.arguments[1]
                of_row = divisor.number in results or (divisor.kind == "load" and divisor.variables)
                if of_row and not divisor.variables & self.column.variables:
                    found[node.number] = self.b.fdiv(constant(FLOAT, 1.0), scope.value(divisor))
        scope.reciprocals = found

    def _interior(self, row: Value, start: Index, stop: Index, roots: Sequence[Expression]) -> tuple[Index, Index, int]:
        """The columns, in whole iterations, where all bounds hold and all lanes exist."""
        b, lanes = self.b, self.lanes
        cost = sum(COSTS.get(n.kind, 1) for n in _reachable_nodes(roots))
        unroll = _LIGHT_UNROLL if cost <= _LIGHT_COST else _HEAVY_UNROLL
        low, high = start, b.minimum(stop, self.column.extent)
        for bound in self.kernel.bounds.high:
            high = b.minimum(high, b.add(self._edge(bound, row), 1))
        for bound in self.kernel.bounds.low:
            edge = b.maximum(self._edge(bound, row), start)
            low = b.maximum(low, b.mul(b.ceil_div(edge, lanes), lanes))
        low = b.minimum(low, stop)
        width = b.maximum(b.sub(high, low), 0)
        return low, b.add(low, b.mul(b.div(width, unroll * lanes), unroll * lanes)), unroll

    def _edge(self, bound: Bound, row: Index) -> Index:
        """The last column of a high bound, the first of a low one."""
        r, c, k = bound
        along = self.b.add(self.b.mul(row, abs(r)), -c * k)
        return along

    def _cells(
        self, phase: int, scope: CellEvaluator, row: Value, place: Value, loop: Any, bodies: Sequence[Any],
        count: int, unroll: int, inside: bool,
    ) -> None:  # fmt: skip
        """``count`` vectors of cells: reductions are carried on, results that are held are stored at the end."""
        b, lanes = self.b, self.lanes
        state = list(loop.carry)
        stores: list[tuple[Value, Value]] = []
        for u in range(count):
            column = b.add(loop.index, u * lanes)
            cells = self._evaluator(phase, scope, row, place, b.index(column), inside)
            for i, r in enumerate(bodies):
                value = cells.full_vector(r.body)
                if cells.mask is not None:
                    value = b.select(cells.mask, value, reductions.identity(r.kind, r.dtype, lanes))
                slot = i * unroll + u
                state[slot] = reductions.combine(b, r.kind, r.dtype, state[slot], value)
            for number, buffer in self.kernel.tiles.writes[phase].items():
                node = next(n for n in self.kernel.graph.order if n.number == number)
                stores.append(self._store_buffer(cells, node, buffer, place, column))
        for value, at in stores:
            b.store(value, at)
        if state:
            loop.yield_values(*state)

    def _store_buffer(
        self, cells: CellEvaluator, node: Expression, buffer: int, place: Index, column: Index
    ) -> tuple[Value, Value]:
        """What is stored of a node, and where."""
        b, value = self.b, cells.full_vector(node)
        if node.number not in self.pairs:
            return value, self._cell(buffer, place, column, value.type)
        if cells.mask is not None:  # the other half of a last pair is zero times this
            value = b.select(cells.mask, value, b.zero(value.type))
        row = b.gep(self.buffers[buffer], b.mul(place, self.leading), FLOAT)
        return b.convert("fptrunc", value, BFLOAT), b.gep(row, column, BFLOAT)

    def _cell(self, buffer: int, place: Index, column: Index, type: str) -> Value:
        offset = self.b.add(self.b.mul(place, self.leading), column)
        return self.b.gep(self.buffers[buffer], offset, FLOAT)

    def _evaluator(
        self, phase: int, scope: CellEvaluator, row: Value, place: Value, column: Value, inside: bool
    ) -> CellEvaluator:
        b, lanes, kernel = self.b, self.lanes, self.kernel
        extent = self.column.extent
        mask = None
        if not inside and not (isinstance(extent, int) and extent % (PANEL_VECTORS * lanes) == 0):
            mask = b.tail_mask(b.sub(extent, column), lanes)
        variables = {**scope.variables, self.column.number: column}
        cells = CellEvaluator(b, self.pointers, variables, self.column.number, lanes, mask, scope)
        cells.reciprocals = scope.reciprocals
        places = dict(kernel.tiles.cells)
        for written in kernel.tiles.writes[:phase]:
            places.update(written)

        def round_stored(node: Expression) -> Value | None:
            if node.number not in places:
                return None
            type = vector(REGISTER[node.dtype], lanes)
            value = b.load(type, self._cell(places[node.number], place, column, type))
            raw = node.kind == "cell" and node.dtype in NARROW
            return elementwise.round_to(b, value, node.dtype) if raw else value

        cells.round_stored = round_stored
        for number, (bound, sense) in kernel.bounds.nodes.items():
            cells.known[number] = self._condition(bound, sense, row, column, inside)
        return cells

    def _condition(self, bound: Bound, sense: bool, row: Value, column: Value, inside: bool) -> Value:
        b, lanes = self.b, self.lanes
        if inside:
            return constant(vector(I1, lanes), sense)
        edge = b.sub(self._edge(bound, row), column)
        lane_edge = b.splat(b.convert("trunc", b.index(edge), I32), lanes)
        predicate = {(-1, True): "sle", (-1, False): "sgt", (1, True): "sge", (1, False): "slt"}[bound[1], sense]
        return b.icmp(predicate, b.iota(I32, lanes), lane_edge)

    def _finish(self, bodies: Sequence[Any], state: list[Value], unroll: int, row: Value, place: Value) -> None:
        """Fold the lanes of each reduction, keep the result for later phases, and store it where it is wanted."""
        b, kernel = self.b, self.kernel
        for i, r in enumerate(bodies):
            parts = state[i * unroll : (i + 1) * unroll]
            while len(parts) > 1:
                parts = [reductions.combine(b, r.kind, r.dtype, *parts[j : j + 2]) for j in range(0, len(parts), 2)]
            value = reductions.fold(b, r.kind, r.dtype, parts[0])
            if r.dtype in NARROW:
                value = elementwise.round_to(b, value, r.dtype)
            number = kernel.reductions.index(r)
            b.store(value, self._row_value(number, place, REGISTER[r.dtype]))
            if r.buffer is not None:
                variables = {v.number: at for v, at in zip(kernel.outer, self.outer, strict=True)}
                scope = Evaluator(b, self.pointers, {**variables, kernel.row.number: row})
                scope.store_value(r.buffer, r.index, value, r.dtype)


def _reachable_nodes(roots: Sequence[Expression]) -> list[Expression]:
    found: dict[int, Expression] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.number not in found:
            found[node.number] = node
            stack += children(node)
    return list(found.values())
