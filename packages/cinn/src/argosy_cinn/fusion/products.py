"""Matrix products: operands as strided matrices over memory, whatever views lie between.

The free axes of an operand become one row axis where their strides allow, and batch axes where not, so that
transposes, reshapes and slices of an operand cost nothing. Only contracted axes must be one stride on both sides.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import prod

from argosy_cinn.contraction.skinny_blocking import MOST
from argosy_cinn.dialect import PATCHES, SCALED
from argosy_cinn.forms.cost import COSTS
from argosy_cinn.forms.dtypes import FLOATS
from argosy_cinn.forms.elementwise import OPERATIONS
from argosy_cinn.forms.expressions import Expression, Graph, describe
from argosy_cinn.forms.indices import Index, Position, Variable, atom_index
from argosy_cinn.forms.product import Axis, OperandMatrix, Product, Window, merge_axes, product_axes
from argosy_cinn.fusion.windows import join_axes, linear_view
from argosy_cinn.lowering.elements import VIEWS, ElementLowering
from argosy_cinn.shapes import sizes, surely_at_least
from argosy_pir.core import Operation
from argosy_pir.types import ITEM_SIZES
from argosy_pir.values import OpResult, Value

#: Work on an element that a product may do again whenever it reads it.
_MOST_WORK = 16
#: Terms of a run, from which on steps along k are long enough to stop at its end.
_SHORTEST_RUN = 128
#: Neighbours in memory that a vector is made of at least, and terms of a channel that are copied together.
_SHORTEST_PIECE, _LONGEST_PERIOD = 4, 400
#: Dtypes whose numbers are numbers of a wider one; a product converts them as it reads them.
_EXACT = {
    "float32": ("bfloat16", "float16", "int8", "uint8", "int16", "uint16"),
    "float64": ("float32",),
    "bfloat16": ("int8", "uint8"),
    "float16": ("int8", "uint8"),
    "int32": ("int8", "uint8", "int16", "uint16"),
}


def operand_matrix(op: Operation, index: int, in_memory: Container[Value]) -> OperandMatrix | None:
    """An operand as a matrix over a buffer (operands 2 and 3 of a scaled product are scales and offsets); None where it
    has to be copied first."""
    plain = _strided_matrix(op, index, in_memory)
    if op.name == SCALED and index > 0:
        return plain if plain is not None and (index >= 2 or plain.depth == 1) else None
    if plain is not None:
        return plain
    found = _windowed_matrix(op, index, in_memory)
    if found is not None and found.run and index == 1:  # both operands jump at the same terms
        left = operand_matrix(op, 0, in_memory)
        return None if left is not None and left.run not in (0, found.run) else found
    return found


def _strided_matrix(op: Operation, index: int, in_memory: Container[Value]) -> OperandMatrix | None:
    side = "lhs" if index == 0 else "rhs"
    batch, contracted = op.attributes[f"{side}_batch"], op.attributes[f"{side}_contract"]
    if index >= 2:
        batch, contracted = (), (0,)
    operand = op.operand(index)
    variables = [Variable(i, n) for i, n in enumerate(sizes(operand))]
    lowering = ElementLowering(Graph(), in_memory, lambda value, position: None, split=False)
    lowering.immediates = False
    node = lowering.value(operand, Position(sizes(operand), None, tuple(atom_index(v) for v in variables)))
    function = None if node.kind == "load" else node
    element = _element_of(node, narrow=index < 2)
    if element is None:
        return None
    if node.kind == "cast" and node.arguments[0] is element and element.dtype in _EXACT.get(node.dtype, ()):
        function = None
    buffer, flat = element.payload
    strides = _strides(flat, variables)
    if strides is None or not surely_at_least(flat.low, 0):
        return None
    free = [i for i in range(len(sizes(operand))) if i not in batch and i not in contracted]
    depth = merge_axes(tuple(sizes(operand)[i] for i in contracted), tuple(strides[i] for i in contracted))
    if depth is None:
        return None
    return OperandMatrix(
        buffer, flat.constant, tuple(strides[i] for i in batch), tuple(strides[i] for i in free), depth,
        function, element,
    )  # fmt: skip


def _windowed_matrix(op: Operation, index: int, in_memory: Container[Value]) -> OperandMatrix | None:
    """An operand whose terms come in runs, or a right one that is seen through windows."""
    side, operand = ("lhs" if index == 0 else "rhs"), op.operand(index)
    if operand.dtype not in FLOATS or op.result.dtype != operand.dtype:
        return None
    view = linear_view(operand, in_memory)
    if view is None:
        return None
    outer, summed = op.attributes[f"{side}_batch"], op.attributes[f"{side}_contract"]
    free = [axis for i, axis in enumerate(view.axes) if i not in outer and i not in summed]
    contracted = join_axes([view.axes[i] for i in summed])
    batch = _strides_of([view.axes[i] for i in outer])
    if batch is None:
        return None
    rows = _strides_of(free)
    if rows is not None and not view.bounds and len(contracted) == 2 and contracted[-1].extent >= _SHORTEST_RUN:
        jump, run = contracted
        return OperandMatrix(view.buffer, view.offset, batch, rows, run.stride, run=run.extent, jump=jump.stride)
    columns = join_axes(free)
    fits = index == 1 and _is_patches(operand) and columns and contracted
    window = Window(contracted, columns, view.bounds) if fits else None
    if window is None or not _is_worth_reading(window):
        return None
    return OperandMatrix(view.buffer, view.offset, batch, (), 0, window=window)


def _is_patches(value: Value) -> bool:
    """Whether an operand is a view of windows."""
    while isinstance(value, OpResult) and value.op.kind in VIEWS:
        value = value.op.operand(0)
    return isinstance(value, OpResult) and value.op.name == PATCHES


def _strides_of(axes: Sequence[tuple[Axis, ...]]) -> tuple[int, ...] | None:
    """The stride of every axis; None where one has several, or is bounded."""
    if any(len(parts) > 1 or any(part.steps and any(part.steps) for part in parts) for parts in axes):
        return None
    return tuple(parts[0].stride if parts else 0 for parts in axes)


def _is_worth_reading(window: Window) -> bool:
    """Whether vectors of a window are made of few pieces, and steps along k of whole channels are short."""
    inner = window.rows[-1] if window.runs_along_rows else window.columns[-1]
    if inner.extent < _SHORTEST_PIECE:
        return False
    free = not any(window.rows[0].steps)
    return window.runs_along_rows or (free and window.period <= _LONGEST_PERIOD)


def _element_of(node: Expression, narrow: bool = True) -> Expression | None:
    """The one element in memory that an expression reads; None where it reads several, or is not worth computing
    whenever a product reads it: that is left to ``narrow`` elements (quantised weights), and to little work."""
    if node.kind == "load":
        return None if node.arguments else node
    found: Expression | None = None
    stack, seen, work = [node], {node.number}, 0
    while stack:
        current = stack.pop()
        if current.kind == "load":
            if current.arguments or found is not None:
                return None
            found = current
        elif current.kind not in OPERATIONS and current.kind != "constant":
            return None
        work += COSTS.get(current.kind, 1)
        fresh = [a for a in current.arguments if a.number not in seen]
        seen.update(a.number for a in fresh)
        stack += fresh
    if found is None or not found.variables or found.dtype == "bool" or work > _MOST_WORK:
        return None
    return found if not narrow or 2 * ITEM_SIZES[found.dtype] <= ITEM_SIZES[node.dtype] else None


def _strides(flat: Index, variables: list[Variable]) -> list[int] | None:
    """The coefficient of every variable, or None where the index is not linear."""
    if any(not isinstance(atom, Variable) for atom, _ in flat.terms):
        return None
    return [flat.coefficient(v) for v in variables]


def lay_out(op: Operation, in_memory: Container[Value]) -> Product:
    """The layout of a product whose operands are in memory or views of what is."""
    left, right = operand_matrix(op, 0, in_memory), operand_matrix(op, 1, in_memory)
    assert left is not None
    assert right is not None
    scales, offsets = (operand_matrix(op, i, in_memory) if i < len(op.operands) else None for i in (2, 3))
    axes = product_axes(op)
    lm, rm = left.merged_axes(axes.left), right.merged_axes(axes.right)
    left_extra, right_extra = axes.left[: len(axes.left) - lm], axes.right[: len(axes.right) - rm]
    left_steps, right_steps = left.free[: len(left_extra)], right.free[: len(right_extra)]
    zeros_left, zeros_right = (0,) * len(right_extra), (0,) * len(left_extra)
    return Product(
        op, left, right,
        batch=(*axes.batch, *left_extra, *right_extra),
        left_batch=(*left.batch, *left_steps, *zeros_left),
        right_batch=(*right.batch, *zeros_right, *right_steps),
        rows=prod(axes.left[len(left_extra) :]),
        columns=prod(axes.right[len(right_extra) :]),
        depth=prod(axes.contracted),
        left_row=left.step(axes.left),
        right_column=right.step(axes.right),
        left_depth=left.depth,
        right_depth=right.depth,
        scales=scales,
        offsets=offsets,
        group=sizes(op.operand(1))[1] // sizes(op.operand(2))[0] if scales is not None else 0,
    )  # fmt: skip


def are_siblings(x: Product, y: Product) -> bool:
    """Whether two products of few rows read the same matrices, of whose right one they use different parts of each
    element: one read then serves both (the halves of bytes of four-bit weights)."""
    same = ("batch", "left_batch", "right_batch", "rows", "columns", "depth", "left_row", "right_column", "left_depth",
            "right_depth", "group")  # fmt: skip
    skinny = (not isinstance(x.rows, int) or 0 < x.rows <= MOST) and x.right_depth == 1
    parts = x.right.function is not None and y.right.function is not None
    alike = all(getattr(x, name) == getattr(y, name) for name in same) and not (x.run or y.run)
    types = [(p.op.operand(0).dtype, p.op.operand(1).dtype, p.op.result.dtype) for p in (x, y)]
    memory = [(p.left.buffer, p.left.offset, p.right.buffer, p.right.offset, p.right.dtype) for p in (x, y)]
    left = [describe([p.left.function], {}) if p.left.function is not None else "" for p in (x, y)]
    pairs = (types, memory, left)
    return skinny and parts and alike and all(mine == other for mine, other in pairs)
