"""Attention on work-groups: a group takes tiles of rows, and goes through the columns block by block.

Each work-item has rows of its own, whose scores of a block, reductions and sums it keeps; keys and values of a block
lie in local memory, which all items share. A softmax is one phase: sums of exponentials are scaled where a block has a
larger maximum (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention",
2022). Otherwise scores are computed again in every phase, so that the memory that is needed never grows with rows times
columns. What contracts rows is added up in partial results of the part that the group
takes, an item its own columns, and the parts are added up in order. Columns outside of a tile's bounds are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from argosy_cinn.contraction.packing import convert_element
from argosy_cinn.forms.attention import (
    AttentionForm,
    Operand,
    RowReduction,
    Score,
    SumOfParts,
    Tiles,
    WeightedSum,
    partial_buffer,
)
from argosy_cinn.forms.dtypes import NARROW
from argosy_cinn.forms.expressions import Expression, children
from argosy_cinn.loops import elementwise, reductions
from argosy_cinn.loops.elementwise import REGISTER
from argosy_cinn.loops.vectorize import Evaluator
from argosy_cinn.printers.types import FLOAT, I64, LLVM_TYPES, Value, vector
from argosy_cinn.printers.types import Index as MachineIndex
from argosy_cinn.printers.work_groups import WorkGroupInstructions
from argosy_cinn.shapes import ceil_div, estimate
from argosy_cinn.simt.emitter import SimtEmitter
from argosy_cinn.simt.nest import coordinates
from argosy_cinn.simt.online_softmax import OnlineSoftmax, online_softmax
from argosy_cinn.target import Target

#: Rows of an item, and most items of a group.
_ROWS, _ITEMS = 4, 16
#: Parts of the rows where something is added up over them: two at least, whose partial results are in float32.
_LEAST_PARTS, _MOST_PARTS = 2, 8


def choose_tiles(form: AttentionForm, target: Target) -> None:
    """Give a form its tiles: of its shape alone."""
    items = min(_ITEMS, ceil_div(estimate(form.row.extent), _ROWS))
    rows = items * _ROWS
    if all(sink.along == "columns" for sink in form.sinks):
        parts = ceil_div(form.row.extent, rows)
    else:
        parts = max(_LEAST_PARTS, _MOST_PARTS // max(1, estimate(form.elements)))
    form.tiles = Tiles(rows, rows, parts)


def emit_attention(b: WorkGroupInstructions, form: AttentionForm, slots: Mapping[Any, int]) -> None:
    """Fill the kernel of attention."""
    _Attention(b, form, lambda buffer: b.buffers[slots[buffer]]).emit()


def emit_sum(b: WorkGroupInstructions, form: SumOfParts, slots: Mapping[Any, int]) -> None:
    """Fill the kernel that adds up the parts of a sink, an item a row of its result."""
    _Attention(b, form.attention, lambda buffer: b.buffers[slots[buffer]]).add_parts(form.sink)


class _Attention:
    def __init__(self, b: WorkGroupInstructions, form: AttentionForm, pointers: Callable[[Any], Value]) -> None:
        self.b, self.form, self.pointers = b, form, pointers
        self.lanes, self.columns = b.module.target.lanes(FLOAT), form.column.extent
        self.items = form.tiles.rows // _ROWS
        self.online = online_softmax(form)
        self.vector = vector(FLOAT, self.lanes)

    def emit(self) -> None:
        """The tiles of the group's part of the rows."""
        b, form = self.b, self.form
        group, self.item = b.group_id(), b.local_id()
        self.part, self.element = b.rem(group, form.tiles.parts), b.div(group, form.tiles.parts)
        self.outer = coordinates(b, self.element, form.outer)
        self._allocate()
        self._clear_partial_results()
        begin = b.mul(self.part, form.part_rows)
        self.end = b.minimum(b.add(begin, form.part_rows), form.row.extent)
        with b.loop(begin, self.end, form.tiles.rows) as loop:
            self._tile(b.index(loop.index))

    # -- memory

    def _allocate(self) -> None:
        b, form, lanes = self.b, self.form, self.lanes
        self.cells = [b.alloca(FLOAT, _ROWS * lanes) for _ in form.scores]
        self.left = [b.alloca(FLOAT, _ROWS * score.depth) for score in form.scores]
        self.right = [b.local_memory(FLOAT, score.depth * lanes) for score in form.scores]
        self.state = [b.alloca(REGISTER[r.dtype], _ROWS * lanes) for r in form.reductions]
        self.results = [b.alloca(REGISTER[r.dtype], _ROWS) for r in form.reductions]
        self.scales = b.alloca(FLOAT, _ROWS)
        self.weights, self.others, self.sums = list[Value](), dict[int, Value](), dict[int, Value]()
        for i, sink in enumerate(form.sinks):
            along = sink.along == "columns"
            self.weights.append(
                b.alloca(FLOAT, _ROWS * lanes) if along else b.local_memory(FLOAT, form.tiles.rows * lanes)
            )
            if along:
                self.others[i] = b.local_memory(FLOAT, lanes * self._padded_width(sink))
                self.sums[i] = b.alloca(FLOAT, _ROWS * self._padded_width(sink))

    def _padded_width(self, sink: WeightedSum) -> int:
        return ceil_div(sink.width, self.lanes) * int(self.lanes)

    def _start(self, operand: Operand) -> MachineIndex:
        b, offset = self.b, operand.offset
        found: MachineIndex = offset
        for variable, stride in zip(self.form.outer, operand.outer, strict=True):
            found = b.add(found, b.mul(self.outer[variable.number], stride))
        return found

    def _load(self, operand: Operand, place: MachineIndex) -> Value:
        """An element of an operand as float32."""
        b, memory = self.b, LLVM_TYPES[operand.buffer.dtype]
        return convert_element(b, b.load(memory, b.gep(self.pointers(operand.buffer), place, memory)), FLOAT, False)

    def _partial_row(self, sink: WeightedSum, part: MachineIndex, column: MachineIndex) -> Value:
        """The partial results of a column."""
        b = self.b
        row = b.add(b.mul(b.add(b.mul(part, self.form.elements), self.element), self.columns), column)
        return b.gep(self.pointers(partial_buffer(sink.buffer)), b.mul(row, sink.width))

    def _clear_partial_results(self) -> None:
        b = self.b
        for sink in self.form.partial_sinks():
            target = self._partial_row(sink, self.part, 0)
            with b.loop(self.item, b.mul(self.columns, sink.width), self.items) as loop:
                b.store(b.zero(FLOAT), b.gep(target, loop.index))
        if self.form.partial_sinks():
            b.barrier("GLOBAL")

    # -- a tile

    def _tile(self, top: Value) -> None:
        b, form = self.b, self.form
        self.first = b.add(top, b.mul(self.item, _ROWS))
        for i, score in enumerate(form.scores):
            with b.loop(0, score.depth) as k:
                for r in range(_ROWS):
                    row = b.minimum(b.add(self.first, r), form.row.extent - 1)
                    place = b.add(b.mul(row, score.left.free), b.mul(k.index, score.left.contracted))
                    x = self._load(score.left, b.add(self._start(score.left), place))
                    b.store(x, b.gep(self.left[i], b.add(b.mul(k.index, _ROWS), r)))
        for i, sums in self.sums.items():
            for at in range(0, _ROWS * self._padded_width(form.sinks[i]), self.lanes):
                b.store(b.zero(self.vector), b.gep(sums, at))
        low, high = self._visible_columns(top)
        for phase in range(form.phases) if self.online is None else [1]:
            self._phase(phase, low, high)
        for i, sums in self.sums.items():
            self._store_rows(form.sinks[i], sums)

    def _visible_columns(self, top: Value) -> tuple[MachineIndex, MachineIndex]:
        """The columns that some row of the tile sees."""
        b, form = self.b, self.form
        low: MachineIndex = 0
        high: MachineIndex = self.columns
        for r, _, k in form.bounds.high:
            high = b.minimum(high, b.add(b.mul(b.add(top, form.tiles.rows - 1), r), k + 1))
        for r, _, k in form.bounds.low:
            low = b.maximum(low, b.sub(b.mul(top, -r), k))
        return b.mul(b.div(b.minimum(low, self.columns - 1), self.lanes), self.lanes), high

    def _phase(self, phase: int, low: MachineIndex, high: MachineIndex) -> None:
        b, form, lanes = self.b, self.form, self.lanes
        roots = form.phase_roots(phase)
        if self.online is not None:
            roots = roots + form.phase_roots(0)
            for number in range(_ROWS):
                place = b.gep(self.results[self.online.maximum], number)
                b.store(reductions.identity("max", "float32", 1), place)
        own = [(i, r) for i, r in enumerate(form.reductions) if r.body.level == phase]
        needed = _cells_of(roots)
        scores = [(i, score) for i, score in enumerate(form.scores) if score.cell.number in needed]
        sinks = list(enumerate(form.sinks)) if phase == form.phases - 1 else []
        for i, r in own:
            for number in range(_ROWS):
                identity = reductions.identity(r.kind, r.dtype, lanes)
                b.store(identity, b.gep(self.state[i], number * lanes, REGISTER[r.dtype]))
        with b.loop(low, high, lanes) as loop:
            column = b.index(loop.index)
            b.barrier()
            for i, score in scores:
                self._pack_right(i, score, column)
            for i, sink in sinks:
                if sink.along == "columns":
                    self._pack_other(i, sink, column)
            b.barrier()
            for i, score in scores:
                self._multiply(i, score)
            with b.loop(0, _ROWS) as row:
                self._cells(phase, row.index, column, own, sinks)
            for i, sink in sinks:
                if sink.along == "columns":
                    self._add_columns(i, sink)
                else:
                    self._add_rows(i, sink, column)
        with b.loop(0, _ROWS) as row:
            if self.online is not None:
                self._finish_softmax(row.index, own)
            self._finish(phase, row.index, own)

    def _pack_right(self, i: int, score: Score, column: Value) -> None:
        """The keys of a block, term after term."""
        b, side, lanes = self.b, score.right, self.lanes
        start = self._start(side)
        with b.loop(self.item, score.depth * lanes, self.items) as loop:
            c, k = b.div(loop.index, score.depth), b.rem(loop.index, score.depth)
            free = b.minimum(b.add(column, c), self.columns - 1)
            place = b.add(b.add(start, b.mul(free, side.free)), b.mul(k, side.contracted))
            b.store(self._load(side, place), b.gep(self.right[i], b.add(b.mul(k, lanes), c)))

    def _pack_other(self, i: int, sink: WeightedSum, column: Value) -> None:
        """The values of a block, column after column."""
        b, side, width, near = self.b, sink.other, self._padded_width(sink), self.others[i]
        start = self._start(side)
        with b.loop(self.item, width * self.lanes, self.items) as loop:
            c, e = b.div(loop.index, width), b.minimum(b.rem(loop.index, width), sink.width - 1)
            row = b.minimum(b.add(column, c), self.columns - 1)
            place = b.add(b.add(start, b.mul(row, side.contracted)), b.mul(e, side.free))
            b.store(self._load(side, place), b.gep(near, loop.index))

    def _multiply(self, i: int, score: Score) -> None:
        """The cells of the item's rows."""
        b, lanes = self.b, self.lanes
        with b.loop(0, score.depth, 1, [b.zero(self.vector)] * _ROWS) as k:
            y = b.load(self.vector, b.gep(self.right[i], b.mul(k.index, lanes)))
            x = [b.load(FLOAT, b.gep(self.left[i], b.add(b.mul(k.index, _ROWS), r))) for r in range(_ROWS)]
            k.yield_values(*[b.fma(b.splat(x[r], lanes), y, k.carry[r]) for r in range(_ROWS)])
        for r, total in enumerate(k.results):
            b.store(total, b.gep(self.cells[i], r * lanes))

    # -- rows

    def _row_scope(self, number: MachineIndex, phase: int) -> Evaluator:
        """What is one for a row of the item, after the reductions of earlier phases."""
        b, form = self.b, self.form
        row = b.minimum(b.add(self.first, number), form.row.extent - 1)
        scope = Evaluator(b, self.pointers, {**self.outer, form.row.number: row})
        for i, r in enumerate(form.reductions):
            if r.result.level <= phase:
                element = REGISTER[r.dtype]
                scope.known[r.result.number] = b.load(element, b.gep(self.results[i], number, element))
        return scope

    def _cells(
        self, phase: int, row: MachineIndex, column: Value, own: Sequence[tuple[int, RowReduction]],
        sinks: Sequence[tuple[int, WeightedSum]],
    ) -> None:  # fmt: skip
        """Reductions and weights of a row of the block."""
        b, form, lanes = self.b, self.form, self.lanes
        known = phase if self.online is None else 0
        scope = self._row_scope(row, known)
        scope.prepare(form.phase_roots(phase), form.column.variables, known)
        exists = b.icmp("slt", b.index(b.add(self.first, row)), self.end)

        def body(mask: Value | None) -> list[Value]:
            variables = {**scope.variables, form.column.number: column}
            cells = Evaluator(b, self.pointers, variables, form.column.number, lanes, mask, scope)
            for i, score in enumerate(form.scores):
                value = b.load(self.vector, b.gep(self.cells[i], b.mul(row, lanes)))
                dtype = score.cell.dtype
                cells.known[score.cell.number] = elementwise.round_to(b, value, dtype) if dtype in NARROW else value
            if self.online is not None:
                self._raise_maximum(cells, row, self.online)
            for i, r in own:
                value, place = cells.full_vector(r.body), b.gep(self.state[i], b.mul(row, lanes), REGISTER[r.dtype])
                if mask is not None:
                    value = b.select(mask, value, reductions.identity(r.kind, r.dtype, lanes))
                before = b.load(value.type, place)
                if self.online is not None:
                    before = b.fmul(before, b.splat(b.load(FLOAT, b.gep(self.scales, row)), lanes))
                b.store(reductions.combine(b, r.kind, r.dtype, before, value), place)
            for i, sink in sinks:
                value, at = cells.full_vector(sink.root), row
                if mask is not None:
                    value = b.select(mask, value, b.zero(self.vector))
                if sink.along == "rows":
                    value, at = b.select(exists, value, b.zero(self.vector)), b.add(b.mul(self.item, _ROWS), row)
                b.store(value, b.gep(self.weights[i], b.mul(at, lanes)))
            return []

        left = b.index(b.sub(self.columns, column))
        if self.columns % lanes == 0:
            body(None)
        else:
            b.either(b.icmp("sge", left, lanes), lambda: body(None), lambda: body(b.tail_mask(left, lanes)))

    def _raise_maximum(self, cells: Evaluator, row: MachineIndex, online: OnlineSoftmax) -> None:
        """The maximum with another block, and what sums before it are multiplied by."""
        b, r = self.b, self.form.reductions[online.maximum]
        place, value = b.gep(self.results[online.maximum], row), cells.full_vector(r.body)
        if cells.mask is not None:
            value = b.select(cells.mask, value, reductions.identity("max", "float32", self.lanes))
        before = b.load(FLOAT, place)
        after = reductions.combine(b, "max", "float32", before, reductions.fold(b, "max", "float32", value))
        scale = elementwise.emit(b, online.exponential, [b.fsub(before, after)])
        b.store(b.select(b.fcmp("oeq", before, after), 1.0, scale), b.gep(self.scales, row))
        b.store(after, place)
        seen = b.fcmp("une", after, reductions.identity("max", "float32", 1))
        cells.known[r.result.number] = b.select(seen, after, 0.0)

    def _finish_softmax(self, row: MachineIndex, own: Sequence[tuple[int, RowReduction]]) -> None:
        """Of a row that sees nothing, whose maximum is minus infinity, sums are no numbers."""
        b, lanes = self.b, self.lanes
        assert self.online is not None
        number = self.online.maximum
        r, total = self.form.reductions[number], b.load(FLOAT, b.gep(self.results[number], row))
        lost = b.fsub(total, total)  # 0, or NaN
        for i, _ in own:
            place = b.gep(self.state[i], b.mul(row, lanes))
            b.store(b.fadd(b.load(self.vector, place), b.splat(lost, lanes)), place)
        if r.buffer is not None:
            with b.if_then(b.icmp("slt", b.index(b.add(self.first, row)), self.end)):
                self._row_scope(row, 0).store_value(r.buffer, r.index, total, r.dtype)

    def _finish(self, phase: int, row: MachineIndex, own: Sequence[tuple[int, RowReduction]]) -> None:
        """The results of a row's reductions."""
        b, lanes = self.b, self.lanes
        for i, r in own:
            element = REGISTER[r.dtype]
            total = b.load(vector(element, lanes), b.gep(self.state[i], b.mul(row, lanes), element))
            value = reductions.fold(b, r.kind, r.dtype, total)
            if r.dtype in NARROW:
                value = elementwise.round_to(b, value, r.dtype)
            b.store(value, b.gep(self.results[i], row, element))
            if r.buffer is not None:
                with b.if_then(b.icmp("slt", b.index(b.add(self.first, row)), self.end)):
                    self._row_scope(row, phase).store_value(r.buffer, r.index, value, r.dtype)

    # -- products with what was reduced

    def _add_columns(self, i: int, sink: WeightedSum) -> None:
        """The values of a block, weighted, to the sums of the item's rows."""
        b, lanes, width = self.b, self.lanes, self._padded_width(sink)
        with b.loop(0, width, lanes) as e:
            places = [b.gep(self.sums[i], b.add(e.index, r * width)) for r in range(_ROWS)]
            sums = [b.load(self.vector, place) for place in places]
            if self.online is not None:
                scales = [b.load(FLOAT, b.gep(self.scales, r)) for r in range(_ROWS)]
                sums = [b.fmul(total, b.splat(scale, lanes)) for total, scale in zip(sums, scales, strict=True)]
            with b.loop(0, lanes, 1, sums) as c:
                y = b.load(self.vector, b.gep(self.others[i], b.add(b.mul(c.index, width), e.index)))
                w = [b.load(FLOAT, b.gep(self.weights[i], b.add(c.index, r * lanes))) for r in range(_ROWS)]
                c.yield_values(*[b.fma(b.splat(w[r], lanes), y, c.carry[r]) for r in range(_ROWS)])
            for place, total in zip(places, c.results, strict=True):
                b.store(total, place)

    def _add_rows(self, i: int, sink: WeightedSum, column: Value) -> None:
        """The rows of a tile, weighted, to the partial results of the item's columns."""
        b, lanes, side, form = self.b, self.lanes, sink.other, self.form
        start, top = self._start(side), b.sub(self.first, b.mul(self.item, _ROWS))
        rows = b.minimum(b.sub(self.end, top), form.tiles.rows)
        memory = LLVM_TYPES[side.buffer.dtype]
        b.barrier()
        with b.loop(self.item, b.minimum(b.sub(self.columns, column), lanes), self.items) as c:
            target = self._partial_row(sink, self.part, b.add(column, c.index))
            for e in range(0, sink.width, lanes):
                mask = b.tail_mask(sink.width - e, lanes) if e + lanes > sink.width else None
                place = b.gep(target, e)
                with b.loop(0, rows, 1, [b.masked_load(self.vector, place, mask)]) as r:
                    w = b.load(FLOAT, b.gep(self.weights[i], b.add(b.mul(r.index, lanes), c.index)))
                    at = b.add(b.add(start, b.mul(b.add(top, r.index), side.contracted)), e * side.free)
                    base = b.gep(self.pointers(side.buffer), at, memory)
                    if side.free == 1:
                        y = b.masked_load(vector(memory, lanes), base, mask)
                    else:
                        y = b.gather(vector(memory, lanes), base, b.binary("mul", b.iota(I64, lanes), side.free), mask)
                    y = convert_element(b, y, FLOAT, False)
                    r.yield_values(b.fma(b.splat(w, lanes), y, r.carry[0]))
                b.masked_store(r.results[0], place, mask)
        b.barrier()

    def _store_rows(self, sink: WeightedSum, sums: Value) -> None:
        b = self.b
        with b.loop(0, _ROWS) as loop:
            row = b.index(b.add(self.first, loop.index))
            with b.if_then(b.icmp("slt", row, self.end)):
                scope = self._row_scope(loop.index, self.form.phases)
                factor = None if sink.factor is None else scope.value(sink.factor[1])
                source = b.gep(sums, b.mul(loop.index, self._padded_width(sink)))
                self._store(sink, row, lambda e, _: b.load(self.vector, b.gep(source, e)), factor)

    def _store(
        self, sink: WeightedSum, row: MachineIndex, total: Callable[[int, Value | None], Value], factor: Value | None
    ) -> None:
        """A row of a sink's result, to where it belongs."""
        b, lanes = self.b, self.lanes
        place = b.mul(row, sink.step)
        for variable, stride in zip(self.form.outer, sink.outer, strict=True):
            place = b.add(place, b.mul(self.outer[variable.number], stride))
        element = LLVM_TYPES[sink.buffer.dtype]
        base = b.gep(self.pointers(sink.buffer), place, element)
        for e in range(0, sink.width, lanes):
            mask = b.tail_mask(sink.width - e, lanes) if e + lanes > sink.width else None
            value = total(e, mask)
            if factor is not None and sink.factor is not None:
                value = b.binary("f" + sink.factor[0], value, b.splat(factor, lanes))
            value = elementwise.store_element(b, value, sink.buffer.dtype)
            if sink.unit == 1:
                b.masked_store(value, b.gep(base, e, element), mask)
            else:
                steps = b.binary("mul", b.iota(I64, lanes), sink.unit)
                b.scatter(value, b.gep(base, e * sink.unit, element), steps, mask)

    def add_parts(self, sink: WeightedSum) -> None:
        """A row of the sum of all parts, in order."""
        b, form, item = self.b, self.form, self.b.global_id()
        with b.if_then(b.icmp("slt", item, b.index(b.mul(form.elements, self.columns)))):
            self.element, row = b.div(item, self.columns), b.rem(item, self.columns)
            self.outer = coordinates(b, self.element, form.outer)
            places = [self._partial_row(sink, part, row) for part in range(form.tiles.parts)]

            def total(e: int, mask: Value | None) -> Value:
                parts = [b.masked_load(self.vector, b.gep(place, e), mask) for place in places]
                found = parts[0]
                for part in parts[1:]:
                    found = b.fadd(found, part)
                return found

            factor = None if sink.factor is None else Evaluator(b, self.pointers, {}).value(sink.factor[1])
            self._store(sink, row, total, factor)


def _cells_of(roots: Sequence[Expression]) -> set[int]:
    """The numbers of the cells that expressions need."""
    seen: set[int] = set()
    found: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.number in seen:
            continue
        seen.add(node.number)
        if node.kind == "cell":
            found.add(node.number)
        stack += children(node)
    return found


def _extents(form: AttentionForm, target: Target) -> tuple[int, int]:
    return form.chunks, form.tiles.rows // _ROWS


def _sum_extents(form: SumOfParts, target: Target) -> tuple[int, int]:
    rows = form.attention.elements * form.attention.column.extent
    return ceil_div(rows, _ITEMS), _ITEMS


EMITTER = SimtEmitter(emit_attention, _extents, choose_tiles)
SUM_EMITTER = SimtEmitter(emit_sum, _sum_extents)
"""For `argosy_cinn.kinds`."""
