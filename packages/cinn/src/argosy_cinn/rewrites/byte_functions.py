"""What elementwise operations make of each byte, by the reference kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_cinn.rewrites.builders import splat_of
from argosy_cinn.shapes import sizes
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_phi_ops.reference.kernels.registry import kernel_for
from argosy_pir.values import OpResult, Value

Array = np.ndarray[Any, Any]


def values_of_bytes(value: Value) -> tuple[Value | None, Array | None]:
    """The bytes (int8) that ``value`` is an elementwise function of, and its values [256] for 0, 1, ... 255 as they are
    without a sign; None twice where it is no such function."""
    found: dict[Value, Array] = {}
    source = _source(value)
    if source is None or source.dtype != "int8":
        return None, None
    found[source] = np.arange(256, dtype=np.uint8).view(np.int8)
    return source, _compute(value, found)


def _elementwise(value: Value) -> bool:
    """Whether an elementwise primitive makes a value of operands of its own shape, and numbers that are repeated."""
    if not isinstance(value, OpResult) or value.op.dialect != "prim":
        return False
    primitive = PRIMITIVES.get(value.op.kind)
    return primitive is not None and primitive.category == "elementwise"


def _source(value: Value) -> Value | None:
    """The one value of the same shape that elementwise operations before ``value`` begin with; None for several."""
    found, seen, open_ = set[Value](), set[Value](), [value]
    while open_:
        each = open_.pop()
        if each in seen or splat_of(each) is not None:
            continue
        seen.add(each)
        if _elementwise(each) and isinstance(each, OpResult):
            open_ += each.op.operands
        else:
            found.add(each)
    fits = len(found) == 1 and all(sizes(each) == sizes(value) for each in seen)
    return found.pop() if fits else None


def _compute(value: Value, known: dict[Value, Array]) -> Array:
    if value not in known:
        number = splat_of(value)
        if number is not None or not isinstance(value, OpResult):
            return np.asarray(number)
        arguments = [_compute(each, known) for each in value.op.operands]
        known[value] = kernel_for(value.op.kind)(*arguments, **dict(value.op.attributes))
    return known[value]
