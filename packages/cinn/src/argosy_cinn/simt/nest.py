"""Loop nests on work-groups.

A *block* is 16 elements along the last variable: a vector of one work-item, or some of them of several, as the target
has lanes. Without reductions a block is computed by its items alone, and is one element where the last variable is
shorter. Otherwise a row has four sums, each of every fourth block, or 64 where it is long. They are combined by a tree
of halves, then the lanes, however many items share a row, so that the bits are the same. Sums of one item are in its
registers or its memory, those of several are combined by shuffles in sub-groups or in local memory.

On a processor a group takes the rows that are a chunk's on a CPU (see `forms.nest`), one after the other; on machines
that run many items in step it takes several rows at a time. Sums over columns are accumulated in the chunk's partial
results, row after row, each item its own columns. What is dear and needed by several phases is kept in local memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, cast

from argosy_cinn.forms.cost import body_cost
from argosy_cinn.forms.expressions import Expression, lookups
from argosy_cinn.forms.indices import Variable
from argosy_cinn.forms.nest import Chunks, LoopNest, Reduction, choose_chunks, may_have_chunks, phase_roots, phases
from argosy_cinn.loops import elementwise, reductions
from argosy_cinn.loops.elementwise import REGISTER
from argosy_cinn.loops.nest import sequential_reduction
from argosy_cinn.loops.schedule import row_buffers
from argosy_cinn.loops.vectorize import Evaluator
from argosy_cinn.printers.types import FLOAT, LLVM_TYPES, Value, bytes_of, vector
from argosy_cinn.printers.types import Index as MachineIndex
from argosy_cinn.printers.work_groups import WorkGroupInstructions
from argosy_cinn.shapes import at_least_one, ceil_div, estimate, surely_at_least, surely_less
from argosy_cinn.simt.emitter import SimtEmitter
from argosy_cinn.simt.row_sums import ItemPlaces, RowSums, near_type
from argosy_cinn.target import Target
from argosy_pir.dims import evaluate_dim

#: Elements of a block, and blocks that a group computes of a nest without reductions.
_BLOCK, _BLOCKS = 16, 128
#: Most items that share a row of an update.
_SHARERS = 256
#: Sums of a row, and of one that has so many blocks.
_SUMS, _LONG_SUMS, _LONG = 4, 64, 1 << 10
#: Costs of blocks from which on eight are computed in turns, where there are so many registers, instead of four (their
#: instructions wait for each other), and from which on one after the other.
_LONG_CHAIN, _DEAR = 8, 64
_MANY_REGISTERS, _MANY_TOGETHER = 32, 8
#: Bytes of local memory for what is kept between phases.
_KEPT_BYTES = 1 << 14


def emit_nest(b: WorkGroupInstructions, kernel: LoopNest, slots: Mapping[Any, int]) -> None:
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
    return ceil_div(kernel.rows, shape.rows) if shape.rows else choose_chunks(kernel).count, shape.group_items


def _is_map(kernel: LoopNest) -> bool:
    return not (kernel.reductions or kernel.columns or kernel.sequential or kernel.update)


class _Blocks:
    """How the elements of a row are cut: ``count`` blocks of ``size`` elements (the first ``whole`` have all of them;
    where rows have several axes, any may lack some), each of ``parts`` items with ``lanes``, and ``sharers`` that take
    them in turns; ``sums`` of a row, several of each sharer. Groups have ``rows`` at a time, or those of a chunk one
    after the other (0)."""

    def __init__(self, kernel: LoopNest, target: Target) -> None:
        self.last, self.others = kernel.inner[-1], kernel.inner[:-1]
        self.size = self._size(kernel)
        self.lanes = min(target.lanes(FLOAT), self.size)
        self.parts = self.size // self.lanes
        self.along = ceil_div(self.last.extent, self.size)
        self.count = self.along * prod(v.extent for v in self.others)
        self.whole = self.count if self.others else self.last.extent // self.size
        self.sums = self._sums()
        many = target.group_items > 1  # type: ignore[attr-defined]
        self.sharers = self.sums if many and not kernel.update else self._sharers(kernel)
        self.items = self.sharers * self.parts
        self.rows = 0
        if many and not (kernel.update or kernel.columns):
            at_once = _power_of_two(target.group_items // self.items)  # type: ignore[attr-defined]
            self.rows = min(at_once, _next_power_of_two(estimate(kernel.rows)))
        self.group_items = self.items * max(1, self.rows)

    def _size(self, kernel: LoopNest) -> int:
        """Elements of a block; of a short row that is reduced as many as give its tree."""
        if kernel.update or (not kernel.reductions and surely_less(self.last.extent, _BLOCK)):
            return 1
        return min(_BLOCK, _next_power_of_two(self.last.extent)) if isinstance(self.last.extent, int) else _BLOCK

    def _sums(self) -> int:
        """A power of two; sums of no block, which change nothing, are left out where they are known."""
        if not isinstance(self.count, int):
            return _SUMS
        return _LONG_SUMS if self.count >= _LONG else min(_SUMS, _next_power_of_two(self.count))

    def _sharers(self, kernel: LoopNest) -> int:
        """A power of two; one where elements of a row may meet. An item of a processor has several sums."""
        if kernel.update:
            inner = sum(v.variables for v in kernel.inner)
            meet = any(atom.variables & inner for s in kernel.stores for atom in lookups(s.index))
            return 1 if meet else min(_SHARERS, _power_of_two(estimate(kernel.columns_count)))
        return max(1, self.sums // _SUMS)

    def visit(
        self,
        b: WorkGroupInstructions,
        scope: Evaluator,
        block: MachineIndex,
        part: MachineIndex,
        body: Callable[[Evaluator], list[Value]],
        whole: bool = False,
    ) -> list[Value]:
        """``body`` with the evaluator of a block's part. Lanes beyond the row do not exist; a ``whole`` block of rows
        with one axis has none."""
        along = b.rem(block, self.along) if self.others else block
        first = b.add(b.mul(along, self.size), b.mul(part, self.lanes))
        variables = dict(scope.variables)
        if self.others:
            variables |= coordinates(b, b.div(block, self.along), self.others)
        variables[self.last.number] = first
        lane = self.last.number if self.lanes > 1 else -1

        def evaluator_at(mask: Value | None) -> Evaluator:
            return Evaluator(b, scope.pointers, variables, lane, self.lanes, mask, parent=scope)

        if self.last.extent % self.size == 0 or (whole and not self.others):
            return body(evaluator_at(None))
        left = b.sub(self.last.extent, first)
        return b.either(
            b.icmp("sge", b.index(left), self.lanes),
            lambda: body(evaluator_at(None)),
            lambda: body(evaluator_at(b.tail_mask(left, self.lanes))),
        )


def _power_of_two(number: int) -> int:
    """The largest that is not above, or 1."""
    return 1 << max(0, number.bit_length() - 1)


def _next_power_of_two(number: int) -> int:
    """The smallest that is not below, or 1."""
    return 1 << max(0, number - 1).bit_length()


def _blocks_together(cost: int, target: Target) -> int:
    """How many blocks of such a cost a work-item computes in turns; 0: one after the other, in a loop."""
    if cost >= _DEAR:
        return 0
    return _MANY_TOGETHER if cost >= _LONG_CHAIN and target.registers >= _MANY_REGISTERS else _SUMS


def _flat(parts: Sequence[Sequence[Value]]) -> list[Value]:
    return [value for part in parts for value in part]


def _groups(values: Sequence[Value], count: int) -> list[list[Value]]:
    """As many runs of equal length."""
    width = len(values) // count
    return [list(values[i * width : (i + 1) * width]) for i in range(count)]


def coordinates(b: WorkGroupInstructions, cell: MachineIndex, variables: Sequence[Variable]) -> dict[int, MachineIndex]:
    """The values of loop variables at a row-major position."""
    found: dict[int, MachineIndex] = {}
    for i, variable in enumerate(reversed(variables)):
        last = i == len(variables) - 1
        found[variable.number] = cell if last else b.rem(cell, variable.extent)
        cell = cell if last else b.div(cell, variable.extent)
    return found


def _emit_blocks(b: WorkGroupInstructions, kernel: LoopNest, shape: _Blocks, pointers: Callable[[Any], Value]) -> None:
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


def _emit_sequential(b: WorkGroupInstructions, kernel: LoopNest, scope: Evaluator) -> None:
    (r,) = kernel.reductions
    total = sequential_reduction(b, kernel, scope)
    if not kernel.running:
        scope.known[r.result.number] = total
        scope.store_all(kernel.stores)


def _fixed_address(base: Value, buffer: Any) -> Value:
    """The address of partial results, whatever is asked for."""
    return base


class _Rows:
    """Rows of a group, each shared by some of its work-items."""

    def __init__(
        self, b: WorkGroupInstructions, kernel: LoopNest, shape: _Blocks, pointers: Callable[[Any], Value]
    ) -> None:
        self.b, self.kernel, self.shape, self.pointers = b, kernel, shape, pointers
        self.group, self.items = b.group_id(), shape.items
        self.place = b.local_id()  # in the group; `item` in the row
        several = shape.rows > 1
        self.item = b.index(b.rem(self.place, self.items)) if several else self.place
        self.number: MachineIndex = b.div(self.place, self.items) if several else 0
        self.part, self.sharer = b.rem(self.item, shape.parts), b.div(self.item, shape.parts)
        self.chunks: Chunks = choose_chunks(kernel)
        self.inner = sum(v.variables for v in kernel.inner)
        self.kept = self._local_buffers()
        self.saved: set[int] = set()
        places = ItemPlaces(self.place, self.item, self.number)
        self.sums = RowSums(b, places, self.items, shape.group_items, shape.lanes)
        self.count: MachineIndex = shape.count

    def _local_buffers(self) -> dict[int, Value]:
        """Local memory of what several phases need, a block's elements side by side."""
        nodes = [] if self.kernel.update else [n for n in row_buffers(self.kernel) if n.dtype != "bool"]
        self.types = {n.number: REGISTER[n.dtype] for n in nodes}
        elements = self.shape.count * self.shape.size * max(1, self.shape.rows)
        fits = surely_at_least(_KEPT_BYTES, elements * sum(map(bytes_of, self.types.values())))
        return {number: self.b.local_memory(type, elements) for number, type in self.types.items()} if fits else {}

    def emit(self) -> None:
        """The rows of the group."""
        b, kernel, rows = self.b, self.kernel, self.shape.rows
        top = Evaluator(b, self.pointers, {})
        if rows:
            self._row_of_several(top)
            return
        begin: MachineIndex = 0
        end: MachineIndex = kernel.rows
        if may_have_chunks(self.chunks.count):
            begin = b.mul(self.group, self.chunks.size)
            end = b.minimum(b.add(begin, self.chunks.size), kernel.rows)
        self._start_columns()
        with b.loop(begin, end) as loop:
            self._row(Evaluator(b, self.pointers, coordinates(b, loop.index, kernel.outer), parent=top), self.item)

    def _row_of_several(self, top: Evaluator) -> None:
        """The row that the item has a share in; items of a row beyond the last have no blocks."""
        b, kernel, rows = self.b, self.kernel, self.shape.rows
        row = b.add(b.mul(self.group, rows), self.number)
        first = self.item
        if kernel.rows % rows != 0:
            exists = b.icmp("slt", b.index(row), kernel.rows)
            row = b.minimum(row, kernel.rows - 1)
            self.count = b.select(exists, b.index(self.count), 0)
            first = b.select(exists, self.item, -1)
        self._row(Evaluator(b, self.pointers, coordinates(b, row, kernel.outer), parent=top), first)

    def _row(self, row: Evaluator, first: Value) -> None:
        """A row; the item for which ``first`` is zero stores what it has one of."""
        b, kernel = self.b, self.kernel
        self.saved.clear()
        for phase in range(max(phases(kernel), 1)):
            self._phase(row, phase)
        stores = [store for store in kernel.stores if store.per_row]
        if not stores:
            return
        if self.shape.group_items == 1:
            row.store_all(stores)
            return
        b.barrier("GLOBAL")  # what is stored may lie over what others still read
        with b.if_then(b.icmp("eq", first, 0)):
            Evaluator(b, self.pointers, row.variables, parent=row).store_all(stores)

    def _phase(self, row: Evaluator, phase: int) -> None:
        kernel, shape = self.kernel, self.shape
        roots = phase_roots(kernel, phase)
        if not roots and not kernel.update:
            return
        row.prepare(roots, self.inner, phase)
        own = [r for r in kernel.reductions if r.body.level == phase]
        made: set[int] = set()
        several = shape.sums > shape.sharers and not kernel.update
        together = _blocks_together(body_cost(roots, self.inner), self.b.module.target)
        if several and together:
            totals = self._in_turns(row, phase, own, made, together)
        elif several and own:
            totals = self._one_by_one(row, phase, own, made)
        else:
            totals = self._blocks(row, phase, own, self._identities(own), made)
        self.saved |= made
        for r, total in zip(own, totals, strict=True):
            row.known[r.result.number] = self.sums.combine_items(r, total)

    def _identities(self, own: Sequence[Reduction]) -> list[Value]:
        return [reductions.identity(r.kind, r.dtype, self.shape.lanes) for r in own]

    def _blocks(
        self, row: Evaluator, phase: int, own: Sequence[Reduction], sums: Sequence[Value], made: set[int]
    ) -> list[Value]:
        """A phase over a sharer's blocks, with one sum of each reduction."""
        b, shape = self.b, self.shape
        with b.loop(self.sharer, self.count, shape.sharers, sums) as loop:
            body = partial(self._elements, phase, own, loop.carry, loop.index, made)
            loop.yield_values(*shape.visit(b, row, loop.index, self.part, body))
        return loop.results

    def _in_turns(
        self, row: Evaluator, phase: int, own: Sequence[Reduction], made: set[int], together: int
    ) -> list[Value]:
        """A phase with a sharer's sums in registers: ``together`` blocks are computed in turns, one while another
        waits. A loop's body has a block of each sum at least; what is left comes block by block."""
        b, shape = self.b, self.shape
        parts, done = [self._identities(own) for _ in range(shape.sums // shape.sharers)], cast(MachineIndex, 0)

        def compute(turn: int, first: MachineIndex, parts: list[list[Value]], whole: bool) -> list[Value]:
            block = b.add(first, turn * shape.sharers)
            body = partial(self._elements, phase, own, parts[turn % len(parts)], block, made)
            parts[turn % len(parts)] = shape.visit(b, row, block, self.part, body, whole)
            return parts[turn % len(parts)]

        for rounds in dict.fromkeys((max(1, together // len(parts)), 1)):
            size = rounds * shape.sums
            end = b.mul(b.div(shape.whole, size), size)
            if isinstance(end, int) and end == done:
                continue
            with b.loop(b.add(self.sharer, done), end, size, _flat(parts)) as loop:
                inside = _groups(loop.carry, len(parts))
                turns = [partial(compute, i, loop.index, inside, True) for i in range(rounds * len(parts))]
                for i in range(0, len(turns), together):
                    b.in_turns(turns[i : i + together])
                loop.yield_values(*_flat(inside))
            parts, done = _groups(loop.results, len(parts)), end
        for turn, before in enumerate(parts):
            rest = partial(compute, turn, b.add(self.sharer, done), parts, False)
            left = b.sub(shape.count, b.add(done, turn * shape.sharers))
            if isinstance(left, int) and left >= shape.sharers:
                rest()
            elif not isinstance(left, int) or left > 0:
                parts[turn] = b.either(b.icmp("slt", self.sharer, left), rest, partial(list, before))
        return self.sums.combine_halves(own, parts)

    def _one_by_one(self, row: Evaluator, phase: int, own: Sequence[Reduction], made: set[int]) -> list[Value]:
        """A phase over blocks one after the other: a sharer's sums in its memory."""
        b, shape = self.b, self.shape
        turns = shape.sums // shape.sharers
        types = [near_type(r.dtype) for r in own]
        memory = [b.alloca(type, turns * shape.lanes) for type in types]

        def places(turn: MachineIndex) -> list[Value]:
            index = b.mul(turn, shape.lanes)
            return [b.gep(own, index, type) for own, type in zip(memory, types, strict=True)]

        def load(turn: MachineIndex) -> list[Value]:
            return [self.sums.load(r, place) for r, place in zip(own, places(turn), strict=True)]

        def store(turn: MachineIndex, values: Sequence[Value]) -> None:
            for r, value, place in zip(own, values, places(turn), strict=True):
                self.sums.store(r, value, place)

        for i in range(turns):
            store(i, self._identities(own))
        with b.loop(self.sharer, self.count, shape.sharers) as loop:
            turn = b.rem(b.div(loop.index, shape.sharers), turns)
            body = partial(self._elements, phase, own, load(turn), loop.index, made)
            store(turn, shape.visit(b, row, loop.index, self.part, body))
        return self.sums.combine_halves(own, [load(i) for i in range(turns)])

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
        first = b.add(first, b.mul(self.number, shape.count * shape.size))
        return b.gep(self.kept[number], first, self.types[number])

    def _restore(self, inner: Evaluator, block: MachineIndex) -> None:
        for number in self.kept.keys() & self.saved:
            inner.known[number] = self.b.load(
                vector(self.types[number], inner.lanes), self._place(number, inner, block)
            )

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


def serves(kernel: LoopNest, target: Target, sizes: Mapping[str, int]) -> bool:
    """Whether code for all sizes adds in the order of code for these: rows are not long, of which nothing was known."""
    count = _Blocks(kernel, target).count
    ordered = not kernel.reductions or kernel.sequential or isinstance(count, int)
    return bool(ordered) or evaluate_dim(count, sizes) < _LONG


EMITTER = SimtEmitter(emit_nest, extents, serves=serves)
"""For `argosy_cinn.kinds`."""
