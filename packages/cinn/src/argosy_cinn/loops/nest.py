"""Printing a kernel: the loops around its expressions.

Kernels have the signature ``void (ptr table, i64 chunk, i64 chunks)``; the table holds the addresses of its buffers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from argosy_cinn.emitter import Emitter
from argosy_cinn.forms.cost import body_cost
from argosy_cinn.forms.dtypes import NARROW
from argosy_cinn.forms.expressions import Expression, lookups
from argosy_cinn.forms.indices import Index, atom_index, linearise
from argosy_cinn.forms.nest import (
    Chunks,
    ColumnReduction,
    LoopNest,
    choose_chunks,
    may_have_chunks,
    phase_roots,
    phases,
)
from argosy_cinn.loops import elementwise, reductions
from argosy_cinn.loops.schedule import batch_invariant, row_buffers, row_prefetches, shares_columns, shares_places
from argosy_cinn.loops.vectorize import Evaluator
from argosy_cinn.printers.llvm import Function, Loop, Module
from argosy_cinn.printers.types import I8, I64, LLVM_TYPES, PTR, Value, constant, vector
from argosy_cinn.printers.types import Index as MachineIndex
from argosy_cinn.printers.work_groups import WorkGroupInstructions
from argosy_cinn.runtime.workers import scratch
from argosy_cinn.shapes import count
from argosy_cinn.target import Target

PARAMETERS = [("ptr noalias", "table"), ("i64", "chunk"), ("i64", "chunks")]
#: Bodies with sums below the first cost are unrolled to hide the loop and the latency of sums; others below the last
#: one run as two vectors in turns, since a processor looks no further ahead than about one of them.
_LIGHT, _HEAVY = 12, 128
#: Costs from which on, and below which, bodies run as four vectors in turns, where there are registers for that; with
#: sums, which are a second chain, from the second one on.
_FOUR_IN_TURNS, _WITH_SUMS, _TWO_IN_TURNS = 12, 20, 64
_MANY_REGISTERS = 32
#: Elements that a thread's share of a row is a multiple of.
_LINE = 32
#: The cache that rows to come are fetched into: the second one has more lines on their way than the first.
_SECOND_LEVEL = 2
#: Bytes of the widest element.
_WIDEST = 8


class Pointers:
    """The addresses of a kernel's buffers, loaded from its table at the start."""

    def __init__(self, b: Function, table: Value, slots: Mapping[Any, int]) -> None:
        self.b = b
        self._values = {buffer: b.load(PTR, b.gep(table, slot, PTR)) for buffer, slot in slots.items()}

    def __call__(self, buffer: Any) -> Value:
        return self._values[buffer]


class _FixedPointers:
    """Pointers to one buffer, whatever is asked for."""

    def __init__(self, base: Value) -> None:
        self._base = base

    def __call__(self, buffer: Any) -> Value:
        return self._base


def emit_nest(module: Module, name: str, kernel: LoopNest, slots: Mapping[Any, int]) -> None:
    """Define the kernel function ``name``; ``slots`` gives each buffer's place in the table."""
    with module.function(name, PARAMETERS, export=False, attributes="noinline") as b:
        table, chunk, chunks = b.arguments
        b.sizes_from(table, len(slots))
        _Nest(b, kernel, Pointers(b, table, slots)).emit(chunk, chunks)


def choose_lanes(module: Module, kernel: LoopNest) -> int:
    """Lanes of the kernel's vectors: a register full of its widest float, or of 32-bit elements."""
    if kernel.update and (_meets(kernel) or kernel.inner[-1].extent == 1):
        return 1
    if kernel.running and kernel.inner[-1].extent == 1:
        return 1
    widest = 4
    for node in kernel.graph.order:
        if node.kind != "constant" and node.dtype == "float64":
            widest = 8
    if widest == 4 and all(node.dtype in ("bool", "int8", "uint8") for node in kernel.roots()):
        widest = 4
    return module.target.vector_bits // (8 * widest)


def _meets(kernel: LoopNest) -> bool:
    """Whether the lanes of one vector may write the same element."""
    lane = kernel.inner[-1].variables
    return any(atom.variables & lane for s in kernel.stores for atom in lookups(s.index))


class _Nest:
    def __init__(self, b: Function, kernel: LoopNest, pointers: Pointers) -> None:
        self.b, self.kernel, self.pointers = b, kernel, pointers
        self.lanes = choose_lanes(b.module, kernel)
        self.lane = kernel.inner[-1]
        self.lane_number = self.lane.number if self.lanes > 1 else -1
        self.chunks: Chunks = choose_chunks(kernel)
        self.inner_mask = sum(v.variables for v in (*kernel.inner, *kernel.sequential))
        self.everything = self.inner_mask | sum(v.variables for v in kernel.outer)
        self.kept = self._row_buffers()
        self.prefetches = row_prefetches(kernel, b.module.target.l2_bytes)
        self.saved: set[int] = set()

    def _row_buffers(self) -> dict[int, Value]:
        """Memory for values kept from phase to phase: on the stack, or scratch memory for rows of unknown length."""
        b, columns, nodes = self.b, self.kernel.columns_count, row_buffers(self.kernel)
        if isinstance(columns, int):
            return {n.number: b.alloca(LLVM_TYPES[n.dtype], columns + self.lanes) for n in nodes}
        if not nodes:
            return {}
        row = (columns + self.lanes) * _WIDEST
        slab = scratch(b, row * len(nodes))
        return {n.number: b.gep(slab, row * i, I8) for i, n in enumerate(nodes)}

    def emit(self, chunk: Value, chunks: Value) -> None:
        """The chunk of that number; of an update, ``chunks`` is how many share it."""
        b, kernel = self.b, self.kernel
        top = Evaluator(b, self.pointers, {})
        top.prepare(kernel.roots(), self.everything, 0)
        if self.chunks.flat:
            begin = b.mul(chunk, self.chunks.size) if may_have_chunks(self.chunks.count) else 0
            end = (
                b.minimum(b.add(begin, self.chunks.size), self.lane.extent)
                if may_have_chunks(self.chunks.count)
                else self.lane.extent
            )
            self._row(Evaluator(b, self.pointers, {}, parent=top), chunk, begin, end)
            return
        begin = b.mul(chunk, self.chunks.size) if may_have_chunks(self.chunks.count) else 0
        end = (
            b.minimum(b.add(begin, self.chunks.size), kernel.rows)
            if may_have_chunks(self.chunks.count)
            else kernel.rows
        )
        self._start_columns(top, chunk)
        if shares_places(kernel):
            b.either(
                b.icmp("eq", chunks, 1),
                lambda: self._rows(top, chunk, begin, end, 0, self.lane.extent),
                lambda: self._own_places(top, chunk, chunks),
            )
            return
        first, last = (0, self.lane.extent) if not shares_columns(kernel) else self._own_columns(chunk, chunks)
        self._rows(top, chunk, begin, end, first, last)

    def _rows(
        self, top: Evaluator, chunk: Value, begin: MachineIndex, end: MachineIndex,
        first: MachineIndex, last: MachineIndex,
    ) -> list[Value]:  # fmt: skip
        """Some of the columns of some of the rows."""
        b = self.b
        with b.loop(begin, end) as t:
            self.saved.clear()
            row = Evaluator(b, self.pointers, self._coordinates(t.index), parent=top)
            self._row(row, chunk, first, last)
        return []

    # -- updates that threads share

    def _own_places(self, top: Evaluator, chunk: Value, chunks: Value) -> list[Value]:
        """The rows that go to this chunk's part of the result, in order: a bit for each row of a vector says which."""
        b, kernel = self.b, self.kernel
        (store,), (rows,) = kernel.stores, kernel.outer
        lanes = b.module.target.vector_bits // 64
        index = Index([(a, c) for a, c in store.index.terms if not a.variables & self.inner_mask], store.index.constant)
        size = b.index(b.div(b.add(b.number(count(store.buffer)), b.sub(chunks, 1)), chunks))
        low = b.splat(b.index(b.mul(chunk, size)), lanes)
        with b.loop(0, rows.extent, lanes) as block:
            mask = b.tail_mask(b.sub(rows.extent, block.index), lanes)
            seen = Evaluator(b, self.pointers, {rows.number: block.index}, rows.number, lanes, mask, top)
            place = b.binary("sub", seen.lanewise(index, I64), low)
            own = b.binary("and", mask, b.icmp("ult", place, b.splat(size, lanes)))
            bits = b.convert("zext", b.bitcast(own, f"i{lanes}"), I64)
            b.repeat(
                [bits], lambda left: b.icmp("ne", left[0], 0), lambda left: self._next_row(top, chunk, block, left)
            )
        return []

    def _next_row(self, top: Evaluator, chunk: Value, block: Loop, left: list[Value]) -> list[Value]:
        """The row of the lowest bit; the bits without it."""
        b = self.b
        lane = b.intrinsic("llvm.cttz", I64, left[0], constant("i1", 1))
        self.saved.clear()
        row = Evaluator(b, self.pointers, self._coordinates(b.binary("add", block.index, lane)), parent=top)
        self._row(row, chunk, 0, self.lane.extent)
        return [b.binary("and", left[0], b.binary("sub", left[0], 1))]

    def _own_columns(self, chunk: Value, chunks: Value) -> tuple[MachineIndex, MachineIndex]:
        """The columns of an update that are this chunk's, whole cache lines where rows begin at one."""
        b, extent = self.b, self.lane.extent
        size = b.mul(b.div(b.add(b.div(b.add(extent, b.sub(chunks, 1)), chunks), _LINE - 1), _LINE), _LINE)
        first = b.minimum(b.mul(chunk, size), extent)
        return first, b.minimum(b.add(first, size), extent)

    def _coordinates(self, t: Value) -> dict[int, MachineIndex]:
        b, found = self.b, {}
        rest: MachineIndex = t
        for i, variable in enumerate(reversed(self.kernel.outer)):
            last = i == len(self.kernel.outer) - 1
            found[variable.number] = rest if last else b.rem(rest, variable.extent)
            rest = b.div(rest, variable.extent) if not last else rest
        return found

    # -- columns

    def _partial_target(self, column: Any) -> Any:
        return column.partial if column.has_partial(self.chunks.count) else column.buffer

    def _partial_dtype(self, column: ColumnReduction) -> str:
        return column.partial_dtype if column.has_partial(self.chunks.count) else column.dtype

    def _partial_index(self, chunk: Value, column: Any) -> tuple[Value, Index]:
        """The address of the chunk's partial result, and the index in it."""
        b = self.b
        memory = LLVM_TYPES[self._partial_dtype(column)]
        base = self.pointers(self._partial_target(column))
        if may_have_chunks(self.chunks.count):
            base = b.gep(base, b.mul(chunk, self.kernel.columns_count), memory)
        return base, column.index

    def _start_columns(self, top: Evaluator, chunk: Value) -> None:
        """Fill the chunk's partial results with identities."""
        b, kernel = self.b, self.kernel
        for column in kernel.columns:
            base, _ = self._partial_index(chunk, column)
            dtype = self._partial_dtype(column)
            value = reductions.identity(column.kind, column.dtype, 1)
            stored = elementwise.store_element(b, value, dtype)
            wide = b.splat(stored, self.lanes)
            count = kernel.columns_count
            whole = count // self.lanes * self.lanes
            with b.loop(0, whole, self.lanes) as i:
                b.store(wide, b.gep(base, i.index, LLVM_TYPES[dtype]))
            with b.loop(whole, count) as i:
                b.store(stored, b.gep(base, i.index, LLVM_TYPES[dtype]))

    def _accumulate(self, inner: Evaluator, chunk: Value) -> None:
        phase_columns = [c for c in self.kernel.columns if c.body.level == self.phase]
        for column in phase_columns:
            base, index = self._partial_index(chunk, column)
            dtype = self._partial_dtype(column)
            place = Evaluator(self.b, _FixedPointers(base), inner.variables, inner.lane, inner.lanes, inner.mask, inner)
            old = place._load(Expression(-1, "load", dtype, (), (column.partial, index), 0, 0))
            new = reductions.combine(self.b, column.kind, column.dtype, old, inner.full_vector(column.body))
            place.store_value(column.partial, index, new, dtype)

    # -- rows

    def _row(self, row: Evaluator, chunk: Value, begin: MachineIndex, end: MachineIndex) -> None:
        kernel = self.kernel
        if kernel.sequential:
            self._strided_loops(row, 0, begin, end)
            return
        for phase in range(phases(kernel)):
            self.phase = phase
            self._phase(row, chunk, begin, end)
        row.store_all([store for store in kernel.stores if store.per_row])

    def _phase(self, row: Evaluator, chunk: Value, begin: MachineIndex, end: MachineIndex) -> None:
        kernel, b = self.kernel, self.b
        roots = phase_roots(kernel, self.phase)
        if not roots:
            return
        row.prepare(roots, self.inner_mask, self.phase)
        own = [r for r in kernel.reductions if r.body.level == self.phase]
        sums = [reductions.identity(r.kind, r.dtype, self.lanes) for r in own]
        sums = self._inner_loops(row, chunk, 0, sums, begin, end)
        for r, total in zip(own, sums, strict=True):
            value = reductions.fold(b, r.kind, r.dtype, total)
            if r.dtype in NARROW:
                value = elementwise.round_to(b, value, r.dtype)
            row.known[r.result.number] = value
        self.saved |= {number for number in self.kept if self._is_computed_in_phase(number)}

    def _is_computed_in_phase(self, number: int) -> bool:
        return number in self._computed

    def _inner_loops(
        self, scope: Evaluator, chunk: Value, depth: int, sums: list[Value], begin: MachineIndex, end: MachineIndex
    ) -> list[Value]:
        """Loops over the inner variables but the last, carrying the sums."""
        b, kernel = self.b, self.kernel
        if depth == len(kernel.inner) - 1:
            return self._lane_loop(scope, chunk, sums, begin, end)
        variable = kernel.inner[depth]
        with b.loop(0, variable.extent, 1, sums) as loop:
            inside = Evaluator(b, self.pointers, {**scope.variables, variable.number: loop.index}, parent=scope)
            rest = sum(v.variables for v in kernel.inner[depth + 1 :])
            inside.prepare(phase_roots(kernel, self.phase), rest, self.phase)
            loop.yield_values(*self._inner_loops(inside, chunk, depth + 1, list(loop.carry), begin, end))
        return loop.results

    def _lane_loop(
        self, scope: Evaluator, chunk: Value, sums: list[Value], begin: MachineIndex, end: MachineIndex
    ) -> list[Value]:
        """The loop over vectors: unrolled, then one by one, then the masked rest."""
        b, lanes = self.b, self.lanes
        self._computed: set[int] = set()
        known = end if isinstance(begin, int) and isinstance(end, int) else None
        turns = self._turns(known)
        unroll, static = self._unroll(turns, known), known is not None
        whole = b.sub(end, begin)
        count = b.mul(b.div(whole, lanes), lanes)
        position = begin
        if unroll > 1:
            main = b.add(begin, b.mul(b.div(whole, lanes * unroll), lanes * unroll))
            sets = [sums] + [
                [reductions.identity(r.kind, r.dtype, lanes) for r in self._phase_reductions()]
                for _ in range(unroll - 1)
            ]
            flat = [v for group in sets for v in group]
            with b.loop(position, main, lanes * unroll, flat) as loop:
                width = len(sums)
                parts = [list(loop.carry[u * width : (u + 1) * width]) for u in range(unroll)]
                places = [b.add(loop.index, u * lanes) for u in range(unroll)]
                bodies = [
                    partial(self._body, scope, chunk, place, None, part)
                    for place, part in zip(places, parts, strict=True)
                ]
                # The rows of an update meet in memory: what one stores the next one reads.
                together = 1 if self.kernel.update else turns
                done = [x for i in range(0, unroll, together) for x in b.in_turns(bodies[i : i + together])]
                loop.yield_values(*(value for after in done for value in after))
            sums = self._merge([loop.results[u * width : (u + 1) * width] for u in range(unroll)])
            position = main
        stop = b.add(begin, count)
        if not (isinstance(position, int) and isinstance(stop, int) and position >= stop):
            with b.loop(position, stop, lanes, sums) as loop:
                loop.yield_values(*self._body(scope, chunk, loop.index, None, list(loop.carry)))
            sums = loop.results
        if static and stop == end:
            return sums
        if static:
            mask = b.tail_mask(b.sub(end, stop), lanes)
            return self._body(scope, chunk, stop, mask, sums)
        if isinstance(end, Value) and self.chunks.flat and self.lane.extent % lanes == 0:
            return sums  # chunks are whole vectors, and so is the end
        with b.loop(stop, end, lanes, sums) as loop:
            mask = b.tail_mask(b.sub(end, loop.index), lanes)
            loop.yield_values(*self._body(scope, chunk, loop.index, mask, list(loop.carry)))
        return loop.results

    def _phase_reductions(self) -> list[Any]:
        return [r for r in self.kernel.reductions if r.body.level == self.phase]

    def _merge(self, sets: Sequence[Sequence[Value]]) -> list[Value]:
        """The sums of unrolled iterations combined pairwise."""
        own = self._phase_reductions()
        sets = [list(s) for s in sets]
        while len(sets) > 1:
            paired = []
            for i in range(0, len(sets), 2):
                both = zip(own, sets[i], sets[i + 1], strict=True)
                paired.append([reductions.combine(self.b, r.kind, r.dtype, x, y) for r, x, y in both])
            sets = paired
        return list(sets[0])

    def _turns(self, end: int | None) -> int:
        """Vectors that are computed in turns, of as many as there are before ``end``."""
        cost = body_cost(phase_roots(self.kernel, self.phase), self.inner_mask)
        sums, many = bool(self._phase_reductions()), self.b.module.target.registers >= _MANY_REGISTERS
        in_turns = many and (_WITH_SUMS if sums else _FOUR_IN_TURNS) <= cost < _TWO_IN_TURNS
        return self._fit(4 if in_turns or (sums and cost < _LIGHT) else 2 if cost < _HEAVY else 1, end)

    def _unroll(self, turns: int, end: int | None) -> int:
        """Vectors of an iteration. Each has a sum of its own: where bits of a row are to depend on itself, their number
        does not depend on what is fused with the sum, which may differ with the number of rows."""
        return self._fit(4, end) if batch_invariant.get() and self._phase_reductions() else turns

    def _fit(self, vectors: int, end: int | None) -> int:
        """``vectors``, or fewer of which a row has twice as many."""
        while end is not None and vectors > 1 and end < 2 * vectors * self.lanes:
            vectors //= 2
        return vectors

    def _body(
        self, scope: Evaluator, chunk: Value, position: MachineIndex, mask: Value | None, sums: list[Value]
    ) -> list[Value]:
        """One vector: evaluate, combine, store."""
        b, kernel = self.b, self.kernel
        variables = {**scope.variables, self.lane.number: position}
        inner = _RowEvaluator(self, b, self.pointers, variables, self.lane_number, self.lanes, mask, scope)
        if kernel.update:
            inner.update(kernel.stores[0])
            return []
        out = []
        for r, total in zip(self._phase_reductions(), sums, strict=True):
            combined = reductions.combine(b, r.kind, r.dtype, total, inner.full_vector(r.body))
            out.append(combined if mask is None else b.select(mask, combined, total))
        self._prefetch_rows(inner)
        self._accumulate(inner, chunk)  # first: what is stored may lie over what columns are sums of
        inner.store_all([s for s in kernel.stores if not s.per_row and s.node.level == self.phase])
        return out

    def _prefetch_rows(self, inner: Evaluator) -> None:
        """Ask for elements of later rows, below the ones at hand."""
        if inner.mask is not None:
            return
        b = self.b
        for request in self.prefetches.get(self.phase, ()):
            place = b.gep(self.pointers(request.buffer), inner.scalar_index(request.index), LLVM_TYPES[request.dtype])
            b.prefetch(b.gep(place, request.distance, I8), level=_SECOND_LEVEL)

    # -- reductions over variables outside the lanes

    def _strided_loops(self, scope: Evaluator, depth: int, begin: MachineIndex, end: MachineIndex) -> None:
        """Loops over the inner variables but the last around such a reduction."""
        if depth == len(self.kernel.inner) - 1:
            self._stride(scope, begin, end)
            return
        variable = self.kernel.inner[depth]
        with self.b.loop(0, variable.extent, 1) as loop:
            variables = {**scope.variables, variable.number: loop.index}
            self._strided_loops(Evaluator(self.b, self.pointers, variables, parent=scope), depth + 1, begin, end)

    def _stride(self, row: Evaluator, begin: MachineIndex, end: MachineIndex) -> None:
        """One reduction over the sequential variables for every vector of kept elements."""
        b, kernel, lanes = self.b, self.kernel, self.lanes
        (r,) = kernel.reductions
        (store,) = kernel.stores
        whole = b.mul(b.div(end, lanes), lanes)
        for start, stop, masked in ((0, whole, False), (whole, end, True)):
            if isinstance(start, int) and isinstance(stop, int) and start >= stop:
                continue
            with b.loop(start, stop, lanes) as loop:
                mask = b.tail_mask(b.sub(end, loop.index), lanes) if masked else None
                variables = {**row.variables, self.lane.number: loop.index}
                scope = Evaluator(b, self.pointers, variables, self.lane_number, lanes, mask, row)
                total = sequential_reduction(b, kernel, scope)
                if kernel.running:
                    continue
                scope.known[r.result.number] = elementwise.round_to(b, total, r.dtype) if r.dtype in NARROW else total
                scope.store_all([store])


def sequential_reduction(b: Function | WorkGroupInstructions, kernel: LoopNest, scope: Evaluator) -> Value:
    """The reduction of a nest over its sequential variables, for the elements at which ``scope`` stands."""
    (r,) = kernel.reductions

    def reduce_level(scope: Evaluator, depth: int, total: Value) -> Value:
        if depth == len(kernel.sequential):
            total = reductions.combine(b, r.kind, r.dtype, total, scope.full_vector(r.body))
            if kernel.running:
                scope.store_value(kernel.stores[0].buffer, kernel.stores[0].index, total, r.dtype)
            return total
        variable = kernel.sequential[depth]
        with b.loop(0, variable.extent, 1, [total]) as loop:
            variables = {**scope.variables, variable.number: loop.index}
            inside = Evaluator(b, scope.pointers, variables, scope.lane, scope.lanes, scope.mask, parent=scope)
            loop.yield_values(reduce_level(inside, depth + 1, loop.carry[0]))
        return loop.results[0]

    return reduce_level(scope, 0, reductions.identity(r.kind, r.dtype, scope.lanes))


class _RowEvaluator(Evaluator):
    """An evaluator that keeps expensive values in row buffers and takes them from there in later phases."""

    def __init__(self, nest: _Nest, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.nest = nest

    def _compute(self, node: Expression) -> Value:
        place = self.nest.kept.get(node.number)
        if place is None:
            return super()._compute(node)
        b, nest = self.b, self.nest
        memory = LLVM_TYPES[node.dtype]
        inner = nest.kernel.inner
        index = linearise([atom_index(v) for v in inner], [v.extent for v in inner])
        address = b.gep(place, self.scalar_index(index), memory)
        if node.number in nest.saved:
            return elementwise.load_element(b, b.load(vector(memory, self.lanes), address), node.dtype)
        value = super()._compute(node)
        b.store(elementwise.store_element(b, value, node.dtype), address)
        nest._computed.add(node.number)
        return value


def _chunks(kernel: LoopNest, target: Target) -> int:
    """One for each thread where they share an update."""
    return 0 if shares_columns(kernel) or shares_places(kernel) else choose_chunks(kernel).count


EMITTER = Emitter(emit_nest, _chunks)
"""For `argosy_cinn.kinds`."""
