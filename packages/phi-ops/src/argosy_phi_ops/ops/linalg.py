"""Products of matrices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.reference.kernels.registry import is_narrow_float, rounded, widened
from argosy_tensorcore.tensor import Tensor


@operator(promote="binary", aliases={"input": "x", "other": "y"})
def matmul(x: Tensor, y: Tensor, transpose_x: bool = False, transpose_y: bool = False) -> Tensor:
    """The matrix product over the last two axes, batched over the leading ones with broadcasting.

    A 1-D operand is a row (``x``) or a column (``y``) whose axis the result lacks. ``transpose_x`` and ``transpose_y``
    exchange the last two axes first. Raises :class:`ShapeError` when the contracted sizes differ.
    """
    rank_x, rank_y = x.ndim, y.ndim
    if not rank_x or not rank_y:
        raise ShapeError(f"matmul needs at least one axis on both sides, got {x.type} and {y.type}")
    contract_x = rank_x - 2 if transpose_x and rank_x > 1 else rank_x - 1
    contract_y = rank_y - 1 if transpose_y or rank_y == 1 else rank_y - 2
    if x.shape[contract_x] != y.shape[contract_y]:
        error = ShapeError(
            f"matmul contracts axis {contract_x} of x {x.type} with axis {contract_y} of y {y.type}: the sizes differ"
        )
        error.sizes = x.shape[contract_x], y.shape[contract_y]
        raise error
    batch = prim.broadcast_shapes([x.shape[:-2], y.shape[:-2]])
    if rank_y <= 2 or not batch:  # one matrix for all rows: no batch axes needed
        return prim.dot_general(x, y, lhs_contract=(contract_x,), rhs_contract=(contract_y,))
    x, y = (prim.broadcast_to(v, (*batch, *v.shape[-2:])) for v in (x, y))
    axes = tuple(range(len(batch)))
    return prim.dot_general(
        x,
        y,
        lhs_contract=(x.ndim - 2 if transpose_x and rank_x > 1 else x.ndim - 1,),
        rhs_contract=(y.ndim - 1 if transpose_y else y.ndim - 2,),
        lhs_batch=axes,
        rhs_batch=axes,
    )


@matmul.reference
def _(x: np.ndarray, y: np.ndarray, transpose_x: bool, transpose_y: bool) -> np.ndarray:
    left = x.swapaxes(-1, -2) if transpose_x and x.ndim > 1 else x
    right = y.swapaxes(-1, -2) if transpose_y and y.ndim > 1 else y
    if is_narrow_float(left.dtype):
        return rounded(np.matmul(widened(left), widened(right)), left.dtype)  # numpy widens bfloat16 in its result
    return np.matmul(left, right)


@matmul.specialised
def _(types: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """Two matrices as they are: ``dot`` costs half of what ``np.matmul`` costs for small ones."""
    plain = all(t.ndim == 2 and t.dtype.name in ("float32", "float64") for t in types)
    if not plain or attributes["transpose_x"] or attributes["transpose_y"]:
        return None
    return np.ndarray.dot


@matmul.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((3, 4)))
    yield Sample(rng.standard_normal((5, 2, 3)), rng.standard_normal((3, 4)))
    yield Sample(rng.standard_normal((5, 3, 2)), rng.standard_normal((1, 4, 3)), transpose_x=True, transpose_y=True)
    yield Sample(rng.standard_normal(3), rng.standard_normal((2, 3, 4)))
