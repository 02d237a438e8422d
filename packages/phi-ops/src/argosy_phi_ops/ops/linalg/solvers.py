"""Solvers of linear systems, and inverses. Leading axes hold stacks of matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.ops.linalg.matrices import (
    check_square,
    identity,
    positive_definite,
    refuse_singular,
    refuse_zeros,
    transpose_matrices,
)
from argosy_phi_ops.primitives.checks import COMPLEX
from argosy_tensorcore.tensor import Tensor


@operator(promote="same")
def triangular_solve(
    x: Tensor, y: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Tensor:
    """The solution Z of ``x Z = y`` with triangular `x` (transposed if told; its diagonal ones if `unitriangular`)."""
    check_square("triangular_solve", x)
    x, y = _batch(x, y)
    return prim.triangular_solve(x, y, lower=not upper, transpose=transpose, unit=unitriangular)


def _batch(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
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
    y, x = _batch(y, x)
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
    check_square("cholesky_inverse", x)
    result: Tensor = cholesky_solve(identity(x), x, upper)
    return result


@cholesky_inverse.refuse_values
def _(x: Any) -> None:
    refuse_zeros("cholesky_inverse", x)


@cholesky_inverse.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    factor = np.linalg.cholesky(positive_definite(rng, 2, 3, 3))
    yield Sample(factor[0])
    yield Sample(factor.swapaxes(-1, -2).copy(), upper=True)


@operator(promote="same", aliases={"A": "x", "B": "y"})
def solve(x: Tensor, y: Tensor, left: bool = True) -> Tensor:
    """The solution Z of ``x Z = y`` (of ``Z x = y`` unless `left`) by LU with partial pivoting; `y` may be a vector."""
    check_square("solve", x)
    vector = y.ndim == 1
    if vector:
        y = prim.reshape(y, shape=(*y.shape, 1))
    if not left:
        x, y = transpose_matrices(x), y if vector else transpose_matrices(y)
    result = prim.solve(*_batch(x, y))
    if vector:
        return prim.reshape(result, shape=result.shape[:-1])
    return result if left else transpose_matrices(result)


@solve.refuse_values
def _(x: Any, result: Any) -> None:
    refuse_singular("solve", x, result)


@solve.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3, 3))
    yield Sample(x, rng.standard_normal((2, 3, 4)))
    yield Sample(x[0], rng.standard_normal(3))
    yield Sample(x, rng.standard_normal((2, 4, 3)), left=False)


@operator()
def inv(x: Tensor) -> Tensor:
    """The inverse matrices."""
    check_square("inv", x)
    return prim.solve(x, identity(x))


@inv.refuse_values
def _(x: Any, result: Any) -> None:
    refuse_singular("inv", x, result)


@inv.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3, 3)))
