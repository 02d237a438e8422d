"""Linear maps, embeddings, similarities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import OperatorError, ShapeError
from argosy_phi_ops.ops.common.arguments import INPUT
from argosy_phi_ops.reference.kernels import KERNELS
from argosy_phi_ops.reference.kernels.registry import Array
from argosy_tensorcore.tensor import Tensor


@operator(promote="same", aliases=INPUT)
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x @ weight + bias`` with weight [in, out]."""
    if weight.ndim != 2:
        raise ShapeError(f"linear: weight should have two axes [in, out], got {weight.ndim}")
    if x.shape[-1] != weight.shape[0]:
        raise ShapeError(f"linear: the last axis of x has {x.shape[-1]} elements, weight expects {weight.shape[0]}")
    result = prim.dot_general(x, weight, lhs_contract=(x.ndim - 1,), rhs_contract=(0,))
    return result if bias is None else prim.add(result, bias)


@linear.reference
def _(x: Array, weight: Array, bias: Array | None) -> Array:
    result: Array = KERNELS["dot_general"](x, weight, lhs_contract=(x.ndim - 1,), rhs_contract=(0,))
    if bias is None:
        return result
    return np.add(result, bias, out=result) if result.dtype.kind == "f" and result.ndim else result + bias


@linear.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    weight, bias = rng.standard_normal((3, 5)), rng.standard_normal(5)
    yield Sample(rng.standard_normal((2, 3)), weight, bias)
    yield Sample(rng.standard_normal((2, 4, 3)), weight)


@operator(aliases=INPUT)
def embedding(
    x: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    sparse: bool = False,
    scale_grad_by_freq: bool = False,
) -> Tensor:
    """Rows of `weight` [classes, features] at the indices `x`; those of `padding_idx` are zeros without gradient.

    With `scale_grad_by_freq` a row's gradient is the mean over the places that take it, not the sum. Gradients are
    dense, also with `sparse`. Raises :class:`OperatorError` for a `padding_idx` outside the table and, when run
    eagerly, :class:`AxisError` for an index outside it (a compiled program clamps it).
    """
    if weight.ndim != 2:
        raise ShapeError(f"embedding(): argument 'weight' should be [classes, features], got {weight.type}")
    classes = weight.shape[0]
    if padding_idx is not None and isinstance(classes, int) and not -classes <= padding_idx < classes:
        raise OperatorError(
            f"embedding(): argument 'padding_idx' must be within [-{classes}, {classes}), as 'weight' has {classes} "
            f"rows, got {padding_idx}"
        )
    indices = prim.reshape(x, shape=(*x.shape, 1))
    rows = prim.gather(weight, indices, axes=(0,))
    if scale_grad_by_freq:
        rows = _average(rows, _frequencies(indices, classes))
    if padding_idx is None:
        return rows
    index = padding_idx if padding_idx >= 0 else padding_idx + classes
    missing = prim.broadcast(prim.eq(x, index), shape=rows.shape, axes=tuple(range(x.ndim)))
    return prim.select(missing, 0.0, rows)


def _frequencies(indices: Tensor, classes: Any) -> Tensor:
    """How often each index occurs among all, in the shape of the indices."""
    ones = prim.constant(1, "int32", indices.shape[:-1])
    counts = prim.scatter(prim.constant(0, "int32", (classes,)), indices, ones, axes=(0,), kind="add")
    return prim.gather(counts, indices, axes=(0,))


def _average(rows: Tensor, counts: Tensor) -> Tensor:
    """``rows`` exactly, whose gradient is divided by the counts."""
    share = prim.div(1.0, prim.cast(counts, dtype=rows.dtype))
    change = prim.sub(rows, prim.stop_gradient(rows))  # zero
    weights = prim.broadcast(share, shape=rows.shape, axes=tuple(range(counts.ndim)))
    return prim.add(prim.stop_gradient(rows), prim.mul(change, weights))


@embedding.reference
def _(
    x: Array,
    weight: Array,
    padding_idx: int | None,
    sparse: bool,
    scale_grad_by_freq: bool,
) -> Array:
    outside = padding_idx is not None and not -len(weight) <= padding_idx < len(weight)
    if x.dtype.kind not in "iu" or weight.ndim != 2 or outside:
        raise TypeError("embedding")  # the body says it in full
    rows: Array = weight[x]
    if padding_idx is not None:
        rows[x == padding_idx % len(weight)] = 0
    return rows


@embedding.check_bounds
def _(x: Array, weight: Array, **_: Any) -> Iterator[tuple[Array, int, int]]:
    yield x, 0, weight.shape[0]


@embedding.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    weight = rng.standard_normal((5, 3))
    yield Sample(np.array([[0, 4], [2, 2]]), weight)
    yield Sample(np.array([1, 3], np.int32), weight, padding_idx=3)


@operator(promote="same")
def bilinear(x1: Tensor, x2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x1 weight[o] x2`` for each output o; weight [out, in1, in2], bias [1, out]."""
    left = prim.dot_general(x1, weight, lhs_contract=(1,), rhs_contract=(1,))  # [batch, out, in2]
    result = prim.dot_general(left, x2, lhs_contract=(2,), rhs_contract=(1,), lhs_batch=(0,), rhs_batch=(0,))
    return result if bias is None else prim.add(result, bias)


@bilinear.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x1, x2, weight = rng.standard_normal((2, 3)), rng.standard_normal((2, 4)), rng.standard_normal((5, 3, 4))
    yield Sample(x1, x2, weight, rng.standard_normal((1, 5)))


@operator(promote="float", upcast=True)
def cosine_similarity(x1: Tensor, x2: Tensor, axis: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `axis`; lengths count as at least `eps`."""
    shape = prim.broadcast_shapes([x1.shape, x2.shape])
    x1, x2 = prim.broadcast_to(x1, shape), prim.broadcast_to(x2, shape)
    axes = (axis % x1.ndim,)

    def dot(x: Any, y: Any) -> Any:
        return prim.reduce_sum(prim.mul(x, y), axes=axes)

    return prim.div(dot(x1, x2), prim.sqrt(prim.maximum(prim.mul(dot(x1, x1), dot(x2, x2)), eps * eps)))


@cosine_similarity.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((2, 3)))
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal(3), axis=-1)
