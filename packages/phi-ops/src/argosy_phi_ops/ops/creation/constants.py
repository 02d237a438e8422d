"""Tensors filled with a number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.call_overloads import sizes_from
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.ops.common.arguments import FACTORY, INPUT
from argosy_phi_ops.primitives.checks import COMPLEX, FLOATING
from argosy_phi_ops.reference.kernels.registry import Array, numpy_dtype
from argosy_tensorcore.dtype import default_dtype
from argosy_tensorcore.tensor import Tensor

Number = bool | int | float | complex


def _dims(shape: int | Sequence[Any]) -> tuple[Any, ...]:
    return (shape,) if isinstance(shape, int) or hasattr(shape, "evaluate") else tuple(shape)


def fill_shape(value: Number, dtype: str, shape: Sequence[Any]) -> Tensor:
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


@operator(aliases={"size": "shape"}, keywords=FACTORY, form=sizes_from(0), samples=shapes)
def zeros(shape: int | Sequence[int], dtype: str | None = None) -> Tensor:
    """Zeros, of the default dtype unless told."""
    return fill_shape(0, dtype or default_dtype().name, _dims(shape))


zeros.reference(lambda shape, dtype: _full_array(shape, 0, dtype or default_dtype().name))


@operator(aliases={"size": "shape"}, keywords=FACTORY, form=sizes_from(0), samples=shapes)
def ones(shape: int | Sequence[int], dtype: str | None = None) -> Tensor:
    """Ones, of the default dtype unless told."""
    return fill_shape(1, dtype or default_dtype().name, _dims(shape))


ones.reference(lambda shape, dtype: _full_array(shape, 1, dtype or default_dtype().name))


@operator(aliases={"size": "shape"}, keywords=FACTORY, form=sizes_from(0), samples=shapes)
def empty(shape: int | Sequence[int], dtype: str | None = None) -> Tensor:
    """Memory to be overwritten; it holds zeros, so that programs stay deterministic."""
    return fill_shape(0, dtype or default_dtype().name, _dims(shape))


empty.reference(lambda shape, dtype: _full_array(shape, 0, dtype or default_dtype().name))


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
    return fill_shape(fill_value, fill_dtype(fill_value, dtype), _dims(shape))


@full.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample([2, 3], 7)
    yield Sample([2], True)
    yield Sample([], 2.5, "int32")
    yield Sample([2], 1 + 2j)
    yield Sample([2, 3], 1.0)


def like_samples(rng: np.random.Generator) -> Iterator[Sample]:
    """The operand's dtype, and another."""
    yield Sample(rng.standard_normal((2, 3)))
    yield Sample(rng.standard_normal((2, 3)), dtype="int32")


@operator(constant=True, aliases=INPUT, keywords=FACTORY, samples=like_samples)
def zeros_like(x: Tensor, dtype: str | None = None) -> Tensor:
    """Zeros in the shape (and dtype, unless told) of `x`."""
    return fill_shape(0, dtype or x.dtype, x.shape)


@operator(constant=True, aliases=INPUT, keywords=FACTORY, samples=like_samples)
def ones_like(x: Tensor, dtype: str | None = None) -> Tensor:
    """Ones in the shape (and dtype, unless told) of `x`."""
    return fill_shape(1, dtype or x.dtype, x.shape)


@operator(constant=True, aliases=INPUT, keywords=FACTORY, samples=like_samples)
def empty_like(x: Tensor, dtype: str | None = None) -> Tensor:
    """Zeros in the shape (and dtype, unless told) of `x`, to be overwritten."""
    return fill_shape(0, dtype or x.dtype, x.shape)


@operator(constant=True, aliases=INPUT, keywords=FACTORY)
def full_like(x: Tensor, fill_value: Number, dtype: str | None = None) -> Tensor:
    """`fill_value` in the shape (and dtype, unless told) of `x`."""
    return fill_shape(fill_value, dtype or x.dtype, x.shape)


@full_like.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), 2.5)
    yield Sample(rng.standard_normal((2, 3)), 2.5, "int64")
