"""Arithmetic with neutral elements, powers and quotients by constants, selections."""

from __future__ import annotations

import numpy as np

from argosy_cinn.rewrites.builders import Rule, constant, defined_by, emit, is_number, result_type, splat_of
from argosy_cinn.shapes import count
from argosy_pir.core import Operation
from argosy_pir.types import TensorType
from argosy_pir.values import BlockArgument, Value


def _cast(op: Operation) -> Value | None:
    x = op.operand(0)
    if x.dtype == op.result.dtype:
        return x
    inner = defined_by(x, "prim.cast")
    if inner is None:
        return None
    source = inner.operand(0)
    exact = (source.dtype, x.dtype) in _EXACT_CASTS or source.dtype == "bool"
    return emit("cast", source, dtype=op.result.dtype) if exact and x.dtype != "bool" else None


_EXACT_CASTS = frozenset({
    ("bfloat16", "float32"), ("float16", "float32"), ("bfloat16", "float64"), ("float16", "float64"),
    ("float32", "float64"),
    ("int32", "int64"), ("int32", "float64"),
})  # fmt: skip


def _add(op: Operation) -> Value | None:
    x, y = op.operands
    if is_number(y, 0):
        return x
    return y if is_number(x, 0) else None


def _sub(op: Operation) -> Value | None:
    return op.operand(0) if is_number(op.operand(1), 0) else None


def _mul(op: Operation) -> Value | None:
    x, y = op.operands
    if is_number(y, 1):
        return x
    if is_number(x, 1):
        return y
    if is_number(y, -1):
        return emit("neg", x)
    return emit("neg", y) if is_number(x, -1) else None


def _div(op: Operation) -> Value | None:
    x, y = op.operands
    if is_number(y, 1):
        return x
    number = splat_of(y)
    if number is None or y.dtype not in ("float32", "float64"):
        return None
    mantissa, exponent = np.frexp(number)
    if abs(mantissa) == 0.5 and abs(int(exponent)) < 100:  # a power of two: the reciprocal is exact
        return emit("mul", x, constant(1 / number, TensorType(y.shape, y.dtype)))
    return None


def _pow(op: Operation) -> Value | None:
    x, y = op.operands
    number = splat_of(y)
    if number is None or x.dtype not in ("float32", "float64"):
        return None
    if number == 0:
        return constant(1, result_type(op))
    if number == 0.5 or number != int(number) or abs(int(number)) > 4:
        return None
    power = x
    for _ in range(abs(int(number)) - 1):
        power = emit("mul", power, x)
    return power if number > 0 else emit("div", constant(1, result_type(op)), power)


def _neg(op: Operation) -> Value | None:
    inner = defined_by(op.operand(0), "prim.neg")
    return inner.operand(0) if inner is not None else None


def _bitcast(op: Operation) -> Value | None:
    return op.operand(0) if op.operand(0).dtype == op.result.dtype else None


_WRITE = "prim.dynamic_update_slice"


def _select(op: Operation) -> Value | None:
    condition, x, y = op.operands
    chosen = splat_of(condition)
    if chosen is not None:
        return x if chosen else y
    return x if x is y else _select_to_write(op)


def _select_to_write(op: Operation) -> Value | None:
    """A selection between a small padded block and an argument is a write into the argument, which may be in place:
    what assigning to a slice of a state (a cache of keys) becomes."""
    mask, block = (defined_by(v, "prim.pad") for v in op.operands[:2])
    x = op.operand(2)
    if mask is None or block is None or not (isinstance(x, BlockArgument) or defined_by(x, _WRITE)):
        return None
    update, place = block.operand(0), block.attributes
    same = all(mask.attributes[name] == place[name] for name in ("low", "high", "interior"))
    edges = (*place["low"], *place["high"])
    known = all(isinstance(n, int) for n in (*x.shape, *update.shape, *edges))
    if not same or not known or any(place["interior"]) or min(edges, default=0) < 0:
        return None
    inside, outside = splat_of(mask.operand(0)), splat_of(mask.operand(1))
    if outside is None or outside or not inside or 4 * count(update) > count(x) or 0 in update.shape:
        return None
    starts = [constant(n, TensorType((), "int64")) for n in place["low"]]
    return emit("dynamic_update_slice", x, update, *starts)


RULES: dict[str, Rule] = {
    "cast": _cast,
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "pow": _pow,
    "neg": _neg,
    "select": _select,
    "bitcast": _bitcast,
}
"""By primitive."""
