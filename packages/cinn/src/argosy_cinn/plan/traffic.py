"""What a kernel moves and computes, estimated from its expressions: the figures that measured times are held against.

Bytes count every buffer once, however often its elements are read: what a perfect cache would leave to memory.
Operations are vector instructions per element (`argosy_cinn.loops.schedule.COSTS`); a multiply-add of a matrix product
counts two.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from argosy_cinn.assembly.control import ControlFlow
from argosy_cinn.attention.strips import StripKernel
from argosy_cinn.forms.expressions import Expression
from argosy_cinn.fourier.kernel import FourierKernel
from argosy_cinn.fusion.kernels import Epilogue
from argosy_cinn.fusion.products import Product
from argosy_cinn.loops.schedule import COSTS, Kernel
from argosy_cinn.ordering.kernel import OrderKernel
from argosy_cinn.shapes import count, estimate, smaller
from argosy_phi_ops.primitives.cost import Cost
from argosy_pir.types import ITEM_SIZES

_FREE = frozenset({"load", "index", "constant", "cell", "reduced", "within"})


def kernel_cost(kernel: Kernel) -> Cost:
    """The cost of a loop nest."""
    variables = [*kernel.outer, *kernel.sequential, *kernel.inner]
    cells = prod(v.extent for v in variables)
    work = _operations(kernel.graph.order, variables) + cells * (len(kernel.reductions) + len(kernel.columns))
    once = kernel.rows * (kernel.columns_count if kernel.sequential and not kernel.running else 1)
    written = sum(_stored(s, once if s.per_row and not kernel.running else cells) for s in kernel.stores)
    written += sum(kernel.columns_count * ITEM_SIZES[c.dtype] for c in kernel.columns)
    return Cost(_read(kernel.graph.order, variables), written, work)


def product_cost(product: Product, epilogue: Epilogue) -> Cost:
    """The cost of a matrix product with its epilogue."""
    cells = prod(product.batch) * product.rows * product.columns
    work = 2 * cells * product.depth + _operations(epilogue.graph.order, epilogue.variables)
    operands = {m.buffer: _bytes(m.buffer, count(m.buffer)) for m in (product.left, product.right)}
    read = sum(operands.values()) + _read(
        [n for n in epilogue.graph.order if n.kind != "load" or n.payload[0] not in operands], epilogue.variables
    )
    return Cost(read, sum(_stored(s, cells) for s in epilogue.stores), work)


def body_cost(body: Any, product: Product | None) -> Cost:
    """The cost of one part of a step."""
    if isinstance(body, ControlFlow):
        return control_cost(body)
    if isinstance(body, Kernel):
        return kernel_cost(body)
    if isinstance(body, Epilogue):
        assert product is not None
        return product_cost(product, body)
    return Cost(*body.work()) if isinstance(body, (StripKernel, OrderKernel, FourierKernel)) else Cost()


def control_cost(flow: ControlFlow) -> Cost:
    """The cost of a branch (of its larger way) or a loop: of one step where it is not known how many there are."""
    regions = [[body_cost(b, step.group.product) for step in r.plan.steps for b in step.bodies] for r in flow.regions]
    ways = [Cost(*(sum(x) for x in zip(*((c.read, c.written, c.operations) for c in r), strict=True))) for r in regions]
    if flow.op.name == "control.if":
        return max(ways, key=lambda way: estimate(way.operations) + estimate(way.read) + estimate(way.written))
    times = flow.steps or 1
    return Cost(*(times * sum(x) for x in zip(*((w.read, w.written, w.operations) for w in ways), strict=True)))


def _operations(order: Iterable[Expression], variables: list[Any]) -> int:
    return sum(COSTS.get(n.kind, 1) * _times(n, variables) for n in order if n.kind not in _FREE)


def _times(node: Expression, variables: list[Any]) -> int:
    """How many different values a node takes."""
    return prod(v.extent for v in variables if node.variables & v.variables)


def _read(order: Iterable[Expression], variables: list[Any]) -> int:
    touched: dict[Any, int] = {}
    for node in order:
        if node.kind == "load":
            buffer = node.payload[0]
            touched[buffer] = touched.get(buffer, 0) + _times(node, variables) * ITEM_SIZES[node.dtype]
    return sum(_bytes(buffer, None, found) for buffer, found in touched.items())


def _bytes(buffer: Any, elements: int | None, found: int = 0) -> int:
    if not hasattr(buffer, "dtype"):  # partial results
        return found
    whole = count(buffer) * ITEM_SIZES[buffer.dtype]
    return whole if elements is not None else smaller(found, whole)


def _stored(store: Any, cells: int) -> int:
    return cells * ITEM_SIZES[store.dtype]
