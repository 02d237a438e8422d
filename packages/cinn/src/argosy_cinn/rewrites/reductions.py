"""Reductions over adjacent axes, over nothing, and of positions."""

from __future__ import annotations

import numpy as np

from argosy_cinn.forms.dtypes import DTYPES, FLOATS
from argosy_cinn.lowering.classify import reduction_axes
from argosy_cinn.rewrites.builders import Rule, constant, emit, result_type
from argosy_phi_ops.reference.kernels import kernel_for
from argosy_phi_ops.reference.kernels.registry import numpy_dtype
from argosy_pir.core import Operation
from argosy_pir.types import TensorType
from argosy_pir.values import Value


def _reduce(op: Operation) -> Value | None:
    """Axes of size one are dropped; interleaved reduced axes are brought together by a transpose."""
    x, axes = op.operand(0), op.attributes["axes"]
    if not axes:
        return x
    if any(x.shape[a] == 1 for a in axes):
        kept = tuple(a for a in axes if x.shape[a] != 1)
        if not kept:
            return emit("reshape", x, shape=op.result.shape)
        thin = tuple(n for i, n in enumerate(x.shape) if not (i in axes and n == 1))
        names = [i for i, n in enumerate(x.shape) if not (i in axes and n == 1)]
        reduced = emit(op.kind, emit("reshape", x, shape=thin), axes=tuple(names.index(a) for a in kept))
        return reduced
    if x.dtype in DTYPES and reduction_axes(op) is None:
        kept = tuple(i for i in range(len(x.shape)) if i not in axes)
        gathered = emit("transpose", x, permutation=(*kept, *sorted(axes)))
        return emit(op.kind, gathered, axes=tuple(range(len(kept), len(x.shape))))
    return None


def of_nothing(op: Operation) -> Value | None:
    """A reduction of no elements is what the reference kernel makes of none; a sum of no products is zero."""
    name = op.kind
    summed = name == "dot_general" or name.startswith("reduce_")
    if not summed or 0 not in op.operand(0).shape or 0 in op.result.shape:
        return None
    if name == "dot_general":
        return constant(0, result_type(op))
    empty = np.empty((0,), numpy_dtype(op.result.dtype))
    return constant(kernel_for(name)(empty, axes=(0,)), result_type(op))


def _argument(op: Operation) -> Value | None:
    """The first place of an extreme is the least position that holds it; a NaN is an extreme."""
    x, axis, dtype = op.operand(0), op.attributes["axis"], op.attributes["dtype"]
    n = x.shape[axis]
    if x.dtype not in DTYPES or n == 0:
        return None
    kept = tuple(i for i in range(len(x.shape)) if i != axis)
    extreme = emit("reduce_max" if op.name == "prim.argmax" else "reduce_min", x, axes=(axis,))
    found = emit("eq", x, emit("broadcast", extreme, shape=x.shape, axes=kept))
    if x.dtype in FLOATS:
        found = emit("logical_or", found, emit("is_nan", x))
    place = emit("iota", shape=x.shape, axis=axis, dtype="int64")
    whole = TensorType(x.shape, "int64")
    known = isinstance(n, int)
    beyond = constant(n, whole) if known else emit("broadcast", emit("dim_size", dim=n), shape=x.shape, axes=())
    return emit("cast", emit("reduce_min", emit("select", found, place, beyond), axes=(axis,)), dtype=dtype)


RULES: dict[str, Rule] = {
    "argmax": _argument,
    "argmin": _argument,
    **{f"reduce_{kind}": _reduce for kind in ("sum", "prod", "max", "min", "and", "or")},
}
"""By primitive."""
