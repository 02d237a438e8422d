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
from argosy_cinn.printers.types import Index, Value, bits_of, bytes_of, element_of, is_float, vector

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


def pack_b(f: Function, block: Block, out: Value, width: int, lanes: int, compute: str) -> None:
    """Pack a block of B into panels of ``width`` columns at ``out``."""
    matrix = block.matrix
    if _is_one(matrix.column):
        _share(f, "pack_rows", (width, lanes, compute), block, out, _Packer(compute, lanes, width).rows)
    elif _is_one(matrix.row):
        _share(f, "pack_columns", (width, lanes, compute), block, out, _Packer(compute, lanes, width).columns)
    else:
        _share(f, "pack_strided", (width, lanes, compute), block, out, _Packer(compute, lanes, width).strided)


def pack_a(f: Function, block: Block, out: Value, height: int, compute: str) -> None:
    """Pack rows of A into tiles of ``height`` rows, ``[rows / height][k][height]``, at ``out``."""
    # Tiles of A are panels of its transpose.
    matrix = block.matrix
    flipped = Matrix(matrix.pointer, matrix.column, matrix.row, matrix.element, matrix.batch, matrix.prologue)
    turned = Block(flipped, block.origin, block.column, block.row, block.columns, block.rows, block.batch)
    lanes = 1 << (height - 1).bit_length()
    packer = _Packer(compute, lanes, height, flipped=True, unroll=GROUP if matrix.prologue is None else 1)
    if _is_one(flipped.column):
        _share(f, "pack_a_columns", (height, compute), turned, out, packer.rows)
    elif _is_one(flipped.row):
        _share(f, "pack_a_rows", (height, compute), turned, out, packer.columns)
    else:
        _share(f, "pack_a_strided", (height, compute), turned, out, packer.strided)


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


def _share(f: Function, name: str, kind: tuple[object, ...], block: Block, out: Value, emit: _Emit) -> None:
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
    unique = f.module.once((name, *kind, matrix.element, *unit), f"{name}_{matrix.element}", define)
    offset = f.add(f.mul(block.row, matrix.row), f.mul(block.column, matrix.column))
    sizes = [f.index(x) for x in (matrix.row, matrix.column, block.rows, block.columns)]
    f.call(unique, "void", f.at(block.origin, offset, matrix.element), *sizes, out)


@dataclass(slots=True)
class _Packer:
    """Copies a block into panels of ``width`` columns, ``lanes`` columns at a time."""

    compute: str
    lanes: int
    width: int
    flipped: bool = False
    unroll: int = 1

    @property
    def _groups(self) -> int:
        return -(-self.width // self.lanes)

    def rows(self, f: Function, block: Block, out: Value) -> None:
        """The source is contiguous along columns: whole rows are copied, for the hardware's prefetchers."""
        whole = f.sub(block.columns, f.rem(block.columns, self.width))
        wide = self.width * self.unroll
        many = f.sub(whole, f.rem(whole, wide))
        with f.loop(0, block.rows) as k:
            with f.loop(0, many, wide) as j:
                for u in range(self.unroll):
                    self._row(f, block, out, k.index, f.add(j.index, u * self.width), None)
            if self.unroll > 1:
                with f.loop(many, whole, self.width) as j:
                    self._row(f, block, out, k.index, j.index, None)
            with f.when(f.icmp("slt", whole, f.index(block.columns))):
                self._row(f, block, out, k.index, whole, f.sub(block.columns, whole))

    def _row(self, f: Function, block: Block, out: Value, k: Index, j: Index, count: Index | None) -> None:
        """One row of one panel; ``count`` columns exist (None: all)."""
        place = self._place(f, block, out, k, j)
        for v in range(self._groups):
            lane = v * self.lanes
            partial = count is not None or lane + self.lanes > self.width
            count_here = f.sub(self.width if count is None else count, lane)
            mask = f.tail_mask(count_here, self.lanes) if partial else None
            value = self._read(f, block, k, f.add(j, lane), 1, mask)
            f.masked_store(value, f.at(place, lane, self.compute), self._inside(f, lane))

    def strided(self, f: Function, block: Block, out: Value) -> None:
        """Any strides: lanes are gathered one by one."""
        with f.loop(0, block.rows) as k, f.loop(0, block.columns, self.width) as j:
            place = self._place(f, block, out, k.index, j.index)
            for v in range(self._groups):
                lane = v * self.lanes
                left = f.minimum(f.sub(block.columns, j.index), self.width)
                mask = f.tail_mask(f.sub(left, lane), self.lanes)
                value = self._read(f, block, k.index, f.add(j.index, lane), 1, mask, gather=True)
                f.masked_store(value, f.at(place, lane, self.compute), self._inside(f, lane))

    def columns(self, f: Function, block: Block, out: Value) -> None:
        """The source is contiguous along rows (k): square blocks are transposed in registers.

        A last block of k writes beyond its panel, where the next panel is written later (or into the slack).
        """
        with f.loop(0, block.columns, self.width) as j, f.loop(0, block.rows, self.lanes) as k:
            mask = f.tail_mask(f.sub(block.rows, k.index), self.lanes)
            for v in range(self._groups):
                self._transpose(f, block, out, k.index, f.add(j.index, v * self.lanes), mask, v * self.lanes, j.index)

    def _inside(self, f: Function, lane: int) -> Value | None:
        """The lanes of a vector that belong to its panel: another panel begins after them."""
        return f.tail_mask(self.width - lane, self.lanes) if lane + self.lanes > self.width else None

    def _transpose(
        self, f: Function, block: Block, out: Value, k: Index, j: Index, mask: Value, lane: int, panel: Index
    ) -> None:
        last = f.sub(block.columns, 1)
        rows = []
        for i in range(self.lanes):
            # Columns beyond the edge, or beyond the panel, repeat one that exists.
            exists = min(i, self.width - 1 - lane)
            rows.append(self._read(f, block, k, f.minimum(f.add(j, exists), last), 0, mask))
        place = self._place(f, block, out, k, panel)
        for i, value in enumerate(f.transpose(rows)):
            f.store(value, f.at(place, i * self.width + lane, self.compute))

    def _place(self, f: Function, block: Block, out: Value, k: Index, j: Index) -> Value:
        """Where element (k, j) goes, j the first column of a panel."""
        return f.at(out, f.add(f.mul(j, block.rows), f.mul(k, self.width)), self.compute)

    def _read(
        self,
        f: Function,
        block: Block,
        k: Index,
        j: Index,
        axis: int,
        mask: Value | None,
        gather: bool = False,
    ) -> Value:
        """``lanes`` elements from (k, j) on along ``axis``, converted and transformed."""
        matrix = block.matrix
        row, column = f.add(block.row, k), f.add(block.column, j)
        type = vector(matrix.element, self.lanes)
        start = f.at(block.origin, f.add(f.mul(row, matrix.row), f.mul(column, matrix.column)), matrix.element)
        if gather:
            steps = f.binary("mul", f.iota("i64", self.lanes), f.splat(f.index(matrix.column), self.lanes))
            value = f.gather(type, start, steps, mask)
        else:
            value = f.masked_load(type, start, mask)
        if matrix.prologue is None:
            return convert_element(f, value, self.compute)
        if self.flipped:
            row, column, axis = column, row, 1 - axis
        return matrix.prologue(f, Cells(block.batch, row, column, [value], [mask], axis))


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
