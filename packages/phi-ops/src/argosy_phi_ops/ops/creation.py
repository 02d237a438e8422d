"""Operators that make tensors out of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.arguments import FACTORY, known_sizes, table
from argosy_phi_ops.ops.forms import sizes_from
from argosy_phi_ops.primitives.checks import COMPLEX, FLOATING
from argosy_phi_ops.reference.kernels.registry import Array, numpy_dtype
from argosy_tensorcore.dtype import default_dtype
from argosy_tensorcore.tensor import Tensor

Number = bool | int | float | complex


def _dims(shape: int | Sequence[Any]) -> tuple[Any, ...]:
    return (shape,) if isinstance(shape, int) or hasattr(shape, "evaluate") else tuple(shape)


def filled(value: Number, dtype: str, shape: Sequence[Any]) -> Tensor:
    """A constant tensor; numbers are converted as a cast would."""
    if dtype == "bool":
        value = bool(value)
    elif dtype not in FLOATING | COMPLEX:
        value = int(value)
    return prim.constant(value, dtype, tuple(shape))


def _full_array(shape: int | Sequence[int], value: Number, dtype: str) -> Array:
    return np.full(_dims(shape), value, numpy_dtype(dtype))


def shapes(rng: np.random.Generator) -> Iterator[Sample]:
    """Shapes with and without axes, and dtypes."""
    yield Sample([2, 3])
    yield Sample([], "int64")
    yield Sample([0, 2], dtype="bool")
    yield Sample(4)


@operator(aliases={"size": "shape"}, keywords=FACTORY, form=sizes_from(0))
def zeros(shape: int | Sequence[int], dtype: str | None = None) -> Tensor:
    """Zeros, of the default dtype unless told."""
    return filled(0, dtype or default_dtype().name, _dims(shape))


zeros.reference(lambda shape, dtype: _full_array(shape, 0, dtype or default_dtype().name))
zeros.samples(shapes)


@operator(aliases={"size": "shape"}, keywords=FACTORY, form=sizes_from(0))
def ones(shape: int | Sequence[int], dtype: str | None = None) -> Tensor:
    """Ones, of the default dtype unless told."""
    return filled(1, dtype or default_dtype().name, _dims(shape))


ones.reference(lambda shape, dtype: _full_array(shape, 1, dtype or default_dtype().name))
ones.samples(shapes)


@operator(aliases={"size": "shape"}, keywords=FACTORY, form=sizes_from(0))
def empty(shape: int | Sequence[int], dtype: str | None = None) -> Tensor:
    """Memory to be overwritten; it holds zeros, so that programs stay deterministic."""
    return filled(0, dtype or default_dtype().name, _dims(shape))


empty.reference(lambda shape, dtype: _full_array(shape, 0, dtype or default_dtype().name))
empty.samples(shapes)


def fill_dtype(value: Number, dtype: str | None) -> str:
    """The dtype of a tensor filled with `value`: bool and complex as they are, other numbers the default dtype."""
    if dtype is not None:
        return dtype
    if isinstance(value, bool):
        return "bool"
    return "complex128" if isinstance(value, complex) else default_dtype().name


@operator(aliases={"size": "shape"}, keywords=FACTORY)
def full(shape: int | Sequence[int], fill_value: Number, dtype: str | None = None) -> Tensor:
    """`fill_value`, which may be a size, everywhere; integers make a tensor of the default dtype, too, unless told."""
    if hasattr(fill_value, "evaluate"):
        return prim.broadcast_to(prim.dim_size(dim=fill_value, dtype=dtype or "int64"), _dims(shape))
    return filled(fill_value, fill_dtype(fill_value, dtype), _dims(shape))


@full.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample([2, 3], 7)
    yield Sample([2], True)
    yield Sample([], 2.5, "int32")
    yield Sample([2], 1 + 2j)
    yield Sample([2, 3], 1.0)


def like(rng: np.random.Generator) -> Iterator[Sample]:
    """The operand's dtype, and another."""
    yield Sample(rng.standard_normal((2, 3)))
    yield Sample(rng.standard_normal((2, 3)), dtype="int32")


@operator(constant=True, aliases={"input": "x"}, keywords=FACTORY)
def zeros_like(x: Tensor, dtype: str | None = None) -> Tensor:
    """Zeros in the shape (and dtype, unless told) of `x`."""
    return filled(0, dtype or x.dtype, x.shape)


zeros_like.samples(like)


@operator(constant=True, aliases={"input": "x"}, keywords=FACTORY)
def ones_like(x: Tensor, dtype: str | None = None) -> Tensor:
    """Ones in the shape (and dtype, unless told) of `x`."""
    return filled(1, dtype or x.dtype, x.shape)


ones_like.samples(like)


@operator(constant=True, aliases={"input": "x"}, keywords=FACTORY)
def empty_like(x: Tensor, dtype: str | None = None) -> Tensor:
    """Zeros in the shape (and dtype, unless told) of `x`, to be overwritten."""
    return filled(0, dtype or x.dtype, x.shape)


empty_like.samples(like)


@operator(constant=True, aliases={"input": "x"}, keywords=FACTORY)
def full_like(x: Tensor, fill_value: Number, dtype: str | None = None) -> Tensor:
    """`fill_value` in the shape (and dtype, unless told) of `x`."""
    return filled(fill_value, dtype or x.dtype, x.shape)


@full_like.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), 2.5)
    yield Sample(rng.standard_normal((2, 3)), 2.5, "int64")


@operator(keywords=FACTORY)
def arange(start: Number = 0, end: Number | None = None, step: Number = 1, dtype: str | None = None) -> Tensor:
    """``start, start + step, ...`` below `end`; `start` alone is the end. int64 unless a number is a float.

    Raises :class:`ShapeError` for a step of zero.
    """
    if end is None:
        start, end = 0, start
    if dtype is None:
        dtype = default_dtype().name if any(isinstance(v, float) for v in (start, end, step)) else "int64"
    elif dtype not in FLOATING:  # as Paddle does, the bounds are rounded towards zero first
        start, end, step = (int(v) if isinstance(v, float) else v for v in (start, end, step))
    if step == 0:
        raise ShapeError(f"arange from {start} to {end}: the step must not be zero")
    if hasattr(end, "evaluate") or hasattr(start, "evaluate"):  # a symbolic length
        if step != 1:
            raise NotImplementedError("arange over a symbolic range with a step other than 1 is not implemented")
        size: Any = end - start
    else:
        size = max(ceil((end - start) / step), 0)
    wide = dtype if dtype in FLOATING else "int64"
    index = prim.iota(shape=(size,), axis=0, dtype=wide)
    scaled = index if step == 1 else prim.mul(index, step)
    if hasattr(start, "evaluate"):
        scaled = prim.add(scaled, prim.cast(prim.dim_size(dim=start, dtype="int64"), dtype=wide))
    elif start:
        scaled = prim.add(scaled, start)
    return scaled if dtype == wide else prim.cast(scaled, dtype=dtype)


@arange.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(5)
    yield Sample(2, 11, 3)
    yield Sample(5, 0, -2, "int32")
    yield Sample(0.0, 1.0, 0.25)
    yield Sample(3, 1)


@operator(aliases={"end": "stop", "steps": "num"}, keywords=FACTORY)
def linspace(start: Number, stop: Number, num: int, dtype: str | None = None) -> Tensor:
    """`num` numbers from `start` to `stop`, both included, equally far apart."""
    wide = dtype if dtype in FLOATING else default_dtype().name
    if num == 1:
        return filled(start, dtype or wide, (1,))
    index = prim.iota(shape=(num,), axis=0, dtype=wide)
    step = (stop - start) / (num - 1)
    # Counted from the nearer end, so that both ends are exact.
    front = prim.add(prim.mul(index, step), float(start))
    back = prim.sub(float(stop), prim.mul(prim.sub(float(num - 1), index), step))
    result = prim.select(prim.lt(index, num / 2), front, back)
    return result if dtype is None or dtype == wide else prim.cast(result, dtype=dtype)


@linspace.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(0, 1, 5)
    yield Sample(-1.0, 2.0, 4, "float64")
    yield Sample(3, 9, 1)


@operator()
def logspace(start: float, stop: float, num: int, base: float = 10.0, dtype: str | None = None) -> Tensor:
    """`base` to the powers that :func:`linspace` gives."""
    powers = linspace.body(start, stop, num, dtype)
    return prim.pow(prim.constant(float(base), powers.dtype, powers.shape), powers)


@logspace.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(0.0, 3.0, 4)
    yield Sample(0.0, 3.0, 4, 2.0, "float64")


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
    known_sizes("tril_indices", (row, col))
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


@operator()
def triu_indices(row: int, col: int | None = None, offset: int = 0, dtype: str = "int64") -> Tensor:
    """Row and column indices [2, n] of the upper triangle from the diagonal `offset` on, of known sizes."""
    known_sizes("triu_indices", (row, row if col is None else col))
    return table(_upper_corner(row, col, offset, dtype))


@triu_indices.reference
def _upper_corner(row: int, col: int | None, offset: int, dtype: str) -> Array:
    return np.array(np.triu_indices(row, offset, row if col is None else col), numpy_dtype(dtype))


triu_indices.samples(corners)


@operator(aliases={"input": "x"})
def one_hot(x: Tensor, num_classes: int) -> Tensor:
    """1 at the index that `x` holds along a new last axis of `num_classes`, 0 elsewhere, in the default dtype."""
    shape = (*x.shape, num_classes)
    index = prim.iota(shape=shape, axis=x.ndim, dtype=x.dtype)
    given = prim.broadcast(x, shape=shape, axes=tuple(range(x.ndim)))
    return prim.cast(prim.eq(given, index), dtype=default_dtype().name)


@one_hot.bounded
def _(x: Any, num_classes: int) -> Iterator[tuple[Any, int, int]]:
    yield x, 0, num_classes


@one_hot.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(np.array([[0, 2], [1, 1]]), 3)
    yield Sample(np.asarray(1), 2)


@operator()
def meshgrid(args: Sequence[Tensor], indexing: str | None = None) -> tuple[Tensor, ...]:
    """Vectors spread over the grid that they span: result i varies along axis i (of "xy": the first two exchanged)."""
    order = list(range(len(args)))
    if indexing == "xy" and len(args) > 1:
        order[:2] = [1, 0]
    shape = [args[i].type.size for i in order]
    flat = [prim.reshape(x, shape=(x.type.size,)) for x in args]
    return tuple(prim.broadcast(x, shape=tuple(shape), axes=(order.index(i),)) for i, x in enumerate(flat))


@meshgrid.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample([rng.standard_normal(3), rng.standard_normal(2)])
    yield Sample([rng.standard_normal(3), rng.standard_normal(2), np.asarray(1.0)], indexing="xy")
