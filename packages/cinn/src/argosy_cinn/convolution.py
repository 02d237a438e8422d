"""Convolutions as matrix products: the windows of the input as columns, and the product of the weights with them.

``cinn.patches`` is the tensor of windows, [N, groups, C / groups, *K, *S'], which is a view of the input with gaps: it
is computed inside the loops that read it, and in memory only where the product needs it to be. A 1x1 convolution reads
its input in place.
"""

from __future__ import annotations

from math import prod
from typing import Any

from argosy_cinn.shapes import sizes
from argosy_phi_ops.context import context
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir.core import Operation
from argosy_pir.dialect import Dialect, register_dialect
from argosy_pir.opdef import PURE, OpDef
from argosy_pir.types import TensorType
from argosy_pir.values import Value

PATCHES = "cinn.patches"

register_dialect(Dialect("cinn", [OpDef(PATCHES, ["x"], traits=[PURE])]))


def as_product(op: Operation) -> Value | None:
    """A ``prim.conv`` as a product of weights and patches; None where there is nothing to sum or to compute."""
    x, w = op.operands
    groups = op.attributes["groups"]
    n, channels, *_ = sizes(x)
    filters, depth, *window = sizes(w)
    spatial = sizes(op.result)[2:]
    if 0 in (*sizes(x), *sizes(w), *sizes(op.result)):
        return None
    emit = _emit
    patches = _patches(x, (n, groups, channels // groups, *window, *spatial), op)
    terms = depth * prod(window)
    columns = emit("reshape", patches, shape=(n, groups, terms, prod(spatial)))
    rows = emit("reshape", w, shape=(groups, filters // groups, terms))
    rows = emit("broadcast", rows, shape=(n, groups, filters // groups, terms), axes=(1, 2, 3))
    product = emit(
        "dot_general", rows, columns, lhs_contract=(3,), rhs_contract=(2,), lhs_batch=(0, 1), rhs_batch=(0, 1)
    )
    return emit("reshape", product, shape=sizes(op.result))


def _emit(name: str, *operands: Value, **attributes: Any) -> Value:
    result: Value = PRIMITIVES[name](*operands, **attributes)
    return result


def _patches(x: Value, shape: tuple[int, ...], op: Operation) -> Value:
    builder = context().builder
    assert builder is not None
    kept = ("strides", "padding", "lhs_dilation", "rhs_dilation")
    attributes = {name: op.attributes[name] for name in kept}
    return builder.create(PATCHES, (x,), attributes, (TensorType(shape, x.dtype),)).result


def window_axes(op: Operation) -> list[tuple[int, int, int, int]]:
    """(stride, low padding, spread of the input, spread of the window) of every spatial axis of ``cinn.patches``."""
    a = op.attributes
    return [
        (stride, padding[0], spread, dilation)
        for stride, padding, spread, dilation in zip(
            a["strides"], a["padding"], a["lhs_dilation"], a["rhs_dilation"], strict=True
        )
    ]
