"""Loop nests: a grid of ``outer`` (row) and ``inner`` (column) loop variables.

For every row it runs phases: loops over the inner variables that complete reductions along the row and store what can
be computed by then. Column reductions are accumulated row by row into one partial result for each chunk of rows. Chunks
depend on shapes alone, so any number of threads gives the same bits.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from math import prod
from re import sub
from typing import Any, ClassVar

from argosy_cinn.forms.cost import bytes_read, operations
from argosy_cinn.forms.dtypes import NARROW
from argosy_cinn.forms.expressions import Expression, Graph, describe, index_text, loaded_buffers, lookups
from argosy_cinn.forms.form import Form, PartialResults
from argosy_cinn.forms.indices import Index, Lookup, Variable, atom_index
from argosy_cinn.shapes import LARGE, at_least_one, ceil_div, estimate, larger, nbytes
from argosy_phi_ops.primitives.cost import Cost
from argosy_pir.dims import is_static
from argosy_pir.types import ITEM_SIZES
from argosy_pir.values import Value

#: Kinds of reductions by primitive.
REDUCTIONS = {
    "prim.reduce_sum": "sum", "prim.reduce_prod": "prod", "prim.reduce_max": "max", "prim.reduce_min": "min",
    "prim.reduce_and": "and", "prim.reduce_or": "or",
}  # fmt: skip
#: Elements a chunk should at least have: some ten microseconds of work.
CHUNK_ELEMENTS = 1 << 15
_MOST_CHUNKS = 256
_MOST_PARTIALS = 32
#: Elements that rows have a multiple of: their vectors begin at a cache line then, whatever the dtype.
_ALIGNED = 64


@dataclass(slots=True)
class Reduction:
    """A reduction along the row: ``result`` is the node that stands for it."""

    kind: str
    dtype: str
    body: Expression
    result: Expression


@dataclass(slots=True)
class Store:
    """``buffer[index] = node``, for every element (``per_row`` false) or once a row.

    An update stores where ``condition`` holds, and what is there already combined with the node where ``combine`` names
    a reduction. A ``streaming`` store goes past the caches; its vectors are aligned.
    """

    buffer: Any
    index: Index
    node: Expression
    dtype: str
    per_row: bool
    condition: Expression | None = None
    combine: str = ""
    streaming: bool = False

    def fills_lines(self, row: Variable, least: int) -> bool:
        """Whether it stores elements of at least so many bytes one after the other, line after line of the cache, as
        long as ``row`` is the fastest variable; and so many that it matters."""
        if row.extent % _ALIGNED != 0 or not isinstance(self.buffer, Value) or self.per_row:
            return False
        return ITEM_SIZES[self.dtype] >= least and is_static(self.buffer.shape) and nbytes(self.buffer) >= LARGE


@dataclass(slots=True)
class ColumnReduction:
    """``buffer[index] = combination over all rows of body``; ``partial_buffer`` is the buffer of one partial result a
    chunk."""

    buffer: Any
    partial: Any
    kind: str
    dtype: str
    body: Expression
    index: Index

    @property
    def partial_dtype(self) -> str:
        """The dtype of partial results: narrow floats keep theirs in float32."""
        return "float32" if self.dtype in NARROW else self.dtype

    def has_partial(self, chunks: int) -> bool:
        """Whether it has partial results beside its result: several, or one of a wider dtype."""
        return may_have_chunks(chunks) or self.partial_dtype != self.dtype


def may_have_chunks(chunks: int) -> bool:
    """Whether there may be more than one chunk."""
    return not isinstance(chunks, int) or chunks > 1


@dataclass(slots=True)
class LoopNest(Form):
    """A fused loop nest, see the module."""

    kind: ClassVar[str] = "nest"

    graph: Graph
    outer: list[Variable]
    inner: list[Variable]
    reductions: list[Reduction] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)
    columns: list[ColumnReduction] = field(default_factory=list)
    sequential: list[Variable] = field(default_factory=list)
    """Variables that are reduced inside the lanes: the kernel then is one reduction over them."""
    running: bool = False
    """Whether that reduction stores every intermediate result."""
    update: bool = False
    """Whether its one store is an update: elements may meet, so that rows run in order."""

    @property
    def rows(self) -> int:
        """How often the body of the outer loops runs."""
        return prod(v.extent for v in self.outer)

    @property
    def columns_count(self) -> int:
        """Elements of a row."""
        return prod(v.extent for v in self.inner)

    @property
    def variables(self) -> list[Variable]:
        """All loop variables."""
        return [*self.outer, *self.sequential, *self.inner]

    def roots(self) -> list[Expression]:
        """All expressions it computes, in a fixed order."""
        roots = [*(r.body for r in self.reductions), *(s.node for s in self.stores), *(c.body for c in self.columns)]
        for s in self.stores:
            roots += [atom.expression for atom in lookups(s.index)]
            roots += [s.condition] if s.condition is not None else []
        return roots

    def rebase_loads(self) -> dict[Any, int]:
        """Of buffers that it only reads."""
        return self.graph.rebase_loads({*(s.buffer for s in self.stores), *(c.buffer for c in self.columns)})

    def key(self, slots: dict[Any, int]) -> str:
        """Expressions, extents, and where results go."""
        parts = [describe(self.roots(), slots)]
        parts.append(str([(v.number, v.extent) for v in self.outer]))
        parts.append(str([(v.number, v.extent) for v in self.inner]))
        parts.append(str([(v.number, v.extent) for v in self.sequential]) + f"{self.running} {self.update}")
        for r in self.reductions:
            parts.append(f"reduce {r.kind} {r.dtype} {r.result.payload} {r.result.level}")
        for s in self.stores:
            slot = slots.setdefault(s.buffer, len(slots))
            parts.append(f"store {slot} {s.index} {s.dtype} {s.per_row} {s.combine} {s.streaming}")
            if self.update:
                parts.append(f"update {index_text(s.index)} {s.condition}")
        for c in self.columns:
            both = [slots.setdefault(buffer, len(slots)) for buffer in (c.buffer, c.partial)]
            parts.append(f"column {both} {c.kind} {c.dtype} {c.index}")
        return "\n".join(parts)

    def name(self) -> str:
        """Its reductions and extents."""
        kinds = {r.kind for r in self.reductions} | {f"column_{c.kind}" for c in self.columns}
        return identifier("_".join(sorted(kinds)) or "map", *(v.extent for v in self.variables))

    def summary(self) -> str:
        """Rows and columns, and what is computed of them."""
        kinds: dict[str, int] = {}
        for node in self.graph.order:
            kinds[node.kind] = kinds.get(node.kind, 0) + 1
        computed = " ".join(f"{k}x{n}" if n > 1 else k for k, n in kinds.items())
        return f"{self.rows} rows of {self.columns_count}: {computed}"

    def reads(self) -> set[Any]:
        """What it loads."""
        return loaded_buffers(self.graph)

    def buffers(self) -> dict[Hashable, int]:
        """Partial results of column reductions."""
        chunks = choose_chunks(self).count
        size = self.columns_count * chunks
        return {c.partial: size * ITEM_SIZES[c.partial_dtype] for c in self.columns if c.has_partial(chunks)}

    def cost(self) -> Cost:
        """Every buffer once, and all expressions."""
        cells = prod(v.extent for v in self.variables)
        work = operations(self.graph.order, self.variables) + cells * (len(self.reductions) + len(self.columns))
        once = self.rows * (self.columns_count if self.sequential and not self.running else 1)
        stored = [once if s.per_row and not self.running else cells for s in self.stores]
        written = sum(n * ITEM_SIZES[s.dtype] for s, n in zip(self.stores, stored, strict=True))
        written += sum(self.columns_count * ITEM_SIZES[c.dtype] for c in self.columns)
        return Cost(bytes_read(self.graph.order, self.variables), written, work)

    def streaming_candidates(self, vector_bits: int) -> list[Store]:
        """Stores of whole rows."""
        if self.sequential or self.update:
            return []
        return [s for s in self.stores if s.fills_lines(self.inner[-1], least=1)]

    def overwrite_candidates(self) -> Iterator[tuple[Value, list[Value]]]:
        """Results of the last loop over a row, and operands that are read at their element only."""
        if not (self.sequential or self.update):
            yield from ((store.buffer, self._overwritten_by(store)) for store in self.stores)

    def _overwritten_by(self, store: Store) -> list[Value]:
        """The operands like the result of which nothing is read after the store but what it does not touch: all their
        loads are of the very element that is stored, and the store is in the last loop over the row."""
        value, lane = store.buffer, self.inner[-1]
        alone = sum(s.buffer is value for s in self.stores) == 1 and not any(c.buffer is value for c in self.columns)
        last = not store.per_row and store.node.level == phases(self) - 1 and store.index.variables & lane.variables
        if not alone or not last:
            return []
        read: dict[Value, bool] = {}
        for node in self.graph.order:
            if node.kind == "load" and isinstance(node.payload[0], Value):
                read[node.payload[0]] = read.get(node.payload[0], True) and node.payload[1] == store.index
        return [v for v, apt in read.items() if apt and v.shape == value.shape and v.dtype == value.dtype]

    def completion_forms(self) -> list[LoopNest]:
        """The nests that combine the chunks' partial results of column reductions, in order."""
        chunks = choose_chunks(self).count
        return [_combination(c, self.columns_count, chunks) for c in self.columns if c.has_partial(chunks)]


def partial_buffer(value: Value) -> PartialResults:
    """The buffer of a column reduction's partial results, one for each chunk."""
    return PartialResults(value, "partial results of columns")


def _combination(column: ColumnReduction, columns: int, chunks: int) -> LoopNest:
    graph = Graph()
    chunk, place = Variable(0, chunks), Variable(1, columns)
    body = graph.load(column.partial, atom_index(chunk) * place.extent + atom_index(place), column.partial_dtype, ())
    result = graph.reduction_result(0, column.dtype, place.variables, 1)
    return LoopNest(
        graph, [], [place], sequential=[chunk],
        reductions=[Reduction(column.kind, column.dtype, body, result)],
        stores=[Store(column.buffer, atom_index(place), result, column.dtype, True)],
    )  # fmt: skip


def identifier(what: str, *extents: Any) -> str:
    """The name of a function: what it does, and the extents it does it over."""
    return sub(r"\W+", "_", f"{what}_{'x'.join(map(str, extents))}")


@dataclass(slots=True)
class Chunks:
    """``count`` chunks of ``size`` rows, or of ``size`` elements where there is one row and ``flat`` is set."""

    count: int
    size: int
    flat: bool


def choose_chunks(kernel: LoopNest) -> Chunks:
    """How rows are cut into chunks."""
    if kernel.update and meetings(kernel):
        return Chunks(1, kernel.rows, False)
    rows, columns = kernel.rows, kernel.columns_count * prod(v.extent for v in kernel.sequential)
    if rows == 1 and not kernel.reductions and not kernel.columns and len(kernel.inner) == 1:
        size = larger(CHUNK_ELEMENTS, ceil_div(columns, _MOST_CHUNKS * 64) * 64)
        return Chunks(at_least_one(ceil_div(columns, size)), size, True)
    most = _MOST_PARTIALS if kernel.columns else _MOST_CHUNKS
    size = larger(larger(ceil_div(CHUNK_ELEMENTS, at_least_one(columns)), ceil_div(rows, most)), 1)
    return Chunks(at_least_one(ceil_div(rows, size)), size, False)


def meetings(kernel: LoopNest) -> list[Lookup]:
    """The run-time integers that decide where an update writes, and so which of its elements may meet."""
    return [atom for s in kernel.stores for atom in lookups(s.index) if atom.variables]


def refine_map(kernel: LoopNest) -> None:
    """Of a kernel without row reductions, make all but the last variables row variables."""
    variables = [*kernel.outer, *kernel.inner]
    if kernel.reductions or kernel.columns or kernel.sequential or kernel.update:
        return
    keep = 2 if len(variables) > 2 and estimate(variables[-1].extent) < 256 else 1
    kernel.outer, kernel.inner = variables[:-keep], variables[-keep:]


def phases(kernel: LoopNest) -> int:
    """How many loops over the row there are."""
    levels = [r.body.level for r in kernel.reductions]
    levels += [s.node.level for s in kernel.stores if not s.per_row] + [c.body.level for c in kernel.columns]
    return max(levels, default=-1) + 1


def phase_roots(kernel: LoopNest, phase: int) -> list[Expression]:
    """The expressions that the phase evaluates for every element."""
    found = [r.body for r in kernel.reductions if r.body.level == phase]
    found += [s.node for s in kernel.stores if not s.per_row and s.node.level == phase]
    return found + [c.body for c in kernel.columns if c.body.level == phase]
