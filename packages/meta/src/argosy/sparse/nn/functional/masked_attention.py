"""Attention where a sparse matrix says which keys each query sees."""

from __future__ import annotations

import math
from typing import Any

from argosy.argument_checks import validate_call
from argosy.sparse.nn.functional.activation import softmax
from argosy.sparse.products import masked_matmul, matmul
from argosy.sparse.tensors import SparseCsrTensor
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.tensor import Tensor

__all__ = ["attention"]


@validate_call
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    sparse_mask: SparseCsrTensor,
    key_padding_mask: Tensor | None = None,
    attn_mask: Tensor | None = None,
    name: str | None = None,
) -> Tensor:
    """``softmax(query @ key^T / sqrt(d)) @ value`` of operands [b, h, s, d], at the positions of ``sparse_mask``.

    sparse_mask: CSR [b * h, s, s], of which the values do not matter. A 0 in ``key_padding_mask`` [b, s] or
    ``attn_mask`` [s, s] hides as well. Scores are computed at the positions of the mask only. A query that sees
    nothing in the sparse mask gives 0.
    """
    this = "attention"
    batch, heads, length, width = query.shape
    if not isinstance(sparse_mask, SparseCsrTensor) or list(sparse_mask.shape) != [batch * heads, length, length]:
        wanted = [batch * heads, length, length]
        came = f"{type(sparse_mask).__name__} {list(getattr(sparse_mask, 'shape', []))}"
        raise ValueError(f"{this}(): argument 'sparse_mask' must be a SparseCsrTensor {wanted}, got {came}")
    q, k, v = (op("reshape")(x, [batch * heads, length, width]) for x in (query, key, value))
    scores: Any = masked_matmul(q / math.sqrt(width), op("transpose")(k, [0, 2, 1]), sparse_mask)
    columns, rows = sparse_mask.cols().cast("int64"), sparse_mask.rows()
    for mask, places in (
        (key_padding_mask, rows // (heads * length) * length + columns),
        (attn_mask, rows % length * length + columns),
    ):
        if mask is not None:
            seen = op("gather")(mask.reshape([-1]), places, 0) != 0
            scores = scores._with_values(op("where")(seen, scores.values(), float("-inf")))
    result: Tensor = matmul(softmax(scores), v).reshape([batch, heads, length, width])
    return result
