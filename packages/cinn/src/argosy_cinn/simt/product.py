"""Matrix products on work-groups: each work-item computes some rows of one column, in registers.

Neighbouring items have neighbouring columns, so that elements of the right operand are read side by side, and those of
the left one are the same for all. Terms are summed in order. Windows (convolutions), runs of terms, prologues and
batches are where elements are read; the epilogue is computed from each sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from argosy_cinn.contraction.packing import convert_element
from argosy_cinn.forms.dtypes import FLOATS, UNSIGNED
from argosy_cinn.forms.product import Axis, OperandMatrix, Product, ProductForm
from argosy_cinn.loops import elementwise
from argosy_cinn.loops.elementwise import REGISTER
from argosy_cinn.loops.vectorize import Evaluator
from argosy_cinn.printers.opencl import Kernel
from argosy_cinn.printers.types import LLVM_TYPES, Value, is_float
from argosy_cinn.printers.types import Index as MachineIndex
from argosy_cinn.simt.emitter import SimtEmitter

#: Work-items of a group, and rows that each computes.
_ITEMS, _ROWS = 64, 8


def emit_product(b: Kernel, form: ProductForm, slots: Mapping[Any, int]) -> None:
    """Fill the kernel of a product and its siblings."""

    def pointers(buffer: Any) -> Value:
        return b.buffers[slots[buffer]]

    for each in (form, *form.siblings):
        _Product(b, each, pointers).emit()


def extents(form: ProductForm) -> tuple[int, int]:
    """Groups, and work-items of each."""
    p = form.product
    return prod(p.batch) * -(-p.rows // _height(p)) * -(-p.columns // _ITEMS), _ITEMS


def _height(product: Product) -> int:
    return min(product.rows, _ROWS)


class _Product:
    """The part of a group: a strip of rows and columns of one batch."""

    def __init__(self, b: Kernel, form: ProductForm, pointers: Callable[[Any], Value]) -> None:
        self.b, self.product, self.epilogue, self.pointers = b, form.product, form.epilogue, pointers
        source, result = self.product.op.operand(0).dtype, self.product.op.result.dtype
        self.source, self.compute = source, REGISTER[source if source in FLOATS else result]

    def emit(self) -> None:
        """Sum the terms of each row, and compute what follows from it."""
        b, p = self.b, self.product
        height = _height(p)
        group = b.group_id()
        across = -(-p.columns // _ITEMS)
        column = b.add(b.mul(b.rem(group, across), _ITEMS), b.local_id())
        strip = b.div(group, across)
        first = b.mul(b.rem(strip, -(-p.rows // height)), height)
        batch = self._batch(b.div(strip, -(-p.rows // height)))
        with b.when(b.icmp("slt", b.index(column), p.columns)):
            rows = [b.minimum(b.add(first, i), p.rows - 1) for i in range(height)]
            for i, total in enumerate(self._sums(batch, rows, column)):
                with b.when(b.icmp("slt", b.index(b.add(first, i)), p.rows)):
                    self._finish([*batch, rows[i], column], total)

    def _batch(self, number: MachineIndex) -> list[MachineIndex]:
        b, found = self.b, []
        for i, extent in enumerate(reversed(self.product.batch)):
            last = i == len(self.product.batch) - 1
            found.append(number if last else b.rem(number, extent))
            number = number if last else b.div(number, extent)
        return found[::-1]

    def _sums(self, batch: Sequence[MachineIndex], rows: Sequence[MachineIndex], column: MachineIndex) -> list[Value]:
        b, p = self.b, self.product
        starts = [self._start(side, steps, batch) for side, steps in ((p.left, p.left_batch), (p.right, p.right_batch))]
        zeros = [b.zero(self.compute) for _ in rows]
        with b.loop(0, p.depth, 1, zeros) as loop:
            k = loop.index
            y = self._element(p.right, starts[1], k, column, p.right_depth, p.right_column, True)
            following = []
            for row, total in zip(rows, loop.carry, strict=True):
                x = self._element(p.left, starts[0], k, row, p.left_depth, p.left_row, False)
                following.append(self._sum(x, y, total))
            loop.next(*following)
        return loop.results

    def _sum(self, x: Value, y: Value, total: Value) -> Value:
        b = self.b
        return b.fma(x, y, total) if is_float(self.compute) else b.binary("add", total, b.binary("mul", x, y))

    # -- elements of operands

    def _start(self, side: OperandMatrix, steps: Sequence[int], batch: Sequence[MachineIndex]) -> MachineIndex:
        """The place of an operand's first element in its buffer: before it, where a window begins outside."""
        b = self.b
        start: MachineIndex = side.offset
        for index, step in zip(batch, steps, strict=True):
            start = b.add(start, b.mul(index, step))
        return start

    def _element(
        self, side: OperandMatrix, start: MachineIndex, k: Value, free: MachineIndex, depth: int, step: int, right: bool
    ) -> Value:
        """An element of an operand, converted to what the product computes in."""
        b, memory = self.b, LLVM_TYPES[side.dtype]
        if side.window is not None:
            return self._seen(side, start, *((k, free) if right else (free, k)))
        p = self.product
        jump = p.jump(side, depth)
        if jump:
            along = b.add(b.mul(b.div(k, p.run), jump), b.mul(b.rem(k, p.run), depth))
        else:
            along = b.mul(k, depth)
        place = b.at(self.pointers(side.buffer), b.add(b.add(start, b.mul(free, step)), along), memory)
        return self._converted(side, b.load(memory, place))

    def _seen(self, side: OperandMatrix, start: MachineIndex, row: MachineIndex, column: MachineIndex) -> Value:
        """An element that is seen through a window: zero outside of its bounds."""
        b, window, memory, base = self.b, side.window, LLVM_TYPES[side.dtype], self.pointers(side.buffer)
        assert window is not None
        axes = [*self._split(row, window.rows), *self._split(column, window.columns)]
        place = start
        for axis, index in axes:
            place = b.add(place, b.mul(index, axis.stride))
        inside: Value | None = None
        for j, (first, size) in enumerate(window.bounds):
            coordinate: MachineIndex = first
            for axis, index in axes:
                if axis.steps and axis.steps[j]:
                    coordinate = b.add(coordinate, b.mul(index, axis.steps[j]))
            within = b.icmp("ult", b.index(coordinate), size)
            inside = within if inside is None else b.binary("and", inside, within)
        if inside is None:
            return self._converted(side, b.load(memory, b.at(base, place, memory)))
        read = b.load(memory, b.at(base, b.select(inside, b.index(place), 0), memory))
        return self._converted(side, b.select(inside, read, b.zero(memory)))

    def _split(self, index: MachineIndex, axes: Sequence[Axis]) -> list[tuple[Axis, MachineIndex]]:
        found = []
        for i, axis in enumerate(reversed(axes)):
            last = i == len(axes) - 1
            found.append((axis, index if last else self.b.rem(index, axis.extent)))
            index = index if last else self.b.div(index, axis.extent)
        return found

    def _converted(self, side: OperandMatrix, value: Value) -> Value:
        b, dtype = self.b, side.dtype
        if side.function is not None:
            assert side.element is not None
            inside = Evaluator(b, self.pointers, {})
            inside.known[side.element.number] = elementwise.load_element(b, value, side.element.dtype)
            value, dtype = inside.value(side.function), self.source
        return convert_element(b, value, self.compute, dtype in UNSIGNED)

    def _finish(self, position: Sequence[MachineIndex], total: Value) -> None:
        variables = {v.number: i for v, i in zip(self.epilogue.variables, position, strict=True)}
        inside = Evaluator(self.b, self.pointers, variables)
        inside.known[self.epilogue.cell.number] = total
        inside.store_all(self.epilogue.stores)


EMITTER = SimtEmitter(emit_product, extents)
"""For `argosy_cinn.kinds`."""
