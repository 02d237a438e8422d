"""Schedules of loop nests for cores with vectors: what threads share, what is stored between phases, and which later
rows are prefetched."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from argosy_cinn.forms.cost import body_cost
from argosy_cinn.forms.expressions import Expression, children
from argosy_cinn.forms.indices import Index
from argosy_cinn.forms.nest import CHUNK_ELEMENTS, LoopNest, meetings, phase_roots, phases
from argosy_cinn.shapes import estimate, nbytes
from argosy_pir.types import ITEM_SIZES
from argosy_pir.values import Value

#: Whether rows are independent of each other to the bit, for as long as a program is emitted.
batch_invariant: ContextVar[bool] = ContextVar("batch_invariant", default=False)
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


def shares_columns(kernel: LoopNest) -> bool:
    """Whether the threads share an update whose elements may meet: each goes through all rows in order, for some of the
    columns. An element then has one thread, so that any number of them gives the same bits."""
    return _is_shared(kernel) and estimate(kernel.inner[-1].extent) >= _WIDE


def shares_places(kernel: LoopNest) -> bool:
    """Whether the threads share an update of narrow rows: each looks at where all of them go, vectors at a time, and
    writes those that go to its part of the result, in order. Of very narrow rows, looking costs as much as writing."""
    apt = len(kernel.outer) == 1 and _NARROW <= estimate(kernel.columns_count)
    return apt and _is_shared(kernel) and not shares_columns(kernel)


def _is_shared(kernel: LoopNest) -> bool:
    found, inner = meetings(kernel), sum(v.variables for v in kernel.inner)
    large = estimate(kernel.rows * kernel.columns_count) >= 2 * CHUNK_ELEMENTS
    return bool(kernel.update and found and large) and not any(atom.variables & inner for atom in found)


@dataclass(frozen=True, slots=True)
class RowPrefetch:
    """A request for an element of a later row: the element of ``buffer`` at ``index``, ``distance`` bytes on."""

    buffer: Any
    index: Index
    dtype: str
    distance: int


def row_prefetches(kernel: LoopNest, cache: int) -> dict[int, list[RowPrefetch]]:
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


def _row_streams(kernel: LoopNest) -> list[Expression]:
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


def row_buffers(kernel: LoopNest) -> list[Expression]:
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
