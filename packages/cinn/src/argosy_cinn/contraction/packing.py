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

from argosy_cinn.contraction.problem import Cells, Matrix
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import BFLOAT, Index, Value, bits_of, bytes_of, element_of, is_float, vector

#: Row tiles of A that are packed together, so that every cache line of a transposed A is read once.
GROUP = 8
#: Elements that packing may write beyond the end of a buffer.
SLACK = 32 * 64


@dataclass(slots=True)
class Block:
    """The part of an operand to pack: ``matrix`` with its batch offset already in ``origin`` (the address of
    element (0, 0)),
    from (``row``, ``column``), ``rows`` x ``columns`` elements; ``batch`` are the coordinates, for the
    prologue."""

    matrix: Matrix
    origin: Value
    row: Index
    column: Index
    rows: Index
    columns: Index
    batch: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class Format:
    """What elements become: type ``compute``; ``rounded``: to bfloat16 first; ``pairs``: of bfloat16, two
    terms of k in a place of 32 bits."""

    compute: str
    rounded: bool = False
    pairs: bool = False


def pack_b(f: Function, block: Block, out: Value, width: int, lanes: int, format: Format) -> None:
    """Pack a block of B into panels of ``width`` columns at ``out``."""
    _pack(f, block, out, _Packer(format, lanes, width))


def pack_a(f: Function, block: Block, out: Value, height: int, format: Format) -> None:
    """Pack rows of A into tiles of ``height`` rows, ``[rows / height][k][height]``, at ``out``."""
    # Tiles of A are panels of its transpose.
    matrix = block.matrix
    flipped = Matrix(matrix.pointer, matrix.column, matrix.row, matrix.element, matrix.batch, matrix.prologue)
    turned = Block(flipped, block.origin, block.column, block.row, block.columns, block.rows, block.batch)
    lanes = max(1 << (height - 1).bit_length(), 2)
    unroll = GROUP if matrix.prologue is None else 1
    _pack(f, turned, out, _Packer(format, lanes, height, flipped=True, unroll=unroll))


def _pack(f: Function, block: Block, out: Value, packer: _Packer) -> None:
    matrix = block.matrix
    if _is_one(matrix.column):
        _share(f, "rows", packer, block, out, packer.rows)
    elif _is_one(matrix.row):
        _share(f, "columns", packer, block, out, packer.columns)
    else:
        _share(f, "strided", packer, block, out, packer.strided)


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


def _share(f: Function, order: str, packer: _Packer, block: Block, out: Value, emit: _Emit) -> None:
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
            emit(g, Block(Matrix(source, row, column, matrix.element), source, 0, 0, rows, columns, ()), target)

    unit = (_is_one(matrix.row), _is_one(matrix.column))
    name = f"pack_{'a' if packer.flipped else 'b'}_{order}_{matrix.element}"
    unique = f.module.once((order, packer, matrix.element, *unit), name, define)
    offset = f.add(f.mul(block.row, matrix.row), f.mul(block.column, matrix.column))
    sizes = [f.index(x) for x in (matrix.row, matrix.column, block.rows, block.columns)]
    f.call(unique, "void", f.at(block.origin, offset, matrix.element), *sizes, out)


@dataclass(frozen=True, slots=True)
class _Packer:
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
    def _terms(self) -> int:
        return 2 if self.format.pairs else 1

    def rows(self, f: Function, block: Block, out: Value) -> None:
        """The source is contiguous along columns: whole rows are copied, for the hardware's prefetchers."""
        whole = f.sub(block.columns, f.rem(block.columns, self.width))
        wide = self.width * self.unroll
        many = f.sub(whole, f.rem(whole, wide))
        with f.loop(0, block.rows, self._terms) as k:
            with f.loop(0, many, wide) as j:
                for u in range(self.unroll):
                    self._row(f, block, out, k.index, f.add(j.index, u * self.width), self.width)
            if self.unroll > 1:
                with f.loop(many, whole, self.width) as j:
                    self._row(f, block, out, k.index, j.index, self.width)
            with f.when(f.icmp("slt", whole, f.index(block.columns))):
                self._row(f, block, out, k.index, whole, f.sub(block.columns, whole))

    def strided(self, f: Function, block: Block, out: Value) -> None:
        """Any strides: lanes are gathered one by one."""
        with f.loop(0, block.rows, self._terms) as k, f.loop(0, block.columns, self.width) as j:
            left = f.minimum(f.sub(block.columns, j.index), self.width)
            self._row(f, block, out, k.index, j.index, left)

    def _row(self, f: Function, block: Block, out: Value, k: Index, j: Index, count: Index) -> None:
        """One row (or pair of rows) of one panel, of which ``count`` columns exist."""
        place = self._place(f, block, out, k, j)
        for v in range(self._groups):
            lane = v * self.lanes
            left = f.sub(count, lane)
            mask = None if isinstance(left, int) and left >= self.lanes else f.tail_mask(left, self.lanes)
            value = self._terms_of(f, block, k, f.add(j, lane), mask)
            f.masked_store(value, f.at(place, lane, self.format.compute), self._inside(f, lane))

    def _terms_of(self, f: Function, block: Block, k: Index, j: Index, mask: Value | None) -> Value:
        """What goes to ``lanes`` places: elements of one row, or of a pair of rows interleaved."""
        if not self.format.pairs:
            return self._read(f, block, k, j, 1, self.lanes, mask)
        exists = f.splat(f.icmp("slt", f.add(k, 1), f.index(block.rows)), self.lanes)
        both = exists if mask is None else f.binary("and", mask, exists)
        first = self._narrow(f, self._read(f, block, k, j, 1, self.lanes, mask))
        second = self._narrow(f, self._read(f, block, f.add(k, 1), j, 1, self.lanes, both))
        second = f.select(both, second, 0.0)
        n = self.lanes
        mixed = f.shuffle(first, second, [i // 2 + n * (i % 2) for i in range(2 * n)])
        return f.bitcast(mixed, vector(self.format.compute, n))

    def columns(self, f: Function, block: Block, out: Value) -> None:
        """The source is contiguous along rows (k): square blocks are transposed in registers.

        A last block of k writes beyond its panel, where the next panel is written later (or into the slack).
        """
        step = self.lanes * self._terms
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
            value = self._read(f, block, k, column, 0, self.lanes * self._terms, mask)
            if self.format.pairs:
                value = f.bitcast(f.select(mask, self._narrow(f, value), 0.0), vector(self.format.compute, self.lanes))
            rows.append(value)
        place = f.at(self._place(f, block, out, k, panel), lane, self.format.compute)
        for i, value in enumerate(f.transpose(rows)):
            f.store(value, f.at(place, i * self.width, self.format.compute))

    def _inside(self, f: Function, lane: int) -> Value | None:
        """The lanes of a vector that belong to its panel: another panel begins after them."""
        return f.tail_mask(self.width - lane, self.lanes) if lane + self.lanes > self.width else None

    def _place(self, f: Function, block: Block, out: Value, k: Index, j: Index) -> Value:
        """Where element (k, j) goes, j the first column of a panel."""
        length = f.ceil_div(block.rows, self._terms)
        return f.at(out, f.add(f.mul(j, length), f.mul(f.div(k, self._terms), self.width)), self.format.compute)

    def _narrow(self, f: Function, value: Value) -> Value:
        """Rounded to bfloat16 by the machine's instruction, which its products use anyway."""
        return f.convert("fptrunc", value, BFLOAT) if element_of(value.type) != BFLOAT else value

    def _read(self, f: Function, block: Block, k: Index, j: Index, axis: int, lanes: int, mask: Value | None) -> Value:
        """``lanes`` elements from (k, j) on along ``axis``, converted and transformed."""
        matrix = block.matrix
        row, column = f.add(block.row, k), f.add(block.column, j)
        start = f.at(block.origin, f.add(f.mul(row, matrix.row), f.mul(column, matrix.column)), matrix.element)
        value = read_strided(f, start, matrix.element, matrix.column if axis == 1 else matrix.row, lanes, mask)
        if matrix.prologue is not None:
            if self.flipped:
                row, column, axis = column, row, 1 - axis
            value = matrix.prologue(f, Cells(block.batch, row, column, [value], [mask], axis))
        if self.format.pairs and element_of(value.type) == BFLOAT:
            return value
        if self.format.rounded and element_of(value.type) != BFLOAT:
            value = f.narrow_float(value, BFLOAT)
        return convert_element(f, value, self.format.compute)


def read_strided(f: Function, start: Value, element: str, stride: Index, lanes: int, mask: Value | None) -> Value:
    """``lanes`` elements that lie ``stride`` apart: one load where they are neighbours, else a gather."""
    type = vector(element, lanes)
    if _is_one(stride):
        return f.masked_load(type, start, mask)
    steps = f.binary("mul", f.iota("i64", lanes), f.splat(f.index(stride), lanes))
    return f.gather(type, start, steps, mask)


def convert_element(f: Function, value: Value, element: str) -> Value:
    """A value in another element type of the same kind: floats are rounded or widened, integers
    sign-extended.
    """
    source = element_of(value.type)
    if source == element:
        return value
    if is_float(source) and is_float(element):
        wider = bits_of(element) > bits_of(source)
        return f.widen_float(value, element) if wider else f.narrow_float(value, element)
    if not is_float(source) and not is_float(element):
        return f.convert("sext" if bytes_of(element) > bytes_of(source) else "trunc", value, element)
    return f.convert("sitofp", value, element)
