"""Operators that select by a condition or a place: masks, triangles, diagonals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.ops.arguments import axis_of
from argosy_pir.dims import maximum, minimum
from argosy_tensorcore.tensor import Tensor


@operator(promote="where", inplace=True, aliases={"input": "x", "other": "y"})
def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """`x` where `condition` holds, else `y`, with broadcasting."""
    if condition.dtype != "bool":
        condition = prim.cast(condition, dtype="bool")
    return prim.select(condition, x, y)


@where.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.random((2, 3)) < 0.5, rng.standard_normal((2, 3)), rng.standard_normal(3))
    yield Sample(rng.random((2, 3)) < 0.5, rng.standard_normal((2, 1)), 0.0)


@operator(promote="first", inplace=True)
def masked_fill(x: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """`value` (a number or a 0-D tensor) where `mask` holds, else `x`; the dtype stays that of `x`."""
    filler = value if value.dtype == x.dtype else prim.cast(value, dtype=x.dtype)
    return prim.select(mask, filler, x)


@masked_fill.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.random(3) < 0.5, -1.0)
    yield Sample(rng.standard_normal((2, 3)), rng.random((2, 3)) < 0.5, np.asarray(7.0))


def below_diagonal(rows: Any, columns: Any, diagonal: int) -> Tensor:
    """Where the column index is at most the row index plus `diagonal`, [rows, columns]."""
    row, column = (prim.iota(shape=(rows, columns), axis=i, dtype="int64") for i in (0, 1))
    return prim.le(column, prim.add(row, diagonal) if diagonal else row)


def _triangle(x: Tensor, mask: Tensor) -> Tensor:
    return prim.select(mask, x, prim.constant(0, x.dtype, x.shape))


@operator(inplace=True)
def tril(x: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangles up to `diagonal`, the rest zero."""
    return _triangle(x, below_diagonal(x.shape[-2], x.shape[-1], diagonal))


def triangles(rng: np.random.Generator) -> Iterator[Sample]:
    """Matrices and diagonals on both sides."""
    yield Sample(rng.standard_normal((3, 4)))
    yield Sample(rng.standard_normal((2, 3, 3)), 1)
    yield Sample(rng.integers(0, 9, (3, 3)), -1)


tril.samples(triangles)


@operator(inplace=True)
def triu(x: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangles from `diagonal` on, the rest zero."""
    return _triangle(x, prim.logical_not(below_diagonal(x.shape[-2], x.shape[-1], diagonal - 1)))


triu.samples(triangles)


@operator(view=True, aliases={"dim1": "axis1", "dim2": "axis2"})
def diagonal(x: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The diagonal `offset` of the matrices over `axis1` and `axis2`, as a last axis."""
    first, second = axis_of("diagonal", axis1, x.ndim), axis_of("diagonal", axis2, x.ndim)
    rows, columns = x.shape[first] + min(offset, 0), x.shape[second] - max(offset, 0)
    length = maximum(minimum(rows, columns), 0)
    at = prim.iota(shape=(length, 2), axis=0, dtype="int64")
    shift = prim.mul(prim.iota(shape=(length, 2), axis=1, dtype="int64"), offset)
    if offset < 0:
        shift = prim.sub(shift, offset)
    found = prim.gather(x, prim.add(at, shift), axes=(first, second))
    return prim.transpose(found, permutation=(*range(1, found.ndim), 0))


@diagonal.reference
def _(x: np.ndarray, offset: int, axis1: int, axis2: int) -> np.ndarray:
    found = x.diagonal(offset, axis1, axis2)
    found.flags.writeable = x.flags.writeable
    return found


@diagonal.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((3, 4)))
    yield Sample(rng.standard_normal((2, 3, 4)), 1, 1, 2)
    yield Sample(rng.standard_normal((2, 3, 4)), -1, 2, 1)


@operator()
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices (over `dim1` and `dim2` of the result) with the last axis of `input` on the diagonal `offset`."""
    rank = input.ndim + 1
    first, second = axis_of("diag_embed", dim1, rank), axis_of("diag_embed", dim2, rank)
    size = input.shape[-1] + abs(offset)
    rows, columns = (prim.iota(shape=(size, size), axis=i, dtype="int64") for i in (0, 1))
    low = max(-offset, 0)
    padded = prim.pad(
        input,
        prim.constant(0, input.dtype),
        low=(0,) * (input.ndim - 1) + (low,),
        high=(0,) * (input.ndim - 1) + (abs(offset) - low,),
        interior=(0,) * input.ndim,
    )
    shape = (*input.shape[:-1], size, size)
    spread = prim.broadcast(padded, shape=shape, axes=tuple(range(input.ndim)))
    matrix = prim.select(prim.eq(columns, prim.add(rows, offset)), spread, prim.constant(0, input.dtype, shape))
    rest = iter(range(rank - 2))
    places = {first: rank - 2, second: rank - 1}
    return prim.transpose(matrix, permutation=tuple(places[i] if i in places else next(rest) for i in range(rank)))


@diag_embed.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)))
    yield Sample(rng.standard_normal((2, 3)), -1, 0, 2)


@operator()
def diag(x: Tensor, offset: int = 0, padding_value: float = 0) -> Tensor:
    """The matrix with the vector `x` on its diagonal `offset`, or the diagonal of a matrix."""
    if x.ndim == 2:
        return diagonal(x, offset)
    matrix = diag_embed(x, offset)
    if not padding_value:
        return matrix
    rows, columns = (prim.iota(shape=matrix.shape, axis=i, dtype="int64") for i in (0, 1))
    return prim.select(
        prim.eq(columns, prim.add(rows, offset)), matrix, prim.constant(padding_value, x.dtype, matrix.shape)
    )


@diag.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal(3), 1)
    yield Sample(rng.standard_normal(3), padding_value=2.0)
    yield Sample(rng.standard_normal((3, 4)), -1)
