"""Decompositions of matrices. Leading axes hold stacks of matrices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import OperatorError
from argosy_phi_ops.ops.linalg.matrices import (
    adjoint,
    check_square,
    positive_definite,
    rectangles,
    squares,
    symmetric,
    transpose_matrices,
)
from argosy_phi_ops.reference.kernels.decomposition import row_order
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.tensor import Tensor


@operator()
def cholesky(x: Tensor, upper: bool = False) -> Tensor:
    """The lower factor L of ``x = L L^H``, or its adjoint if `upper`; `x` is Hermitian positive definite. Read from the
    triangle that is wanted."""
    check_square("cholesky", x)
    return adjoint(prim.cholesky(adjoint(x))) if upper else prim.cholesky(x)


@cholesky.refuse_values
def _(x: np.ndarray, result: np.ndarray) -> None:
    if np.isnan(result).any() and np.isfinite(x).all():  # where no library has refused it
        raise OperatorError(f"cholesky(): argument 'x' {list(x.shape)} is not positive definite")


@cholesky.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(positive_definite(rng, 3, 3))
    yield Sample(positive_definite(rng, 2, 3, 3), upper=True)


def _permute(y: Tensor, pivots: Tensor) -> Tensor:
    """The rows of `y` in the order that the row exchanges `pivots` of an LU decomposition leave them in."""
    steps = pivots.shape[-1]
    if not isinstance(steps, int):
        raise NotImplementedError(f"solving with matrices of symbolic size is not implemented: {pivots.type}")
    rank, rows = y.ndim, y.ndim - 2
    index = prim.iota(shape=y.shape, axis=rows, dtype="int32")
    for k in range(steps):
        start, limit = [0] * pivots.ndim, list(pivots.shape)
        start[-1], limit[-1] = k, k + 1
        chosen = prim.slice(pivots, start=tuple(start), limit=tuple(limit), stride=(1,) * pivots.ndim)
        other = prim.broadcast(chosen, shape=(*y.shape[:-2], 1, y.shape[-1]), axes=tuple(range(rank - 1)))
        y = _exchange(y, index, k, prim.broadcast_to(other, y.shape), rows)
    return y


def _exchange(y: Tensor, index: Tensor, k: int, other: Tensor, axis: int) -> Tensor:
    """`y` with row `k` and the row that `other` tells exchanged."""
    at_k, at_other = prim.eq(index, k), prim.eq(index, other)
    rows = [
        prim.broadcast(
            prim.reduce_sum(prim.select(mask, y, 0), axes=(axis,)),
            shape=y.shape,
            axes=tuple(i for i in range(y.ndim) if i != axis),
        )
        for mask in (at_k, at_other)
    ]
    return prim.select(at_k, rows[1], prim.select(at_other, rows[0], y))


@operator(samples=rectangles)
def qr(x: Tensor, mode: str = "reduced") -> Tensor | tuple[Tensor, Tensor]:
    """Orthonormal Q and upper triangular R of ``x = Q R``; mode "complete" makes Q square, "r" gives R alone."""
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"qr: mode {mode!r} is none of 'reduced', 'complete' and 'r'")
    q, r = prim.qr(x, full=mode == "complete")
    return r if mode == "r" else (q, r)


@operator(apart=True, samples=rectangles)
def svd(x: Tensor, full_matrices: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """U, the singular values in descending order, and V^H of ``x = U diag(S) V^H``."""
    u, s, vh = prim.svd(x, full=full_matrices)
    return u, s, vh


@operator(samples=rectangles)
def svdvals(x: Tensor) -> Tensor:
    """The singular values in descending order."""
    return prim.svd(x)[1]


@operator(apart=True, samples=symmetric)
def eigh(x: Tensor, UPLO: str = "L") -> tuple[Tensor, Tensor]:
    """Ascending eigenvalues and eigenvectors (columns) of Hermitian matrices, read from one triangle."""
    check_square("eigh", x)
    values, vectors = prim.eigh(x, lower=UPLO == "L")
    return values, vectors


@operator(samples=symmetric)
def eigvalsh(x: Tensor, UPLO: str = "L") -> Tensor:
    """Ascending eigenvalues of Hermitian matrices, read from one triangle."""
    check_square("eigvalsh", x)
    return prim.eigh(x, lower=UPLO == "L")[0]


@operator(apart=True, samples=squares)
def eig(x: Tensor) -> tuple[Tensor, Tensor]:
    """Complex eigenvalues and eigenvectors (columns) of square matrices."""
    check_square("eig", x)
    values, vectors = prim.eig(x)
    return values, vectors


@operator(samples=squares)
def eigvals(x: Tensor) -> Tensor:
    """Complex eigenvalues of square matrices."""
    check_square("eigvals", x)
    return prim.eig(x)[0]


@operator(samples=rectangles)
def lu_factor(x: Tensor) -> tuple[Tensor, Tensor]:
    """The packed factors of ``P L U = x`` with partial pivoting and the row exchanges (int32, counted from 1)."""
    packed, pivots, _ = prim.lu(x)
    return packed, prim.add(pivots, 1)


@operator()
def permutation_of(pivots: Tensor, rows: int, dtype: str = "float32") -> Tensor:
    """The permutation matrices P of ``P L U`` for row exchanges counted from 1, [..., rows, rows]."""
    shape = (*pivots.shape[:-1], rows, rows)
    line, column = (prim.iota(shape=shape, axis=len(shape) - i, dtype="int64") for i in (2, 1))
    identity = prim.cast(prim.eq(line, column), dtype=dtype)
    exchanged = _permute(identity, prim.cast(prim.sub(pivots, 1), dtype="int32"))  # P^T
    return transpose_matrices(exchanged)


@permutation_of.reference
def _(pivots: np.ndarray, rows: int, dtype: str = "float32") -> np.ndarray:
    order = row_order(pivots - 1, rows)
    return np.equal(np.arange(rows)[:, None], order[..., None, :]).astype(as_dtype(dtype).numpy)


@permutation_of.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(np.array([3, 3, 3], np.int32), 3, "float64")
    yield Sample(np.array([[2, 2], [1, 2]], np.int32), 4)
