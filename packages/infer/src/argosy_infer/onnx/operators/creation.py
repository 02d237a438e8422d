"""Tensors that are made: constants, ranges, matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_infer.onnx.document import dtype_name
from argosy_infer.onnx.registry import Values, onnx_operator
from argosy_infer.onnx.tensors import count_up, phi, prim, shape_of, size_number, tensor_of


@onnx_operator("Constant")
def constant(
    *,
    value: Any = None,
    value_float: Any = None,
    value_floats: Any = None,
    value_int: Any = None,
    value_ints: Any = None,
) -> Any:
    """The one attribute there is, as a tensor."""
    if value is not None:
        return tensor_of(value)
    for found, dtype in (
        (value_float, "float32"),
        (value_floats, "float32"),
        (value_int, "int64"),
        (value_ints, "int64"),
    ):
        if found is not None:
            return tensor_of(np.asarray(found, dtype))
    raise ValueError("it has no value")


@onnx_operator("ConstantOfShape")
def constant_of_shape(shape: Values, *, value: Any = None) -> Any:
    """A number in every element, by default 0 in float32."""
    number = np.zeros(1, np.float32) if value is None else value
    dtype = tensor_of(number).payload.dtype.name
    return phi.full(
        [int(n) if isinstance(n, (int, np.integer)) else n for n in shape], number.reshape(-1)[0].item(), dtype
    )


@onnx_operator("Range")
def range_(start: Values, limit: Values, delta: Values) -> Any:
    """``start``, ``start + delta``, ... before ``limit``."""
    if delta.item() == 1 and not isinstance(limit.item() - start.item(), (int, float)):
        return prim.add(count_up(limit.item() - start.item()), size_number(start.item()))
    count = max(int(np.ceil((limit.item() - start.item()) / delta.item())), 0)
    return tensor_of((start.item() + np.arange(count) * delta.item()).astype(start.dtype))


@onnx_operator("EyeLike")
def eye_like(x: Any, *, dtype: int | None = None, k: int = 0) -> Any:
    """Ones on a diagonal of a matrix as large as ``x``."""
    rows, columns = shape_of(x)
    found = x.payload.dtype.name if dtype is None else dtype_name(dtype, "EyeLike")
    return prim.cast(tensor_of(np.eye(rows, columns, k)), dtype=found)


@onnx_operator("Trilu")
def trilu(x: Any, k: Values | None = None, *, upper: int = 1) -> Any:
    """The part of matrices above a diagonal, or below it."""
    offset = 0 if k is None else int(k.reshape(-1)[0])
    rows, columns = shape_of(x)[-2:]
    places = prim.sub(count_up(columns, 1, 2), count_up(rows, 0, 2))
    kept = (prim.ge if upper else prim.le)(places, offset)
    return prim.select(kept, x, phi.zeros_like(x))


@onnx_operator("OneHot")
def one_hot(indices: Any, depth: Values, values: Any, *, axis: int = -1) -> Any:
    """``values[1]`` where the new axis has the index, ``values[0]`` elsewhere; negative indices count from the end."""
    count = int(depth.reshape(-1)[0])
    rank = len(shape_of(indices))
    axis %= rank + 1
    whole = prim.cast(indices, dtype="int64")
    whole = prim.select(prim.lt(whole, 0), whole + count, whole)
    found = prim.eq(count_up(count, axis, rank + 1), phi.unsqueeze(whole, axis))
    off, on = (phi.reshape(phi.slice(values, [0], [i], [i + 1]), []) for i in (0, 1))
    return prim.select(found, on, off)
