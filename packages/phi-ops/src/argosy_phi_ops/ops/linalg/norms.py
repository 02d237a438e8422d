"""Norms of vectors and matrices, and the trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import OperatorError, ShapeError
from argosy_phi_ops.ops.common.arguments import Axes, axes_of, axis_of
from argosy_phi_ops.ops.reduction import keep
from argosy_phi_ops.primitives.checks import COMPLEX
from argosy_tensorcore.tensor import Tensor

INF = float("inf")


@operator(promote="float", aliases={"input": "x", "A": "x", "ord": "p", "dim": "axis"}, upcast=True)
def norm(
    x: Tensor, p: float | str | None = None, axis: Axes = None, keepdim: bool = False, dtype: str | None = None
) -> Tensor:
    """The norm of vectors over `axis` (:func:`vector_norm`), or of matrices over two axes (:func:`matrix_norm`).

    By default the square root of the sum of squares, which "fro" names, too; over all axes unless `axis` says which.
    Computed in `dtype` if given.
    """
    if dtype is not None and x.dtype != dtype:
        x = prim.cast(x, dtype=dtype)
    pair = isinstance(axis, (list, tuple)) and len(axis) == 2
    if pair or (isinstance(p, str) and p != "fro"):
        return matrix_norm(x, 2.0 if p is None else p, axis if pair else tuple(range(x.ndim)), keepdim)
    return vector_norm(x, 2.0 if p is None or p == "fro" else p, axis, keepdim)


@norm.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3))
    yield Sample(x)
    for p in (1, 3, 0, INF, -INF, "fro"):
        yield Sample(x, p, axis=1, keepdim=p == 3)
    yield Sample(x, 2, [0, 1])


@operator(promote="float", upcast=True)
def vector_norm(x: Tensor, p: float = 2.0, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """``sum(|x|^p)^(1/p)`` over `axis` (all by default); infinite `p` give extremes, 0 counts what is not zero."""
    axes = axes_of("vector_norm", axis, x.ndim)
    return keep(length(x, p, axes), x.shape, axes, keepdim)


def length(x: Tensor, p: float, axes: Sequence[int]) -> Tensor:
    """The p-norm over `axes`."""
    if p % 2 == 0 and p not in (0, INF, -INF):
        return _root(prim.reduce_sum(_even_power(x, p), axes=axes), p)
    size = prim.abs(x)
    if p == INF and not any(x.shape[i] == 0 for i in axes):
        return prim.reduce_max(size, axes=axes)
    if p == -INF:
        return prim.reduce_min(size, axes=axes)
    if p == 0:
        return prim.reduce_sum(prim.cast(prim.ne(size, 0.0), dtype=size.dtype), axes=axes)
    if p in (1, INF):  # the largest of no lengths is zero, as their sum
        return prim.reduce_sum(size, axes=axes)
    return _root(prim.reduce_sum(prim.pow(size, float(p)), axes=axes), p)


def _root(total: Tensor, p: float) -> Tensor:
    """The root of a sum of powers; where that is zero its derivative is taken as zero, as Paddle does."""
    if p < 0:
        return prim.pow(total, 1 / p)
    nothing = prim.eq(total, 0.0)
    positive = prim.select(nothing, 1.0, total)
    return prim.select(nothing, 0.0, prim.sqrt(positive) if p == 2 else prim.pow(positive, 1 / p))


def _even_power(x: Tensor, p: float) -> Tensor:
    """``|x|^p`` for an even number `p`, without the kink of ``|x|``, at which second derivatives would be lost."""
    square = prim.mul(x, x) if x.dtype not in COMPLEX else prim.real(prim.mul(x, prim.conj(x)))
    return square if p == 2 else prim.pow(square, p / 2)


@vector_norm.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)))
    yield Sample(rng.standard_normal((2, 3)), 3.0, 0)


@operator(promote="float", upcast=True)
def matrix_norm(x: Tensor, p: float | str = "fro", axis: Sequence[int] = (-2, -1), keepdim: bool = False) -> Tensor:
    """The norm of the matrices over two axes: "fro", of singular values "nuc" (their sum), 2 (the largest) and -2.

    1 is the largest sum down a column, infinity that along a row; -1 and -infinity are the smallest. Raises
    :class:`ShapeError` unless there are two axes, ``ValueError`` for another `p`.
    """
    if len(axis) != 2:
        raise ShapeError(f"matrix_norm: p={p!r} needs two axes, got {list(axis)} of {x.type}")
    first, second = (axis_of("matrix_norm", a, x.ndim) for a in axis)
    axes = axes_of("matrix_norm", axis, x.ndim)
    return keep(_matrix_norm(x, p, first, second), x.shape, axes, keepdim)


def _matrix_norm(x: Tensor, p: float | str, first: int, second: int) -> Tensor:
    if p == "fro":
        return length(x, 2, tuple(sorted((first, second))))
    if p in (2, -2, "nuc"):
        others = tuple(i for i in range(x.ndim) if i not in (first, second))
        values = prim.svd(prim.transpose(x, permutation=(*others, first, second)))[1]
        reduce = prim.reduce_sum if p == "nuc" else prim.reduce_max if p == 2 else prim.reduce_min
        return reduce(values, axes=(len(others),))
    if p not in (1, -1, INF, -INF):
        raise ValueError(f"matrix_norm: p={p!r} is none of 'fro', 'nuc', 1, -1, 2, -2, inf and -inf")
    along, across = (first, second) if p in (1, -1) else (second, first)
    sums = prim.reduce_sum(prim.abs(x), axes=(along,))
    left = (across - (across > along),)
    return prim.reduce_max(sums, axes=left) if p > 0 else prim.reduce_min(sums, axes=left)


@matrix_norm.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3, 4))
    for p in ("fro", "nuc", 1, -1, 2, -2, INF, -INF):
        yield Sample(x, p)
    yield Sample(x, 1, (0, 2), keepdim=True)


@operator()
def trace(x: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The sum of the diagonal `offset` of each matrix over `axis1` and `axis2`."""
    first, second = axis_of("trace", axis1, x.ndim), axis_of("trace", axis2, x.ndim)
    rows, columns = (prim.iota(shape=x.shape, axis=i, dtype="int64") for i in (first, second))
    on = prim.eq(columns, prim.add(rows, offset))
    return prim.reduce_sum(prim.select(on, x, 0), axes=tuple(sorted((first, second))))


@trace.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((3, 4)))
    yield Sample(rng.standard_normal((2, 3, 4)), offset=1, axis1=-1, axis2=1)


@operator(inplace=True, upcast=True)
def renorm(x: Tensor, p: float, axis: int, max_norm: float) -> Tensor:
    """`x` with every slice along `axis` scaled down to the `p`-norm `max_norm` if it is longer; of a vector the slices
    are its elements."""
    if not x.ndim:
        raise ShapeError(f"renorm takes a tensor with axes, got {x.type}")
    if p <= 0 or max_norm < 0:
        raise OperatorError(f"renorm: p {p} should be positive and max_norm {max_norm} not negative")
    at = axis_of("renorm", axis, x.ndim)
    rest = tuple(i for i in range(x.ndim) if i != at)
    lengths = length(x, p, rest)
    long = prim.gt(lengths, float(max_norm))
    scale = prim.select(long, prim.div(float(max_norm), prim.select(long, lengths, 1.0)), 1.0)
    return prim.mul(x, prim.broadcast(scale, shape=x.shape, axes=(at,)))


@renorm.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((3, 4)), 2.0, 0, 1.0)
    yield Sample(rng.standard_normal((2, 3, 4)), 1.0, -1, 2.5)
    yield Sample(rng.standard_normal(5), 2.0, 0, 0.5)
