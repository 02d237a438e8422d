"""Matrix products on work-groups: each work-item sums a tile of rows and columns in registers.

The items of a group have rows of their own and share columns, whose part of the right operand they bring to local
memory, some terms at a time. The left one is read where it is, or from local memory, too, where its elements are seen
through a window (convolutions), computed, or lie in runs. Terms are summed in order, whatever the tiles. The epilogue
is computed from vectors of sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from argosy_cinn.forms.dtypes import NARROW
from argosy_cinn.forms.product import OperandMatrix, Product, ProductForm
from argosy_cinn.loops import elementwise
from argosy_cinn.loops.vectorize import Evaluator
from argosy_cinn.printers.types import FLOAT, LLVM_TYPES, Value, is_float, vector
from argosy_cinn.printers.types import Index as MachineIndex
from argosy_cinn.printers.work_groups import WorkGroupInstructions
from argosy_cinn.shapes import ceil_div, estimate, surely_less
from argosy_cinn.simt.emitter import SimtEmitter
from argosy_cinn.simt.matrix_tiles import MatrixTiles, MatrixTiling
from argosy_cinn.simt.product_operands import ProductOperands, compute_type
from argosy_cinn.target import Target

#: Columns and rows of a tile, and tiles below each other in a group.
_COLUMNS, _ROWS, _TILES = 16, 4, 16
#: Terms that are in local memory at a time.
_DEPTH = 64


def emit_product(b: WorkGroupInstructions, form: ProductForm, slots: Mapping[Any, int]) -> None:
    """Fill the kernel of a product and its siblings."""

    def pointers(buffer: Any) -> Value:
        return b.buffers[slots[buffer]]

    kind = MatrixTiles if _has_matrix_tiles(form, b.module.target) else _Product
    for each in (form, *form.siblings):
        kind(b, each, pointers).emit()


def extents(form: ProductForm, target: Target) -> tuple[int, int]:
    """Groups, and work-items of each."""
    if _has_matrix_tiles(form, target):
        tiles = MatrixTiling(form.product, target)
        return tiles.groups, tiles.items
    tiling = _Tiling(form.product, target)
    return prod(form.product.batch) * tiling.down * tiling.across, tiling.items


def _has_matrix_tiles(form: ProductForm, target: Target) -> bool:
    return bool(target.matrix_tiles) and is_float(compute_type(form.product))  # type: ignore[attr-defined]


class _Tiling:
    """How a product is cut: tiles of ``rows``, ``tiles`` below each other in a group; ``parts`` items with ``lanes``
    share the columns of a tile."""

    def __init__(self, product: Product, target: Target) -> None:
        self.lanes = target.lanes(FLOAT)
        self.parts = _COLUMNS // self.lanes
        rows = estimate(product.rows)
        self.rows = min(rows, _ROWS)
        self.tiles = min(_TILES, ceil_div(rows, self.rows))
        self.down = ceil_div(product.rows, self.rows * self.tiles)
        self.across = ceil_div(product.columns, _COLUMNS)
        self.items = self.tiles * self.parts


class _Product(ProductOperands):
    """The part of a group: tiles below each other, of one batch."""

    def __init__(self, b: WorkGroupInstructions, form: ProductForm, pointers: Callable[[Any], Value]) -> None:
        super().__init__(b, form, pointers)
        self.tiling = _Tiling(self.product, b.module.target)
        p, t = self.product, self.tiling
        self.depth = p.depth if surely_less(p.depth, _DEPTH) and isinstance(p.depth, int) else _DEPTH
        self.item = b.local_id()
        self.part = b.rem(self.item, t.parts)
        self.vector = vector(self.compute, t.lanes)
        # A single tile reads each element of the right operand once: nothing is gained where vectors are in memory.
        self.right_is_near = t.tiles == 1 and p.right_column == 1 and self._is_plain(p.right, p.right_depth)
        self.left_is_near = self._is_plain(p.left, p.left_depth)

    def _is_plain(self, side: OperandMatrix, depth: int) -> bool:
        return side.window is None and side.function is None and not self.product.jump(side, depth)

    def emit(self) -> None:
        """Sum the terms, and compute what follows from the sums."""
        b, t = self.b, self.tiling
        group = b.group_id()
        strip = b.div(group, t.across)
        self.column = b.mul(b.rem(group, t.across), _COLUMNS)
        self.top = b.mul(b.rem(strip, t.down), t.rows * t.tiles)
        self.first = b.add(self.top, b.mul(b.div(self.item, t.parts), t.rows))
        self.start(b.div(strip, t.down))
        tile = b.alloca(self.compute, t.rows * t.lanes)
        for i, total in enumerate(self._sums()):
            b.store(total, b.gep(tile, i * t.lanes, self.compute))
        self._finish(tile)

    def _sums(self) -> list[Value]:
        """The sums of the item's tile, row by row."""
        b, p, t = self.b, self.product, self.tiling
        packed = None if self.right_is_near else b.local_memory(self.compute, self.depth * _COLUMNS)
        left = None if self.left_is_near else b.local_memory(self.compute, self.depth * t.rows * t.tiles)
        zeros = [b.zero(self.vector)] * t.rows
        if packed is None and left is None:
            return self._terms(0, p.depth, packed, left, zeros)
        with b.loop(0, p.depth, self.depth, zeros) as loop:
            count = b.minimum(b.sub(p.depth, loop.index), self.depth) if p.depth % self.depth else self.depth
            b.barrier()
            if packed is not None:
                self._pack_right(packed, loop.index, count)
            if left is not None:
                self._pack_left(left, loop.index, count)
            b.barrier()
            loop.yield_values(*self._terms(loop.index, count, packed, left, loop.carry))
        return loop.results

    def _terms(
        self, start: MachineIndex, count: MachineIndex, packed: Value | None, left: Value | None,
        totals: Sequence[Value],
    ) -> list[Value]:  # fmt: skip
        """``totals`` with ``count`` terms more, from ``start`` on."""
        b, p, t = self.b, self.product, self.tiling
        memory = LLVM_TYPES[p.left.dtype]
        rows = [b.minimum(b.add(self.first, i), p.rows - 1) for i in range(t.rows)]
        places = [b.gep(self.pointers(p.left.buffer), b.add(self.left, b.mul(row, p.left_row)), memory) for row in rows]
        own = b.mul(b.div(self.item, t.parts), t.rows * self.depth)
        lane = b.mul(self.part, t.lanes)
        with b.loop(0, count, 1, totals) as loop:
            k, following = loop.index, []
            y = self._right_vector(packed, start, k, lane)
            for r in range(t.rows):
                if left is None:
                    term = b.load(memory, b.gep(places[r], b.mul(b.add(start, k), p.left_depth), memory))
                    x = self.convert_operand(p.left, term)
                else:
                    x = b.load(self.compute, b.gep(left, b.add(b.add(own, r * self.depth), k), self.compute))
                following.append(self._sum(b.splat(x, t.lanes), y, loop.carry[r]))
            loop.yield_values(*following)
        return loop.results

    def _right_vector(self, packed: Value | None, start: MachineIndex, k: Value, across: MachineIndex) -> Value:
        """A vector of the right operand, the tile's elements from ``across`` on."""
        b, p, t = self.b, self.product, self.tiling
        if packed is not None:
            return b.load(self.vector, b.gep(packed, b.add(b.mul(k, _COLUMNS), across), self.compute))
        memory = LLVM_TYPES[p.right.dtype]
        column = b.add(self.column, across)
        row = b.gep(self.pointers(p.right.buffer), b.add(self.right, b.mul(b.add(start, k), p.right_depth)), memory)
        mask = b.tail_mask(b.sub(p.columns, column), t.lanes) if p.columns % _COLUMNS else None
        return self.convert_operand(p.right, b.masked_load(vector(memory, t.lanes), b.gep(row, column, memory), mask))

    def _sum(self, x: Value, y: Value, total: Value) -> Value:
        b = self.b
        return b.fma(x, y, total) if is_float(self.compute) else b.binary("add", total, b.binary("mul", x, y))

    # -- operands in local memory

    def _pack_left(self, left: Value, start: MachineIndex, count: MachineIndex) -> None:
        """Rows of all tiles, term after term."""
        b, p, t = self.b, self.product, self.tiling
        with b.loop(self.item, t.rows * t.tiles * self.depth, t.items) as loop:
            row = b.minimum(b.add(self.top, b.div(loop.index, self.depth)), p.rows - 1)
            k = b.rem(loop.index, self.depth)
            with b.if_then(b.icmp("slt", b.index(k), count)):
                x = self.element(p.left, self.left, b.add(start, k), row, p.left_depth, p.left_row, False)
                b.store(x, b.gep(left, loop.index, self.compute))

    def _pack_right(self, packed: Value, start: Value, count: MachineIndex) -> None:
        """Terms of the tile's columns, column after column."""
        b, p, t = self.b, self.product, self.tiling
        plain = self._is_plain(p.right, p.right_depth)
        if plain and p.right_column == 1:
            whole = b.icmp("sge", b.index(b.sub(p.columns, self.column)), _COLUMNS)
            b.either(whole, lambda: self._copy_rows(packed, start, count), lambda: self._copy(packed, start, count))
        elif plain and p.right_depth == 1 and self.depth % t.lanes == 0:
            whole = b.icmp("eq", b.index(count), self.depth)
            b.either(whole, lambda: self._turn(packed, start), lambda: self._copy(packed, start, count))
        else:
            self._copy(packed, start, count)

    def _copy_rows(self, packed: Value, start: Value, count: MachineIndex) -> list[Value]:
        """Vectors as they lie."""
        b, p, t = self.b, self.product, self.tiling
        memory, width = LLVM_TYPES[p.right.dtype], t.parts
        base = b.gep(self.pointers(p.right.buffer), b.add(self.right, self.column), memory)
        with b.loop(self.item, b.mul(count, width), t.items) as loop:
            k, across = b.div(loop.index, width), b.mul(b.rem(loop.index, width), t.lanes)
            place = b.gep(base, b.add(b.mul(b.add(start, k), p.right_depth), across), memory)
            read = self.convert_operand(p.right, b.load(vector(memory, t.lanes), place))
            b.store(read, b.gep(packed, b.mul(loop.index, t.lanes), self.compute))
        return []

    def _turn(self, packed: Value, start: Value) -> list[Value]:
        """Vectors along the terms, whose elements go to rows of their own."""
        b, p, t = self.b, self.product, self.tiling
        memory, width = LLVM_TYPES[p.right.dtype], self.depth // t.lanes
        with b.loop(self.item, _COLUMNS * width, t.items) as loop:
            across, k = b.div(loop.index, width), b.mul(b.rem(loop.index, width), t.lanes)
            column = b.minimum(b.add(self.column, across), p.columns - 1)
            place = b.add(b.add(self.right, b.mul(column, p.right_column)), b.add(start, k))
            read = b.load(vector(memory, t.lanes), b.gep(self.pointers(p.right.buffer), place, memory))
            read = self.convert_operand(p.right, read)
            for i in range(t.lanes):
                to = b.add(b.mul(b.add(k, i), _COLUMNS), across)
                b.store(b.extract(read, i), b.gep(packed, to, self.compute))
        return []

    def _copy(self, packed: Value, start: Value, count: MachineIndex) -> list[Value]:
        """Element by element, in the order of memory."""
        b, p, t = self.b, self.product, self.tiling
        along = p.right.window is None and estimate(p.right_depth) < estimate(p.right_column)
        width = self.depth if along else _COLUMNS
        with b.loop(self.item, _COLUMNS * self.depth, t.items) as loop:
            slow, fast = b.div(loop.index, width), b.rem(loop.index, width)
            across, k = (slow, fast) if along else (fast, slow)
            with b.if_then(b.icmp("slt", b.index(k), count)):
                column = b.minimum(b.add(self.column, across), p.columns - 1)
                y = self.element(p.right, self.right, b.add(start, k), column, p.right_depth, p.right_column, True)
                b.store(y, b.gep(packed, b.add(b.mul(k, _COLUMNS), across), self.compute))
        return []

    def _finish(self, tile: Value) -> None:
        """The epilogue of each vector of sums in ``tile``."""
        b, p, t = self.b, self.product, self.tiling
        own = b.minimum(b.sub(p.rows, self.first), t.rows)
        column = b.add(self.column, b.mul(self.part, t.lanes))
        with b.loop(0, own) as loop:
            row = b.add(self.first, loop.index)
            total = b.load(self.vector, b.gep(tile, b.mul(loop.index, t.lanes), self.compute))
            dtype = p.op.result.dtype
            rounded = elementwise.round_to(b, total, dtype) if dtype in NARROW else total
            variables = {v.number: i for v, i in zip(self.epilogue.variables, (*self.batch, row, column), strict=True)}

            def store(mask: Value | None) -> list[Value]:
                lane = self.epilogue.variables[-1].number
                inside = Evaluator(b, self.pointers, variables, lane, t.lanes, mask)
                inside.known[self.epilogue.cell.number] = rounded
                inside.store_all(self.epilogue.stores)
                return []

            if p.columns % t.lanes == 0:
                with b.if_then(b.icmp("slt", b.index(column), p.columns)):
                    store(None)
            else:
                left = b.index(b.sub(p.columns, column))
                b.either(b.icmp("sge", left, t.lanes), lambda: store(None), lambda: store(b.tail_mask(left, t.lanes)))


EMITTER = SimtEmitter(emit_product, extents)
"""For `argosy_cinn.kinds`."""
