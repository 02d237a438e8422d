"""Attention: scores, what is computed of them element by element and along their rows, and products that contract them
again, over (outer..., row, column)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar

from argosy_cinn.forms.expressions import Expression, Graph, describe, loaded_buffers
from argosy_cinn.forms.form import Form, PartialResults
from argosy_cinn.forms.indices import Index, Variable
from argosy_cinn.forms.nest import identifier
from argosy_cinn.shapes import ceil_div, sizes
from argosy_phi_ops.primitives.cost import Cost
from argosy_pir.values import OpResult, Value

#: ``(r, c, k)``: a cell matters only where ``r * row + c * column + k >= 0``.
Bound = tuple[int, int, int]


@dataclass(slots=True)
class Bounds:
    """``low`` and ``high`` bounds (by the sign of the column's coefficient) and the comparisons that are them:
    node number to (bound, whether the node holds inside)."""

    low: list[Bound] = field(default_factory=list)
    high: list[Bound] = field(default_factory=list)
    nodes: dict[int, tuple[Bound, bool]] = field(default_factory=dict)


@dataclass(slots=True)
class Operand:
    """Element (outer..., i, k) of a product's operand at ``offset + sums of index * stride`` of ``buffer``: ``free``
    is the stride of i, ``contracted`` that of k, ``outer`` has one stride for each part of the outer axes."""

    buffer: Value
    offset: int
    outer: tuple[int, ...]
    free: int
    contracted: int


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
class WeightedSum:
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


@dataclass(slots=True)
class Tiles:
    """How the rows of attention are cut: into ``parts`` that are chunks of their own, and these into tiles of ``rows``,
    never more than ``most_rows``.

    A tile has ``buffers``, each as large as its scores: ``cells`` are those of scores, by number of their node; for
    every phase ``writes`` has the nodes that are written to buffers there, with the buffer.
    """

    rows: int = 0
    most_rows: int = 0
    parts: int = 1
    buffers: int = 0
    cells: dict[int, int] = field(default_factory=dict)
    writes: list[dict[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class AttentionForm(Form):
    """What is fused around scores. Phase p completes the reductions that need p others before."""

    kind: ClassVar[str] = "attention"

    graph: Graph
    outer: list[Variable]
    row: Variable
    column: Variable
    scores: list[Score]
    reductions: list[RowReduction]
    sinks: list[WeightedSum]
    bounds: Bounds
    tiles: Tiles = field(default_factory=Tiles)

    @property
    def phases(self) -> int:
        """Loops along the columns."""
        return max([r.body.level for r in self.reductions] + [s.root.level for s in self.sinks]) + 1

    def phase_roots(self, phase: int) -> list[Expression]:
        """What a phase evaluates for every cell."""
        roots = [r.body for r in self.reductions if r.body.level == phase]
        return roots + ([s.root for s in self.sinks] if phase == self.phases - 1 else [])

    @property
    def elements(self) -> int:
        """How many matrices of scores there are."""
        return prod(v.extent for v in self.outer)

    @property
    def chunks(self) -> int:
        """Chunks of work; they depend on shapes alone."""
        return self.elements * self.tiles.parts

    @property
    def part_rows(self) -> int:
        """Rows of a part: a multiple of a tile's."""
        return ceil_div(ceil_div(self.row.extent, self.tiles.rows), self.tiles.parts) * self.tiles.rows

    def partial_sinks(self) -> list[WeightedSum]:
        """The sinks whose results are summed over parts."""
        return [s for s in self.sinks if s.along == "rows"] if self.tiles.parts != 1 else []

    def completion_forms(self) -> list[SumOfParts]:
        """What adds the parts of results up."""
        return [SumOfParts(self, sink) for sink in self.partial_sinks()]

    def buffers(self) -> dict[Hashable, int]:
        """Partial results of sinks."""
        cells = 4 * self.chunks * self.column.extent
        return {partial_buffer(s.buffer): cells * s.width for s in self.partial_sinks()}

    def name(self) -> str:
        """Rows and columns of its scores."""
        return identifier("attention", self.row.extent, self.column.extent)

    def summary(self) -> str:
        """Its scores, reductions and products."""
        kinds = " ".join(r.kind for r in self.reductions) or "none"
        seen = " bounded" if self.bounds.low or self.bounds.high else ""
        rows = self.tiles.rows if isinstance(self.tiles.rows, int) else f"up to {self.tiles.most_rows}"
        return (
            f"{self.elements} of {self.row.extent} x {self.column.extent}{seen}, {len(self.scores)} scores, "
            f"reductions: {kinds}, {len(self.sinks)} products, {self.tiles.buffers} buffers of {rows} rows"
        )

    def cost(self) -> Cost:
        """Products of all cells that bounds do not hide, and a few for the rest. Operands are counted once."""
        read = sum(4 * prod(sizes(v)) for v in self.reads() if isinstance(v, Value))
        made = [*(s.buffer for s in self.sinks), *(r.buffer for r in self.reductions if r.buffer is not None)]
        written = sum(4 * prod(sizes(v)) for v in made)
        cells = self.elements * self.row.extent * self.column.extent
        share = 2 if self.bounds.low or self.bounds.high else 1
        depth = sum(s.depth for s in self.scores) + sum(s.width for s in self.sinks)
        return Cost(read, written, cells * (2 * depth + len(self.graph.order)) // share)

    def reads(self) -> set[Any]:
        """What it loads, and operands of its products."""
        found = loaded_buffers(self.graph)
        for score in self.scores:
            found |= {score.left.buffer, score.right.buffer}
        return found | {sink.other.buffer for sink in self.sinks}

    def key(self, slots: dict[Any, int]) -> str:
        """Expressions, operands, and how rows are cut."""
        roots = [*(r.body for r in self.reductions), *(s.root for s in self.sinks)]
        roots += [s.factor[1] for s in self.sinks if s.factor is not None]
        parts = [describe(roots, slots), str([v.extent for v in (*self.outer, self.row, self.column)])]
        for score in self.scores:
            parts += [f"score {_operand_key(o, slots)} {score.depth}" for o in (score.left, score.right)]
        for r in self.reductions:
            buffer = None if r.buffer is None else slots.setdefault(r.buffer, len(slots))
            parts.append(f"reduce {r.kind} {r.dtype} {r.result.level} {buffer}")
        for s in self.sinks:
            target = slots.setdefault(s.buffer, len(slots))
            factor = s.factor and s.factor[0]  # what it is multiplied by is among the roots
            numbers = (s.along, s.width, s.outer, s.step, s.unit, s.buffer.dtype, factor)
            parts.append(f"sink {_operand_key(s.other, slots)} {target} {numbers}")
        for s in self.partial_sinks():
            parts.append(f"partial {slots.setdefault(partial_buffer(s.buffer), len(slots))}")
        return "\n".join([*parts, f"{self.tiles.rows} {self.tiles.parts}"])


def _operand_key(operand: Operand, slots: dict[Any, int]) -> str:
    slot = slots.setdefault(operand.buffer, len(slots))
    return f"{slot} {operand.offset} {operand.outer} {operand.free} {operand.contracted} {operand.buffer.dtype}"


def partial_buffer(value: Value) -> PartialResults:
    """The buffer of a sink's partial results, one for each part of the rows."""
    return PartialResults(value, "partial results of rows")


@dataclass(slots=True)
class SumOfParts(Form):
    """The sum of a sink's partial results over the parts of the rows."""

    kind: ClassVar[str] = "sum of parts"

    attention: AttentionForm
    sink: WeightedSum

    def key(self, slots: dict[Any, int]) -> str:
        """Extents and steps."""
        sink, kernel = self.sink, self.attention
        slots.update({sink.buffer: 0, partial_buffer(sink.buffer): 1})
        text = f"sum of {kernel.tiles.parts} {[v.extent for v in (*kernel.outer, kernel.column)]} {sink.width} "
        text += f"{sink.outer} {sink.step} {sink.unit} {sink.buffer.dtype} "
        return text + ("" if sink.factor is None else f"{sink.factor[0]} {sink.factor[1].payload}")

    def name(self) -> str:
        """Parts, rows and columns."""
        kernel = self.attention
        return identifier("attention_sum", kernel.tiles.parts, kernel.row.extent, kernel.column.extent)

    def summary(self) -> str:
        """How many are added up."""
        return f"{self.attention.tiles.parts} parts added up"

    def reads(self) -> set[Any]:
        """The partial results."""
        return {partial_buffer(self.sink.buffer)}
