"""Matrix products by tiles of matrices: sub-groups multiply and add them, see `WorkGroupInstructions.mma`.

A sub-group sums some tiles below each other, as wide as it has items; those of a group are below each other. Terms are
summed in the order of `simt.product`: where the instruction is its portable definition, the bits are the same.
"""

from __future__ import annotations

from math import prod

from argosy_cinn.forms.dtypes import NARROW
from argosy_cinn.forms.product import OperandMatrix, Product
from argosy_cinn.loops import elementwise
from argosy_cinn.loops.vectorize import Evaluator
from argosy_cinn.printers.types import Index as MachineIndex
from argosy_cinn.printers.types import Value, vector
from argosy_cinn.shapes import ceil_div, estimate
from argosy_cinn.simt.product_operands import ProductOperands
from argosy_cinn.target import Target

#: Rows of a tile, and tiles of a sub-group below each other.
_ROWS, _TILES = 8, 4


class MatrixTiling:
    """How a product is cut: ``width`` columns, and ``rows`` for each of ``sub_groups`` of a group."""

    def __init__(self, product: Product, target: Target) -> None:
        self.width = target.sub_group  # type: ignore[attr-defined]
        self.tiles = min(_TILES, ceil_div(estimate(product.rows), _ROWS))
        self.rows = self.tiles * _ROWS
        most = max(1, target.group_items // self.width)  # type: ignore[attr-defined]
        self.sub_groups = min(most, ceil_div(estimate(product.rows), self.rows))
        self.down = ceil_div(product.rows, self.rows * self.sub_groups)
        self.across = ceil_div(product.columns, self.width)
        self.items = self.sub_groups * self.width
        self.groups = prod(product.batch) * self.down * self.across


class MatrixTiles(ProductOperands):
    """The part of a group."""

    def emit(self) -> None:
        """Sum the terms, and compute what follows from the sums."""
        b, p = self.b, self.product
        t = self.tiling = MatrixTiling(p, b.module.target)
        group, item = b.group_id(), b.local_id()
        strip = b.div(group, t.across)
        self.lane = b.rem(item, t.width)
        self.column = b.add(b.mul(b.rem(group, t.across), t.width), self.lane)
        top = b.mul(b.rem(strip, t.down), t.rows * t.sub_groups)
        self.first = b.add(top, b.mul(b.div(item, t.width), t.rows))
        self.start(b.div(strip, t.down))
        memory = b.alloca(self.compute, t.rows)
        zeros = [b.zero(vector(self.compute, _ROWS))] * t.tiles
        with b.loop(0, p.depth, t.width, zeros) as loop:
            right = [self._right_element(b.add(loop.index, k)) for k in range(t.width)]
            lefts = [self._left_elements(b.add(loop.index, self.lane), i * _ROWS) for i in range(t.tiles)]
            sums = zip(lefts, loop.carry, strict=True)
            loop.yield_values(*[b.mma(left, right, total) for left, total in sums])
        for i, total in enumerate(loop.results):
            b.store(total, b.gep(memory, i * _ROWS, self.compute))
        self._finish(memory)

    def _right_element(self, k: MachineIndex) -> Value:
        """An element of the item's column of the right operand."""
        p = self.product
        column = self.b.minimum(self.column, p.columns - 1)
        return self._term(p.right, self.right, k, column, p.right_depth, p.right_column, True)

    def _left_elements(self, k: MachineIndex, row: int) -> list[Value]:
        """Elements along the item's column of the left operand, from a row of the sub-group's on."""
        b, p = self.b, self.product
        rows = [b.minimum(b.add(self.first, row + i), p.rows - 1) for i in range(_ROWS)]
        return [self._term(p.left, self.left, k, each, p.left_depth, p.left_row, False) for each in rows]

    def _term(
        self, side: OperandMatrix, start: MachineIndex, k: MachineIndex, free: MachineIndex, depth: int, step: int,
        right: bool,
    ) -> Value:  # fmt: skip
        """An element; zero beyond the last term."""
        b, p = self.b, self.product
        if p.depth % self.tiling.width == 0:
            return self.element(side, start, k, free, depth, step, right)
        x = self.element(side, start, b.minimum(k, p.depth - 1), free, depth, step, right)
        return b.select(b.icmp("slt", b.index(k), p.depth), x, b.zero(self.compute))

    def _finish(self, memory: Value) -> None:
        """The epilogue of the item's sums, which are below each other."""
        b, p = self.b, self.product
        left = b.minimum(b.sub(p.rows, self.first), self.tiling.rows)
        with b.if_then(b.icmp("slt", b.index(self.column), p.columns)), b.loop(0, left) as loop:
            total = b.load(self.compute, b.gep(memory, loop.index, self.compute))
            dtype = p.op.result.dtype
            indices = (*self.batch, b.add(self.first, loop.index), self.column)
            variables = {v.number: i for v, i in zip(self.epilogue.variables, indices, strict=True)}
            inside = Evaluator(b, self.pointers, variables)
            inside.known[self.epilogue.cell.number] = (
                elementwise.round_to(b, total, dtype) if dtype in NARROW else total
            )
            inside.store_all(self.epilogue.stores)
