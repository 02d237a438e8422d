"""Matrices that bodies and samples of linear algebra share: adjoints, identities, checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample
from argosy_phi_ops.errors import OperatorError, ShapeError
from argosy_phi_ops.primitives.checks import COMPLEX
from argosy_phi_ops.reference.kernels.decomposition import factors
from argosy_tensorcore.tensor import Tensor


def transpose_matrices(x: Tensor) -> Tensor:
    return prim.transpose(x, permutation=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def adjoint(x: Tensor) -> Tensor:
    flipped = transpose_matrices(x)
    return prim.conj(flipped) if x.dtype in COMPLEX else flipped


def check_square(name: str, x: Tensor) -> Any:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name} needs square matrices, got {x.type}")
    return x.shape[-1]


def identity(x: Tensor) -> Tensor:
    """Identity matrices in the shape of the square matrices `x`."""
    rows, columns = (prim.iota(shape=x.shape, axis=x.ndim - i, dtype="int64") for i in (2, 1))
    return prim.cast(prim.eq(rows, columns), dtype=x.dtype)


def positive_definite(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """A stack of well-conditioned symmetric positive definite matrices."""
    x = rng.standard_normal(shape)
    result: np.ndarray = x @ x.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])
    return result


def refuse_singular(name: str, x: Any, result: Any) -> None:
    """Raise :class:`OperatorError` where a pivot of `x` is zero or NaN: then a result is not finite."""
    if not np.isfinite(result).all():
        refuse_zeros(name, factors(x)[0])


def refuse_zeros(name: str, factors: Any) -> None:
    diagonal = np.abs(np.diagonal(factors, axis1=-2, axis2=-1))
    if not (diagonal > 0).all():
        shape = list(factors.shape)
        raise OperatorError(f"{name}(): argument 'x' {shape} is not invertible: it has a pivot of {diagonal.min()}")


def squares(rng: np.random.Generator) -> Iterator[Sample]:
    """One matrix and a stack."""
    yield Sample(rng.standard_normal((3, 3)))
    yield Sample(rng.standard_normal((2, 4, 4)))


def rectangles(rng: np.random.Generator) -> Iterator[Sample]:
    """Tall and wide matrices."""
    yield Sample(rng.standard_normal((4, 3)))
    yield Sample(rng.standard_normal((2, 3, 4)))


def symmetric(rng: np.random.Generator) -> Iterator[Sample]:
    """Symmetric matrices."""
    yield Sample(positive_definite(rng, 3, 3))
    yield Sample(positive_definite(rng, 2, 3, 3), "U")
