"""Loop nests on work-groups.

A *block* is 16 elements along the last variable: a vector of one work-item, or some of them of several, as the target
has lanes; where the last variable is shorter, a block is one element. Without reductions a block is computed by its
items alone. Otherwise a group takes the rows that are a chunk's on a CPU (see `forms.nest`), one after the other: its
items share a row's blocks in turns, combine what they have reduced by a tree of halves (the items' first, in local
memory, then the lanes'), and accumulate sums over columns in the chunk's partial results, each item its own columns.
Trees depend on shapes alone. What is dear and needed by several phases is kept in local memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

from argosy_cinn.forms.cost import body_cost
from argosy_cinn.forms.expressions import Expression, lookups
from argosy_cinn.forms.indices import Variable
from argosy_cinn.forms.nest import Chunks, LoopNest, Reduction, choose_chunks, may_have_chunks, phase_roots, phases
from argosy_cinn.loops import elementwise, reductions
from argosy_cinn.loops.elementwise import REGISTER
from argosy_cinn.loops.nest import sequential_reduction
from argosy_cinn.loops.schedule import row_buffers
from argosy_cinn.loops.vectorize import Evaluator
from argosy_cinn.printers.opencl import Kernel
from argosy_cinn.printers.types import FLOAT, I32, LLVM_TYPES, Value, bytes_of, vector
from argosy_cinn.printers.types import Index as MachineIndex
from argosy_cinn.shapes import at_least_one, ceil_div, estimate, surely_at_least, surely_less
from argosy_cinn.simt.emitter import SimtEmitter
from argosy_cinn.target import Target

#: Elements of a block, and blocks that a group computes of a nest without reductions.
_BLOCK, _BLOCKS = 16, 128
#: Most items that share a row of an update.
_SHARERS = 256
#: Blocks of a row that its items have at least, and the most rows for which several items share one.
_EACH, _FEW_ROWS, _MOST_ITEMS = 16, 64, 16
#: Sums of a row that are made in turns where a block costs less than so much.
_TURNS, _CHEAP = 4, 8
#: Bytes of local memory for what is kept between phases.
_KEPT_BYTES = 1 << 14


def emit_nest(b: Kernel, kernel: LoopNest, slots: Mapping[Any, int]) -> None:
    """Fill the kernel of a nest."""

    def pointers(buffer: Any) -> Value:
        return b.buffers[slots[buffer]]

    shape = _Blocks(kernel, b.module.target)
    if _is_map(kernel) or kernel.sequential:
        _emit_blocks(b, kernel, shape, pointers)
    else:
        _Rows(b, kernel, shape, pointers).emit()


def extents(kernel: LoopNest, target: Target) -> tuple[int, int]:
    """Groups, and work-items of each."""
    shape = _Blocks(kernel, target)
    if _is_map(kernel) or kernel.sequential:
        return at_least_one(ceil_div(kernel.rows * shape.count, _BLOCKS)), _BLOCKS * shape.parts
    return choose_chunks(kernel).count, shape.sharers * shape.parts


def _is_map(kernel: LoopNest) -> bool:
    return not (kernel.reductions or kernel.columns or kernel.sequential or kernel.update)


class _Blocks:
    """How the elements of a row are cut: ``count`` blocks of ``size`` elements, each of ``parts`` items with ``lanes``,
    and ``sharers`` that take them in turns."""

    def __init__(self, kernel: LoopNest, target: Target) -> None:
        self.last, self.others = kernel.inner[-1], kernel.inner[:-1]
        self.size = 1 if kernel.update or surely_less(self.last.extent, _BLOCK) else _BLOCK
        self.lanes = target.lanes(FLOAT) if self.size > 1 else 1
        self.parts = self.size // self.lanes
        self.along = ceil_div(self.last.extent, self.size)
        self.count = self.along * prod(v.extent for v in self.others)
        self.sharers = self._sharers(kernel)

    def _sharers(self, kernel: LoopNest) -> int:
        """A power of two, of the shape alone; one where elements of a row may meet, or rows are many."""
        if kernel.update:
            inner = sum(v.variables for v in kernel.inner)
            meet = any(atom.variables & inner for s in kernel.stores for atom in lookups(s.index))
            return 1 if meet else min(_SHARERS, _power_of_two(estimate(kernel.columns_count)))
        if estimate(kernel.rows) > _FEW_ROWS:
            return 1
        return max(1, min(_MOST_ITEMS, _power_of_two(estimate(self.count) // _EACH)))

    def visit(
        self,
        b: Kernel,
        scope: Evaluator,
        block: MachineIndex,
        part: MachineIndex,
        body: Callable[[Evaluator], list[Value]],
    ) -> list[Value]:
        """``body`` with the evaluator of a block's part; lanes beyond the row do not exist."""
        along = b.rem(block, self.along) if self.others else block
        first = b.add(b.mul(along, self.size), b.mul(part, self.lanes))
        variables = dict(scope.variables)
        if self.others:
            variables |= coordinates(b, b.div(block, self.along), self.others)
        variables[self.last.number] = first
        lane = self.last.number if self.lanes > 1 else -1

        def evaluator_at(mask: Value | None) -> Evaluator:
            return Evaluator(b, scope.pointers, variables, lane, self.lanes, mask, parent=scope)

        if self.last.extent % self.size == 0:
            return body(evaluator_at(None))
        left = b.sub(self.last.extent, first)
        return b.either(
            b.icmp("sge", b.index(left), self.lanes),
            lambda: body(evaluator_at(None)),
            lambda: body(evaluator_at(b.tail_mask(left, self.lanes))),
        )


def _near_type(dtype: str) -> str:
    """The type of a reduction's values in local memory, where vectors of truth values have none."""
    return I32 if dtype == "bool" else REGISTER[dtype]


def _power_of_two(number: int) -> int:
    """The largest that is not above, or 1."""
    return 1 << max(0, number.bit_length() - 1)


def coordinates(b: Kernel, cell: MachineIndex, variables: Sequence[Variable]) -> dict[int, MachineIndex]:
    """The values of loop variables at a row-major position."""
    found: dict[int, MachineIndex] = {}
    for i, variable in enumerate(reversed(variables)):
        last = i == len(variables) - 1
        found[variable.number] = cell if last else b.rem(cell, variable.extent)
        cell = cell if last else b.div(cell, variable.extent)
    return found


def _emit_blocks(b: Kernel, kernel: LoopNest, shape: _Blocks, pointers: Callable[[Any], Value]) -> None:
    """Each block by itself: a map, or one reduction over the sequential variables for each kept element."""
    item = b.global_id()
    part, cell = b.rem(item, shape.parts), b.div(item, shape.parts)
    with b.if_then(b.icmp("slt", b.index(cell), kernel.rows * shape.count)):
        row = Evaluator(b, pointers, coordinates(b, b.div(cell, shape.count), kernel.outer))

        def body(inside: Evaluator) -> list[Value]:
            if kernel.sequential:
                _emit_sequential(b, kernel, inside)
            else:
                inside.store_all(kernel.stores)
            return []

        shape.visit(b, row, b.rem(cell, shape.count), part, body)


def _emit_sequential(b: Kernel, kernel: LoopNest, scope: Evaluator) -> None:
    (r,) = kernel.reductions
    total = sequential_reduction(b, kernel, scope)
    if not kernel.running:
        scope.known[r.result.number] = total
        scope.store_all(kernel.stores)


def _fixed_address(base: Value, buffer: Any) -> Value:
    """The address of partial results, whatever is asked for."""
    return base


class _Rows:
    """Rows of a chunk, shared by the work-items of a group."""

    def __init__(self, b: Kernel, kernel: LoopNest, shape: _Blocks, pointers: Callable[[Any], Value]) -> None:
        self.b, self.kernel, self.shape, self.pointers = b, kernel, shape, pointers
        self.item, self.group = b.local_id(), b.group_id()
        self.items = shape.sharers * shape.parts
        self.part, self.sharer = b.rem(self.item, shape.parts), b.div(self.item, shape.parts)
        self.chunks: Chunks = choose_chunks(kernel)
        self.inner = sum(v.variables for v in kernel.inner)
        self.shared = {
            r.result.number: b.local_memory(_near_type(r.dtype), self.items * shape.lanes)
            for r in kernel.reductions
            if self.items > 1
        }
        self.kept = self._local_buffers()
        self.saved: set[int] = set()

    def _local_buffers(self) -> dict[int, Value]:
        """Local memory of what several phases need, a block's elements side by side."""
        nodes = [] if self.kernel.update else [n for n in row_buffers(self.kernel) if n.dtype != "bool"]
        self.types = {n.number: REGISTER[n.dtype] for n in nodes}
        elements = self.shape.count * self.shape.size
        fits = surely_at_least(_KEPT_BYTES, elements * sum(map(bytes_of, self.types.values())))
        return {number: self.b.local_memory(type, elements) for number, type in self.types.items()} if fits else {}

    def emit(self) -> None:
        """The rows of the group's chunk."""
        b, kernel = self.b, self.kernel
        top = Evaluator(b, self.pointers, {})
        begin: MachineIndex = 0
        end: MachineIndex = kernel.rows
        if may_have_chunks(self.chunks.count):
            begin = b.mul(self.group, self.chunks.size)
            end = b.minimum(b.add(begin, self.chunks.size), kernel.rows)
        self._start_columns()
        with b.loop(begin, end) as loop:
            self._row(Evaluator(b, self.pointers, coordinates(b, loop.index, kernel.outer), parent=top))

    def _row(self, row: Evaluator) -> None:
        b, kernel = self.b, self.kernel
        self.saved.clear()
        for phase in range(max(phases(kernel), 1)):
            self._phase(row, phase)
        stores = [store for store in kernel.stores if store.per_row]
        if not stores:
            return
        if self.items == 1:
            row.store_all(stores)
            return
        b.barrier("GLOBAL")  # what is stored may lie over what others still read
        with b.if_then(b.icmp("eq", self.item, 0)):
            Evaluator(b, self.pointers, row.variables, parent=row).store_all(stores)

    def _phase(self, row: Evaluator, phase: int) -> None:
        kernel, shape = self.kernel, self.shape
        roots = phase_roots(kernel, phase)
        if not roots and not kernel.update:
            return
        row.prepare(roots, self.inner, phase)
        own = [r for r in kernel.reductions if r.body.level == phase]
        sums = [reductions.identity(r.kind, r.dtype, shape.lanes) for r in own]
        made: set[int] = set()
        turns = self._turns(roots, own)
        whole = shape.count // (turns * shape.sharers) * turns * shape.sharers if turns > 1 else 0
        if whole:
            sums = self._loop(row, phase, own, sums * turns, made, 0, whole)
        sums = self._loop(row, phase, own, sums, made, whole, shape.count)
        self.saved |= made
        for r, total in zip(own, sums, strict=True):
            row.known[r.result.number] = self._combine_items(r, total)

    def _turns(self, roots: Sequence[Expression], own: Sequence[Reduction]) -> int:
        """How many sums are made in turns: where little else is computed, each would wait for the one before it."""
        return _TURNS if own and body_cost(roots, self.inner) < _CHEAP else 1

    def _loop(
        self, row: Evaluator, phase: int, own: Sequence[Reduction], sums: Sequence[Value], made: set[int],
        first: int, last: int,
    ) -> list[Value]:  # fmt: skip
        """A phase over blocks ``first`` to ``last``, with as many sums in turns as are given, which it combines."""
        b, shape, width = self.b, self.shape, len(own)
        turns = max(1, len(sums) // max(1, width))
        with b.loop(b.add(self.sharer, first), last, turns * shape.sharers, sums) as loop:
            done: list[Value] = []
            for i in range(turns):
                block = b.add(loop.index, i * shape.sharers)
                body = partial(self._elements, phase, own, loop.carry[i * width : (i + 1) * width], block, made)
                done += shape.visit(b, row, block, self.part, body)
            loop.yield_values(*done)
        parts = [loop.results[i * width : (i + 1) * width] for i in range(turns)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [
                [reductions.combine(b, r.kind, r.dtype, x, y) for r, x, y in zip(own, low, high, strict=True)]
                for low, high in zip(parts[:half], parts[half:], strict=True)
            ]
        return parts[0]

    def _elements(
        self,
        phase: int,
        own: Sequence[Reduction],
        sums: Sequence[Value],
        block: MachineIndex,
        made: set[int],
        inner: Evaluator,
    ) -> list[Value]:
        """What a phase does with the elements of a block; the reductions' following values."""
        b, kernel = self.b, self.kernel
        if kernel.update:
            inner.update(kernel.stores[0])
            return []
        self._restore(inner, block)
        combined = []
        for r, before in zip(own, sums, strict=True):
            after = reductions.combine(b, r.kind, r.dtype, before, inner.full_vector(r.body))
            combined.append(after if inner.mask is None else b.select(inner.mask, after, before))
        self._accumulate(inner, phase)
        inner.store_all([s for s in kernel.stores if not s.per_row and s.node.level == phase])
        for number in self.kept.keys() - self.saved:
            if number in inner.known:
                b.store(self._as_vector(inner, inner.known[number]), self._place(number, inner, block))
                made.add(number)
        return combined

    def _as_vector(self, inner: Evaluator, value: Value) -> Value:
        return value if value.type[0] == "<" else self.b.splat(value, inner.lanes)

    def _place(self, number: int, inner: Evaluator, block: MachineIndex) -> Value:
        b, shape = self.b, self.shape
        first = b.add(b.mul(block, shape.size), b.mul(self.part, shape.lanes))
        return b.gep(self.kept[number], first, self.types[number])

    def _restore(self, inner: Evaluator, block: MachineIndex) -> None:
        for number in self.kept.keys() & self.saved:
            inner.known[number] = self.b.load(
                vector(self.types[number], inner.lanes), self._place(number, inner, block)
            )

    def _combine_items(self, r: Reduction, total: Value) -> Value:
        """What all work-items have reduced: a tree of halves of the items in local memory, and of the lanes."""
        b, lanes, width = self.b, self.shape.lanes, self.items
        if width == 1:
            return reductions.fold(b, r.kind, r.dtype, total)
        memory, element = self.shared[r.result.number], _near_type(r.dtype)
        own, type = b.gep(memory, b.mul(self.item, lanes), element), vector(element, lanes)

        def load(place: Value) -> Value:
            return b.icmp("ne", b.load(type, place), 0) if r.dtype == "bool" else b.load(type, place)

        def store(value: Value) -> None:
            b.store(b.convert("sext", value, element) if r.dtype == "bool" else value, own)

        store(total)
        b.barrier()
        while width > 1:
            width //= 2
            with b.if_then(b.icmp("slt", self.item, width)):
                other = load(b.gep(memory, b.mul(b.add(self.item, width), lanes), element))
                store(reductions.combine(b, r.kind, r.dtype, load(own), other))
            b.barrier()
        value = load(memory)
        b.barrier()
        return reductions.fold(b, r.kind, r.dtype, value)

    # -- columns

    def _partial_target(self, column: Any) -> tuple[Value, Any, str]:
        """The address of the chunk's partial results, their buffer and dtype."""
        apart = column.has_partial(self.chunks.count)
        buffer, dtype = (column.partial, column.partial_dtype) if apart else (column.buffer, column.dtype)
        base = self.pointers(buffer)
        if may_have_chunks(self.chunks.count):
            base = self.b.gep(base, self.b.mul(self.group, self.kernel.columns_count), LLVM_TYPES[dtype])
        return base, buffer, dtype

    def _start_columns(self) -> None:
        b, kernel = self.b, self.kernel
        self.partials = {id(column): self._partial_target(column) for column in kernel.columns}
        for column in kernel.columns:
            base, _, dtype = self.partials[id(column)]
            start = elementwise.store_element(b, reductions.identity(column.kind, column.dtype, 1), dtype)
            with b.loop(self.item, kernel.columns_count, self.items) as loop:
                b.store(start, b.gep(base, loop.index, LLVM_TYPES[dtype]))
        if kernel.columns and self.items > 1:
            b.barrier("GLOBAL")

    def _accumulate(self, inner: Evaluator, phase: int) -> None:
        b = self.b
        for column in [c for c in self.kernel.columns if c.body.level == phase]:
            base, buffer, dtype = self.partials[id(column)]
            fixed = partial(_fixed_address, base)
            place = Evaluator(b, fixed, inner.variables, inner.lane, inner.lanes, inner.mask, parent=inner)
            old = place.value(Expression(-1, "load", dtype, (), (buffer, column.index), self.inner, 0))
            new = reductions.combine(b, column.kind, column.dtype, old, inner.full_vector(column.body))
            place.store_value(buffer, column.index, new, dtype)


EMITTER = SimtEmitter(emit_nest, extents)
"""For `argosy_cinn.kinds`."""
