"""Reductions over axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.call_overloads import keepdim_first
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.common.arguments import INPUT, Axes, axes_of, ones_at, require_size, restore
from argosy_phi_ops.primitives.checks import BOOL, COMPLEX, FLOATING
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


def reduction_samples(rng: np.random.Generator) -> Iterator[Sample]:
    """All axes, one, several, kept, and a 0-D tensor."""
    x = rng.standard_normal((2, 3, 4))
    yield Sample(x)
    yield Sample(x, 1)
    yield Sample(x.astype(np.float32), [0, -1], keepdim=True)
    yield Sample(np.asarray(rng.standard_normal()))


def in_dtype(x: Tensor, dtype: str | None) -> Tensor:
    return x if dtype is None or x.dtype == dtype else prim.cast(x, dtype=dtype)


@operator(aliases={"input": "x", "dim": "axis"}, form=keepdim_first)
def sum_(x: Tensor, axis: Axes = None, dtype: str | None = None, keepdim: bool = False) -> Tensor:
    """The sum over `axis` (all by default); booleans and int32 are summed in int64 unless `dtype` says otherwise."""
    if dtype is None and x.dtype in ("bool", "int32"):
        dtype = "int64"
    x = in_dtype(x, dtype)
    axes = axes_of("sum", axis, x.ndim)
    return keep(prim.reduce_sum(x, axes=axes), x.shape, axes, keepdim)


@sum_.specialize
def _(types: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """All elements of a wide real tensor."""
    ordinary = types[0].dtype.name in ("float32", "float64") and attributes["axis"] is None
    if not ordinary or attributes["dtype"] is not None or attributes["keepdim"]:
        return None
    return lambda x: quiet.run(np.add.reduce, x, None)


@sum_.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield from reduction_samples(rng)
    yield Sample(rng.random((2, 3)) < 0.5, 0)
    yield Sample(rng.integers(0, 9, (2, 3)).astype(np.int32), dtype="float64")


@operator(aliases={"input": "x", "dim": "axis"})
def mean(x: Tensor, axis: Axes = None, keepdim: bool = False, dtype: str | None = None) -> Tensor:
    """The mean over `axis` (all by default); of integers rounded towards zero, NaN of no elements."""
    x = in_dtype(x, dtype)
    axes = axes_of("mean", axis, x.ndim)
    total = prim.reduce_sum(x, axes=axes)
    return keep(prim.div(total, count_of(x.shape, axes, x.dtype)), x.shape, axes, keepdim)


@mean.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield from reduction_samples(rng)
    yield Sample(rng.integers(0, 9, (2, 3)))


@operator(aliases={"input": "x", "dim": "axis"}, positional_out=True, samples=reduction_samples)
def prod(x: Tensor, axis: Axes = None, keepdim: bool = False, dtype: str | None = None) -> Tensor:
    """The product over `axis` (all by default)."""
    x = in_dtype(x, dtype or ("int64" if x.dtype == "bool" else None))
    axes = axes_of("prod", axis, x.ndim)
    return keep(prim.reduce_prod(x, axes=axes), x.shape, axes, keepdim)


def check_elements(name: str, x: Tensor, axes: Sequence[int]) -> None:
    """Refuse axes without elements; of open ones, at the call: then there is not even a first element."""
    for axis in axes:
        size = x.shape[axis]
        if not isinstance(size, int):
            require_size(name, size)
        elif size == 0:
            raise ShapeError(f"{name} over no elements has no value: axes {tuple(axes)} of {x.type}")


@operator(samples=reduction_samples)
def max_(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """The maximum over `axis` (all by default). Raises :class:`ShapeError` over no elements."""
    axes = axes_of("max", axis, x.ndim)
    check_elements("max", x, axes)
    return keep(prim.reduce_max(x, axes=axes), x.shape, axes, keepdim)


@operator(samples=reduction_samples)
def min_(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """The minimum over `axis` (all by default). Raises :class:`ShapeError` over no elements."""
    axes = axes_of("min", axis, x.ndim)
    check_elements("min", x, axes)
    return keep(prim.reduce_min(x, axes=axes), x.shape, axes, keepdim)


@operator(samples=reduction_samples)
def amax(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """The maximum over `axis`, as :func:`max`; equal maxima share the gradient."""
    axes = axes_of("amax", axis, x.ndim)
    check_elements("amax", x, axes)
    return keep(prim.reduce_max(x, axes=axes), x.shape, axes, keepdim)


@operator(samples=reduction_samples)
def amin(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """The minimum over `axis`, as :func:`min`; equal minima share the gradient."""
    axes = axes_of("amin", axis, x.ndim)
    check_elements("amin", x, axes)
    return keep(prim.reduce_min(x, axes=axes), x.shape, axes, keepdim)


def truths(rng: np.random.Generator) -> Iterator[Sample]:
    """Booleans and numbers."""
    yield Sample(rng.random((2, 3)) < 0.7)
    yield Sample(rng.random((2, 3)) < 0.7, 1, keepdim=True)
    yield Sample(np.array([[0.0, 1.0], [2.0, 3.0]]), [0])


def _truth(x: Tensor) -> Tensor:
    return x if x.dtype in BOOL else prim.cast(x, dtype="bool")


@operator(samples=truths)
def all_(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """Whether all elements over `axis` are true (not zero)."""
    axes = axes_of("all", axis, x.ndim)
    return keep(prim.reduce_and(_truth(x), axes=axes), x.shape, axes, keepdim)


@operator(samples=truths)
def any_(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """Whether any element over `axis` is true (not zero)."""
    axes = axes_of("any", axis, x.ndim)
    return keep(prim.reduce_or(_truth(x), axes=axes), x.shape, axes, keepdim)


@operator(samples=truths)
def count_nonzero(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """How many elements over `axis` are not zero, as int64."""
    axes = axes_of("count_nonzero", axis, x.ndim)
    return keep(prim.reduce_sum(prim.cast(_truth(x), dtype="int64"), axes=axes), x.shape, axes, keepdim)


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
    yield from reduction_samples(rng)
    yield Sample(np.array([[-np.inf, -np.inf], [np.inf, 1.0]]), 1)


@operator(aliases=INPUT)
def nansum(x: Tensor, axis: Axes = None, dtype: str | None = None, keepdim: bool = False) -> Tensor:
    """The sum over `axis` of the elements that are not NaN; int32 is summed in int64."""
    if dtype is None and x.dtype in ("bool", "int32"):
        dtype = "int64"
    x = in_dtype(x, dtype)
    axes = axes_of("nansum", axis, x.ndim)
    return keep(prim.reduce_sum(prim.select(prim.is_nan(x), 0, x), axes=axes), x.shape, axes, keepdim)


def with_nan(rng: np.random.Generator) -> Iterator[Sample]:
    """A matrix with NaN in some places."""
    x = rng.standard_normal((2, 3))
    x[0, 1] = np.nan
    yield Sample(x)
    yield Sample(x, 1, keepdim=True)


nansum.samples(with_nan)


@operator(promote="float", aliases=INPUT, samples=with_nan)
def nanmean(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """The mean over `axis` of the elements that are not NaN."""
    axes = axes_of("nanmean", axis, x.ndim)
    missing = prim.is_nan(x)
    total = prim.reduce_sum(prim.select(missing, 0.0, x), axes=axes)
    count = prim.reduce_sum(prim.cast(prim.logical_not(missing), dtype=x.dtype), axes=axes)
    return keep(prim.div(total, count), x.shape, axes, keepdim)


@operator()
def numel(x: Tensor) -> Tensor:
    """The number of elements as a 0-D int64 tensor."""
    return prim.dim_size(dim=x.type.size, dtype="int64")


@numel.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)))


@operator()
def reduce_as(x: Tensor, target: Tensor) -> Tensor:
    """`x` summed over the axes along which `target`, which broadcasts to it, is repeated."""
    extra = x.ndim - target.ndim
    axes = tuple(i for i in range(x.ndim) if i < extra or (target.shape[i - extra] == 1 and x.shape[i] != 1))
    if extra < 0 or any(i not in axes and x.shape[i] != target.shape[i - extra] for i in range(x.ndim)):
        raise ShapeError(f"reduce_as: target {target.type} does not broadcast to x {x.type}")
    if x.dtype == "bool":
        x = prim.cast(x, dtype="int64")
    return prim.reshape(prim.reduce_sum(x, axes=axes), shape=target.shape)


@reduce_as.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3, 4)), rng.standard_normal((3, 1)))
