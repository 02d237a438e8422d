"""Matrix decompositions through `numpy.linalg`, over any leading batch axes. What numpy does not offer, LU and
triangular solves, is asked of the LAPACK behind it, and written out for where that is not to be had.
"""

from math import prod

import numpy as np

from argosy_phi_ops.reference.kernels import lapack
from argosy_phi_ops.reference.kernels.registry import Array, ieee, kernel


@kernel("cholesky")
def cholesky(x: Array) -> Array:
    """The lower triangular L with ``L L^H = x``; raises `numpy.linalg.LinAlgError` unless `x` is positive
    definite.
    """
    return np.linalg.cholesky(x)


@kernel("qr")
def qr(x: Array, *, full: bool = False) -> tuple[Array, Array]:
    """``x = q r`` with orthonormal columns of q: reduced to min(m, n) columns unless `full`."""
    q, r = np.linalg.qr(x, mode="complete" if full else "reduced")
    return q, r


@kernel("svd")
def svd(x: Array, *, full: bool = False) -> tuple[Array, Array, Array]:
    """``x = u diag(s) vh`` with s real and descending; u and vh are reduced unless `full`."""
    u, s, vh = np.linalg.svd(x, full_matrices=full)
    return u, s, vh


@kernel("eigh")
def eigh(x: Array, *, lower: bool = True) -> tuple[Array, Array]:
    """Ascending real eigenvalues and eigenvectors (columns) of a Hermitian matrix, of which one triangle is
    read.
    """
    values, vectors = np.linalg.eigh(x, UPLO="L" if lower else "U")
    return values, vectors


@kernel("eig")
def eig(x: Array) -> tuple[Array, Array]:
    """Complex eigenvalues and unit eigenvectors (columns) of a square matrix."""
    values, vectors = np.linalg.eig(x)
    result = np.complex64 if x.dtype in (np.float32, np.complex64) else np.complex128
    return values.astype(result), vectors.astype(result)


def _pack(x: Array) -> tuple[Array, Array]:
    """The packed factors and pivots by elimination, for all matrices of a stack at once: where no LAPACK is found."""
    packed = x.copy().reshape(prod(x.shape[:-2]), *x.shape[-2:])
    steps = min(x.shape[-2:])
    pivots = np.zeros((packed.shape[0], steps), np.int32)
    every = np.arange(packed.shape[0])
    for k in range(steps):
        row = pivots[:, k] = k + np.abs(packed[:, k:, k]).argmax(1)
        packed[every, k], packed[every, row] = packed[every, row], packed[every, k]
        head = packed[:, k, k][:, None]
        factors = np.where(head == 0, 0, packed[:, k + 1 :, k] / np.where(head == 0, 1, head))
        packed[:, k + 1 :, k] = factors
        packed[:, k + 1 :, k + 1 :] -= factors[:, :, None] * packed[:, None, k, k + 1 :]
    return packed.reshape(x.shape), pivots.reshape(*x.shape[:-2], steps)


def row_order(pivots: Array, rows: int) -> Array:
    """The numbers int32 [..., rows] of the rows in the order in which the exchanges `pivots` (from 0) leave them."""
    if pivots.ndim == 1:  # lists exchange elements quicker than arrays
        order = list(range(rows))
        for k, other in enumerate(pivots.tolist()):
            order[k], order[other] = order[other], order[k]
        return np.array(order, np.int32)
    shape = (*pivots.shape[:-1], rows)
    orders = np.tile(np.arange(rows, dtype=np.int32), (prod(pivots.shape[:-1]), 1))
    every = np.arange(len(orders))
    for k, other in enumerate(pivots.reshape(len(orders), pivots.shape[-1]).T):
        orders[every, k], orders[every, other] = orders[every, other], orders[every, k]
    return orders.reshape(shape)


@ieee
def factors(x: Array) -> tuple[Array, Array]:
    """What :func:`lu` gives without the order of the rows, which costs as much again for small matrices."""
    return lapack.factor(x) or _pack(x)


@kernel("lu")
def lu(x: Array) -> tuple[Array, Array, Array]:
    """Partial pivoting: L (unit, below the diagonal) and U packed in one matrix, the row exchanged at each step,
    and the order of the rows that the exchanges make.

    Step k swaps rows k and pivots[k] (0-based, int32); ``x[order] = L U``. A column of zeros leaves a zero pivot, as
    LAPACK's getrf does, which this is where it is found.
    """
    packed, pivots = factors(x)
    return packed, pivots, row_order(pivots, x.shape[-2])


@kernel("solve")
def solve(a: Array, b: Array) -> Array:
    """The y of ``a y = b`` by LAPACK's gesv, in the precision of `a`. A zero pivot gives infinities and NaN (in that
    matrix of a stack)."""
    found = lapack.solve_system(a, b)
    if found is not None:
        return found
    packed, _, order = lu(a)
    first = triangular_solve(packed, np.take_along_axis(b, order[..., None], -2), lower=True, unit=True)
    return triangular_solve(packed, first, lower=False)


def _substitute(a: Array, b: Array, lower: bool) -> Array:
    """Solve ``a y = b`` for triangular `a` by substitution, row after row."""
    y = np.zeros_like(b)
    size = a.shape[-1]
    for i in range(size) if lower else reversed(range(size)):
        done = slice(0, i) if lower else slice(i + 1, size)
        known = np.matmul(a[..., i, None, done], y[..., done, :])[..., 0, :]
        y[..., i, :] = (b[..., i, :] - known) / a[..., i, i, None]
    return y


@kernel("triangular_solve")
@ieee
def triangular_solve(
    a: Array,
    b: Array,
    *,
    lower: bool = True,
    transpose: bool = False,
    conjugate: bool = False,
    unit: bool = False,
    left: bool = True,
) -> Array:
    """Solve ``op(a) y = b``, or ``y op(a) = b`` unless `left`; `op` transposes and conjugates as told.

    Only one triangle of `a` is read; `unit` takes the diagonal for ones. A zero on it gives infinities and
    NaN. By BLAS's trsm where it is found.
    """
    if conjugate and not transpose:
        a, conjugate = a.conj(), False
    form = {"transpose": transpose, "conjugate": conjugate, "unit": unit, "left": left}
    found = lapack.substitute(a, b, lower=lower, **form)
    return _solve_triangular(a, b, lower=lower, **form) if found is None else found


def _solve_triangular(
    a: Array, b: Array, *, lower: bool, transpose: bool, conjugate: bool, unit: bool, left: bool
) -> Array:
    matrix = a.conj() if conjugate else a
    if unit:
        matrix = np.where(np.eye(a.shape[-1], dtype=bool), a.dtype.type(1), matrix)
    if transpose == left:  # solving from the right transposes once more
        matrix = matrix.swapaxes(-1, -2)
        lower = not lower
    if left:
        return _substitute(matrix, b, lower)
    return _substitute(matrix, b.swapaxes(-1, -2), lower).swapaxes(-1, -2)
