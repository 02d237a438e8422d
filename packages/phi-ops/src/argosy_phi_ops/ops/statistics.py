"""Statistics: variances, medians, histograms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.call_overloads import lower_median
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.declare.promotion import kind_of
from argosy_phi_ops.errors import DTypeError, OperatorError
from argosy_phi_ops.ops.common.arguments import Axes, axes_of, axis_of, in_float32, restore, section
from argosy_phi_ops.ops.reduction import count_of, keep
from argosy_phi_ops.ops.search import kthvalue
from argosy_phi_ops.primitives.checks import COMPLEX, REAL_OF
from argosy_phi_ops.reference.kernels.registry import Array, widen
from argosy_tensorcore.dtype import default_dtype
from argosy_tensorcore.tensor import Tensor


@operator(opaque=True)
def bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often (or with what total weight) each integer from 0 occurs in a vector. Eager only."""
    raise NotImplementedError  # opaque: the kernel below is all there is


@bincount.reference
def _(x: Array, weights: Array | None, minlength: int) -> Array:
    counts = np.bincount(x, weights, minlength)
    return counts.astype(np.int64 if weights is None else weights.dtype)


@bincount.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.integers(0, 5, 9))
    yield Sample(rng.integers(0, 5, 9), rng.random(9), minlength=7)


_NOT_REAL = "histogram(): argument 'input' should be a tensor of real numbers, got {}"


@operator()
def histogram(
    input: Tensor,
    bins: int = 100,
    min: float = 0.0,
    max: float = 0.0,
    weight: Tensor | None = None,
    density: bool = False,
) -> Tensor:
    """How many elements lie in each of `bins` equal parts of [min, max] (equal ones: of the data's range).

    With `weight` their weights are added up; `density` divides by the total and the width of a part. Both give float32;
    `input` gets no gradient. Raises :class:`OperatorError` for a range that is not finite or upside down (compiled code
    does not look at the data), and for less than one part.
    """
    if kind_of(input.dtype) == 3:
        raise DTypeError(_NOT_REAL.format(input.dtype))
    input = prim.stop_gradient(in_float32(input) if kind_of(input.dtype) == 2 else prim.cast(input, dtype="int64"))
    low, high = _traced_range(input, bins, min, max)
    divide = prim.floor_div if input.dtype == "int64" else prim.div  # Paddle divides integers as integers
    part = divide(prim.mul(prim.sub(input, low), bins), prim.sub(high, low))
    part = prim.minimum(prim.cast(part, dtype="int64"), bins - 1)
    inside = prim.logical_and(prim.ge(input, low), prim.le(input, high))
    places = prim.reshape(prim.select(inside, part, bins), shape=(input.type.size, 1))  # out of range: dropped
    dtype = "int64" if weight is None else "float64"
    each: Any = prim.constant(1, dtype, (input.type.size,))
    if weight is not None:
        each = prim.reshape(prim.cast(weight, dtype=dtype), shape=(input.type.size,))
    counts = prim.scatter(prim.constant(0, dtype, (bins,)), places, each, axes=(0,), kind="add")
    if density:
        counts = prim.cast(counts, dtype="float64")
        total = prim.reduce_sum(counts, axes=(0,))
        width = prim.div(prim.cast(prim.sub(high, low), dtype="float64"), float(bins))
        counts = prim.div(counts, prim.mul(prim.select(prim.eq(total, 0.0), 1.0, total), width))
    return prim.cast(counts, dtype="float32") if density or weight is not None else counts


def _traced_range(x: Any, bins: int, low: Any, high: Any) -> tuple[Any, Any]:
    """What :func:`_range` gives, of a value: bounds as 0-D values of its dtype."""
    _check_range(bins, low, high)
    kind = int if x.dtype == "int64" else float
    bounds = [prim.constant(kind(bound), x.dtype) for bound in (low, high)]
    if kind(low) == kind(high) and x.type.size != 0:
        every = tuple(range(x.ndim))
        bounds = [prim.reduce_min(x, axes=every), prim.reduce_max(x, axes=every)]
    one = prim.cast(prim.eq(*bounds), dtype=x.dtype)
    return prim.sub(bounds[0], one), prim.add(bounds[1], one)


@histogram.reference
def _(input: Array, bins: int, min: float, max: float, weight: Array | None, density: bool) -> Array:
    input = widen(input)
    low, high = _range(input, bins, min, max)
    inside = (input >= low) & (input <= high)
    every = inside.all()
    values = input.ravel() if every else input[inside]
    if values.dtype.kind == "f":
        part = ((values - low) * bins / (high - low)).astype(np.intp)
    else:  # Paddle divides integers as integers
        part = (values.astype(np.int64) - low) * bins // (high - low)
    weights = None if weight is None else weight.ravel() if every else weight[inside]
    counts = np.bincount(np.minimum(part, bins - 1), weights, bins)
    if density:
        counts = counts / ((counts.sum() or 1) * ((high - low) / bins))
    return counts.astype(np.int64 if weight is None and not density else np.float32)


@histogram.refuse_values
def _(input: Array, bins: int, min: float, max: float) -> None:
    _range(widen(input), bins, min, max)  # compiled code does not look


def _range(x: Array, bins: int, low: Any, high: Any) -> tuple[Any, Any]:
    """The bounds in the dtype of `x` (integers cut off fractions); those of the data where they are equal, and one
    further out on each side where these are equal, too: as in Paddle."""
    if x.dtype.kind == "c":
        raise DTypeError(_NOT_REAL.format(x.dtype))
    _check_range(bins, low, high)
    kind = x.dtype.type if x.dtype.kind == "f" else int
    if kind(low) == kind(high) and x.size:
        low, high = x.min(), x.max()
        _check_range(bins, low, high)
    low, high = kind(low), kind(high)
    return (low - kind(1), high + kind(1)) if low == high else (low, high)


def _check_range(bins: int, low: Any, high: Any) -> None:
    if bins < 1:
        raise OperatorError(f"histogram(): argument 'bins' should be at least 1, got {bins}")
    if not (isfinite(low) and isfinite(high)):
        raise OperatorError(f"histogram(): the range should be finite, got from min={low} to max={high}")
    if low > high:
        raise OperatorError(f"histogram(): argument 'min' should be at most 'max', got min={low} and max={high}")


@histogram.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal(20), 4)
    yield Sample(rng.standard_normal(20), 4, -1.0, 1.0)
    yield Sample(rng.integers(-3, 9, (4, 5)), 5, 0, 6)
    yield Sample(np.full(3, 2.0), 3)
    yield Sample(rng.standard_normal(20), 4, -1.0, 2.0, density=True)


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


@operator(aliases={"input": "x", "dim": "axis"}, form=lower_median)
def median(x: Tensor, axis: Axes = None, keepdim: bool = False, mode: str = "avg") -> Tensor:
    """The middle element over `axis` in sorted order; NaN if any is, and of no elements.

    Of an even number the mean of the middle two (`mode` "avg"), of integers in the default dtype, of narrow floats in
    float32. Mode "min" takes the lower one as it is; along one axis it gives its index, too.
    """
    if mode == "min" and axis is not None:
        return _lower_median(x, axis, keepdim)
    if mode != "min" and kind_of(x.dtype) < 2:
        x = prim.cast(x, dtype=default_dtype().name)
    elif mode != "min":
        x = in_float32(x)
    axes = axes_of("median", axis, x.ndim)
    count: Any = 1
    for i in axes:
        count = count * x.shape[i]
    kept = tuple(i for i in range(x.ndim) if i not in axes)
    shape = tuple(x.shape[i] for i in kept)
    if isinstance(count, int) and count == 0:
        return keep(prim.constant(float("nan"), x.dtype, shape), x.shape, axes, keepdim)
    flat = prim.reshape(prim.transpose(x, permutation=(*kept, *axes)), shape=(*shape, count))
    ordered = prim.sort(flat, axis=len(kept), keys=1)
    ordered = ordered[0] if isinstance(ordered, tuple) else ordered
    low, high = (
        prim.reshape(section(ordered, len(kept), i, i + 1), shape=shape) for i in ((count - 1) // 2, count // 2)
    )
    middle = low if mode == "min" else prim.mul(prim.add(low, high), 0.5)
    if kind_of(x.dtype) == 2:
        middle = prim.select(prim.reduce_or(prim.is_nan(flat), axes=(len(kept),)), float("nan"), middle)
    return keep(middle, x.shape, axes, keepdim)


def _lower_median(x: Tensor, axis: Axes, keepdim: bool) -> tuple[Tensor, Tensor]:
    if not isinstance(axis, int):
        raise NotImplementedError("median: mode='min' over several axes is not implemented")
    at = axis_of("median", axis, x.ndim)
    size = x.shape[at]
    if not isinstance(size, int):
        raise NotImplementedError("median: mode='min' along an axis of symbolic size is not implemented")
    values, order = kthvalue(x, (size - 1) // 2 + 1, at, keepdim)
    if kind_of(x.dtype) != 2:
        return values, order
    places = prim.select(prim.is_nan(x), prim.iota(shape=x.shape, axis=at, dtype="int64"), size)
    first = prim.reduce_min(places, axes=(at,))  # of the NaNs, which the result then is one of
    first = prim.reshape(first, shape=values.shape)
    missing = prim.lt(first, size)
    return prim.select(missing, float("nan"), values), prim.select(missing, first, order)


@median.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((3, 4))
    yield Sample(x)
    yield Sample(x, 0, keepdim=True)
    yield Sample(np.array([1.0, np.nan, 2.0]))
    yield Sample(np.array([[1.0, np.nan, 2.0], [3.0, 1.0, 2.0]]), 1, mode="min")
