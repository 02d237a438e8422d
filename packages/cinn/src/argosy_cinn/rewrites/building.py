"""What rules are written with: constants, operations before the one that is rewritten, and what a value is made by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from argosy_phi_ops.context import context
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_phi_ops.reference.kernels.registry import numpy_dtype
from argosy_pir.attributes import Dense
from argosy_pir.builder import Builder
from argosy_pir.core import Operation
from argosy_pir.types import TensorType
from argosy_pir.values import OpResult, Value

#: What replaces the result of an operation; None where the rule does not apply.
Rule = Callable[[Operation], "Value | None"]


def splat_of(value: Value) -> Any:
    """The number that a splat constant repeats, as a numpy scalar; None for other values."""
    if not isinstance(value, OpResult):
        return None
    if value.op.name == "prim.broadcast":
        return splat_of(value.op.operand(0))
    if value.op.name != "builtin.constant":
        return None
    dense = value.op.attributes["value"]
    return np.frombuffer(dense.data, numpy_dtype(dense.type.dtype))[0] if dense.is_splat else None


def result_type(op: Operation) -> TensorType:
    """The type of the one result."""
    type = op.result.type
    assert isinstance(type, TensorType)
    return type


def constant(number: Any, type: TensorType) -> Value:
    """A tensor of one number."""
    data = b"" if 0 in type.shape else np.asarray(number, numpy_dtype(type.dtype)).tobytes()
    builder = _ambient()
    return builder.create("builtin.constant", (), {"value": Dense(type, data)}, (type,)).result


def _ambient() -> Builder:
    builder = context().builder
    assert builder is not None
    return builder


def emit(name: str, *operands: Value, **attributes: Any) -> Value:
    """The result of a primitive before the operation that is rewritten."""
    result: Value = PRIMITIVES[name](*operands, **attributes)
    return result


def defined_by(value: Value, name: str) -> Operation | None:
    """The operation that makes a value where it has that name."""
    return value.op if isinstance(value, OpResult) and value.op.name == name else None


def is_number(value: Value, number: int) -> bool:
    """Whether a value repeats that number."""
    found = splat_of(value)
    return found is not None and bool(found == number)
