"""The cost of expressions: bytes that a perfect cache would leave to memory, and vector instructions.

Bytes count every buffer once, however often its elements are read; a multiply-add of a matrix product counts two
operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

from argosy_cinn.forms.expressions import Expression
from argosy_cinn.shapes import count, smaller
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir.types import ITEM_SIZES

COSTS = {name: max(1, primitive.work) for name, primitive in PRIMITIVES.items()} | {"constant": 0, "reduced": 0}
"""Work of one element in vector instructions, roughly; what is not named counts 1."""
_FREE = frozenset({"load", "index", "constant", "cell", "reduced", "within"})


def body_cost(roots: Sequence[Expression], inner: int) -> int:
    """Vector instructions of one iteration over the variables in the mask ``inner``, roughly."""
    seen: set[int] = set()
    stack, total = list(roots), 0
    while stack:
        node = stack.pop()
        if node.number not in seen and node.variables & inner:
            seen.add(node.number)
            total += COSTS.get(node.kind, 1)
            stack += node.arguments
    return total


def operations(order: Iterable[Expression], variables: Sequence[Any]) -> int:
    """Vector instructions of expressions for all values of the variables."""
    return sum(COSTS.get(n.kind, 1) * _times(n, variables) for n in order if n.kind not in _FREE)


def _times(node: Expression, variables: Sequence[Any]) -> int:
    """How many different values a node takes."""
    return prod(v.extent for v in variables if node.variables & v.variables)


def bytes_read(order: Iterable[Expression], variables: Sequence[Any]) -> int:
    """Bytes that the loads among expressions read."""
    touched: dict[Any, int] = {}
    for node in order:
        if node.kind == "load":
            buffer = node.payload[0]
            touched[buffer] = touched.get(buffer, 0) + _times(node, variables) * ITEM_SIZES[node.dtype]
    return sum(_at_most_all(buffer, found) for buffer, found in touched.items())


def _at_most_all(buffer: Any, found: int) -> int:
    if not hasattr(buffer, "dtype"):  # partial results
        return found
    return smaller(found, count(buffer) * ITEM_SIZES[buffer.dtype])
