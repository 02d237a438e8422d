"""From groups to forms: expressions over loop variables that are split until every view is linear in them."""

from __future__ import annotations

from collections.abc import Container

from argosy_cinn.forms.expressions import Expression, Graph
from argosy_cinn.forms.indices import Index, SplitVariable, Variable, atom_index, linearise
from argosy_cinn.forms.nest import REDUCTIONS, ColumnReduction, LoopNest, Reduction, Store, partial_buffer, refine_map
from argosy_cinn.forms.product import Epilogue, ProductForm
from argosy_cinn.fusion.group import Group
from argosy_cinn.fusion.group_lowering import SMALLEST_LANES, GridLowering
from argosy_cinn.lowering.elements import ElementLowering
from argosy_cinn.shapes import at_least_one, count
from argosy_pir.values import OpResult, Value

#: Reductions by which the kinds of scatter combine.
UPDATE_KINDS = {"set": "", "add": "sum", "mul": "prod", "max": "max", "min": "min"}


def lower_copy(source: Value, target: Value, in_memory: dict[Value, None]) -> LoopNest:
    """The kernel that fills ``target`` with ``source``."""
    inner = [at_least_one(count(source))]
    while True:
        lane = len(inner) - 1
        variables = [Variable(i, n, SMALLEST_LANES if i == lane else 1) for i, n in enumerate(inner)]
        flat = linearise([atom_index(v) for v in variables], inner)
        lowering = ElementLowering(Graph(), in_memory, lambda value, position: None, True)
        try:
            node = lowering.value(source, lowering.position(source, flat))
            break
        except SplitVariable as request:
            i = request.variable.number
            inner[i : i + 1] = [inner[i] // request.factor, request.factor]
    kernel = LoopNest(lowering.graph, [], variables, stores=_stores(target, flat, node, False))
    refine_map(kernel)
    return kernel


def lower_nest(group: Group, in_memory: dict[Value, None], stored: Container[Value]) -> LoopNest:
    """The kernel of a group of loops; members that are not ``stored`` stay in registers."""
    outer = [group.rows] if group.columns else []
    inner, middle = [group.columns or group.rows], None
    while True:
        grid = GridLowering(group, in_memory, True, outer, inner, middle)
        try:
            grid.lower()
            break
        except SplitVariable as request:
            middle = [v.extent for v in grid.middle]
            _split(request, grid, outer, inner, middle)
    kernel = LoopNest(grid.graph, grid.outer, grid.inner, sequential=grid.middle)
    kernel.update, kernel.running = "update" in group.members.values(), "scan" in group.members.values()
    for value, flavour in group.members.items():
        _add_member(kernel, grid, value, flavour, value in stored)
    refine_map(kernel)
    return kernel


def _split(request: SplitVariable, grid: GridLowering, outer: list[int], inner: list[int], middle: list[int]) -> None:
    """Replace a variable's extent by two."""
    for variables, extents in ((grid.outer, outer), (grid.inner, inner), (grid.middle, middle)):
        for i, v in enumerate(variables):
            if v.number == request.variable.number:
                extents[i : i + 1] = [v.extent // request.factor, request.factor]
                return


def _add_member(kernel: LoopNest, grid: GridLowering, value: Value, flavour: str, stored: bool) -> None:
    assert isinstance(value, OpResult)
    if flavour == "full" and stored:
        kernel.stores += _stores(value, grid.flat, grid.results[value], False)
    elif flavour == "row" and stored:
        kernel.stores += _stores(value, grid.row, grid.results[value], True)
    elif flavour == "update":
        node, index, condition = grid.updates[value]
        combine = UPDATE_KINDS[value.op.attributes.get("kind", "set")]
        kernel.stores.append(Store(value, index, node, value.dtype, False, condition, combine))
    elif flavour == "scan":
        kernel.reductions.append(
            Reduction(value.op.attributes["kind"], value.dtype, grid.bodies[value], grid.results[value])
        )
        kernel.stores.append(Store(value, grid.scanned, grid.results[value], value.dtype, True))
    elif flavour in ("sum", "strided", "column"):
        kind, body = REDUCTIONS[value.op.name], grid.bodies[value]
        if flavour == "column":
            if stored:
                kernel.columns.append(
                    ColumnReduction(value, partial_buffer(value), kind, value.dtype, body, grid.column)
                )
            return
        result = grid.results[value]
        kernel.reductions.append(Reduction(kind, value.dtype, body, result))
        index = grid.row if flavour == "sum" else _strided_index(grid)
        if stored or flavour == "strided":
            kernel.stores.append(Store(value, index, result, value.dtype, True))


def _stores(buffer: Value, index: Index, node: Expression, per_row: bool) -> list[Store]:
    """What writes an element: one store, or one for each part of a complex number."""
    if node.kind != "complex":
        return [Store(buffer, index, node, buffer.dtype, per_row)]
    return [Store(buffer, index * 2 + i, part, part.dtype, per_row) for i, part in enumerate(node.arguments)]


def _strided_index(grid: GridLowering) -> Index:
    columns = 1
    for v in grid.inner:
        columns *= v.extent
    return grid.row * columns + grid.column


def lower_product(group: Group, in_memory: dict[Value, None], stored: Container[Value]) -> ProductForm:
    """The form of a group that is a matrix product with its epilogue."""
    assert group.product is not None
    grid = GridLowering(group, in_memory, False)
    grid.lower()
    product = next(value for value, flavour in group.members.items() if flavour == "product")
    stores = [
        store
        for value in group.members
        if value in stored
        for store in _stores(value, grid.flat, grid.results[value], False)
    ]
    epilogue = Epilogue(grid.graph, [*grid.outer, *grid.inner], grid.results[product], stores)
    return ProductForm(group.product, epilogue)
