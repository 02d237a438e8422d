"""Matrices: identities, triangles, diagonals, powers, one-hot rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.ops.common.arguments import FACTORY, INPUT, axis_of, check_static_sizes, table
from argosy_phi_ops.reference.kernels.registry import Array, numpy_dtype
from argosy_pir.dims import maximum, minimum
from argosy_tensorcore.dtype import default_dtype
from argosy_tensorcore.tensor import Tensor


@operator(aliases={"n": "num_rows", "m": "num_columns"}, keywords=FACTORY)
def eye(num_rows: int, num_columns: int | None = None, dtype: str | None = None) -> Tensor:
    """The identity matrix, cut or extended with zeros to `num_columns`."""
    shape = (num_rows, num_rows if num_columns is None else num_columns)
    rows, columns = (prim.iota(shape=shape, axis=i, dtype="int64") for i in (0, 1))
    return prim.cast(prim.eq(rows, columns), dtype=dtype or default_dtype().name)


@eye.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(3)
    yield Sample(2, 4, "int64")


@operator()
def tril_indices(row: int, col: int, offset: int = 0, dtype: str = "int64") -> Tensor:
    """Row and column indices [2, n] of the lower triangle up to the diagonal `offset`, of known sizes."""
    check_static_sizes("tril_indices", (row, col))
    return table(_lower_corner(row, col, offset, dtype))


@tril_indices.reference
def _lower_corner(row: int, col: int, offset: int, dtype: str) -> Array:
    return np.array(np.tril_indices(row, offset, col), numpy_dtype(dtype))


def corners(rng: np.random.Generator) -> Iterator[Sample]:
    """Square and not, with offsets."""
    yield Sample(3, 3)
    yield Sample(3, 4, 1)
    yield Sample(4, 2, -1, "int32")


tril_indices.samples(corners)


@operator(samples=corners)
def triu_indices(row: int, col: int | None = None, offset: int = 0, dtype: str = "int64") -> Tensor:
    """Row and column indices [2, n] of the upper triangle from the diagonal `offset` on, of known sizes."""
    check_static_sizes("triu_indices", (row, row if col is None else col))
    return table(_upper_corner(row, col, offset, dtype))


@triu_indices.reference
def _upper_corner(row: int, col: int | None, offset: int, dtype: str) -> Array:
    return np.array(np.triu_indices(row, offset, row if col is None else col), numpy_dtype(dtype))


@operator(aliases=INPUT)
def one_hot(x: Tensor, num_classes: int) -> Tensor:
    """1 at the index that `x` holds along a new last axis of `num_classes`, 0 elsewhere, in the default dtype."""
    shape = (*x.shape, num_classes)
    index = prim.iota(shape=shape, axis=x.ndim, dtype=x.dtype)
    given = prim.broadcast(x, shape=shape, axes=tuple(range(x.ndim)))
    return prim.cast(prim.eq(given, index), dtype=default_dtype().name)


@one_hot.check_bounds
def _(x: Any, num_classes: int) -> Iterator[tuple[Any, int, int]]:
    yield x, 0, num_classes


@one_hot.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(np.array([[0, 2], [1, 1]]), 3)
    yield Sample(np.asarray(1), 2)


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


@operator(inplace=True, samples=triangles)
def triu(x: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangles from `diagonal` on, the rest zero."""
    return _triangle(x, prim.logical_not(below_diagonal(x.shape[-2], x.shape[-1], diagonal - 1)))


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


@operator()
def vander(x: Tensor, n: int | None = None, increasing: bool = False) -> Tensor:
    """Powers of a vector as columns [size, n], falling unless `increasing`."""
    size = x.shape[0]
    shape = (size, size if n is None else n)
    power = prim.iota(shape=shape, axis=1, dtype="int64")
    if not increasing:
        last = shape[1] - 1
        power = prim.sub(last if isinstance(last, int) else prim.dim_size(dim=last, dtype="int64"), power)
    base = prim.broadcast(x, shape=shape, axes=(0,))
    return prim.pow(base, power if x.dtype == "int64" else prim.cast(power, dtype=x.dtype))


@vander.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal(4))
    yield Sample(rng.integers(1, 4, 3), 2, increasing=True)
