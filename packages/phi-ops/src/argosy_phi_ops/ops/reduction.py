"""Reductions over axes, and cumulations along one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.declare.promotion import kind_of
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.arguments import Axes, axes_of, axis_of, ones_at, restore
from argosy_phi_ops.ops.forms import keepdim_first
from argosy_phi_ops.primitives.checks import BOOL, COMPLEX, FLOATING, REAL_OF
from argosy_phi_ops.reference.kernels.registry import quiet
from argosy_tensorcore.tensor import Tensor


def keep(x: Tensor, shape: Sequence[Any], axes: Sequence[int], keepdim: bool) -> Tensor:
    """A value reduced from `shape`, with the reduced axes back at size one if `keepdim`."""
    return prim.reshape(x, shape=ones_at(shape, axes)) if keepdim and axes else x


def count_of(shape: Sequence[Any], axes: Sequence[int], dtype: str) -> Any:
    """How many elements are reduced: a number, or a 0-D value where a size is symbolic."""
    count: Any = 1
    for axis in axes:
        count = count * shape[axis]
    if isinstance(count, int):
        return float(count) if dtype in FLOATING | COMPLEX else count
    return prim.cast(prim.dim_size(dim=count, dtype="int64"), dtype=dtype)


def reducible(rng: np.random.Generator) -> Iterator[Sample]:
    """All axes, one, several, kept, and a 0-D tensor."""
    x = rng.standard_normal((2, 3, 4))
    yield Sample(x)
    yield Sample(x, 1)
    yield Sample(x.astype(np.float32), [0, -1], keepdim=True)
    yield Sample(np.asarray(rng.standard_normal()))


def _as(x: Tensor, dtype: str | None) -> Tensor:
    return x if dtype is None or x.dtype == dtype else prim.cast(x, dtype=dtype)


@operator(aliases={"input": "x", "dim": "axis"}, form=keepdim_first)
def sum_(x: Tensor, axis: Axes = None, dtype: str | None = None, keepdim: bool = False) -> Tensor:
    """The sum over `axis` (all by default); booleans and int32 are summed in int64 unless `dtype` says otherwise."""
    if dtype is None and x.dtype in ("bool", "int32"):
        dtype = "int64"
    x = _as(x, dtype)
    axes = axes_of("sum", axis, x.ndim)
    return keep(prim.reduce_sum(x, axes=axes), x.shape, axes, keepdim)


@sum_.specialised
def _(types: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """All elements of a wide real tensor."""
    ordinary = types[0].dtype.name in ("float32", "float64") and attributes["axis"] is None
    if not ordinary or attributes["dtype"] is not None or attributes["keepdim"]:
        return None
    return lambda x: quiet.run(np.add.reduce, x, None)


@sum_.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield from reducible(rng)
    yield Sample(rng.random((2, 3)) < 0.5, 0)
    yield Sample(rng.integers(0, 9, (2, 3)).astype(np.int32), dtype="float64")


@operator(aliases={"input": "x", "dim": "axis"})
def mean(x: Tensor, axis: Axes = None, keepdim: bool = False, dtype: str | None = None) -> Tensor:
    """The mean over `axis` (all by default); of integers rounded towards zero, NaN of no elements."""
    x = _as(x, dtype)
    axes = axes_of("mean", axis, x.ndim)
    total = prim.reduce_sum(x, axes=axes)
    return keep(prim.div(total, count_of(x.shape, axes, x.dtype)), x.shape, axes, keepdim)


@mean.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield from reducible(rng)
    yield Sample(rng.integers(0, 9, (2, 3)))


@operator(aliases={"input": "x", "dim": "axis"}, positional_out=True)
def prod(x: Tensor, axis: Axes = None, keepdim: bool = False, dtype: str | None = None) -> Tensor:
    """The product over `axis` (all by default)."""
    x = _as(x, dtype or ("int64" if x.dtype == "bool" else None))
    axes = axes_of("prod", axis, x.ndim)
    return keep(prim.reduce_prod(x, axes=axes), x.shape, axes, keepdim)


prod.samples(reducible)


def _nonempty(name: str, x: Tensor, axes: Sequence[int]) -> None:
    """Refuse axes without elements; of open ones, at the call: then there is not even a first element."""
    for axis in axes:
        size = x.shape[axis]
        if not isinstance(size, int):
            prim.check_index(prim.constant(0, "int64"), operator=name, low=0, size=size, besides=None)
        elif size == 0:
            raise ShapeError(f"{name} over no elements has no value: axes {tuple(axes)} of {x.type}")


@operator()
def max_(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """The maximum over `axis` (all by default). Raises :class:`ShapeError` over no elements."""
    axes = axes_of("max", axis, x.ndim)
    _nonempty("max", x, axes)
    return keep(prim.reduce_max(x, axes=axes), x.shape, axes, keepdim)


max_.samples(reducible)


@operator()
def min_(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """The minimum over `axis` (all by default). Raises :class:`ShapeError` over no elements."""
    axes = axes_of("min", axis, x.ndim)
    _nonempty("min", x, axes)
    return keep(prim.reduce_min(x, axes=axes), x.shape, axes, keepdim)


min_.samples(reducible)


@operator()
def amax(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """The maximum over `axis`, as :func:`max`; equal maxima share the gradient."""
    axes = axes_of("amax", axis, x.ndim)
    _nonempty("amax", x, axes)
    return keep(prim.reduce_max(x, axes=axes), x.shape, axes, keepdim)


amax.samples(reducible)


@operator()
def amin(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """The minimum over `axis`, as :func:`min`; equal minima share the gradient."""
    axes = axes_of("amin", axis, x.ndim)
    _nonempty("amin", x, axes)
    return keep(prim.reduce_min(x, axes=axes), x.shape, axes, keepdim)


amin.samples(reducible)


def truths(rng: np.random.Generator) -> Iterator[Sample]:
    """Booleans and numbers."""
    yield Sample(rng.random((2, 3)) < 0.7)
    yield Sample(rng.random((2, 3)) < 0.7, 1, keepdim=True)
    yield Sample(np.array([[0.0, 1.0], [2.0, 3.0]]), [0])


def _truth(x: Tensor) -> Tensor:
    return x if x.dtype in BOOL else prim.cast(x, dtype="bool")


@operator()
def all_(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """Whether all elements over `axis` are true (not zero)."""
    axes = axes_of("all", axis, x.ndim)
    return keep(prim.reduce_and(_truth(x), axes=axes), x.shape, axes, keepdim)


all_.samples(truths)


@operator()
def any_(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """Whether any element over `axis` is true (not zero)."""
    axes = axes_of("any", axis, x.ndim)
    return keep(prim.reduce_or(_truth(x), axes=axes), x.shape, axes, keepdim)


any_.samples(truths)


@operator()
def count_nonzero(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """How many elements over `axis` are not zero, as int64."""
    axes = axes_of("count_nonzero", axis, x.ndim)
    return keep(prim.reduce_sum(prim.cast(_truth(x), dtype="int64"), axes=axes), x.shape, axes, keepdim)


count_nonzero.samples(truths)


@operator(promote="float")
def logsumexp(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """``log(sum(exp(x)))`` over `axis` without overflow."""
    axes = axes_of("logsumexp", axis, x.ndim)
    top = prim.stop_gradient(prim.reduce_max(x, axes=axes))
    top = prim.select(prim.is_finite(top), top, 0.0)
    total = prim.reduce_sum(prim.exp(prim.sub(x, restore(top, x.shape, axes))), axes=axes)
    return keep(prim.add(prim.log(total), top), x.shape, axes, keepdim)


@logsumexp.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield from reducible(rng)
    yield Sample(np.array([[-np.inf, -np.inf], [np.inf, 1.0]]), 1)


def squared_deviation(x: Tensor, axes: Sequence[int]) -> Tensor:
    """The sum over `axes` of squared distances from their mean; real for complex `x`."""
    middle = prim.div(prim.reduce_sum(x, axes=axes), count_of(x.shape, axes, x.dtype))
    distance = prim.sub(x, restore(middle, x.shape, axes))
    if x.dtype in COMPLEX:
        distance = prim.abs(distance)
    return prim.reduce_sum(prim.mul(distance, distance), axes=axes)


def _variance(name: str, x: Tensor, axis: Axes, correction: float) -> tuple[Tensor, tuple[int, ...]]:
    axes = axes_of(name, axis, x.ndim)
    real = REAL_OF.get(x.dtype, x.dtype)
    degrees = count_of(x.shape, axes, real) - correction
    if isinstance(degrees, float):
        degrees = max(degrees, 0.0)
    return prim.div(squared_deviation(x, axes), degrees), axes


@operator(promote="float", aliases={"input": "x", "dim": "axis"})
def var(
    x: Tensor, axis: Axes = None, unbiased: bool | None = None, keepdim: bool = False, correction: float = 1
) -> Tensor:
    """The mean squared distance from the mean over `axis`, dividing by the count less `correction` (or `unbiased`)."""
    variance, axes = _variance("var", x, axis, float(correction if unbiased is None else unbiased))
    return keep(variance, x.shape, axes, keepdim)


@var.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3, 4))
    yield Sample(x)
    yield Sample(x, [1, 2], unbiased=False, keepdim=True)
    yield Sample(x, 0, correction=0)


@operator(promote="float")
def std(x: Tensor, axis: Axes = None, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    """The square root of the variance; see :func:`var`."""
    variance, axes = _variance("std", x, axis, float(unbiased))
    return keep(prim.sqrt(variance), x.shape, axes, keepdim)


@std.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3, 4))
    yield Sample(x)
    yield Sample(x, 1, unbiased=False, keepdim=True)


def indexed(rng: np.random.Generator) -> Iterator[Sample]:
    """Flattened, along an axis, kept, with ties."""
    x = rng.integers(0, 4, (3, 5))
    yield Sample(x)
    yield Sample(x, 1)
    yield Sample(x.astype(np.float32), 0, keepdim=True, dtype="int32")
    yield Sample(x, keepdim=True)


def _flat_or_along(primitive: Any, x: Tensor, axis: int | None, keepdim: bool, dtype: str) -> Tensor:
    shape = x.shape
    if axis is None:
        size: Any = x.type.size
        found = primitive(prim.reshape(x, shape=(size,)), axis=0, dtype=dtype)
        return prim.reshape(found, shape=(1,) * len(shape)) if keepdim else found
    at = axis_of(primitive.name, axis, len(shape))
    return keep(primitive(x, axis=at, dtype=dtype), shape, (at,), keepdim)


@operator()
def argmax(x: Tensor, axis: int | None = None, keepdim: bool = False, dtype: str = "int64") -> Tensor:
    """The index of the first maximum along `axis`, or in the flattened tensor."""
    return _flat_or_along(prim.argmax, x, axis, keepdim, dtype)


argmax.samples(indexed)


@operator()
def argmin(x: Tensor, axis: int | None = None, keepdim: bool = False, dtype: str = "int64") -> Tensor:
    """The index of the first minimum along `axis`, or in the flattened tensor."""
    return _flat_or_along(prim.argmin, x, axis, keepdim, dtype)


argmin.samples(indexed)


@operator(aliases={"input": "x"})
def nansum(x: Tensor, axis: Axes = None, dtype: str | None = None, keepdim: bool = False) -> Tensor:
    """The sum over `axis` of the elements that are not NaN; int32 is summed in int64."""
    if dtype is None and x.dtype in ("bool", "int32"):
        dtype = "int64"
    x = _as(x, dtype)
    axes = axes_of("nansum", axis, x.ndim)
    return keep(prim.reduce_sum(prim.select(prim.is_nan(x), 0, x), axes=axes), x.shape, axes, keepdim)


def with_nan(rng: np.random.Generator) -> Iterator[Sample]:
    """A matrix with NaN in some places."""
    x = rng.standard_normal((2, 3))
    x[0, 1] = np.nan
    yield Sample(x)
    yield Sample(x, 1, keepdim=True)


nansum.samples(with_nan)


@operator(promote="float", aliases={"input": "x"})
def nanmean(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """The mean over `axis` of the elements that are not NaN."""
    axes = axes_of("nanmean", axis, x.ndim)
    missing = prim.is_nan(x)
    total = prim.reduce_sum(prim.select(missing, 0.0, x), axes=axes)
    count = prim.reduce_sum(prim.cast(prim.logical_not(missing), dtype=x.dtype), axes=axes)
    return keep(prim.div(total, count), x.shape, axes, keepdim)


nanmean.samples(with_nan)


def cumulated(rng: np.random.Generator) -> Iterator[Sample]:
    """Flattened and along an axis."""
    x = rng.standard_normal((3, 4))
    yield Sample(x)
    yield Sample(x, 0)
    yield Sample(x.astype(np.float32), -1)


def _cumulated(name: str, x: Tensor, axis: int | None, kind: str) -> Tensor:
    if axis is None:
        x, axis = prim.reshape(x, shape=(x.type.size,)), 0
    return prim.cumulative(x, axis=axis_of(name, axis, x.ndim), kind=kind) if x.ndim else x


@operator(inplace=True, aliases={"input": "x", "dim": "axis"})
def cumsum(x: Tensor, axis: int | None = None, dtype: str | None = None) -> Tensor:
    """The running sum along `axis`, or over the flattened tensor; booleans and integers are summed in int64."""
    if dtype is None and kind_of(x.dtype) < 2 and x.dtype != "int64":
        dtype = "int64"
    return _cumulated("cumsum", _as(x, dtype), axis, "sum")


cumsum.samples(cumulated)


@operator(inplace=True, aliases={"input": "x"})
def cumprod(x: Tensor, dim: int | None = None, dtype: str | None = None) -> Tensor:
    """The running product along `dim`, or over the flattened tensor."""
    return _cumulated("cumprod", _as(x, dtype), dim, "prod")


cumprod.samples(cumulated)


@operator(promote="float")
def logcumsumexp(x: Tensor, axis: int | None = None, dtype: str | None = None) -> Tensor:
    """The running ``log(sum(exp(x)))`` along `axis`, or over the flattened tensor."""
    return _cumulated("logcumsumexp", _as(x, dtype), axis, "logsumexp")


logcumsumexp.samples(cumulated)


@operator()
def numel(x: Tensor) -> Tensor:
    """The number of elements as a 0-D int64 tensor."""
    return prim.dim_size(dim=x.type.size, dtype="int64")


@numel.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)))


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
