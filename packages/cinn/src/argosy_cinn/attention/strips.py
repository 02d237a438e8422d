"""A region as a kernel: expressions over (outer..., row, column), phases along the columns, and buffers for a strip.

Phase p completes the reductions that need p others before. A strip's buffers hold the scores, then what several phases
need and what is expensive to compute again, and at last what the sinks contract.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from math import prod
from typing import Any

from argosy_cinn.attention.bounds import Bounds, find_bounds
from argosy_cinn.attention.operands import Operand, Outer, operand_of
from argosy_cinn.attention.regions import Region, Sink
from argosy_cinn.forms.expressions import Expression, Graph, children, describe
from argosy_cinn.forms.indices import Index, Position, SplitVariable, Variable, linearise, of
from argosy_cinn.loops.reductions import KINDS
from argosy_cinn.loops.schedule import COSTS
from argosy_cinn.lowering.elements import Lowering, NotAligned
from argosy_cinn.shapes import ceil_div, larger, sizes, smaller
from argosy_cinn.target import Target
from argosy_pir.core import Operation
from argosy_pir.values import OpResult, Value

#: Nodes this expensive are kept for later phases.
_EXPENSIVE = 8
_KEEPABLE = frozenset({"float32", "bfloat16", "float16", "uint32", "int32"})
#: Rows of a strip: enough to use what is packed, few enough that strips stay in the second-level cache.
_MOST_ROWS = 64
#: Rows of a chunk where nothing is accumulated over rows, and chunks for a balanced load where something is.
_CHUNK_ROWS = 256
_MOST_PARTS = 8


@dataclass(slots=True)
class Score:
    """A product ``cell[row, column] = sum over k of left[row, k] * right[column, k]``."""

    left: Operand
    right: Operand
    depth: int
    cell: Expression


@dataclass(slots=True)
class RowReduction:
    """A reduction along the columns, stored at ``index`` of ``buffer`` where that is not None."""

    kind: str
    dtype: str
    body: Expression
    result: Expression
    buffer: Value | None
    index: Index


@dataclass(slots=True)
class Contraction:
    """A sink: ``root`` contracted with ``other``, ``width`` elements wide. Element (outer..., x, e) is stored at
    ``x * step + e * unit + outer``; where ``factor`` is set, rows of the result are multiplied (or divided) by it."""

    along: str
    root: Expression
    other: Operand
    width: int
    buffer: OpResult
    outer: tuple[int, ...]
    step: int
    unit: int
    factor: tuple[str, Expression] | None = None


@dataclass(frozen=True, slots=True)
class Partial:
    """The buffer of a sink's partial results, one for each part of the rows."""

    value: Value


@dataclass(slots=True)
class StripKernel:
    """The kernel of a region; ``held``: for every phase the nodes that are written to buffers there, with the buffer;
    ``buffer_of``: the buffer that holds a node from the phase on that writes it."""

    graph: Graph
    outer: list[Variable]
    row: Variable
    column: Variable
    scores: list[Score]
    reductions: list[RowReduction]
    sinks: list[Contraction]
    bounds: Bounds
    phases: int = 0
    buffers: int = 0
    held: list[dict[int, int]] = field(default_factory=list)
    cells: dict[int, int] = field(default_factory=dict)
    strip: int = 0
    parts: int = 1

    @property
    def elements(self) -> int:
        """How many matrices of scores there are."""
        return prod(v.extent for v in self.outer)

    @property
    def chunks(self) -> int:
        """Chunks of work; they depend on shapes alone."""
        return self.elements * self.parts

    def part_rows(self) -> int:
        """Rows of a part: a multiple of a strip."""
        return ceil_div(ceil_div(self.row.extent, self.strip), self.parts) * self.strip

    def partial_sinks(self) -> list[Contraction]:
        """The sinks whose results are summed over parts."""
        return [s for s in self.sinks if s.along == "rows"] if self.parts != 1 else []

    def partial_bytes(self, sink: Contraction) -> int:
        """Bytes of a sink's partial results."""
        return 4 * self.chunks * self.column.extent * sink.width

    def summary(self) -> str:
        """A line for `explain`."""
        kinds = " ".join(r.kind for r in self.reductions) or "none"
        seen = " bounded" if self.bounds.low or self.bounds.high else ""
        strip = self.strip if isinstance(self.strip, int) else f"up to {_MOST_ROWS}"
        return (
            f"{self.elements} of {self.row.extent} x {self.column.extent}{seen}, {len(self.scores)} scores, "
            f"reductions: {kinds}, {len(self.sinks)} products, {self.buffers} buffers of {strip} rows"
        )

    def work(self) -> tuple[int, int, int]:
        """Bytes read and written by one run, and operations: products of all cells that bounds do not hide, and a
        few for the rest. Operands are counted once."""
        read = sum(4 * prod(sizes(v)) for v in self.loads() if isinstance(v, Value))
        made = [*(s.buffer for s in self.sinks), *(r.buffer for r in self.reductions if r.buffer is not None)]
        written = sum(4 * prod(sizes(v)) for v in made)
        cells = self.elements * self.row.extent * self.column.extent
        share = 2 if self.bounds.low or self.bounds.high else 1
        depth = sum(s.depth for s in self.scores) + sum(s.width for s in self.sinks)
        return read, written, cells * (2 * depth + len(self.graph.order)) // share

    def loads(self) -> set[Any]:
        """The buffers it reads."""
        found = {node.payload[0] for node in self.graph.order if node.kind == "load"}
        for score in self.scores:
            found |= {score.left.buffer, score.right.buffer}
        return found | {sink.other.buffer for sink in self.sinks}


def lower_region(region: Region, memory: Container[Value], stored: Container[Value]) -> StripKernel:
    """The kernel of a region. Raises `NotAligned` where a cell needs what another cell computes."""
    outer, split = Outer(region.shape[:-2]), True
    while True:
        try:
            kernel = _Lowering(region, memory, stored, outer, split).kernel()
            break
        except SplitVariable as request:
            split = outer.split(request)
    _plan_buffers(kernel)
    _choose_shape(kernel)
    return kernel


class _Lowering:
    def __init__(
        self, region: Region, memory: Container[Value], stored: Container[Value], outer: Outer, split: bool
    ) -> None:
        self.region, self.memory, self.stored, self.outer = region, memory, stored, outer
        self.graph = Graph()
        self.variables = outer.variables()
        count, (rows, columns) = len(self.variables), region.shape[-2:]
        self.row, self.column = Variable(count, rows, rows), Variable(count + 1, columns, columns)
        axes = outer.coordinates(self.variables)
        self.row_flat = linearise([*axes, of(self.row)], region.shape[:-1])
        self.flat = linearise([*axes, of(self.row), of(self.column)], region.shape)
        self.lowering = Lowering(self.graph, memory, self._resolve, split)
        self.cells: dict[Value, Expression] = {}
        self.reductions: dict[Value, RowReduction] = {}

    def kernel(self) -> StripKernel:
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
        return StripKernel(self.graph, self.variables, self.row, self.column, scores, found, sinks, bounds)

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
            result = self.graph.reduced(number, dtype, variables, body.level + 1)
            buffer = op.result if op.result in self.stored else None
            found = RowReduction(KINDS[op.name], dtype, body, result, buffer, self.row_flat)
            self.reductions[op.result] = found
        return found.result

    def _resolve(self, value: Value, position: Position) -> Expression | None:
        if value in self.cells:
            if position.flat != self.flat:
                raise NotAligned(f"{value} is read at {position.flat}, made at {self.flat}")
            return self.cells[value]
        if value not in self.region.own or not isinstance(value, OpResult):
            return None
        if any(value is op.result for op in self.region.reductions):
            if position.flat != self.row_flat:
                raise NotAligned(f"{value} is read at {position.flat}, made at {self.row_flat}")
            return self._reduction(value.op)
        return self.lowering.operation(value, position)

    def _sink(self, sink: Sink) -> Contraction:
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
        made = Contraction(sink.along, root, other, width, sink.stored, tuple(parts), step, unit)
        _move_factor(made, self.column.variables)
        return made


def _strides(shape: Any) -> list[int]:
    return [prod(shape[i + 1 :]) for i in range(len(shape))]


def _move_factor(sink: Contraction, column: int) -> None:
    """A factor of whole rows, or of everything, multiplies the result instead: fewer elements."""
    if sink.root.dtype != "float32" or sink.root.kind not in ("mul", "div"):
        return
    x, y = sink.root.arguments
    if _is_outside(sink, y, column):
        sink.root, sink.factor = x, (sink.root.kind, y)
    elif sink.root.kind == "mul" and _is_outside(sink, x, column):
        sink.root, sink.factor = y, ("mul", x)


def _is_outside(sink: Contraction, factor: Expression, column: int) -> bool:
    return factor.kind == "constant" if sink.along == "rows" else not factor.variables & column


# -- phases and buffers


def phase_roots(kernel: StripKernel, phase: int) -> list[Expression]:
    """What a phase evaluates for every cell."""
    roots = [r.body for r in kernel.reductions if r.body.level == phase]
    return roots + ([s.root for s in kernel.sinks] if phase == kernel.phases - 1 else [])


def _plan_buffers(kernel: StripKernel) -> None:
    levels = [r.body.level for r in kernel.reductions] + [s.root.level for s in kernel.sinks]
    kernel.phases = max(levels) + 1
    nodes = {node.number: node for node in kernel.graph.order}
    kept = _kept(kernel)
    last = _last_uses(kernel, kept)
    final = kernel.phases - 1
    holder: list[int] = []
    buffer_of: dict[int, int] = {}
    for score in kernel.scores:
        buffer_of[score.cell.number] = len(holder)
        kernel.cells[score.cell.number] = len(holder)
        holder.append(score.cell.number)
    for phase in range(kernel.phases):
        wanted = [n for n, first in kept.items() if first == phase]
        if phase == final:
            wanted += [s.root.number for s in kernel.sinks if s.root.number not in buffer_of]
        written: dict[int, int] = {}
        for number in dict.fromkeys(wanted):
            free = [i for i, held in enumerate(holder) if last.get(held, -1) <= phase and held not in written]
            place = free[0] if free else len(holder)
            holder[place : place + 1] = [number]
            written[number] = buffer_of[number] = place
            if phase == final and any(s.root.number == number for s in kernel.sinks):
                last[number] = kernel.phases
        kernel.held.append(written)
    kernel.buffers = len(holder)
    assert all(number in nodes for number in buffer_of)


def _kept(kernel: StripKernel) -> dict[int, int]:
    """Expensive nodes that a later phase needs again, with the phase that computes them first."""
    first: dict[int, int] = {}
    kept: dict[int, int] = {}
    for phase in range(kernel.phases):
        fresh: set[int] = set()
        stack = phase_roots(kernel, phase)
        while stack:
            node = stack.pop()
            if node.number in fresh or not node.variables & kernel.column.variables or node.kind == "cell":
                continue
            earlier = first.get(node.number, phase) < phase
            if earlier and COSTS.get(node.kind, 1) >= _EXPENSIVE and node.dtype in _KEEPABLE:
                kept[node.number] = first[node.number]
                continue
            fresh.add(node.number)
            stack += children(node)
        for number in fresh:
            first.setdefault(number, phase)
    return kept


def _last_uses(kernel: StripKernel, kept: dict[int, int]) -> dict[int, int]:
    """The last phase that reads each score and each kept node."""
    last: dict[int, int] = {}
    for phase in range(kernel.phases):
        stack, seen = phase_roots(kernel, phase), set()
        while stack:
            node = stack.pop()
            if node.number in seen:
                continue
            seen.add(node.number)
            if node.kind == "cell" or kept.get(node.number, phase) < phase:
                last[node.number] = phase
            else:
                stack += children(node)
    for sink in kernel.sinks:  # what a sink contracts as it is stays to the end
        if sink.root.kind == "cell" or sink.root.number in kept:
            last[sink.root.number] = kernel.phases
    return last


def _choose_shape(kernel: StripKernel) -> None:
    """Rows of a strip, and the parts that the rows are cut into."""
    room = Target.host().l2_bytes
    rows = room // (4 * kernel.column.extent * kernel.buffers) // 8 * 8
    kernel.strip = smaller(smaller(larger(rows, 16), _MOST_ROWS), ceil_div(kernel.row.extent, 8) * 8)
    if all(s.along == "columns" for s in kernel.sinks):
        kernel.parts = ceil_div(kernel.row.extent, _CHUNK_ROWS)
    elif isinstance(kernel.elements, int):
        strips = ceil_div(kernel.row.extent, kernel.strip)
        most = max(ceil_div(_MOST_PARTS, kernel.elements), 1)
        kernel.parts = min(most, strips) if isinstance(strips, int) else most  # some may be empty
    else:
        kernel.parts = 1


def strip_text(kernel: StripKernel, slots: dict[Any, int]) -> str:
    """What a kernel's code depends on; ``slots`` numbers its buffers by first use."""
    roots = [*(r.body for r in kernel.reductions), *(s.root for s in kernel.sinks)]
    roots += [s.factor[1] for s in kernel.sinks if s.factor is not None]
    parts = [describe(roots, slots), str([v.extent for v in (*kernel.outer, kernel.row, kernel.column)])]
    for score in kernel.scores:
        parts += [f"score {_operand_text(o, slots)} {score.depth}" for o in (score.left, score.right)]
    for r in kernel.reductions:
        buffer = None if r.buffer is None else slots.setdefault(r.buffer, len(slots))
        parts.append(f"reduce {r.kind} {r.dtype} {r.result.level} {buffer}")
    for s in kernel.sinks:
        target = slots.setdefault(s.buffer, len(slots))
        factor = s.factor and s.factor[0]  # what it is multiplied by is among the roots
        numbers = (s.along, s.width, s.outer, s.step, s.unit, s.buffer.dtype, factor)
        parts.append(f"sink {_operand_text(s.other, slots)} {target} {numbers}")
    for s in kernel.partial_sinks():
        parts.append(f"partial {slots.setdefault(Partial(s.buffer), len(slots))}")
    return "\n".join([*parts, f"{kernel.strip} {kernel.parts}"])


def _operand_text(operand: Operand, slots: dict[Any, int]) -> str:
    slot = slots.setdefault(operand.buffer, len(slots))
    return f"{slot} {operand.offset} {operand.outer} {operand.free} {operand.contracted} {operand.buffer.dtype}"
