"""What calling a primitive does: emit an operation for IR values, or evaluate the reference kernel on arrays.

Elementwise primitives called this way broadcast like numpy by an explicit ``prim.broadcast`` and give Python scalars
the dtype of the other operands; the operations themselves stay strict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy_phi_ops.context import context
from argosy_phi_ops.errors import OperatorError, ShapeError
from argosy_phi_ops.primitives.checks import format_shape
from argosy_phi_ops.primitives.declaration import PRIMITIVES, Primitive, Shape
from argosy_pir.attributes import Dense
from argosy_pir.core import Operation
from argosy_pir.types import TensorType
from argosy_pir.values import Value

__all__ = ["bind_primitive", "broadcast_shapes", "broadcast_to", "constant", "emit"]


def bind_primitive(primitive: Primitive, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """Emit or evaluate ``primitive``; one result is returned bare, several as a tuple."""
    if any(isinstance(x, Value) for x in operands) or not operands:
        values = _as_values(primitive, operands)
        results = emit(primitive, values, attributes).results
        return results[0] if len(results) == 1 else tuple(results) or None
    from argosy_phi_ops.reference.kernels import evaluate

    return evaluate(primitive, operands, primitive.complete(attributes))


def emit(primitive: Primitive, operands: Sequence[Value], attributes: dict[str, Any]) -> Operation:
    """Create ``prim.<name>`` at the ambient builder."""
    ambient = context()
    if ambient.builder is None:
        raise OperatorError(
            f"prim.{primitive.name} was called with IR values, but no builder is active; use building(builder)"
        )
    full = primitive.complete(attributes)
    types = primitive.types([x.type for x in operands], full)
    return ambient.builder.create(
        f"prim.{primitive.name}", operands, full, types, location=ambient.location, inferred=True
    )


def constant(value: bool | int | float | complex, dtype: str, shape: Shape = ()) -> Value:
    """A constant of ``shape`` filled with the Python number ``value``."""
    ambient = context()
    if ambient.builder is None:
        raise OperatorError("a constant was asked for, but no builder is active; use building(builder)")
    scalar = Dense.splat(TensorType((), dtype), value)
    return broadcast_to(ambient.builder.constant(scalar.type, scalar, ambient.location), shape)


def _as_values(primitive: Primitive, operands: tuple[Any, ...]) -> list[Value]:
    values = [x for x in operands if isinstance(x, Value)]
    dtype = next((v.type.dtype for v in reversed(values) if isinstance(v.type, TensorType)), "")
    if not primitive.broadcasts:
        return [x if isinstance(x, Value) else constant(x, dtype) for x in operands]
    shape = broadcast_shapes([v.shape for v in values])
    return [broadcast_to(x, shape) if isinstance(x, Value) else constant(x, dtype, shape) for x in operands]


def broadcast_shapes(shapes: Sequence[Sequence[Any]]) -> Shape:
    """The common shape by numpy's rule, symbolic dims included. Raises :class:`ShapeError` naming the shapes."""
    rank = max((len(s) for s in shapes), default=0)
    result: list[Any] = [1] * rank
    for shape in shapes:
        for i, dim in enumerate(shape, rank - len(shape)):
            if dim == 1 or dim == result[i]:
                continue
            if result[i] != 1:
                raise ShapeError(f"shapes {', '.join(map(format_shape, shapes))} do not broadcast together")
            result[i] = dim
    return tuple(result)


def broadcast_to(x: Value, shape: Shape) -> Value:
    """``x`` repeated to ``shape``, its axes aligned at the right; ``x`` itself when it has that shape."""
    if x.shape == tuple(shape):
        return x
    offset = len(shape) - len(x.shape)
    result: Value = PRIMITIVES["broadcast"](x, shape=tuple(shape), axes=tuple(range(offset, len(shape))))
    return result


Primitive.binding = staticmethod(bind_primitive)
