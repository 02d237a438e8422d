"""Operands of matrix products on work-groups: where their elements are, also through windows, computed, or in runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy_cinn.contraction.packing import convert_element
from argosy_cinn.forms.dtypes import FLOATS, UNSIGNED
from argosy_cinn.forms.product import Axis, OperandMatrix, Product, ProductForm
from argosy_cinn.loops import elementwise
from argosy_cinn.loops.elementwise import REGISTER
from argosy_cinn.loops.vectorize import Evaluator
from argosy_cinn.printers.types import LLVM_TYPES, Value
from argosy_cinn.printers.types import Index as MachineIndex
from argosy_cinn.printers.work_groups import WorkGroupInstructions


def compute_type(product: Product) -> str:
    """What terms are summed in."""
    source, result = product.op.operand(0).dtype, product.op.result.dtype
    return REGISTER[source if source in FLOATS else result]


class ProductOperands:
    """A product, its epilogue and its operands, of which a group has one batch."""

    def __init__(self, b: WorkGroupInstructions, form: ProductForm, pointers: Callable[[Any], Value]) -> None:
        self.b, self.product, self.epilogue, self.pointers = b, form.product, form.epilogue, pointers
        self.source, self.compute = self.product.op.operand(0).dtype, compute_type(self.product)

    def start(self, batch: MachineIndex) -> None:
        """Go to the first elements of a batch."""
        self.batch = self._batch(batch)
        self.left = self._start(self.product.left, self.product.left_batch)
        self.right = self._start(self.product.right, self.product.right_batch)

    def _batch(self, number: MachineIndex) -> list[MachineIndex]:
        b, found = self.b, []
        for i, extent in enumerate(reversed(self.product.batch)):
            last = i == len(self.product.batch) - 1
            found.append(number if last else b.rem(number, extent))
            number = number if last else b.div(number, extent)
        return found[::-1]

    def _start(self, side: OperandMatrix, steps: Sequence[int]) -> MachineIndex:
        """The place of an operand's first element in its buffer: before it, where a window begins outside."""
        b = self.b
        start: MachineIndex = side.offset
        for index, step in zip(self.batch, steps, strict=True):
            start = b.add(start, b.mul(index, step))
        return start

    def element(
        self,
        side: OperandMatrix,
        start: MachineIndex,
        k: MachineIndex,
        free: MachineIndex,
        depth: int,
        step: int,
        right: bool,
    ) -> Value:
        """An element of an operand, converted to what the product computes in."""
        b, memory = self.b, LLVM_TYPES[side.dtype]
        if side.window is not None:
            return self._window_element(side, start, *((k, free) if right else (free, k)))
        p = self.product
        jump = p.jump(side, depth)
        if jump:
            along = b.add(b.mul(b.div(k, p.run), jump), b.mul(b.rem(k, p.run), depth))
        else:
            along = b.mul(k, depth)
        place = b.gep(self.pointers(side.buffer), b.add(b.add(start, b.mul(free, step)), along), memory)
        return self.convert_operand(side, b.load(memory, place))

    def _window_element(
        self, side: OperandMatrix, start: MachineIndex, row: MachineIndex, column: MachineIndex
    ) -> Value:
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
            return self.convert_operand(side, b.load(memory, b.gep(base, place, memory)))
        read = b.load(memory, b.gep(base, b.select(inside, b.index(place), 0), memory))
        return self.convert_operand(side, b.select(inside, read, b.zero(memory)))

    def _split(self, index: MachineIndex, axes: Sequence[Axis]) -> list[tuple[Axis, MachineIndex]]:
        found = []
        for i, axis in enumerate(reversed(axes)):
            last = i == len(axes) - 1
            found.append((axis, index if last else self.b.rem(index, axis.extent)))
            index = index if last else self.b.div(index, axis.extent)
        return found

    def convert_operand(self, side: OperandMatrix, value: Value) -> Value:
        """An element as the product computes in it, after what is computed of it."""
        b, dtype = self.b, side.dtype
        if side.function is not None:
            assert side.element is not None
            inside = Evaluator(b, self.pointers, {})
            inside.known[side.element.number] = elementwise.load_element(b, value, side.element.dtype)
            value, dtype = inside.value(side.function), self.source
        return convert_element(b, value, self.compute, dtype in UNSIGNED)
