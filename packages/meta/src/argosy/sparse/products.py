"""Products of sparse matrices and batches of them: with dense ones, with each other, and of dense ones at a few places.

A product with a dense matrix takes a row of it for each value (as many numbers as values times columns) and adds them
up by rows of the result; one of two sparse matrices goes through their values by Gustavson's scheme (1978).
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import math
from typing import Any

import numpy as np

from argosy.argument_checks import validate_call
from argosy.sparse.binary import add, multiply
from argosy.sparse.patterns import distinct, positions_of
from argosy.sparse.tensors import SparseCooTensor, SparseCsrTensor, SparseTensor, as_sparse, scatter_sum
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.tensor import Tensor

__all__ = ["addmm", "masked_matmul", "matmul", "mv"]


@validate_call
def matmul(x: SparseTensor, y: Any, name: str | None = None) -> Any:
    """``x @ y`` of a sparse x [*, M, K] and y [*, K, N], equal in the axes ``*``.

    A dense y gives a dense result, a sparse one of the same kind a sparse one.
    Returns a sparse tensor for a sparse y, a dense one for a dense y.
    """
    _check("matmul", x, y)
    return _multiply_sparse(x, y) if isinstance(y, SparseTensor) else _multiply_dense(x, y)


@validate_call
def mv(x: SparseTensor, vec: Any, name: str | None = None) -> Tensor:
    """The dense product [M] of a sparse matrix x [M, K] and a dense vector [K]."""
    as_sparse("mv", x)
    if isinstance(vec, SparseTensor) or len(x.shape) != 2 or list(vec.shape) != [x.shape[1]]:
        raise ValueError(f"mv() takes a sparse matrix and a dense vector, got {list(x.shape)} and {list(vec.shape)}")
    return _multiply_dense(x, vec.reshape([-1, 1])).reshape([-1])


@validate_call
def addmm(input: Any, x: SparseTensor, y: Any, beta: float = 1.0, alpha: float = 1.0, name: str | None = None) -> Any:
    """``beta * input + alpha * (x @ y)``; ``input`` has the kind (dense, COO, CSR) and shape of the product.

    Returns a tensor of the kind of ``input``.
    """
    _check("addmm", x, y)
    product = matmul(x, y)
    if type(input) is not type(product) or list(input.shape) != list(product.shape):
        wanted, came = (f"{type(t).__name__} {list(t.shape)}" for t in (product, input))
        raise ValueError(f"addmm(): argument 'input' must be a {wanted}, as x @ y is; got {came}")
    if isinstance(product, SparseTensor):
        return add(multiply(input, beta), multiply(product, alpha))
    return input * beta + product * alpha


@validate_call
def masked_matmul(x: Any, y: Any, mask: SparseTensor, name: str | None = None) -> SparseTensor:
    """``x @ y`` of dense x [*, M, K] and y [*, K, N], computed at the positions of the sparse ``mask`` [*, M, N]."""
    as_sparse("masked_matmul", mask, "mask")
    if isinstance(x, SparseTensor) or isinstance(y, SparseTensor):
        raise TypeError("masked_matmul(): arguments 'x' and 'y' must be dense Tensors")
    wanted = [*x.shape[:-1], *y.shape[-1:]]
    if len(x.shape) != len(y.shape) or x.shape[-1] != y.shape[-2] or list(mask.shape) != wanted or mask.dense_dim():
        shapes = ", ".join(str(list(t.shape)) for t in (x, y, mask))
        raise ValueError(f"masked_matmul(): x [*, M, K], y [*, K, N] and mask [*, M, N] should fit, got {shapes}")
    rows, columns = _rows_and_columns(mask)
    turned = op("transpose")(y, [*range(len(y.shape) - 2), len(y.shape) - 1, len(y.shape) - 2])
    batch = rows // mask.shape[-2]
    left = op("gather")(x.reshape([-1, x.shape[-1]]), rows, 0)
    right = op("gather")(turned.reshape([-1, x.shape[-1]]), batch * mask.shape[-1] + columns, 0)
    return mask._with_values((left * right).sum(-1))


def _check(owner: str, x: Any, y: Any) -> None:
    as_sparse(owner, x)
    if isinstance(y, SparseTensor) and type(y) is not type(x):
        raise TypeError(f"{owner}(): x is a {type(x).__name__}, so a sparse y must be one, got {type(y).__name__}")
    if not hasattr(y, "shape"):
        raise TypeError(f"{owner}(): argument 'y' must be a Tensor, dense or sparse, got {y!r:.60}")
    dense = [t.dense_dim() for t in (x, y) if isinstance(t, SparseTensor)]
    inner = len(x.shape) == len(y.shape) >= 2 and x.shape[-1] == y.shape[-2]
    if any(dense) or not inner or list(x.shape[:-2]) != list(y.shape[:-2]):
        raise ValueError(f"{owner}(): x [*, M, K] and y [*, K, N] should fit, got {list(x.shape)} and {list(y.shape)}")


def _rows_and_columns(x: Any) -> tuple[Any, Any]:
    """Rows, numbered through all matrices of the batch, and columns of the values."""
    if isinstance(x, SparseCsrTensor):
        return x.rows(), x.cols().cast("int64")
    places = x.places()
    return places // x.shape[-1], places % x.shape[-1]


def _multiply_dense(x: Any, y: Any) -> Any:
    rows, columns = _rows_and_columns(x)
    taken = op("gather")(y.reshape([-1, y.shape[-1]]), rows // x.shape[-2] * x.shape[-1] + columns, 0)
    terms = taken * x.values().reshape([-1, 1])
    return scatter_sum(terms, rows, math.prod(x.shape[:-1])).reshape([*x.shape[:-1], y.shape[-1]])


def _multiply_sparse(x: Any, y: Any) -> Any:
    left, right = x.to_sparse_coo(), y.to_sparse_coo().coalesce()
    rows, columns = np.divmod(left.keys(), x.shape[-1])
    inner = rows // x.shape[-2] * x.shape[-1] + columns  # the row of y, through its batch, that each value of x meets
    first, second = _meetings(inner, right.keys() // y.shape[-1], math.prod(y.shape[:-1]))
    shape = [*x.shape[:-1], y.shape[-1]]
    found, places = distinct(rows[first] * y.shape[-1] + right.keys()[second] % y.shape[-1])
    terms = op("gather")(left.values(), Tensor(first), 0) * op("gather")(right.values(), Tensor(second), 0)
    indices = positions_of(found, shape, left.indices().numpy().dtype)
    made = SparseCooTensor(Tensor(indices), scatter_sum(terms, Tensor(places), len(found)), shape, True)
    return made.to_sparse_csr() if isinstance(x, SparseCsrTensor) else made


def _meetings(wanted: Any, rows: Any, count: int) -> tuple[Any, Any]:
    """Pairs (i, j) with ``wanted[i] == rows[j]``, where ``rows`` rises and is below ``count``."""
    starts = np.searchsorted(rows, np.arange(count + 1))
    lengths = starts[wanted + 1] - starts[wanted]
    first = np.repeat(np.arange(wanted.size), lengths)
    within = np.arange(first.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return first, starts[wanted[first]] + within
