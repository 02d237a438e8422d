"""Matrix products with an epilogue, over strided matrices whatever views lie between; convolutions are products of
operands that are seen through windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar

from argosy_cinn.forms.cost import bytes_read, operations
from argosy_cinn.forms.dtypes import PARTS
from argosy_cinn.forms.expressions import Expression, Graph, describe, loaded_buffers
from argosy_cinn.forms.form import Form
from argosy_cinn.forms.indices import Index, Variable, atom_index
from argosy_cinn.forms.nest import Store, identifier
from argosy_cinn.shapes import nbytes, sizes
from argosy_phi_ops.primitives.cost import Cost
from argosy_pir.core import Operation
from argosy_pir.types import ITEM_SIZES
from argosy_pir.values import Value

#: Elements that are far apart are as good as so many neighbours.
_WORTH_GATHERING = 8


@dataclass(frozen=True, slots=True)
class Axis:
    """One of the axes that the rows or columns of an operand are made of: how many elements, how far they are apart in
    memory, and how far they are apart along each of the window's bounds."""

    extent: int
    stride: int
    steps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Window:
    """An operand that looks at memory through windows (the patches of an image): rows and columns are made of several
    axes, the last one the fastest. ``bounds`` are (first, size) of the coordinates that have to be inside: an element
    is zero unless ``0 <= first + sum(index * step) < size`` for each."""

    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    bounds: tuple[tuple[int, int], ...] = ()

    @property
    def runs_along_rows(self) -> bool:
        """Whether neighbours in memory rather follow each other along the rows than along the columns."""
        rows, columns = (
            inner.extent if inner.stride <= 2 else min(inner.extent, _WORTH_GATHERING)
            for inner in (self.rows[-1], self.columns[-1])
        )
        return rows > columns

    @property
    def period(self) -> int:
        """Rows that are copied together where vectors lie along the columns: those of one channel."""
        return prod(axis.extent for axis in self.rows[1:])


@dataclass(slots=True)
class OperandMatrix:
    """Element (batch, free, contracted) of an operand at ``offset + sums of index * stride`` in ``buffer``.

    Strides are in elements, one for each axis of the product's batch and free axes, and one for the contracted axes
    together. The buffer's dtype may be another than the operand's: the product then converts what it reads. ``run`` and
    ``jump`` as in `Contraction`. With a ``window`` the free and contracted axes are those of the window."""

    buffer: Value
    offset: int
    batch: tuple[int, ...]
    free: tuple[int, ...]
    depth: int
    function: Expression | None = None
    element: Expression | None = None
    run: int = 0
    jump: int = 0
    window: Window | None = None

    @property
    def dtype(self) -> str:
        """The dtype of what is read: that of the buffer, or of a part of its complex numbers."""
        return PARTS.get(self.buffer.dtype, self.buffer.dtype)

    def merged_axes(self, sizes: tuple[int, ...]) -> int:
        """How many trailing free axes are one: all of them are columns of a window."""
        return len(sizes) if self.window is not None else mergeable_suffix(sizes, self.free)

    def step(self, sizes: tuple[int, ...]) -> int:
        """The stride of the free axes that are one."""
        first = len(sizes) - self.merged_axes(sizes)
        return 0 if self.window is not None else merge_axes(sizes[first:], self.free[first:]) or 0


@dataclass(slots=True)
class ProductAxes:
    """Sizes of a product's axes."""

    batch: tuple[int, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    contracted: tuple[int, ...]


def product_axes(op: Operation) -> ProductAxes:
    """The axes of a dot_general."""
    a = op.attributes
    lhs, rhs = sizes(op.operand(0)), sizes(op.operand(1))
    used_left, used_right = {*a["lhs_batch"], *a["lhs_contract"]}, {*a["rhs_batch"], *a["rhs_contract"]}
    return ProductAxes(
        tuple(lhs[i] for i in a["lhs_batch"]),
        tuple(n for i, n in enumerate(lhs) if i not in used_left),
        tuple(n for i, n in enumerate(rhs) if i not in used_right),
        tuple(lhs[i] for i in a["lhs_contract"]),
    )


def merge_axes(sizes: tuple[int, ...], strides: tuple[int, ...]) -> int | None:
    """The one stride of several axes run through in row-major order, or None."""
    stride, expected = None, None
    for n, s in zip(reversed(sizes), reversed(strides), strict=True):
        if n == 1:
            continue
        if stride is None:
            stride, expected = s, s * n
        elif s == expected:
            expected = s * n
        else:
            return None
    return stride if stride is not None else 0


def mergeable_suffix(sizes: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """How many trailing axes run through memory with one stride."""
    count = len(sizes)
    while count > 0 and merge_axes(sizes[len(sizes) - count :], strides[len(sizes) - count :]) is None:
        count -= 1
    return count


@dataclass(slots=True)
class Product:
    """A dot_general laid out for the matrix product emitters: batch axes (given ones, then free axes of either side
    that do not merge), rows, columns, and the position of every result element. ``minimal`` as in `Contraction`.
    ``scales`` and ``offsets`` (or None) [groups, columns], of groups of ``group`` terms, as operands."""

    op: Operation
    left: OperandMatrix
    right: OperandMatrix
    batch: tuple[int, ...]
    left_batch: tuple[int, ...]
    right_batch: tuple[int, ...]
    rows: int
    columns: int
    depth: int
    left_row: int
    right_column: int
    left_depth: int
    right_depth: int
    minimal: bool = False
    scales: OperandMatrix | None = None
    offsets: OperandMatrix | None = None
    group: int = 0

    @property
    def operands(self) -> tuple[OperandMatrix, ...]:
        """All that it has: two sides, and what groups have."""
        return tuple(m for m in (self.left, self.right, self.scales, self.offsets) if m is not None)

    @property
    def buffers(self) -> set[Value]:
        """What its operands are read from."""
        return {operand.buffer for operand in self.operands}

    def result_index(self, variables: list[Variable]) -> Index:
        """The row-major position of result element (batch..., row, column)."""
        *batch, row, column = variables
        axes = product_axes(self.op)
        outer = len(axes.batch)
        right_extra = len(axes.right) - self._merge_right
        left_extra = len(axes.left) - self._merge_left
        order = [
            *batch[: outer + left_extra],
            row,
            *batch[outer + left_extra : outer + left_extra + right_extra],
            column,
        ]
        flat, step = Index(()), 1
        for v in reversed(order):
            flat = flat + atom_index(v) * step
            step *= v.extent
        return flat

    @property
    def run(self) -> int:
        """Terms of a run, where they come in runs."""
        return self.left.run or self.right.run

    def jump(self, side: OperandMatrix, step: int) -> int:
        """From run to run, of an operand whose terms lie ``step`` apart within one."""
        if not self.run:
            return 0
        return side.jump if side.run else self.run * step

    @property
    def _merge_left(self) -> int:
        return self.left.merged_axes(product_axes(self.op).left)

    @property
    def _merge_right(self) -> int:
        return self.right.merged_axes(product_axes(self.op).right)

    def key(self, slots: Mapping[Any, int]) -> str:
        """What its code depends on, as text: products of equal text are one kernel."""
        sides: list[Any] = []
        for m in self.operands:
            function = describe([m.function], {}) if m.function is not None else ""
            sides.append((slots[m.buffer], m.offset, m.dtype, function, m.run, m.jump, m.window))
        sides += [(self.group, m.free, m.depth) for m in self.operands[2:]]
        numbers = (self.batch, self.left_batch, self.right_batch, self.rows, self.columns, self.depth, self.left_row,
                   self.right_column, self.left_depth, self.right_depth, self.minimal)  # fmt: skip
        return f"product {sides} {numbers} {self.op.operand(0).dtype} {self.op.result.dtype}"

    def variables(self) -> list[Variable]:
        """Loop variables of (batch..., row, column)."""
        return [Variable(i, n) for i, n in enumerate((*self.batch, self.rows, self.columns))]


@dataclass(slots=True)
class Epilogue:
    """What is computed from each element of a matrix product: ``cell`` stands for the element, whose position is given
    by ``variables`` (batch..., row, column)."""

    graph: Graph
    variables: list[Any]
    cell: Expression
    stores: list[Store]

    def key(self, slots: dict[Any, int]) -> str:
        """What its code depends on."""
        parts = [describe([s.node for s in self.stores], slots)]
        for s in self.stores:
            parts.append(f"store {slots.setdefault(s.buffer, len(slots))} {s.index} {s.dtype} {s.streaming}")
        return "\n".join(parts)


@dataclass(slots=True)
class ProductForm(Form):
    """A matrix product with its epilogue, and ``siblings``: products of the same matrices that differ in what they
    make of an element of the right one, and share its read."""

    kind: ClassVar[str] = "product"

    product: Product
    epilogue: Epilogue
    siblings: list[ProductForm] = field(default_factory=list)

    @property
    def stores(self) -> list[Store]:
        """What is stored of each element."""
        return self.epilogue.stores

    def rebase_loads(self) -> dict[Any, int]:
        """Of buffers that only the epilogue of one product reads."""
        if self.siblings:
            return {}
        return self.epilogue.graph.rebase_loads({*self.product.buffers, *(s.buffer for s in self.stores)})

    def key(self, slots: dict[Any, int]) -> str:
        """The operands, the epilogue, and those of its siblings."""
        p = self.product
        for operand in p.operands:
            slots.setdefault(operand.buffer, len(slots))
        parts = [p.key(slots), self.epilogue.key(slots), *(s.key(slots) for s in self.siblings)]
        return "\n".join(parts)

    def name(self) -> str:
        """Its three sizes."""
        return identifier("product", self.product.rows, self.product.columns, self.product.depth)

    def summary(self, method: str = "") -> str:
        """Its sizes, the method where it is not the plain one, and how much is computed of each element."""
        p = self.product
        shape = f"{'x'.join(map(str, p.batch))} of " if p.batch else ""
        times = f"{1 + len(self.siblings)} times " if self.siblings else ""
        fused = sum(len(form.epilogue.graph.order) - 1 for form in (self, *self.siblings))
        return f"{times}{shape}{p.rows} x {p.columns} x {p.depth}{method}, epilogue of {fused} operations"

    def reads(self) -> set[Any]:
        """Its operands, and what the epilogue loads."""
        return self.product.buffers | loaded_buffers(self.epilogue.graph)

    def cost(self) -> Cost:
        """Two operations for every term; siblings read their operands once."""
        first = self._own_cost()
        operands = sum(self._operand_bytes().values())
        for sibling in self.siblings:
            cost = sibling.cost()
            read, written = first.read + cost.read - operands, first.written + cost.written
            first = Cost(read, written, first.operations + cost.operations)
        return first

    def _operand_bytes(self) -> dict[Value, int]:
        return {buffer: nbytes(buffer) for buffer in self.product.buffers}

    def _own_cost(self) -> Cost:
        product, epilogue, operands = self.product, self.epilogue, self._operand_bytes()
        cells = prod(product.batch) * product.rows * product.columns
        work = 2 * cells * product.depth + operations(epilogue.graph.order, epilogue.variables)
        others = [n for n in epilogue.graph.order if n.kind != "load" or n.payload[0] not in operands]
        read = sum(operands.values()) + bytes_read(others, epilogue.variables)
        return Cost(read, sum(cells * ITEM_SIZES[s.dtype] for s in epilogue.stores), work)

    def streaming_candidates(self, vector_bits: int) -> list[Store]:
        """Stores of whole vectors: one has its place in a tile, and other stores come before the next one."""
        row = self.epilogue.variables[-1]
        return [s for s in self.epilogue.stores if s.fills_lines(row, least=4)] if vector_bits == 512 else []
