"""Segments: functions that call kernels one after the other.

A short segment writes the addresses of each call's buffers by instructions of its own. In a long one these would be
much of what a program compiles, and LLVM takes longer than linear time over a long block: there, a loop reads kernels,
addresses and chunks from constant tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from argosy_cinn.checks.emit import clear_record, null
from argosy_cinn.forms.index_check import RECORD
from argosy_cinn.loops.nest import PARAMETERS
from argosy_cinn.plan.memory import Place
from argosy_cinn.plan.steps import ExecutionPlan
from argosy_cinn.printers.llvm import Function, Module
from argosy_cinn.printers.types import I64, PTR, VOID, Index, Value, constant
from argosy_cinn.runtime import parallel_for
from argosy_cinn.runtime.trace import traced_call
from argosy_cinn.runtime.workers import thread_count
from argosy_cinn.shapes import nbytes
from argosy_phi_ops.primitives.cost import Cost
from argosy_pir.dims import SymExpr

#: Places of a segment from which on its calls come from tables.
_MANY_PLACES = 256
#: A row of the table of calls: kernel, places, and chunks or, below zero, which of the computed grids.
_CALL = "{ptr, i64, i64}"
#: In the table of places: no size is added to an offset.
_NO_SIZE = -1


@dataclass(slots=True)
class Call:
    """A call of a kernel: its name, the places of its buffers in table order, and a line for `explain`. ``chunks`` 0 is
    one for each thread, or what the ``problem`` wants."""

    kernel: str
    places: list[Place]
    chunks: int
    text: str
    cost: Cost
    grid: Callable[[Function], Index] | None = None
    made: list[Any] = field(default_factory=list)
    checks_indices: bool = False
    """Whether it may record an index that is out of range."""


def emit_segment(
    module: Module,
    name: str,
    calls: Sequence[Call],
    plan: ExecutionPlan,
    copies: Sequence[Any],
    order: Iterator[int] | None,
    export: bool = True,
) -> None:
    """``ptr name(ptr addresses, ptr dims)``, which makes the calls and then the copies, pairs of a new state and the
    old one. It ends where a call has recorded an index that is out of range, before what follows has changed a state,
    and returns the record; otherwise null. Functions of regions, which are not exported, run to their end and return
    nothing. ``order`` numbers the kernel calls of traced programs."""
    kernels = [_trace(module, call.kernel, next(order)) if order is not None else call.kernel for call in calls]
    many = sum(len(c.places) for c in calls) > _MANY_PLACES
    result = PTR if export else VOID
    with module.function(name, [("ptr noalias", "addresses"), ("ptr", "dims")], result, export) as b:
        b.sizes_from(b.arguments[1])
        segment = _Segment(b, calls, plan.places.get(RECORD) if export else None)
        (segment.from_table if many else segment.one_by_one)(kernels)
        for value, argument in copies:
            to, source = (segment.address(plan.places[v]) for v in (argument, value))
            _copy(b, to, source, nbytes(value))
        if export:
            b.ret(null())


class _Segment:
    """The body of a segment, which ends early where a check has written the ``record``."""

    def __init__(self, b: Function, calls: Sequence[Call], record: Place | None) -> None:
        self.b, self.calls = b, calls
        self.addresses, self.dims = b.arguments
        self._bases: dict[int, Value] = {}
        self._record = None if record is None else self.address(record)
        if self._record is not None:
            clear_record(b, self._record)

    def address(self, place: Place) -> Value:
        """Of a place."""
        b = self.b
        if place.entry not in self._bases:
            self._bases[place.entry] = b.load(PTR, b.gep(self.addresses, place.entry, PTR))
        return b.gep(self._bases[place.entry], place.offset, "i8")

    def one_by_one(self, kernels: Sequence[str]) -> None:
        """Calls of kernels, each after stores of its addresses."""
        b = self.b
        table = b.alloca(PTR, max((len(c.places) for c in self.calls), default=0) + 1)
        for call, kernel in zip(self.calls, kernels, strict=True):
            for slot, place in enumerate(call.places):
                b.store(self.address(place), b.gep(table, slot, PTR))
            if b.module.symbols:
                b.store(self.dims, b.gep(table, len(call.places), PTR))
            chunks = self._chunks(call)
            if isinstance(chunks, int) and chunks == 1:
                b.call(kernel, VOID, table, constant(I64, 0), constant(I64, 1))
            else:
                parallel_for(b, kernel, table, chunks)
            self._end_where_recorded(call)

    def _end_where_recorded(self, call: Call) -> None:
        b = self.b
        if self._record is not None and call.checks_indices:
            with b.if_then(b.icmp("ne", b.load(I64, self._record), 0)):
                b.ret(self._record)

    def from_table(self, kernels: Sequence[str]) -> None:
        """A loop over constant tables of calls and of their places."""
        b, module = self.b, self.b.module
        grids = self._grids()
        computed = b.alloca(I64, len(grids) + 1)
        for slot, call in enumerate(grids.values()):
            b.store(b.index(self._chunks(call)), b.gep(computed, slot, I64))
        slots = {name: -1 - slot for slot, name in enumerate(grids)}
        rows = [
            f"{_CALL} {{ptr @{kernel}, i64 {len(call.places)}, i64 {slots.get(call.kernel, call.chunks)}}}"
            for call, kernel in zip(self.calls, kernels, strict=True)
        ]
        places = [number for call in self.calls for place in call.places for number in _row(module, place)]
        table = module.constant_array("places", I64, places, 8)
        start = module.constant_structures("calls", _CALL, rows)
        width = max(len(call.places) for call in self.calls) + 1
        launch = module.shared_function(("launch", width), "launch", lambda name: _define_launch(module, name, width))
        ends = [i + 1 for i, call in enumerate(self.calls) if call.checks_indices]
        for first, last in pairwise(dict.fromkeys([0, *ends, len(rows)])):
            with b.loop(first, last, 1, [table]) as loop:
                row = b.gep(start, loop.index, _CALL)
                kernel, count, known = (b.load(type, b.gep(row, 8 * i, "i8")) for i, type in enumerate((PTR, I64, I64)))
                chunks = self._known_or_computed(known, computed)
                b.call(launch, VOID, self.addresses, self.dims, loop.carry[0], count, kernel, chunks)
                loop.yield_values(b.gep(loop.carry[0], b.mul(count, _columns(module)), I64))
            (table,) = loop.results
            self._end_where_recorded(self.calls[last - 1])

    def _known_or_computed(self, known: Value, computed: Value) -> Value:
        """Chunks as a row of the table of calls has them."""
        b = self.b
        return b.either(
            b.icmp("slt", known, 0),
            lambda: [b.load(I64, b.gep(computed, b.sub(-1, known), I64))],
            lambda: [known],
        )[0]

    def _grids(self) -> dict[str, Call]:
        """A call of each kernel whose chunks follow from sizes or threads."""
        return {call.kernel: call for call in self.calls if not isinstance(call.chunks, int) or call.chunks == 0}

    def _chunks(self, call: Call) -> Any:
        """In how many chunks a call runs."""
        b = self.b
        if call.grid is not None:
            return call.grid(b)
        return thread_count(b) if isinstance(call.chunks, int) and call.chunks == 0 else call.chunks


def _columns(module: Module) -> int:
    """Numbers of a row of the table of places."""
    return 3 if module.symbols else 2


def _row(module: Module, place: Place) -> list[int]:
    """A place as an entry, an offset, and, in programs with sizes known at run time, which of them is added to that."""
    if not module.symbols:
        return [place.entry, place.offset]
    offset: Any = place.offset
    if isinstance(offset, int):
        return [place.entry, offset, _NO_SIZE]
    (name,) = offset.symbols
    if offset != SymExpr.symbol(name):
        raise ValueError(f"a place in memory is a number or a size of its own, not {offset}")
    return [place.entry, 0, module.symbols[name]]


def _define_launch(module: Module, name: str, width: int) -> None:
    """``void launch(ptr addresses, ptr dims, ptr places, i64 count, ptr kernel, i64 chunks)``: a parallel region of a
    kernel, after writing ``count`` addresses, fewer than ``width``, by rows of a table."""
    parameters = [(PTR, "addresses"), (PTR, "dims"), (PTR, "places"), (I64, "count"), (PTR, "kernel"), (I64, "chunks")]
    with module.function(name, parameters, export=False, attributes="noinline") as b:
        addresses, dims, places, count, kernel, chunks = b.arguments
        table = b.alloca(PTR, width)
        with b.loop(0, count) as loop:
            row = b.gep(places, b.mul(loop.index, _columns(module)), I64)
            base = b.load(PTR, b.gep(addresses, b.load(I64, row), PTR))
            offset: Index = b.load(I64, b.gep(row, 1, I64))
            if module.symbols:
                offset = b.add(offset, _size_at(b, dims, b.load(I64, b.gep(row, 2, I64))))
            b.store(b.gep(base, offset, "i8"), b.gep(table, loop.index, PTR))
        if module.symbols:
            b.store(dims, b.gep(table, count, PTR))
        b.call("argosy_parallel", VOID, kernel, table, chunks)


def _size_at(b: Function, dims: Value, slot: Value) -> Value:
    """A size known at run time, or zero."""
    known = b.icmp("sge", slot, 0)
    return b.either(known, lambda: [b.load(I64, b.gep(dims, slot, I64))], lambda: [constant(I64, 0)])[0]


def _trace(module: Module, kernel: str, number: int) -> str:
    """A function that calls a kernel between two stamps."""
    name = module.unique(f"traced.{kernel}")
    with module.function(name, PARAMETERS, export=False) as b:
        traced_call(b, number, kernel, list(b.arguments))
    return name


def _copy(b: Function, to: Value, source: Value, size: int) -> None:
    b.intrinsic("llvm.memcpy", VOID, to, source, b.index(size), constant("i1", 0), overloads=(PTR, PTR, I64))


__all__ = ["Call", "emit_segment"]
