"""What integer tensors of a program are made of sizes and constants, and of which: numbers and symbolic sizes.

``paddle.shape(x)[0] * 2`` is a tensor, yet may stand where an operator takes a size. So the operations that such
tensors come from are followed back, with sizes in place of elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from argosy_phi_ops.declare.operator import find_operator
from argosy_phi_ops.reference.constants import constant_array
from argosy_pir.core import Operation
from argosy_pir.types import TensorType
from argosy_pir.values import OpResult, Value

__all__ = ["infer_sizes"]

_MOST = 64  # elements
_DEEPEST = 64  # operations from the tensor back to a size

Sizes = np.ndarray[Any, Any]
Rule = Callable[..., Any]


def infer_sizes(value: Value, known: dict[Value, Sizes | None] | None = None) -> Sizes | None:
    """The elements of ``value`` as an array of objects, numbers or symbolic sizes; None where they depend on more."""
    return _infer_sizes(value, {} if known is None else known, _DEEPEST)


def _infer_sizes(value: Value, known: dict[Value, Sizes | None], depth: int) -> Sizes | None:
    if value not in known:
        known[value] = None
        if depth and isinstance(value, OpResult) and _is_small(value):
            known[value] = _of_operation(value.op, value.index, known, depth - 1)
    return known[value]


def _is_small(value: Value) -> bool:
    type = value.type
    if not isinstance(type, TensorType) or "int" not in type.dtype or not type.is_static:
        return False
    return prod(n for n in type.shape if isinstance(n, int)) <= _MOST


def _of_operation(op: Operation, index: int, known: dict[Value, Sizes | None], depth: int) -> Sizes | None:
    operands = [_infer_sizes(v, known, depth) for v in op.operands]
    if any(x is None for x in operands):
        return None
    if op.dialect == "phi":
        return _of_operator(op, index, operands, depth)
    rule = _RULES.get(op.kind)
    return None if rule is None else np.asarray(rule(*operands, **op.attributes), object)


def _of_operator(op: Operation, index: int, operands: Sequence[Any], depth: int) -> Sizes | None:
    operator = find_operator(op.kind)
    if operator is None or operator.opaque:
        return None
    program = operator.expand([v.type for v in op.operands], dict(op.attributes)).program
    inside: dict[Value, Sizes | None] = dict(zip(program.block.arguments, operands, strict=True))
    return _infer_sizes(program.outputs[index], inside, depth)


def _constant(value: Any, **_: Any) -> Any:
    return constant_array(value, {}).astype(object)


def _broadcast(x: Sizes, shape: Sequence[int], axes: Sequence[int], **_: Any) -> Any:
    placed = [1] * len(shape)
    for axis, n in zip(axes, x.shape, strict=True):
        placed[axis] = n
    return np.broadcast_to(x.reshape(placed), shape)


def _slice(x: Sizes, start: Sequence[int], limit: Sequence[int], stride: Sequence[int], **_: Any) -> Any:
    return x[tuple(slice(*bounds) for bounds in zip(start, limit, stride, strict=True))]


_RULES: dict[str, Rule] = {
    "constant": _constant,
    "dim_size": lambda dim, **_: dim,
    "broadcast": _broadcast,
    "slice": _slice,
    "reshape": lambda x, shape, **_: x.reshape(shape),
    "transpose": lambda x, permutation, **_: x.transpose(permutation),
    "concat": lambda *xs, axis, **_: np.concatenate(xs, axis),
    "cast": lambda x, **_: x,
    "copy": lambda x, **_: x,
    "stop_gradient": lambda x, **_: x,
    "add": lambda x, y, **_: x + y,
    "sub": lambda x, y, **_: x - y,
    "mul": lambda x, y, **_: x * y,
    "floor_div": lambda x, y, **_: x // y,
    "reduce_prod": lambda x, axes, **_: np.multiply.reduce(x, tuple(axes)) if x.size else 1,
    "reduce_sum": lambda x, axes, **_: np.add.reduce(x, tuple(axes)) if x.size else 0,
}
"""By primitive. ``cast`` is between integers, since only such tensors are looked at."""
