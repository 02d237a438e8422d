"""Products and scatters that are something simpler."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_cinn.rewrites.builders import Rule, constant, emit, result_type, splat_of
from argosy_cinn.shapes import count
from argosy_pir.core import Operation
from argosy_pir.types import TensorType
from argosy_pir.values import Value


def _dot(op: Operation) -> Value | None:
    """A product with a constant is a scaled sum."""
    for index, side in ((0, "lhs"), (1, "rhs")):
        number = splat_of(op.operand(1 - index))
        if number is not None and np.isfinite(number):
            return _scaled_sum(op, index, number, side)
    return None


def _scaled_sum(op: Operation, index: int, number: Any, side: str) -> Value | None:
    """The product of a tensor with a constant: its sums, scaled and repeated along the constant's free axes."""
    x, result = op.operand(index), result_type(op)
    batch, contracted = op.attributes[f"{side}_batch"], op.attributes[f"{side}_contract"]
    if x.dtype not in ("float32", "float64") or result.dtype != x.dtype or 0 in x.shape:
        return None
    free = [i for i in range(len(x.shape)) if i not in batch and i not in contracted]
    ordered = emit("transpose", x, permutation=(*batch, *free, *contracted))
    kept = len(batch) + len(free)
    total = emit("reduce_sum", ordered, axes=tuple(range(kept, len(x.shape)))) if contracted else ordered
    scaled = emit("mul", total, constant(number, TensorType(total.shape, x.dtype)))
    first = len(result.shape) - len(free) if side == "rhs" else len(batch)
    axes = (*range(len(batch)), *range(first, first + len(free)))
    return emit("broadcast", scaled, shape=result.shape, axes=axes)


def _scatter(op: Operation) -> Value | None:
    """One update for each batch element is a selection by comparing positions."""
    x, indices, updates = op.operands
    axes, batch, kind = op.attributes["axes"], op.attributes["batch"], op.attributes["kind"]
    between = indices.shape[batch:-1]
    if any(n != 1 for n in between) or 0 in x.shape or not all(isinstance(n, int) for n in x.shape):
        return None
    if batch == 0 and count(x) > 1 << 12:
        return None  # one update of a large tensor: writing the rest again costs more
    condition: Value | None = None
    for k, axis in enumerate(axes):
        start = (*([0] * (len(indices.shape) - 1)), k)
        limit = (*indices.shape[:-1], k + 1)
        one = emit("slice", indices, start=start, limit=limit, stride=(1,) * len(start))
        flat = emit("cast", emit("reshape", one, shape=indices.shape[:batch]), dtype="int64")
        wide = emit("broadcast", flat, shape=x.shape, axes=tuple(range(batch)))
        hit = emit("eq", emit("iota", shape=x.shape, axis=axis, dtype="int64"), wide)
        condition = hit if condition is None else emit("logical_and", condition, hit)
    assert condition is not None
    rest = [i for i in range(batch, len(x.shape)) if i not in axes]
    shape = (*x.shape[:batch], *(x.shape[i] for i in rest))
    spread = emit("broadcast", emit("reshape", updates, shape=shape), shape=x.shape, axes=(*range(batch), *rest))
    combine = {"set": None, "add": "add", "mul": "mul", "max": "maximum", "min": "minimum"}[kind]
    return emit("select", condition, spread if combine is None else emit(combine, x, spread), x)


RULES: dict[str, Rule] = {
    "scatter": _scatter,
    "dot_general": _dot,
}
"""By primitive."""
