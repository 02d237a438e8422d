"""The code of a region's kernel: a chunk is a part of the rows of one matrix of scores.

For every tile of rows: scores by register tiles, the phases along the columns, then the products that contract what
is left in the tile's buffers. What contracts rows is accumulated in the thread's scratch memory, and stored at the
chunk's end. (Dao et al., "FlashAttention", 2022, tile both ways and rescale running sums; on a CPU a tile of whole
rows fits the second-level cache, and an exact softmax over it costs less than rescaling.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from argosy_cinn.attention.sweep import PANEL_VECTORS, Sweep
from argosy_cinn.attention.tiles import choose_tiles
from argosy_cinn.contraction.packing import SLACK, pack_a, pack_b
from argosy_cinn.contraction.problem import Block, Format, Matrix
from argosy_cinn.contraction.tile import NULL, Tile, TileArguments, call_tile
from argosy_cinn.emitter import Emitter
from argosy_cinn.forms.attention import AttentionForm, Operand, Score, SumOfParts, WeightedSum, partial_buffer
from argosy_cinn.loops.elementwise import store_element
from argosy_cinn.loops.nest import PARAMETERS, Pointers
from argosy_cinn.loops.vectorize import Evaluator
from argosy_cinn.printers.llvm import Function, Module
from argosy_cinn.printers.types import BFLOAT, FLOAT, I64, LLVM_TYPES, Index, Value, vector
from argosy_cinn.runtime.workers import scratch
from argosy_cinn.shapes import ceil_div

_STAGGER = 832
#: Terms of a sum over columns for which a panel stays in the first-level cache.
_DEPTH = 256
_FORMAT = Format(FLOAT)
#: Of bfloat16, where the machine multiplies pairs of it.
_PAIRS = Format(FLOAT, terms=2)


def emit_attention(module: Module, name: str, kernel: AttentionForm, slots: Mapping[Any, int]) -> None:
    """Define the kernel function ``name``; ``slots`` gives each buffer's place in the table."""
    with module.function(name, PARAMETERS, export=False, attributes="noinline") as b:
        table, chunk, _ = b.arguments
        b.sizes_from(table, len(slots))
        _Tiles(b, kernel, Pointers(b, table, slots)).emit(chunk)


class _Tiles:
    def __init__(self, b: Function, kernel: AttentionForm, pointers: Pointers) -> None:
        self.b, self.kernel, self.pointers = b, kernel, pointers
        target = b.module.target
        self.lanes = target.lanes(FLOAT)
        self.height = 8 if target.registers >= 32 else 4
        self.panel = PANEL_VECTORS * self.lanes
        self.columns = kernel.column.extent
        self.padded = ceil_div(self.columns, self.panel) * self.panel
        self.leading = self.padded + 16
        self.pairs = self._stored_as_pairs()

    def emit(self, chunk: Value) -> None:
        """One chunk."""
        b, kernel = self.b, self.kernel
        part, element = b.rem(chunk, kernel.tiles.parts), b.div(chunk, kernel.tiles.parts)
        self.part, self.element = part, element
        self.outer: list[Index] = []
        for v in reversed(kernel.outer):
            self.outer.insert(0, b.rem(element, v.extent))
            element = b.div(element, v.extent)
        self._allocate()
        self._pack_wide()
        self._clear_sums()
        begin = b.mul(part, kernel.part_rows)
        end = b.minimum(b.add(begin, kernel.part_rows), kernel.row.extent)
        with b.loop(begin, end, kernel.tiles.rows) as loop:
            self._tile(loop.index, b.minimum(kernel.tiles.rows, b.sub(end, loop.index)))
        for sink in kernel.sinks:
            if sink.along == "rows":
                self._store_sums(sink)

    # -- memory

    def _allocate(self) -> None:
        kernel = self.kernel
        sizes: dict[Any, int] = {}
        for i, score in enumerate(kernel.scores):
            sizes["right", i] = self.padded * score.depth + SLACK
            sizes["left", i] = kernel.tiles.rows * score.depth + SLACK
        for i, sink in enumerate(kernel.sinks):
            width = self._padded_width(sink)
            rows, sums = (
                (self.columns, kernel.tiles.rows) if sink.along == "columns" else (kernel.tiles.rows, self.padded)
            )
            sizes["other", i] = rows * width + SLACK
            sizes["sums", i] = sums * width
            if sink.along == "rows" and sink.root.number in self.pairs:
                sizes["turned", i] = kernel.tiles.rows * self.padded + SLACK
        for i in range(kernel.tiles.buffers):
            sizes["buffer", i] = kernel.tiles.rows * self.leading
        sizes["rows", 0] = kernel.tiles.rows * max(len(kernel.reductions), 1) * 2
        offsets, end = {}, 0
        for i, (key, size) in enumerate(sizes.items()):
            offsets[key] = end
            end += (size * 4 + 63) // 64 * 64 + (i % 4 + 1) * _STAGGER
        slab = scratch(self.b, end)
        self.memory = {key: self.b.gep(slab, offset, "i8") for key, offset in offsets.items()}

    def _vectors(self, sink: WeightedSum) -> int:
        return min(-(-sink.width // self.lanes), PANEL_VECTORS)

    def _panel(self, sink: WeightedSum) -> int:
        return self._vectors(sink) * self.lanes

    def _padded_width(self, sink: WeightedSum) -> int:
        return -(-sink.width // self._panel(sink)) * self._panel(sink)

    # -- operands

    def _matrix(self, operand: Operand, row: int, column: int) -> tuple[Matrix, Value]:
        b = self.b
        offset: Index = operand.offset
        for position, stride in zip(self.outer, operand.outer, strict=True):
            offset = b.add(offset, b.mul(position, stride))
        element = LLVM_TYPES[operand.buffer.dtype]
        origin = b.gep(self.pointers(operand.buffer), offset, element)
        return Matrix(origin, row, column, element), origin

    def _format(self, *dtypes: str) -> Format:
        """How factors of some dtypes are packed: bfloat16 as such where the machine multiplies it."""
        pairs = self.b.module.target.multiplies_pairs
        return _PAIRS if pairs and all(dtype == "bfloat16" for dtype in dtypes) else _FORMAT

    def _score_format(self, score: Score) -> Format:
        return self._format(score.left.buffer.dtype, score.right.buffer.dtype)

    def _sink_format(self, sink: WeightedSum) -> Format:
        return _PAIRS if sink.root.number in self.pairs else _FORMAT

    def _stored_as_pairs(self) -> frozenset[int]:
        """What sinks contract that is stored as bfloat16, in the first halves of its rows: the last phase writes there
        what it has read."""
        kernel = self.kernel
        narrow: dict[int, bool] = {}
        for sink in kernel.sinks:
            fits = self._format(sink.root.dtype, sink.other.buffer.dtype) is _PAIRS
            narrow[sink.root.number] = narrow.get(sink.root.number, True) and fits
        return frozenset(number for number in kernel.tiles.writes[-1] if narrow.get(number, False))

    def _pack(
        self,
        key: Any,
        operand: Operand,
        strides: tuple[int, int],
        area: tuple[Index, ...],
        width: int,
        format: Format = _FORMAT,
    ) -> None:
        """Pack an area (row, column, rows, columns) of an operand into panels."""
        matrix, origin = self._matrix(operand, *strides)
        row, column, rows, columns = area
        block = Block(matrix, origin, row, column, rows, columns, ())
        pack_b(self.b, block, self.memory[key], width, self.lanes, format)

    def _pack_wide(self) -> None:
        """What every tile reads: keys along the depth, values along the columns."""
        for i, score in enumerate(self.kernel.scores):
            strides = score.right.contracted, score.right.free
            area = (0, 0, score.depth, self.columns)
            self._pack(("right", i), score.right, strides, area, self.panel, self._score_format(score))
        for i, sink in enumerate(self.kernel.sinks):
            if sink.along == "columns":
                strides = sink.other.contracted, sink.other.free
                area = (0, 0, self.columns, sink.width)
                self._pack(("other", i), sink.other, strides, area, self._panel(sink), self._sink_format(sink))

    # -- a tile

    def _tile(self, row0: Value, rows: Index) -> None:
        b, kernel = self.b, self.kernel
        buffers = [self.memory["buffer", i] for i in range(kernel.tiles.buffers)]
        step = max(self.lanes, self.height)  # whole vectors, and whole tiles of columns, which are read as such
        seen = lambda place: self._visible_columns(row0, place, step)  # noqa: E731
        arguments = (buffers, self.memory["rows", 0], self.leading, seen, self.pairs)
        self.sweep = Sweep(b, kernel, self.pointers, self.outer, *arguments)
        for i in range(len(kernel.scores)):
            self._score(i, row0, rows)
        for phase in range(kernel.phases):
            self.sweep.phase(phase, row0, rows)
        for i, sink in enumerate(kernel.sinks):
            if sink.along == "columns":
                self._contract_columns(i, sink, row0, rows)
            else:
                self._contract_rows(i, sink, row0, rows)

    def _sees(self, row0: Index, place: Index) -> tuple[Index, Index]:
        """The columns that the register tile around a row of the tile sees."""
        b, height = self.b, self.height
        first = b.add(row0, b.mul(b.div(place, height), height))
        low: Index = 0
        high: Index = self.columns
        for r, _, k in self.kernel.bounds.high:
            high = b.minimum(high, b.add(b.mul(b.add(first, height - 1), r), k + 1))
        for r, _, k in self.kernel.bounds.low:
            low = b.maximum(low, b.sub(b.mul(first, -r), k))
        return b.minimum(low, self.columns - 1), high

    def _visible_columns(self, row0: Index, place: Index, step: int) -> tuple[Index, Index]:
        """The same in whole steps: what is computed of them."""
        low, high = self._sees(row0, place)
        return self.b.mul(self.b.div(low, step), step), self.b.mul(self.b.ceil_div(high, step), step)

    def _score(self, number: int, row0: Value, rows: Index) -> None:
        """The cells of a score, panel after panel, so that a panel of keys stays in the first-level cache."""
        b, score, height = self.b, self.kernel.scores[number], self.height
        matrix, origin = self._matrix(score.left, score.left.free, score.left.contracted)
        left, right = self.memory["left", number], self.memory["right", number]
        format = self._score_format(score)
        depth = format.places(b, score.depth)
        pack_a(b, Block(matrix, origin, row0, 0, rows, score.depth, ()), left, height, format)
        buffer = self.memory["buffer", self.kernel.tiles.cells[score.cell.number]]
        tile = Tile(FLOAT, self.lanes, height, PANEL_VECTORS, self.panel, "packed", terms=format.terms)
        start, _ = self._visible_columns(row0, 0, self.panel)
        _, stop = self._visible_columns(row0, b.sub(rows, 1), self.panel)
        with b.loop(start, stop, self.panel) as j, b.loop(0, rows, height) as i:
            low, high = self._visible_columns(row0, i.index, self.panel)
            inside = b.binary("and", b.icmp("sge", j.index, low), b.icmp("slt", j.index, high))
            with b.if_then(inside):
                call_tile(b, tile, TileArguments(
                    a=b.gep(left, b.mul(i.index, depth)), a_step=0,
                    b=b.gep(right, b.mul(j.index, depth)), b_step=0,
                    k=depth, rows=height, columns=self.panel, partial=NULL,
                    out=b.gep(buffer, b.add(b.mul(i.index, self.leading), j.index)), out_step=self.leading, ahead=NULL,
                ))  # fmt: skip

    def _buffer(self, sink: WeightedSum) -> Value:
        number = sink.root.number
        place = self.kernel.tiles.cells.get(number)
        for written in self.kernel.tiles.writes:
            place = written.get(number, place)
        assert place is not None
        return self.memory["buffer", place]

    def _contract_columns(self, number: int, sink: WeightedSum, row0: Value, rows: Index) -> None:
        """Rows of the tile times a wide operand: blocks of columns, then tiles of rows, then panels."""
        b, height, panel, width = self.b, self.height, self._panel(sink), self._padded_width(sink)
        weights, other, sums = self._buffer(sink), self.memory["other", number], self.memory["sums", number]
        format = self._sink_format(sink)
        element = BFLOAT if format.terms == 2 else FLOAT
        tile = Tile(FLOAT, self.lanes, height, self._vectors(sink), panel, "rows", terms=format.terms)
        start, _ = self._visible_columns(row0, 0, self.panel)
        _, stop = self._visible_columns(row0, b.sub(rows, 1), self.panel)
        with b.loop(start, b.minimum(stop, self.columns), _DEPTH) as k, b.loop(0, rows, height) as i:
            low, high = self._sees(row0, i.index)
            first = b.maximum(b.mul(b.div(low, format.terms), format.terms), k.index)
            end = b.minimum(high, b.add(k.index, _DEPTH))
            with b.if_then(b.icmp("sgt", b.sub(end, first), 0)), b.loop(0, width, panel) as e:
                out = b.gep(sums, b.add(b.mul(i.index, width), e.index))
                begins = b.icmp("sle", b.index(k.index), b.index(low))
                call_tile(b, tile, TileArguments(
                    a=b.gep(b.gep(weights, b.mul(i.index, self.leading)), first, element), a_step=self.leading * 4,
                    b=self._panel_at(other, format, self.columns, e.index, first, panel), b_step=0,
                    k=format.places(b, b.sub(end, first)), rows=b.sub(rows, i.index), columns=panel,
                    partial=b.select(begins, NULL, out), out=out, out_step=width, ahead=NULL,
                ))  # fmt: skip
        with b.loop(0, rows) as i:
            row = b.add(row0, i.index)
            scope = self.sweep.row_scope(row, i.index, self.kernel.phases)
            factor = None if sink.factor is None else (sink.factor[0], scope.value(sink.factor[1]))
            self._store_row(sink, b.gep(sums, b.mul(i.index, width)), row, factor)

    def _panel_at(self, packed: Value, format: Format, depth: Index, column: Index, first: Index, width: int) -> Value:
        """Term ``first`` of the panel of ``width`` that begins at a column, of an operand of ``depth`` terms."""
        b = self.b
        start = b.mul(column, format.places(b, depth))
        return b.gep(packed, b.add(start, b.mul(b.div(first, format.terms), width)))

    def _store_row(self, sink: WeightedSum, source: Value, row: Index, factor: tuple[str, Value] | None) -> None:
        """A finished row of a sink, to where it belongs."""
        b, lanes = self.b, self.lanes
        offset: Index = b.mul(row, sink.step)
        for position, stride in zip(self.outer, sink.outer, strict=True):
            offset = b.add(offset, b.mul(position, stride))
        element = LLVM_TYPES[sink.buffer.dtype]
        base = b.gep(self.pointers(sink.buffer), offset, element)
        for e in range(0, sink.width, lanes):
            value = b.load(vector(FLOAT, lanes), b.gep(source, e))
            if factor is not None:
                value = b.binary("f" + factor[0], value, b.splat(factor[1], lanes))
            value = store_element(b, value, sink.buffer.dtype)
            mask = b.tail_mask(sink.width - e, lanes) if e + lanes > sink.width else None
            if sink.unit == 1:
                b.masked_store(value, b.gep(base, e, element), mask)
            else:
                steps = b.binary("mul", b.iota(I64, lanes), sink.unit)
                b.scatter(value, b.gep(base, e * sink.unit, element), steps, mask)

    def _steady_factor(self, sink: WeightedSum) -> tuple[str, Value] | None:
        """The factor of a sink that contracts rows: a number."""
        if sink.factor is None:
            return None
        return sink.factor[0], Evaluator(self.b, self.pointers, {}).value(sink.factor[1])

    def _contract_rows(self, number: int, sink: WeightedSum, row0: Value, rows: Index) -> None:
        """The tile's columns times rows of the other operand, added to the chunk's sums."""
        b, height, panel, width = self.b, self.height, self._panel(sink), self._padded_width(sink)
        strides = sink.other.contracted, sink.other.free
        format = self._sink_format(sink)
        self._pack(("other", number), sink.other, strides, (row0, 0, rows, sink.width), panel, format)
        other, sums = self.memory["other", number], self.memory["sums", number]
        start, _ = self._visible_columns(row0, 0, self.panel)
        _, stop = self._visible_columns(row0, b.sub(rows, 1), self.panel)
        weights = self._weights(number, sink, (start, stop), rows)
        order = "packed" if format.terms == 2 else "columns"
        tile = Tile(FLOAT, self.lanes, height, self._vectors(sink), panel, order, terms=format.terms)
        with b.loop(0, width, panel) as e, b.loop(start, stop, height) as c:
            first, end = self._visible_rows(row0, rows, c.index)
            first = b.mul(b.div(first, format.terms), format.terms)  # tiles of rows, which see alike, are whole pairs
            with b.if_then(b.icmp("sgt", b.sub(end, first), 0)):
                out = b.gep(sums, b.add(b.mul(c.index, width), e.index))
                call_tile(b, tile, TileArguments(
                    a=weights(c.index, first), a_step=self.leading * 4,
                    b=self._panel_at(other, format, rows, e.index, first, panel), b_step=0,
                    k=format.places(b, b.sub(end, first)), rows=height, columns=panel,
                    partial=out, out=out, out_step=width, ahead=NULL,
                ))  # fmt: skip

    def _weights(
        self, number: int, sink: WeightedSum, columns: tuple[Index, Index], rows: Index
    ) -> Callable[[Index, Index], Value]:
        """Where a register tile of columns begins at a row: in the tile itself, or among its pairs of rows, which
        are packed here."""
        b, buffer, (start, stop) = self.b, self._buffer(sink), columns
        if sink.root.number not in self.pairs:
            return lambda column, row: b.gep(buffer, b.add(b.mul(row, self.leading), column))
        turned = self.memory["turned", number]
        matrix = Matrix(buffer, 1, 2 * self.leading, BFLOAT)
        pack_a(b, Block(matrix, buffer, start, 0, b.sub(stop, start), rows, ()), turned, self.height, _PAIRS)
        return lambda column, row: self._panel_at(turned, _PAIRS, rows, b.sub(column, start), row, self.height)

    def _visible_rows(self, row0: Value, rows: Index, column: Index) -> tuple[Index, Index]:
        """The rows of the tile that see one of a register tile of columns: `_sees` the other way round."""
        b = self.b
        first: Index = 0
        end: Index = rows
        for r, _, k in self.kernel.bounds.high:
            if r:
                first = b.maximum(first, b.sub(column, b.add(row0, k)))
        for r, _, k in self.kernel.bounds.low:
            if r:
                end = b.minimum(end, b.sub(b.add(column, self.height + k), row0))
        return first, end

    # -- sums over rows

    def _clear_sums(self) -> None:
        b, type = self.b, vector(FLOAT, self.lanes)
        for i, sink in enumerate(self.kernel.sinks):
            if sink.along == "rows":
                with b.loop(0, self.padded * self._padded_width(sink), self.lanes) as at:
                    b.store(b.zero(type), b.gep(self.memory["sums", i], at.index))

    def _store_sums(self, sink: WeightedSum) -> None:
        b, width = self.b, self._padded_width(sink)
        sums = self.memory["sums", self.kernel.sinks.index(sink)]
        with b.loop(0, self.columns) as c:
            source = b.gep(sums, b.mul(c.index, width))
            if self.kernel.tiles.parts == 1:
                self._store_row(sink, source, c.index, self._steady_factor(sink))
                return
            whole = b.add(b.mul(self.part, self.kernel.elements), self.element)
            at = b.mul(b.add(b.mul(whole, self.columns), c.index), sink.width)
            target = b.gep(self.pointers(partial_buffer(sink.buffer)), at)
            for e in range(0, sink.width, self.lanes):
                mask = b.tail_mask(sink.width - e, self.lanes) if e + self.lanes > sink.width else None
                value = b.load(vector(FLOAT, self.lanes), b.gep(source, e))
                b.masked_store(value, b.gep(target, e), mask)


def emit_sum(module: Module, name: str, form: SumOfParts, slots: Mapping[Any, int]) -> None:
    """Define the function that adds up the parts of a sink, in order: a chunk is one matrix."""
    with module.function(name, PARAMETERS, export=False, attributes="noinline") as b:
        table, chunk, _ = b.arguments
        b.sizes_from(table, len(slots))
        _Sum(b, form.attention, Pointers(b, table, slots)).emit_sums(chunk, form.sink)


class _Sum(_Tiles):
    def emit_sums(self, chunk: Value, sink: WeightedSum) -> None:
        """Rows of the sums of all parts, through a row of scratch memory."""
        b, kernel, lanes = self.b, self.kernel, self.lanes
        element: Index = chunk
        self.outer = []
        for v in reversed(kernel.outer):
            self.outer.insert(0, b.rem(element, v.extent))
            element = b.div(element, v.extent)
        row = scratch(b, self._padded_width(sink) * 4 + 64)
        with b.loop(0, self.columns) as c:
            for e in range(0, sink.width, lanes):
                mask = b.tail_mask(sink.width - e, lanes) if e + lanes > sink.width else None
                total: Value | None = None
                for part in range(kernel.tiles.parts):
                    whole = b.add(chunk, part * kernel.elements)
                    at = b.add(b.mul(b.add(b.mul(whole, self.columns), c.index), sink.width), e)
                    place = b.gep(self.pointers(partial_buffer(sink.buffer)), at)
                    value = b.masked_load(vector(FLOAT, lanes), place, mask)
                    total = value if total is None else b.fadd(total, value)
                assert total is not None
                b.store(total, b.gep(row, e))
            self._store_row(sink, row, c.index, self._steady_factor(sink))


EMITTER = Emitter(emit_attention, lambda kernel, target: kernel.chunks, schedule=choose_tiles)
SUM_EMITTER = Emitter(emit_sum, lambda form, target: form.attention.elements)
"""For `argosy_cinn.kinds`."""
