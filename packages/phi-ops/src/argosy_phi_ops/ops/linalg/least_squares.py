"""Least squares and pseudo-inverses by singular values. Leading axes hold stacks of matrices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.ops.linalg.matrices import adjoint, rectangles
from argosy_phi_ops.ops.linalg.products import matmul
from argosy_phi_ops.primitives.checks import COMPLEX
from argosy_phi_ops.reference.kernels.decomposition import svd
from argosy_phi_ops.reference.kernels.registry import Array
from argosy_tensorcore.tensor import Tensor


def _significant(s: Tensor, rcond: float) -> Tensor:
    """Which of the singular values count: those above `rcond` times the largest."""
    last = s.ndim - 1
    largest = prim.broadcast(prim.reduce_max(s, axes=(last,)), shape=s.shape, axes=tuple(range(last)))
    return prim.gt(s, prim.mul(largest, rcond))


def _inverse(u: Tensor, s: Tensor, vh: Tensor, kept: Tensor) -> Tensor:
    """``V diag(1 / s) U^H`` over the values that are kept."""
    inverse = prim.select(kept, prim.div(1.0, prim.select(kept, s, 1.0)), 0.0)
    if u.dtype in COMPLEX:
        inverse = prim.cast(inverse, dtype=u.dtype)
    shape, last = (*s.shape[:-1], vh.shape[-1], s.shape[-1]), s.ndim - 1
    spread = prim.broadcast(inverse, shape=shape, axes=(*range(last), last + 1))
    return matmul(prim.mul(adjoint(vh), spread), adjoint(u))


def _decompose(x: Array, rcond: float) -> tuple[Array, Array, Array]:
    """The pseudo-inverses, the singular values, and which of them are kept."""
    u, s, vh = svd(x)
    kept = s > s[..., :1] * s.dtype.type(rcond)
    inverse = np.zeros_like(s)
    np.divide(1, s, out=inverse, where=kept)
    u, v = (np.conj(m.swapaxes(-1, -2)) for m in (u, vh))
    return np.matmul(v * inverse[..., None, :], u), s, kept


@operator(samples=rectangles)
def pinv(x: Tensor, rcond: float = 1e-15, hermitian: bool = False) -> Tensor:
    """The pseudo-inverse by singular values; those below `rcond` times the largest count as zero."""
    u, s, vh = prim.svd(x)
    return _inverse(u, s, vh, _significant(s, rcond))


@pinv.reference
def _(x: Array, rcond: float, hermitian: bool) -> Array:
    return _decompose(x, rcond)[0]


@operator(promote="same")
def least_squares(x: Tensor, y: Tensor, rcond: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Z [..., n, k] that makes ``x Z - y`` least for x [..., m, n] and y [..., m, k], of least size where many do; the
    sums [..., k] of its squared residuals, the ranks int32 of x, and its singular values.

    Singular values of at most `rcond` times the largest count as zero.
    """
    u, s, vh = prim.svd(x)
    kept = _significant(s, rcond)
    solution = matmul(_inverse(u, s, vh, kept), y)
    gap = prim.abs(prim.sub(matmul(x, solution), y))
    residuals = prim.reduce_sum(prim.mul(gap, gap), axes=(gap.ndim - 2,))
    return solution, residuals, prim.reduce_sum(prim.cast(kept, dtype="int32"), axes=(s.ndim - 1,)), s


@least_squares.reference
def _(x: Array, y: Array, rcond: float) -> tuple[Array, Array, Array, Array]:
    inverse, s, kept = _decompose(x, rcond)
    solution = np.matmul(inverse, y)
    residuals = np.square(np.abs(np.matmul(x, solution) - y)).sum(-2)
    return solution, residuals, np.asarray(kept.sum(-1, dtype=np.int32)), s


@least_squares.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 4, 3))
    yield Sample(x, rng.standard_normal((4, 2)), 1e-12)
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((2, 1)), 1e-12)
