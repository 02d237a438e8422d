"""Activations of sparse tensors: what is not stored stays so."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy.argument_checks import validate_call
from argosy.geometric.messages import reduce_rows
from argosy.sparse.patterns import distinct, keys_of
from argosy.sparse.tensors import SparseCsrTensor, SparseTensor, as_sparse, scatter_sum
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.tensor import Tensor

__all__ = ["leaky_relu", "relu", "relu6", "softmax"]


@validate_call
def relu(x: SparseTensor, name: str | None = None) -> SparseTensor:
    """``max(x, 0)`` of each value; values that become 0 stay stored."""
    result: SparseTensor = as_sparse("relu", x)._with_values(op("relu")(x.values()))
    return result


@validate_call
def relu6(x: SparseTensor, name: str | None = None) -> SparseTensor:
    """``min(max(x, 0), 6)`` of each value."""
    result: SparseTensor = as_sparse("relu6", x)._with_values(op("relu6")(x.values()))
    return result


@validate_call
def leaky_relu(x: SparseTensor, negative_slope: float = 0.01, name: str | None = None) -> SparseTensor:
    """``x`` where it is positive, ``negative_slope * x`` elsewhere, of each value."""
    result: SparseTensor = as_sparse("leaky_relu", x)._with_values(op("leaky_relu")(x.values(), negative_slope))
    return result


@validate_call
def softmax(x: SparseTensor, axis: int = -1, name: str | None = None) -> SparseTensor:
    """``exp(x)`` over its sum along ``axis``, of the stored values alone: the others have probability 0.

    A CSR tensor takes its last axis only. Raises ValueError for another one.
    """
    as_sparse("softmax", x)
    if not -x.ndim <= axis < x.ndim or (isinstance(x, SparseCsrTensor) and axis % x.ndim != x.ndim - 1):
        shown = "-1 for a CSR tensor" if isinstance(x, SparseCsrTensor) else f"from {-x.ndim} to {x.ndim - 1}"
        raise ValueError(f"softmax(): axis should be {shown}, got {axis}")
    at = axis % x.ndim
    if at >= x.sparse_dim():
        return x._with_values(op("softmax")(x.values(), at - x.sparse_dim() + 1))
    if isinstance(x, SparseCsrTensor):
        return x._with_values(_by_segment(x.values(), x.rows(), int(np.prod(x.shape[:-1]))))
    coordinates = x.to_sparse_coo()
    others = [i for i in range(x.sparse_dim()) if i != at]
    lines, segment = distinct(keys_of(coordinates.indices().numpy()[others], [x.shape[i] for i in others]))
    return x._with_values(_by_segment(x.values(), Tensor(segment), len(lines)))


def _by_segment(values: Any, segment: Any, count: int) -> Any:
    """Softmax of the rows of equal ``segment`` together."""
    largest = reduce_rows("softmax", values.detach(), segment, count, "max")
    raised = op("exp")(values - op("gather")(largest, segment, 0))
    return raised / op("gather")(scatter_sum(raised, segment, count), segment, 0)
