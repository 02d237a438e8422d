"""What an expression makes of each of the 256 bytes that its one element may be (a quantised weight, say)."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_cinn.forms.expressions import Expression
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_phi_ops.reference.kernels.registry import kernel_for, numpy_dtype

Array = np.ndarray[Any, Any]


def numbers_of_bytes(function: Expression, element: Expression) -> tuple[float, ...] | None:
    """The value of an expression for each byte of ``element``, by the reference kernels; None where that is no
    integer of eight bits, or the expression has other parts than elementwise primitives."""
    if element.dtype not in ("int8", "uint8"):
        return None
    known = {element.number: np.arange(256, dtype=np.uint8).view(element.dtype)}
    with np.errstate(all="ignore"):
        values = _values(function, known)
    return None if values is None else tuple(map(float, values))


def _values(node: Expression, known: dict[int, Array]) -> Array | None:
    if node.number not in known:
        found = _constant(node) if node.kind == "constant" else _compute(node, known)
        if found is None:
            return None
        known[node.number] = found
    return known[node.number]


def _constant(node: Expression) -> Array:
    return np.frombuffer(node.payload, numpy_dtype(node.dtype))


def _compute(node: Expression, known: dict[int, Array]) -> Array | None:
    primitive = PRIMITIVES.get(node.kind)
    if primitive is None or primitive.category != "elementwise":
        return None
    arguments = [_values(a, known) for a in node.arguments]
    if any(a is None for a in arguments):
        return None
    found: Array = kernel_for(node.kind)(*arguments, **dict(node.payload or ()))
    return found
