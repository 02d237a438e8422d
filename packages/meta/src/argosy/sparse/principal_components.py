"""Principal components of a sparse matrix, which is never made dense."""

from __future__ import annotations

from typing import Any

from argosy.argument_checks import validate_call
from argosy.sparse.arrangement import transpose
from argosy.sparse.products import matmul
from argosy.sparse.tensors import SparseTensor, as_sparse
from argosy_phi_ops.declare.operator import get_operator as op

__all__ = ["pca_lowrank"]


@validate_call
def pca_lowrank(
    x: SparseTensor, q: int | None = None, center: bool = True, niter: int = 2, name: str | None = None
) -> tuple[Any, Any, Any]:
    """(U [N, q], S [q], V [M, q]) with ``x - mean = U diag(S) V^T`` nearly, for a sparse x [N, M].

    By random projection with ``niter`` power iterations (Halko, Martinsson and Tropp, 2011, algorithms 4.4 and 5.1);
    the mean of the columns is subtracted from products, unless ``center`` is False. q: at most min(N, M), 6 by default.
    """
    as_sparse("pca_lowrank", x)
    if x.ndim != 2 or x.dense_dim() or x.dtype.kind != "f":
        raise ValueError(f"pca_lowrank() takes a sparse matrix of floats, got {list(x.shape)} of {x.dtype.name}")
    rows, columns = x.shape
    rank = min(6, rows, columns) if q is None else int(q)
    if not 0 <= rank <= min(rows, columns) or niter < 0:
        limit = f"q should be from 0 to {min(rows, columns)} and niter not negative"
        raise ValueError(f"pca_lowrank(): {limit}, got {q} and {niter}")
    turned = transpose(x, [1, 0])
    ones = op("ones")([rows, 1], x.dtype.name)
    mean = matmul(turned, ones) / rows if center else None  # [M, 1]

    def times(block: Any) -> Any:
        product = matmul(x, block)
        return product if mean is None else product - op("matmul")(mean, block, True)

    def turned_times(block: Any) -> Any:
        product = matmul(turned, block)
        return product if mean is None else product - op("matmul")(mean, block.sum(0, keepdim=True))

    basis = _orthonormal(times(op("randn")([columns, rank], x.dtype.name)))
    for _ in range(niter):
        basis = _orthonormal(times(_orthonormal(turned_times(basis))))
    inner, values, right = op("svd")(op("transpose")(turned_times(basis), [1, 0]), False)
    return op("matmul")(basis, inner), values, op("transpose")(right, [1, 0])


def _orthonormal(block: Any) -> Any:
    return op("qr")(block)[0]
