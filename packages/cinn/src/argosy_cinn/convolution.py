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
#: With fewer places than this in a sample (a gradient of weights), the columns of all samples are one matrix.
_FEW_PLACES = 64

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
    patches = _patches(x, (n, groups, channels // groups, *window, *spatial), op)
    terms, places = depth * prod(window), prod(spatial)
    rows = _emit("reshape", w, shape=(groups, filters // groups, terms))
    columns = _emit("reshape", patches, shape=(n, groups, terms, places))
    few = places < _FEW_PLACES and n > 1 and prod(window) > 1
    product = _joined(rows, columns) if few else _by_sample(rows, columns)
    return _emit("reshape", product, shape=sizes(op.result))


def _by_sample(rows: Value, columns: Value) -> Value:
    """[N, groups, filters, places] as one product for each sample."""
    n = sizes(columns)[0]
    repeated = _emit("broadcast", rows, shape=(n, *sizes(rows)), axes=(1, 2, 3))
    return _emit(
        "dot_general", repeated, columns, lhs_contract=(3,), rhs_contract=(2,), lhs_batch=(0, 1), rhs_batch=(0, 1)
    )


def _joined(rows: Value, columns: Value) -> Value:
    """[N, groups, filters, places] as one product, whose columns are the places of all samples."""
    n, groups, terms, places = sizes(columns)
    moved = _emit("transpose", columns, permutation=(1, 2, 0, 3))
    wide = _emit("reshape", moved, shape=(groups, terms, n * places))
    product = _emit("dot_general", rows, wide, lhs_contract=(2,), rhs_contract=(1,), lhs_batch=(0,), rhs_batch=(0,))
    apart = _emit("reshape", product, shape=(groups, sizes(rows)[1], n, places))
    return _emit("transpose", apart, permutation=(2, 0, 1, 3))


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
