"""Determinants and powers of matrices. Leading axes hold stacks of matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.ops.linalg.matrices import check_square, identity, refuse_singular, squares
from argosy_phi_ops.ops.linalg.products import matmul
from argosy_phi_ops.pivots import zero_pivots
from argosy_phi_ops.primitives.checks import COMPLEX
from argosy_phi_ops.reference.kernels.decomposition import factors
from argosy_tensorcore.tensor import Tensor


def _diagonal(x: Tensor) -> Tensor:
    on_it = prim.eq(*(prim.iota(shape=x.shape, axis=x.ndim - i, dtype="int64") for i in (2, 1)))
    return prim.reduce_sum(prim.select(on_it, x, prim.constant(0, x.dtype, x.shape)), axes=(x.ndim - 1,))


def _swaps(pivots: Tensor) -> Tensor:
    """-1 for an odd number of row exchanges, 1 for an even one, as float64 for exactness."""
    step = prim.iota(shape=pivots.shape, axis=pivots.ndim - 1, dtype="int32")
    moved = prim.reduce_sum(prim.cast(prim.ne(pivots, step), dtype="int32"), axes=(pivots.ndim - 1,))
    return prim.sub(1, prim.mul(prim.floor_mod(moved, 2), 2))


@operator(samples=squares)
def det(x: Tensor) -> Tensor:
    """The determinants: the product of the pivots of an LU decomposition, with the sign of its row exchanges.

    Up to three rows by cofactors, whose derivatives of every order hold for singular matrices, too; of larger singular
    matrices the first derivative does, the adjugate (see :mod:`argosy_phi_ops.pivots`).
    """
    size = check_square("det", x)
    if isinstance(size, int) and 1 <= size <= 3:
        return _expand(partial(_entry, x), size)
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
            return np.array(_expand(lambda i, j: x[..., i, j], x.shape[-1]))
        diagonal, swaps = _factors(x)
        return np.asarray(diagonal.prod(-1) * swaps).astype(x.dtype, copy=False)


def _factors(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pivots [..., n] of an LU decomposition, and the sign of its row exchanges."""
    packed, pivots = factors(x)
    swaps = 1 - 2 * (np.count_nonzero(pivots != np.arange(x.shape[-1]), axis=-1) % 2)
    return np.diagonal(packed, axis1=-2, axis2=-1), swaps


def _expand(entry: Callable[[int, int], Any], size: int) -> Any:
    """The determinant of a matrix of at most three rows, expanded along the first row."""

    def minor_at(i: int, j: int) -> Any:  # of rows 1 and 2
        return entry(1, i) * entry(2, j) - entry(1, j) * entry(2, i)

    if size == 1:
        return entry(0, 0)
    if size == 2:
        return entry(0, 0) * entry(1, 1) - entry(0, 1) * entry(1, 0)
    return entry(0, 0) * minor_at(1, 2) + entry(0, 1) * minor_at(2, 0) + entry(0, 2) * minor_at(0, 1)


def _entry(x: Tensor, i: int, j: int) -> Tensor:
    none = (0,) * (x.ndim - 2)
    part = prim.slice(x, start=(*none, i, j), limit=(*x.shape[:-2], i + 1, j + 1), stride=(1,) * x.ndim)
    return prim.reshape(part, shape=x.shape[:-2])


@operator(samples=squares)
def slogdet(x: Tensor) -> Tensor:
    """The sign and the logarithm of the absolute value of the determinants, side by side along a new first axis."""
    check_square("slogdet", x)
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


@operator()
def matrix_power(x: Tensor, n: int) -> Tensor:
    """The product of `n` copies of square matrices, of their inverses for a negative `n`."""
    check_square("matrix_power", x)
    if n < 0:
        x, n = prim.solve(x, identity(x)), -n
    result = None
    while n:  # square and multiply
        if n & 1:
            result = x if result is None else matmul(result, x)
        n >>= 1
        if n:
            x = matmul(x, x)
    return identity(x) if result is None else result


@matrix_power.refuse_values
def _(x: Any, n: int, result: Any) -> None:
    if n < 0:
        refuse_singular("matrix_power", x, result)


@matrix_power.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3, 3))
    for n in (0, 1, 5, -2):
        yield Sample(x, n)
