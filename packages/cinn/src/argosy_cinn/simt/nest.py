"""Loop nests on work-groups.

Without reductions each work-item computes one element. Otherwise a group takes the rows that are a chunk's on a CPU
(see `forms.nest`), one after the other: its work-items share a row's elements, combine what they have reduced by a tree
in local memory, and accumulate sums over columns in the chunk's partial results, each item its own columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

from argosy_cinn.forms.expressions import Expression, lookups
from argosy_cinn.forms.indices import Variable
from argosy_cinn.forms.nest import Chunks, LoopNest, Reduction, choose_chunks, phase_roots, phases, several
from argosy_cinn.loops import elementwise, reductions
from argosy_cinn.loops.elementwise import REGISTER
from argosy_cinn.loops.vectorize import Evaluator
from argosy_cinn.printers.opencl import Kernel
from argosy_cinn.printers.types import LLVM_TYPES, Value
from argosy_cinn.printers.types import Index as MachineIndex
from argosy_cinn.simt.emitter import SimtEmitter

#: Work-items of a group that computes elements one by one.
_ITEMS = 128
#: Fewest and most work-items that share a row, and elements that each has at least, where there are so many.
_FEWEST, _MOST, _EACH = 16, 256, 4


def emit_nest(b: Kernel, kernel: LoopNest, slots: Mapping[Any, int]) -> None:
    """Fill the kernel of a nest."""

    def pointers(buffer: Any) -> Value:
        return b.buffers[slots[buffer]]

    if _is_map(kernel):
        _emit_map(b, kernel, pointers)
    elif kernel.sequential:
        _emit_sequential(b, kernel, pointers)
    else:
        _Rows(b, kernel, pointers).emit()


def extents(kernel: LoopNest) -> tuple[int, int]:
    """Groups, and work-items of each."""
    if _is_map(kernel) or kernel.sequential:
        return max(1, -(-kernel.rows * kernel.columns_count // _ITEMS)), _ITEMS
    return choose_chunks(kernel).count, _items(kernel)


def _is_map(kernel: LoopNest) -> bool:
    return not (kernel.reductions or kernel.columns or kernel.sequential or kernel.update)


def _items(kernel: LoopNest) -> int:
    """Work-items that share a row: a power of two, of the row's length alone; one where its elements may meet."""
    inner = sum(v.variables for v in kernel.inner)
    if kernel.update and any(atom.variables & inner for s in kernel.stores for atom in lookups(s.index)):
        return 1
    wanted = -(-kernel.columns_count // _EACH)
    return max(_FEWEST, min(_MOST, 1 << max(0, wanted - 1).bit_length()))


def _emit_map(b: Kernel, kernel: LoopNest, pointers: Any) -> None:
    variables = [*kernel.outer, *kernel.inner]
    cell = b.global_id()
    with b.when(b.icmp("slt", cell, prod(v.extent for v in variables))):
        Evaluator(b, pointers, coordinates(b, cell, variables)).store_all(kernel.stores)


def coordinates(b: Kernel, cell: MachineIndex, variables: Sequence[Variable]) -> dict[int, MachineIndex]:
    """The values of loop variables at a row-major position."""
    found: dict[int, MachineIndex] = {}
    for i, variable in enumerate(reversed(variables)):
        last = i == len(variables) - 1
        found[variable.number] = cell if last else b.rem(cell, variable.extent)
        cell = cell if last else b.div(cell, variable.extent)
    return found


def _emit_sequential(b: Kernel, kernel: LoopNest, pointers: Any) -> None:
    """One reduction over the sequential variables for each kept element, by one work-item."""
    cell, (r,), kept = b.global_id(), kernel.reductions, [*kernel.outer, *kernel.inner]
    with b.when(b.icmp("slt", cell, prod(v.extent for v in kept))):
        scope = Evaluator(b, pointers, coordinates(b, cell, kept))
        total = _reduced(b, kernel, scope, 0, reductions.identity(r.kind, r.dtype, 1))
        if not kernel.running:
            scope.known[r.result.number] = total
            scope.store_all(kernel.stores)


def _reduced(b: Kernel, kernel: LoopNest, scope: Evaluator, depth: int, total: Value) -> Value:
    (r,) = kernel.reductions
    if depth == len(kernel.sequential):
        total = reductions.combine(b, r.kind, r.dtype, total, scope.value(r.body))
        if kernel.running:
            scope.store_value(kernel.stores[0].buffer, kernel.stores[0].index, total, r.dtype)
        return total
    variable = kernel.sequential[depth]
    with b.loop(0, variable.extent, 1, [total]) as loop:
        variables = {**scope.variables, variable.number: loop.index}
        inside = Evaluator(b, scope.pointers, variables, parent=scope)
        loop.next(_reduced(b, kernel, inside, depth + 1, loop.carry[0]))
    return loop.results[0]


def _fixed(base: Value, buffer: Any) -> Value:
    """The address of partial results, whatever is asked for."""
    return base


class _Rows:
    """Rows of a chunk, shared by the work-items of a group."""

    def __init__(self, b: Kernel, kernel: LoopNest, pointers: Any) -> None:
        self.b, self.kernel, self.pointers = b, kernel, pointers
        self.items = _items(kernel)
        self.item, self.group = b.local_id(), b.group_id()
        self.chunks: Chunks = choose_chunks(kernel)
        self.inner = sum(v.variables for v in kernel.inner)
        self.shared = {
            r.result.number: b.local(REGISTER[r.dtype], self.items) for r in kernel.reductions if self.items > 1
        }

    def emit(self) -> None:
        """The rows of the group's chunk."""
        b, kernel = self.b, self.kernel
        top = Evaluator(b, self.pointers, {})
        begin: MachineIndex = 0
        end: MachineIndex = kernel.rows
        if several(self.chunks.count):
            begin = b.mul(self.group, self.chunks.size)
            end = b.minimum(b.add(begin, self.chunks.size), kernel.rows)
        self._start_columns()
        with b.loop(begin, end) as loop:
            self._row(Evaluator(b, self.pointers, coordinates(b, loop.index, kernel.outer), parent=top))

    def _row(self, row: Evaluator) -> None:
        b, kernel = self.b, self.kernel
        for phase in range(max(phases(kernel), 1)):
            self._phase(row, phase)
        stores = [store for store in kernel.stores if store.per_row]
        if stores:
            b.barrier("GLOBAL")  # what is stored may lie over what others still read
            with b.when(b.icmp("eq", self.item, 0)):
                Evaluator(b, self.pointers, row.variables, parent=row).store_all(stores)

    def _phase(self, row: Evaluator, phase: int) -> None:
        b, kernel = self.b, self.kernel
        roots = phase_roots(kernel, phase)
        if not roots and not kernel.update:
            return
        row.prepare(roots, self.inner, phase)
        own = [r for r in kernel.reductions if r.body.level == phase]
        sums = [reductions.identity(r.kind, r.dtype, 1) for r in own]
        with b.loop(self.item, kernel.columns_count, self.items, sums) as loop:
            variables = {**row.variables, **coordinates(b, loop.index, kernel.inner)}
            loop.next(*self._element(Evaluator(b, self.pointers, variables, parent=row), phase, own, loop.carry))
        for r, total in zip(own, loop.results, strict=True):
            row.known[r.result.number] = self._combined(r, total)

    def _element(self, inner: Evaluator, phase: int, own: Sequence[Reduction], sums: Sequence[Value]) -> list[Value]:
        kernel = self.kernel
        if kernel.update:
            inner.update(kernel.stores[0])
            return []
        pairs = zip(own, sums, strict=True)
        made = [reductions.combine(self.b, r.kind, r.dtype, s, inner.value(r.body)) for r, s in pairs]
        self._accumulate(inner, phase)
        inner.store_all([s for s in kernel.stores if not s.per_row and s.node.level == phase])
        return made

    def _combined(self, r: Reduction, total: Value) -> Value:
        """What all work-items have reduced, as a tree of halves in local memory."""
        b, width = self.b, self.items
        if width == 1:
            return total
        memory, element = self.shared[r.result.number], REGISTER[r.dtype]
        place = b.at(memory, self.item, element)
        b.store(total, place)
        b.barrier()
        while width > 1:
            width //= 2
            with b.when(b.icmp("slt", self.item, width)):
                other = b.load(element, b.at(memory, b.add(self.item, width), element))
                b.store(reductions.combine(b, r.kind, r.dtype, b.load(element, place), other), place)
            b.barrier()
        value = b.load(element, memory)
        b.barrier()
        return value

    # -- columns

    def _partial(self, column: Any) -> tuple[Value, Any, str]:
        """The address of the chunk's partial results, their buffer and dtype."""
        apart = column.has_partial(self.chunks.count)
        buffer, dtype = (column.partial, column.partial_dtype) if apart else (column.buffer, column.dtype)
        base = self.pointers(buffer)
        if several(self.chunks.count):
            base = self.b.at(base, self.b.mul(self.group, self.kernel.columns_count), LLVM_TYPES[dtype])
        return base, buffer, dtype

    def _start_columns(self) -> None:
        b, kernel = self.b, self.kernel
        self.partials = {id(column): self._partial(column) for column in kernel.columns}
        for column in kernel.columns:
            base, _, dtype = self.partials[id(column)]
            start = elementwise.store_element(b, reductions.identity(column.kind, column.dtype, 1), dtype)
            with b.loop(self.item, kernel.columns_count, self.items) as loop:
                b.store(start, b.at(base, loop.index, LLVM_TYPES[dtype]))
        if kernel.columns:
            b.barrier("GLOBAL")

    def _accumulate(self, inner: Evaluator, phase: int) -> None:
        b = self.b
        for column in [c for c in self.kernel.columns if c.body.level == phase]:
            base, buffer, dtype = self.partials[id(column)]
            place = Evaluator(b, partial(_fixed, base), inner.variables, parent=inner)
            old = place.value(Expression(-1, "load", dtype, (), (buffer, column.index), 0, 0))
            new = reductions.combine(b, column.kind, column.dtype, old, inner.value(column.body))
            place.store_value(buffer, column.index, new, dtype)


EMITTER = SimtEmitter(emit_nest, extents)
"""For `argosy_cinn.kinds`."""
