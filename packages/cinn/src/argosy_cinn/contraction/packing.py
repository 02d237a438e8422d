"""Copying blocks of the operands into the order in which the register tile reads them.

B goes to panels ``[columns / width][k][width]``, a row tile of A to ``[k][rows]``. Which copy is used
depends on the direction in which the source is contiguous; transposed sources pass through register
transposes. Elements are converted to the compute type and given to the operand's prologue on the way.
Buffers need `SLACK` elements at their end: full vectors are stored at the last places. What lies beyond the
matrix in the last panel or tile is finite or repeats the edge, and is never used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from argosy_cinn.contraction.problem import Block, Cells, Format, Matrix, exact_in_bfloat
from argosy_cinn.contraction.windows import pack_window
from argosy_cinn.printers.instructions import Instructions
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import BFLOAT, FLOAT, Index, Value, bits_of, bytes_of, element_of, is_float, vector

#: Row tiles of A that are packed together, so that every cache line of a transposed A is read once.
GROUP = 8
#: Rows (or groups of rows that share a place) from what is copied to what is asked for.
_ROWS_AHEAD = 16
#: Elements that packing may write beyond the end of a buffer.
SLACK = 32 * 64


def pack_b(f: Function, block: Block, out: Value, width: int, lanes: int, format: Format) -> None:
    """Pack a block of B into panels of ``width`` columns at ``out``."""
    if block.matrix.window is not None:
        pack_window(f, block, out, width, lanes, format)
        return
    pack(f, block, out, Packer(format, lanes, width))


def pack_a(f: Function, block: Block, out: Value, height: int, format: Format) -> None:
    """Pack rows of A into tiles of ``height`` rows, ``[rows / height][k][height]``, at ``out``."""
    lanes = max(1 << (height - 1).bit_length(), 2)
    unroll = GROUP if block.matrix.prologue is None else 1
    pack(f, turn_panel(block), out, Packer(format, lanes, height, flipped=True, unroll=unroll))


def turn_panel(block: Block) -> Block:
    """The same block of the transposed matrix: tiles of A are panels of its transpose."""
    matrix = block.matrix
    flipped = Matrix(matrix.pointer, matrix.column, matrix.row, matrix.element, matrix.batch, matrix.prologue)
    flipped.unsigned = matrix.unsigned
    return Block(flipped, block.origin, block.column, block.row, block.columns, block.rows, block.batch)


def pack(f: Function, block: Block, out: Value, packer: Packer) -> None:
    """Copy a block with the copy that its strides ask for."""
    matrix = block.matrix
    order = "rows" if _is_one(matrix.column) else "columns" if _is_one(matrix.row) else "strided"

    def copy(g: Function, block: Block, out: Value) -> None:
        {"rows": packer.rows, "columns": packer.columns, "strided": packer.pack_strided}[order](g, block, out)
        if packer.format.shifted and not packer.flipped:
            packer.corrections(g, block, out)
        if packer.format.tiled and order != "columns":
            packer.fill(g, block, out)

    _share(f, order, packer, block, out, copy)


def _is_one(stride: Index) -> bool:
    return isinstance(stride, int) and stride == 1


_Emit = Callable[[Function, Block, Value], None]
_PARAMETERS = [
    ("ptr noalias readonly", "source"),
    ("i64", "row"),
    ("i64", "column"),
    ("i64", "rows"),
    ("i64", "columns"),
    ("ptr noalias", "out"),
]


def _share(f: Function, order: str, packer: Packer, block: Block, out: Value, emit: _Emit) -> None:
    """Emit a copy; one without prologue becomes a function that all products of the module share."""
    matrix = block.matrix
    if matrix.prologue is not None:
        emit(f, block, out)
        return

    def define(unique: str) -> None:
        with f.module.function(unique, _PARAMETERS, export=False, attributes="noinline") as g:
            source, row_stride, column_stride, rows, columns, target = g.arguments
            row: Index = 1 if _is_one(matrix.row) else row_stride
            column: Index = 1 if _is_one(matrix.column) else column_stride
            plain = Matrix(source, row, column, matrix.element, unsigned=matrix.unsigned)
            emit(g, Block(plain, source, 0, 0, rows, columns, ()), target)

    unit = (_is_one(matrix.row), _is_one(matrix.column))
    name = f"pack_{'a' if packer.flipped else 'b'}_{order}_{matrix.element}"
    unique = f.module.shared_function((order, packer, matrix.element, matrix.unsigned, *unit), name, define)
    offset = f.add(f.mul(block.row, matrix.row), f.mul(block.column, matrix.column))
    sizes = [f.index(x) for x in (matrix.row, matrix.column, block.rows, block.columns)]
    f.call(unique, "void", f.gep(block.origin, offset, matrix.element), *sizes, out)


@dataclass(frozen=True, slots=True)
class Packer:
    """Copies a block into panels of ``width`` columns, ``lanes`` columns at a time.

    The second term of a last pair is zero where k is odd. ``flipped``: the block is a transposed A, and a
    prologue sees it as A. ``unroll``: panels that are copied together.
    """

    format: Format
    lanes: int
    width: int
    flipped: bool = False
    unroll: int = 1

    @property
    def _groups(self) -> int:
        return -(-self.width // self.lanes)

    @property
    def _head(self) -> int:
        """Rows of places in front of a panel."""
        return int(self.format.shifted and not self.flipped)

    def rows(self, f: Function, block: Block, out: Value) -> None:
        """The source is contiguous along columns: whole rows are copied, for the hardware's prefetchers."""
        whole = f.sub(block.columns, f.rem(block.columns, self.width))
        wide = self.width * self.unroll
        many = f.sub(whole, f.rem(whole, wide))
        with f.loop(0, block.rows, self.format.terms) as k:
            with f.loop(0, many, wide) as j:
                self._ask(f, block, k.index, j.index, wide)
                for u in range(self.unroll):
                    self._row(f, block, out, k.index, f.add(j.index, u * self.width), self.width)
            if self.unroll > 1:
                with f.loop(many, whole, self.width) as j:
                    self._row(f, block, out, k.index, j.index, self.width)
            with f.if_then(f.icmp("slt", whole, f.index(block.columns))):
                self._row(f, block, out, k.index, whole, f.sub(block.columns, whole))

    def _ask(self, f: Function, block: Block, k: Index, j: Index, count: int) -> None:
        """Ask for some rows ahead of ``count`` columns: the hardware sees no stream in what ends before a page does."""
        matrix, terms = block.matrix, self.format.terms
        for u in range(_ROWS_AHEAD * terms, (_ROWS_AHEAD + 1) * terms):
            row, column = f.add(block.row, f.add(k, u)), f.add(block.column, j)
            start = f.gep(block.origin, f.add(f.mul(row, matrix.row), column), matrix.element)
            for line in range(0, count * bytes_of(matrix.element), 64):
                f.prefetch(f.gep(start, line, "i8"), level=2)

    def pack_strided(self, f: Function, block: Block, out: Value) -> None:
        """Any strides: lanes are gathered one by one."""
        with f.loop(0, block.rows, self.format.terms) as k, f.loop(0, block.columns, self.width) as j:
            left = f.minimum(f.sub(block.columns, j.index), self.width)
            self._row(f, block, out, k.index, j.index, left)

    def _row(self, f: Function, block: Block, out: Value, k: Index, j: Index, count: Index) -> None:
        """One row (or pair of rows) of one panel, of which ``count`` columns exist."""
        place = self._place(f, block, out, k, j)
        for v in range(self._groups):
            lane = v * self.lanes
            left = f.sub(count, lane)
            mask = None if isinstance(left, int) and left >= self.lanes else f.tail_mask(left, self.lanes)
            value = self._places(f, block, k, f.add(j, lane), mask)
            f.masked_store(value, f.gep(place, lane, self.format.compute), self._panel_mask(f, lane))

    def _places(self, f: Function, block: Block, k: Index, j: Index, mask: Value | None) -> Value:
        """What goes to ``lanes`` places: elements of one row, or of several rows interleaved;
        missing rows are zero.
        """
        if self.format.terms == 1:
            return self._read(f, block, k, j, 1, self.lanes, mask)
        parts = []
        for u in range(self.format.terms):
            exists = f.splat(f.icmp("slt", f.add(k, u), f.index(block.rows)), self.lanes)
            both = exists if mask is None else f.binary("and", mask, exists)
            part = self._read(f, block, f.add(k, u), j, 1, self.lanes, both)
            parts.append(f.select(both, part, f.zero(part.type)))
        while len(parts) > 1:  # two neighbours become one of twice the size
            parts = [self._interleave(f, *parts[i : i + 2]) for i in range(0, len(parts), 2)]
        return f.bitcast(parts[0], vector(self.format.compute, self.lanes))

    def _interleave(self, f: Function, x: Value, y: Value) -> Value:
        n = self.lanes
        mixed = f.shuffle(x, y, [i // 2 + n * (i % 2) for i in range(2 * n)])
        return f.bitcast(mixed, vector(f"i{2 * bits_of(x.type)}", n))

    def columns(self, f: Function, block: Block, out: Value) -> None:
        """The source is contiguous along rows (k): square blocks are transposed in registers.

        A last block of k writes beyond its panel, where the next panel is written later (or into the slack).
        """
        step = self.lanes * self.format.terms
        with f.loop(0, block.columns, self.width) as j, f.loop(0, block.rows, step) as k:
            mask = f.tail_mask(f.sub(block.rows, k.index), step)
            if self._groups == 1:
                self._transpose(f, block, out, k.index, j.index, 0, mask)
                return
            with f.loop(0, self.width, self.lanes) as lane:
                self._transpose(f, block, out, k.index, j.index, lane.index, mask)

    def _transpose(
        self, f: Function, block: Block, out: Value, k: Index, panel: Index, lane: Index, mask: Value
    ) -> None:
        last = f.sub(block.columns, 1)
        rows = []
        for i in range(self.lanes):
            # Columns beyond the edge, or beyond the panel, repeat one that exists.
            column = f.minimum(f.add(panel, f.minimum(f.add(lane, i), self.width - 1)), last)
            value = self._read(f, block, k, column, 0, self.lanes * self.format.terms, mask)
            if self.format.terms > 1:
                value = f.bitcast(f.select(mask, value, f.zero(value.type)), vector(self.format.compute, self.lanes))
            rows.append(value)
        place = f.gep(self._place(f, block, out, k, panel), lane, self.format.compute)
        for i, value in enumerate(f.transpose(rows)):
            f.store(value, f.gep(place, i * self.width, self.format.compute))

    def _panel_mask(self, f: Function, lane: int) -> Value | None:
        """The lanes of a vector that belong to its panel: another panel begins after them."""
        return f.tail_mask(self.width - lane, self.lanes) if lane + self.lanes > self.width else None

    def _place(self, f: Function, block: Block, out: Value, k: Index, j: Index) -> Value:
        """Where element (k, j) goes, j the first column of a panel."""
        places = f.add(self.format.places(f, block.rows), self._head)
        row = f.add(f.div(k, self.format.terms), self._head)
        return f.gep(out, f.add(f.mul(j, places), f.mul(row, self.width)), self.format.compute)

    def fill(self, f: Function, block: Block, out: Value) -> None:
        """Zero the places of each panel beyond the last term: what is multiplied with them may be anything."""
        end = f.ceil_div(block.rows, self.format.terms)
        with f.loop(0, block.columns, self.width) as j, f.loop(end, self.format.places(f, block.rows)) as k:
            place = self._place(f, block, out, f.mul(k.index, self.format.terms), j.index)
            for lane in range(0, self.width, self.lanes):
                f.store(f.zero(vector(self.format.compute, self.lanes)), f.gep(place, lane, self.format.compute))

    def corrections(self, f: Function, block: Block, out: Value) -> None:
        """Fill the head of each panel: minus what A's shift by 128 adds to each column."""
        type = vector(self.format.compute, self.lanes)
        with f.loop(0, block.columns, self.width) as j, f.loop(0, self.width, self.lanes) as lane:
            panel = f.gep(self._place(f, block, out, 0, j.index), lane.index, self.format.compute)
            with f.loop(0, f.ceil_div(block.rows, self.format.terms), 1, [f.zero(type)]) as k:
                terms = f.load(type, f.gep(panel, f.mul(k.index, self.width), self.format.compute))
                shift = f.constant(type, -0x7F7F7F80)  # four bytes of 128
                k.yield_values(byte_products(f, k.carry[0], shift, terms))
            total = f.binary("sub", f.zero(type), k.results[0])
            f.store(total, f.gep(panel, -self.width, self.format.compute))

    def _read(self, f: Function, block: Block, k: Index, j: Index, axis: int, lanes: int, mask: Value | None) -> Value:
        """``lanes`` elements from (k, j) on along ``axis``, converted and transformed."""
        matrix = block.matrix
        row, column = f.add(block.row, k), f.add(block.column, j)
        start = f.gep(block.origin, f.add(f.mul(row, matrix.row), f.mul(column, matrix.column)), matrix.element)
        value = read_strided(f, start, matrix.element, matrix.column if axis == 1 else matrix.row, lanes, mask)
        if matrix.prologue is not None:
            if self.flipped:
                row, column, axis = column, row, 1 - axis
            value = matrix.prologue(f, Cells(block.batch, row, column, [value], [mask], axis))
        return self._format(f, value, matrix.unsigned)

    def _format(self, f: Function, value: Value, unsigned: bool) -> Value:
        """An element, or the part of a place that it becomes."""
        element = element_of(value.type)
        if self.format.terms == 4:
            return f.binary("xor", value, -128) if self.flipped and self.format.shifted else value
        if self.format.terms == 2:  # rounded by the machine's instruction, which its products use anyway
            wide = value if is_float(element) else convert_element(f, value, FLOAT, unsigned)
            return f.convert("fptrunc", wide, BFLOAT) if element != BFLOAT else value
        if self.format.rounded and not exact_in_bfloat(element):
            value = f.narrow_float(value, BFLOAT)
        return convert_element(f, value, self.format.compute, unsigned)


def byte_products(f: Function, total: Value, unsigned: Value, signed: Value) -> Value:
    """``total`` plus, in each of sixteen int32 lanes, four products of unsigned with signed bytes."""
    bytes_ = (f.bitcast(x, total.type) for x in (unsigned, signed))
    return f.call("llvm.x86.avx512.vpdpbusd.512", total.type, total, *bytes_)


def word_products(f: Function, x: Value, y: Value, total: Value) -> Value:
    """``total`` plus, in each of sixteen int32 lanes, two products of integers of 16 bits."""
    words = (f.bitcast(each, total.type) for each in (x, y))
    return f.call("llvm.x86.avx512.vpdpwssd.512", total.type, total, *words)


def read_strided(f: Function, start: Value, element: str, stride: Index, lanes: int, mask: Value | None) -> Value:
    """``lanes`` elements that lie ``stride`` apart: one load where they are neighbours, else a gather."""
    type = vector(element, lanes)
    if _is_one(stride):
        return f.masked_load(type, start, mask)
    steps = f.binary("mul", f.iota("i64", lanes), f.splat(f.index(stride), lanes))
    return f.gather(type, start, steps, mask)


def convert_element(f: Instructions, value: Value, element: str, unsigned: bool = False) -> Value:
    """A value in another element type: floats are rounded or widened, integers extended by their
    sign or not.
    """
    source = element_of(value.type)
    if source == element:
        return value
    if is_float(source) and is_float(element):
        wider = bits_of(element) > bits_of(source)
        return f.widen_float(value, element) if wider else f.narrow_float(value, element)
    if not is_float(source) and not is_float(element):
        widen = "zext" if unsigned else "sext"
        return f.convert(widen if bytes_of(element) > bytes_of(source) else "trunc", value, element)
    return f.convert("uitofp" if unsigned else "sitofp", value, element)
