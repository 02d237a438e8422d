"""Decompositions of matrices and what they solve. Leading axes hold stacks of matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import OperatorError, ShapeError
from argosy_phi_ops.ops.linalg import matmul
from argosy_phi_ops.pivots import zero_pivots
from argosy_phi_ops.primitives.checks import COMPLEX
from argosy_phi_ops.reference.kernels.decomposition import factors, row_order
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.tensor import Tensor


def transposed(x: Tensor) -> Tensor:
    return prim.transpose(x, permutation=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def adjoint(x: Tensor) -> Tensor:
    flipped = transposed(x)
    return prim.conj(flipped) if x.dtype in COMPLEX else flipped


def _square(name: str, x: Tensor) -> Any:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name} needs square matrices, got {x.type}")
    return x.shape[-1]


def _identity(x: Tensor) -> Tensor:
    """Identity matrices in the shape of the square matrices `x`."""
    rows, columns = (prim.iota(shape=x.shape, axis=x.ndim - i, dtype="int64") for i in (2, 1))
    return prim.cast(prim.eq(rows, columns), dtype=x.dtype)


def positive_definite(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """A stack of well-conditioned symmetric positive definite matrices."""
    x = rng.standard_normal(shape)
    result: np.ndarray = x @ x.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])
    return result


@operator()
def cholesky(x: Tensor, upper: bool = False) -> Tensor:
    """The lower factor L of ``x = L L^H``, or its adjoint if `upper`; `x` is Hermitian positive definite. Read from the
    triangle that is wanted."""
    _square("cholesky", x)
    return adjoint(prim.cholesky(adjoint(x))) if upper else prim.cholesky(x)


@cholesky.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(positive_definite(rng, 3, 3))
    yield Sample(positive_definite(rng, 2, 3, 3), upper=True)


@operator(promote="same")
def triangular_solve(
    x: Tensor, y: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Tensor:
    """The solution Z of ``x Z = y`` with triangular `x` (transposed if told; its diagonal ones if `unitriangular`)."""
    _square("triangular_solve", x)
    x, y = _batched(x, y)
    return prim.triangular_solve(x, y, lower=not upper, transpose=transpose, unit=unitriangular)


def _batched(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    batch = prim.broadcast_shapes([x.shape[:-2], y.shape[:-2]])
    return prim.broadcast_to(x, (*batch, *x.shape[-2:])), prim.broadcast_to(y, (*batch, *y.shape[-2:]))


@triangular_solve.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x, y = positive_definite(rng, 2, 3, 3), rng.standard_normal((2, 3, 4))
    yield Sample(x, y)
    yield Sample(x, y[0], upper=False, transpose=True, unitriangular=True)


@operator(promote="same")
def cholesky_solve(x: Tensor, y: Tensor, upper: bool = False) -> Tensor:
    """The solution Z of ``A Z = x``, given the Cholesky factor `y` of A."""
    y, x = _batched(y, x)
    conjugate = y.dtype in COMPLEX
    if upper:
        first = prim.triangular_solve(y, x, lower=False, transpose=True, conjugate=conjugate)
        return prim.triangular_solve(y, first, lower=False)
    first = prim.triangular_solve(y, x, lower=True)
    return prim.triangular_solve(y, first, lower=True, transpose=True, conjugate=conjugate)


@cholesky_solve.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    factor = np.linalg.cholesky(positive_definite(rng, 3, 3))
    yield Sample(rng.standard_normal((3, 2)), factor)
    yield Sample(rng.standard_normal((3, 2)), factor.T.copy(), upper=True)


@operator()
def cholesky_inverse(x: Tensor, upper: bool = False) -> Tensor:
    """The inverse matrices of those whose Cholesky factors are `x`."""
    _square("cholesky_inverse", x)
    result: Tensor = cholesky_solve(_identity(x), x, upper)
    return result


@cholesky_inverse.refusing
def _(x: Any) -> None:
    _refuse_zeros("cholesky_inverse", x)


@cholesky_inverse.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    factor = np.linalg.cholesky(positive_definite(rng, 2, 3, 3))
    yield Sample(factor[0])
    yield Sample(factor.swapaxes(-1, -2).copy(), upper=True)


def _permuted(y: Tensor, pivots: Tensor) -> Tensor:
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
        y = _exchanged(y, index, k, prim.broadcast_to(other, y.shape), rows)
    return y


def _exchanged(y: Tensor, index: Tensor, k: int, other: Tensor, axis: int) -> Tensor:
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


def _refuse_singular(name: str, x: Any, result: Any) -> None:
    """Raise :class:`OperatorError` where a pivot of `x` is zero or NaN: then a result is not finite."""
    if not np.isfinite(result).all():
        _refuse_zeros(name, factors(x)[0])


def _refuse_zeros(name: str, factors: Any) -> None:
    diagonal = np.abs(np.diagonal(factors, axis1=-2, axis2=-1))
    if not (diagonal > 0).all():
        shape = list(factors.shape)
        raise OperatorError(f"{name}(): argument 'x' {shape} is not invertible: it has a pivot of {diagonal.min()}")


@operator(promote="same", aliases={"A": "x", "B": "y"})
def solve(x: Tensor, y: Tensor, left: bool = True) -> Tensor:
    """The solution Z of ``x Z = y`` (of ``Z x = y`` unless `left`) by LU with partial pivoting; `y` may be a vector."""
    _square("solve", x)
    vector = y.ndim == 1
    if vector:
        y = prim.reshape(y, shape=(*y.shape, 1))
    if not left:
        x, y = transposed(x), y if vector else transposed(y)
    result = prim.solve(*_batched(x, y))
    if vector:
        return prim.reshape(result, shape=result.shape[:-1])
    return result if left else transposed(result)


@solve.refusing
def _(x: Any, result: Any) -> None:
    _refuse_singular("solve", x, result)


@solve.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3, 3))
    yield Sample(x, rng.standard_normal((2, 3, 4)))
    yield Sample(x[0], rng.standard_normal(3))
    yield Sample(x, rng.standard_normal((2, 4, 3)), left=False)


@operator()
def inv(x: Tensor) -> Tensor:
    """The inverse matrices."""
    _square("inv", x)
    return prim.solve(x, _identity(x))


@inv.refusing
def _(x: Any, result: Any) -> None:
    _refuse_singular("inv", x, result)


@inv.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3, 3)))


def _diagonal(x: Tensor) -> Tensor:
    on_it = prim.eq(*(prim.iota(shape=x.shape, axis=x.ndim - i, dtype="int64") for i in (2, 1)))
    return prim.reduce_sum(prim.select(on_it, x, prim.constant(0, x.dtype, x.shape)), axes=(x.ndim - 1,))


def _swaps(pivots: Tensor) -> Tensor:
    """-1 for an odd number of row exchanges, 1 for an even one, as float64 for exactness."""
    step = prim.iota(shape=pivots.shape, axis=pivots.ndim - 1, dtype="int32")
    moved = prim.reduce_sum(prim.cast(prim.ne(pivots, step), dtype="int32"), axes=(pivots.ndim - 1,))
    return prim.sub(1, prim.mul(prim.floor_mod(moved, 2), 2))


@operator()
def det(x: Tensor) -> Tensor:
    """The determinants: the product of the pivots of an LU decomposition, with the sign of its row exchanges.

    Up to three rows by cofactors, whose derivatives of every order hold for singular matrices, too; of larger singular
    matrices the first derivative does, the adjugate (see :mod:`argosy_phi_ops.pivots`).
    """
    size = _square("det", x)
    if isinstance(size, int) and 1 <= size <= 3:
        return _expanded(partial(_entry, x), size)
    packed, pivots, _ = prim.lu(x)
    diagonal = _diagonal(packed)
    filled = zero_pivots(diagonal)
    product = prim.reduce_prod(prim.add(diagonal, filled), axes=(x.ndim - 2,))
    singular = prim.reduce_or(prim.ne(filled, 0.0), axes=(x.ndim - 2,))
    product = prim.sub(product, prim.stop_gradient(prim.select(singular, product, 0.0)))  # exactly zero
    return prim.mul(product, prim.cast(_swaps(pivots), dtype=x.dtype))


@det.reference
def _(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        if 1 <= x.shape[-1] <= 3:
            return np.array(_expanded(lambda i, j: x[..., i, j], x.shape[-1]))
        diagonal, swaps = _factors(x)
        return np.asarray(diagonal.prod(-1) * swaps).astype(x.dtype, copy=False)


def _factors(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pivots [..., n] of an LU decomposition, and the sign of its row exchanges."""
    packed, pivots = factors(x)
    swaps = 1 - 2 * (np.count_nonzero(pivots != np.arange(x.shape[-1]), axis=-1) % 2)
    return np.diagonal(packed, axis1=-2, axis2=-1), swaps


def _expanded(entry: Callable[[int, int], Any], size: int) -> Any:
    """The determinant of a matrix of at most three rows, expanded along the first row."""

    def minor(i: int, j: int) -> Any:  # of rows 1 and 2
        return entry(1, i) * entry(2, j) - entry(1, j) * entry(2, i)

    if size == 1:
        return entry(0, 0)
    if size == 2:
        return entry(0, 0) * entry(1, 1) - entry(0, 1) * entry(1, 0)
    return entry(0, 0) * minor(1, 2) + entry(0, 1) * minor(2, 0) + entry(0, 2) * minor(0, 1)


def _entry(x: Tensor, i: int, j: int) -> Tensor:
    none = (0,) * (x.ndim - 2)
    part = prim.slice(x, start=(*none, i, j), limit=(*x.shape[:-2], i + 1, j + 1), stride=(1,) * x.ndim)
    return prim.reshape(part, shape=x.shape[:-2])


def squares(rng: np.random.Generator) -> Iterator[Sample]:
    """One matrix and a stack."""
    yield Sample(rng.standard_normal((3, 3)))
    yield Sample(rng.standard_normal((2, 4, 4)))


det.samples(squares)


@operator()
def slogdet(x: Tensor) -> Tensor:
    """The sign and the logarithm of the absolute value of the determinants, side by side along a new first axis."""
    _square("slogdet", x)
    packed, pivots, _ = prim.lu(x)
    diagonal = _diagonal(packed)
    sign = prim.mul(prim.reduce_prod(prim.sign(diagonal), axes=(x.ndim - 2,)), prim.cast(_swaps(pivots), dtype=x.dtype))
    size = prim.reduce_sum(prim.log(prim.abs(diagonal)), axes=(x.ndim - 2,))
    if x.dtype in COMPLEX:
        size = prim.cast(size, dtype=x.dtype)
    return prim.concat(*(prim.reshape(v, shape=(1, *v.shape)) for v in (sign, size)), axis=0)


@slogdet.reference
def _(x: np.ndarray) -> np.ndarray:
    diagonal, swaps = _factors(x)
    with np.errstate(all="ignore"):
        size = np.abs(diagonal)
        sign = np.sign(diagonal) if x.dtype.kind == "f" else np.where(size == 0, 0, diagonal / size)
        return np.stack([sign.prod(-1) * swaps, np.log(size).sum(-1)]).astype(x.dtype)


slogdet.samples(squares)


@operator()
def qr(x: Tensor, mode: str = "reduced") -> Tensor | tuple[Tensor, Tensor]:
    """Orthonormal Q and upper triangular R of ``x = Q R``; mode "complete" makes Q square, "r" gives R alone."""
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"qr: mode {mode!r} is none of 'reduced', 'complete' and 'r'")
    q, r = prim.qr(x, full=mode == "complete")
    return r if mode == "r" else (q, r)


def rectangles(rng: np.random.Generator) -> Iterator[Sample]:
    """Tall and wide matrices."""
    yield Sample(rng.standard_normal((4, 3)))
    yield Sample(rng.standard_normal((2, 3, 4)))


qr.samples(rectangles)


@operator(apart=True)
def svd(x: Tensor, full_matrices: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """U, the singular values in descending order, and V^H of ``x = U diag(S) V^H``."""
    u, s, vh = prim.svd(x, full=full_matrices)
    return u, s, vh


svd.samples(rectangles)


@operator()
def svdvals(x: Tensor) -> Tensor:
    """The singular values in descending order."""
    return prim.svd(x)[1]


svdvals.samples(rectangles)


@operator(apart=True)
def eigh(x: Tensor, UPLO: str = "L") -> tuple[Tensor, Tensor]:
    """Ascending eigenvalues and eigenvectors (columns) of Hermitian matrices, read from one triangle."""
    _square("eigh", x)
    values, vectors = prim.eigh(x, lower=UPLO == "L")
    return values, vectors


def symmetric(rng: np.random.Generator) -> Iterator[Sample]:
    """Symmetric matrices."""
    yield Sample(positive_definite(rng, 3, 3))
    yield Sample(positive_definite(rng, 2, 3, 3), "U")


eigh.samples(symmetric)


@operator()
def eigvalsh(x: Tensor, UPLO: str = "L") -> Tensor:
    """Ascending eigenvalues of Hermitian matrices, read from one triangle."""
    _square("eigvalsh", x)
    return prim.eigh(x, lower=UPLO == "L")[0]


eigvalsh.samples(symmetric)


@operator(apart=True)
def eig(x: Tensor) -> tuple[Tensor, Tensor]:
    """Complex eigenvalues and eigenvectors (columns) of square matrices."""
    _square("eig", x)
    values, vectors = prim.eig(x)
    return values, vectors


eig.samples(squares)


@operator()
def eigvals(x: Tensor) -> Tensor:
    """Complex eigenvalues of square matrices."""
    _square("eigvals", x)
    return prim.eig(x)[0]


eigvals.samples(squares)


@operator()
def matrix_power(x: Tensor, n: int) -> Tensor:
    """The product of `n` copies of square matrices, of their inverses for a negative `n`."""
    _square("matrix_power", x)
    if n < 0:
        x, n = prim.solve(x, _identity(x)), -n
    result = None
    while n:  # square and multiply
        if n & 1:
            result = x if result is None else matmul(result, x)
        n >>= 1
        if n:
            x = matmul(x, x)
    return _identity(x) if result is None else result


@matrix_power.refusing
def _(x: Any, n: int, result: Any) -> None:
    if n < 0:
        _refuse_singular("matrix_power", x, result)


@matrix_power.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3, 3))
    for n in (0, 1, 5, -2):
        yield Sample(x, n)


@operator()
def lu_factor(x: Tensor) -> tuple[Tensor, Tensor]:
    """The packed factors of ``P L U = x`` with partial pivoting and the row exchanges (int32, counted from 1)."""
    packed, pivots, _ = prim.lu(x)
    return packed, prim.add(pivots, 1)


lu_factor.samples(rectangles)


@operator()
def permutation_of(pivots: Tensor, rows: int, dtype: str = "float32") -> Tensor:
    """The permutation matrices P of ``P L U`` for row exchanges counted from 1, [..., rows, rows]."""
    shape = (*pivots.shape[:-1], rows, rows)
    line, column = (prim.iota(shape=shape, axis=len(shape) - i, dtype="int64") for i in (2, 1))
    identity = prim.cast(prim.eq(line, column), dtype=dtype)
    exchanged = _permuted(identity, prim.cast(prim.sub(pivots, 1), dtype="int32"))  # P^T
    return transposed(exchanged)


@permutation_of.reference
def _(pivots: np.ndarray, rows: int, dtype: str = "float32") -> np.ndarray:
    order = row_order(pivots - 1, rows)
    return np.equal(np.arange(rows)[:, None], order[..., None, :]).astype(as_dtype(dtype).numpy)


@permutation_of.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(np.array([3, 3, 3], np.int32), 3, "float64")
    yield Sample(np.array([[2, 2], [1, 2]], np.int32), 4)
