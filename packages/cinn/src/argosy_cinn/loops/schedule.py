"""What a fused kernel consists of, and how it is run: phases over a row, chunks over rows.

A `Kernel` is a grid of ``outer`` (row) and ``inner`` (column) loop variables. For every row it runs phases: loops over
the inner variables that complete reductions along the row and store what can be computed by then. Column reductions
are accumulated row by row into one partial result for each chunk of rows. Chunks depend on shapes alone, so any number
of threads gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from argosy_cinn.forms.expressions import Expression, Graph, children, lookups
from argosy_cinn.forms.indices import Index, Lookup, Variable
from argosy_cinn.shapes import at_least_one, ceil_div, estimate, larger, nbytes
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir.types import ITEM_SIZES
from argosy_pir.values import Value

#: Elements a chunk should at least have: some ten microseconds of work.
_CHUNK_ELEMENTS = 1 << 15
_MOST_CHUNKS = 256
_MOST_PARTIALS = 32
#: Columns that several threads can share.
_WIDE = 128
#: Elements of rows that several threads can share.
_NARROW = 8
#: Nodes this expensive are kept in a row buffer between phases.
_EXPENSIVE = 8
_ROW_BUFFER_BYTES = 1 << 16
#: How far ahead later rows are asked for at least: the time that memory takes to answer.
_PREFETCH_BYTES = 4 << 10
#: Bytes of rows that a second-level cache holds until they are read.
_LONGEST_PREFETCHED = 1 << 17

COSTS = {name: max(1, primitive.work) for name, primitive in PRIMITIVES.items()} | {"constant": 0, "reduced": 0}
"""Work of one element in vector instructions, roughly; what is not named counts 1."""


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


@dataclass(slots=True)
class ColumnReduction:
    """``buffer[index] = combination over all rows of body``; ``partial`` is the buffer of one partial result a
    chunk."""

    buffer: Any
    partial: Any
    kind: str
    dtype: str
    body: Expression
    index: Index


@dataclass(slots=True)
class Kernel:
    """A fused loop nest, see the module."""

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

    def roots(self) -> list[Expression]:
        """All expressions it computes, in a fixed order."""
        roots = [*(r.body for r in self.reductions), *(s.node for s in self.stores), *(c.body for c in self.columns)]
        for s in self.stores:
            roots += [atom.expression for atom in lookups(s.index)]
            roots += [s.condition] if s.condition is not None else []
        return roots


@dataclass(slots=True)
class Chunks:
    """``count`` chunks of ``size`` rows, or of ``size`` elements where there is one row and ``flat`` is set."""

    count: int
    size: int
    flat: bool


def choose_chunks(kernel: Kernel) -> Chunks:
    """How rows are cut into chunks."""
    if kernel.update and meetings(kernel):
        return Chunks(1, kernel.rows, False)
    rows, columns = kernel.rows, kernel.columns_count * prod(v.extent for v in kernel.sequential)
    if rows == 1 and not kernel.reductions and not kernel.columns and len(kernel.inner) == 1:
        size = larger(_CHUNK_ELEMENTS, ceil_div(columns, _MOST_CHUNKS * 64) * 64)
        return Chunks(at_least_one(ceil_div(columns, size)), size, True)
    most = _MOST_PARTIALS if kernel.columns else _MOST_CHUNKS
    size = larger(larger(ceil_div(_CHUNK_ELEMENTS, at_least_one(columns)), ceil_div(rows, most)), 1)
    return Chunks(at_least_one(ceil_div(rows, size)), size, False)


def meetings(kernel: Kernel) -> list[Lookup]:
    """The run-time integers that decide where an update writes, and so which of its elements may meet."""
    return [atom for s in kernel.stores for atom in lookups(s.index) if atom.variables]


def shares_columns(kernel: Kernel) -> bool:
    """Whether the threads share an update whose elements may meet: each goes through all rows in order, for some of the
    columns. An element then has one thread, so that any number of them gives the same bits."""
    return _is_shared(kernel) and estimate(kernel.inner[-1].extent) >= _WIDE


def shares_places(kernel: Kernel) -> bool:
    """Whether the threads share an update of narrow rows: each looks at where all of them go, vectors at a time, and
    writes those that go to its part of the result, in order. Of very narrow rows, looking costs as much as writing."""
    apt = len(kernel.outer) == 1 and _NARROW <= estimate(kernel.columns_count)
    return apt and _is_shared(kernel) and not shares_columns(kernel)


def _is_shared(kernel: Kernel) -> bool:
    found, inner = meetings(kernel), sum(v.variables for v in kernel.inner)
    large = estimate(kernel.rows * kernel.columns_count) >= 2 * _CHUNK_ELEMENTS
    return bool(kernel.update and found and large) and not any(atom.variables & inner for atom in found)


def refine_map(kernel: Kernel) -> None:
    """Of a kernel without row reductions, make all but the last variables row variables."""
    variables = [*kernel.outer, *kernel.inner]
    if kernel.reductions or kernel.columns or kernel.sequential or kernel.update:
        return
    keep = 2 if len(variables) > 2 and estimate(variables[-1].extent) < 256 else 1
    kernel.outer, kernel.inner = variables[:-keep], variables[-keep:]


def phases(kernel: Kernel) -> int:
    """How many loops over the row there are."""
    levels = [r.body.level for r in kernel.reductions]
    levels += [s.node.level for s in kernel.stores if not s.per_row] + [c.body.level for c in kernel.columns]
    return max(levels, default=-1) + 1


def phase_roots(kernel: Kernel, phase: int) -> list[Expression]:
    """The expressions that the phase evaluates for every element."""
    found = [r.body for r in kernel.reductions if r.body.level == phase]
    found += [s.node for s in kernel.stores if not s.per_row and s.node.level == phase]
    return found + [c.body for c in kernel.columns if c.body.level == phase]


@dataclass(frozen=True, slots=True)
class RowPrefetch:
    """A request for an element of a later row: the element of ``buffer`` at ``index``, ``distance`` bytes on."""

    buffer: Any
    index: Index
    dtype: str
    distance: int


def row_prefetches(kernel: Kernel, cache: int) -> dict[int, list[RowPrefetch]]:
    """Prefetches of later rows, by the phase that makes them, where the operands do not fit a cache of ``cache`` bytes.

    Of several loops over a row only the first one reads from memory; while the others run no stream gets ahead. So
    these ask for what the rows to come will read, each for other operands.
    """
    last = phases(kernel) - 1
    streams = _row_streams(kernel) if last > 0 and kernel.outer else []
    found: dict[int, list[RowPrefetch]] = {}
    if sum(estimate(nbytes(node.payload[0])) for node in streams) < cache:
        return found
    for i, node in enumerate(streams):
        buffer, index = node.payload
        stride = index.coefficient(kernel.outer[-1])
        row = stride * ITEM_SIZES[node.dtype] if isinstance(stride, int) else 0
        if 0 < row <= _LONGEST_PREFETCHED:
            request = RowPrefetch(buffer, index, node.dtype, -(-_PREFETCH_BYTES // row) * row)
            found.setdefault(last - i % last, []).append(request)
    return found


def _row_streams(kernel: Kernel) -> list[Expression]:
    """A load of each operand that rows read element after element, each row its own."""
    lane, outer = kernel.inner[-1], sum(v.variables for v in kernel.outer)
    found: dict[Any, Expression] = {}
    stack, seen = [root for phase in range(phases(kernel)) for root in phase_roots(kernel, phase)], set()
    while stack:
        node = stack.pop()
        if node.number in seen:
            continue
        seen.add(node.number)
        stack += children(node)
        if node.kind == "load" and isinstance(node.payload[0], Value):
            buffer, index = node.payload
            if index.coefficient(lane) == 1 and index.variables & outer:
                found.setdefault(buffer, node)
    return sorted(found.values(), key=lambda node: node.number)


def row_buffers(kernel: Kernel) -> list[Expression]:
    """Expressions that several phases need and that cost too much to compute again, kept from the first to the last."""
    inner = sum(v.variables for v in kernel.inner)
    if phases(kernel) < 2 or estimate(kernel.columns_count) * 4 > _ROW_BUFFER_BYTES:
        return []
    computed: set[int] = set()
    kept: dict[int, Expression] = {}
    for phase in range(phases(kernel)):
        fresh: set[int] = set()
        stack = list(phase_roots(kernel, phase))
        while stack:
            node = stack.pop()
            if node.number in fresh or not node.variables & inner or node.kind == "load":
                continue
            if node.number in computed and body_cost([node], inner) >= _EXPENSIVE:
                kept[node.number] = node
                continue
            fresh.add(node.number)
            stack += children(node)
        computed |= fresh
    return [kept[number] for number in sorted(kept)]


def body_cost(roots: Sequence[Expression], inner: int) -> int:
    """Vector instructions of one iteration, roughly."""
    seen: set[int] = set()
    stack, total = list(roots), 0
    while stack:
        node = stack.pop()
        if node.number not in seen and node.variables & inner:
            seen.add(node.number)
            total += COSTS.get(node.kind, 1)
            stack += node.arguments
    return total
