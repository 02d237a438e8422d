"""Cumulative sums, products and extremes along an axis, and differences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.declare.promotion import kind_of
from argosy_phi_ops.ops.common.arguments import INPUT, axis_of, section
from argosy_phi_ops.ops.reduction import in_dtype
from argosy_tensorcore.tensor import Tensor


@operator(aliases={"input": "x", "dim": "axis"})
def diff(x: Tensor, n: int = 1, axis: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """The differences of neighbours along `axis`, taken `n` times; booleans by exclusive or."""
    at = axis_of("diff", axis, x.ndim)
    parts = [part for part in (prepend, x, append) if part is not None]
    if len(parts) > 1:
        x = prim.concat(*parts, axis=at)
    for _ in range(n):
        size = x.shape[at]
        if size == 0:
            return x
        ahead, behind = section(x, at, 1, size), section(x, at, 0, size - 1)
        x = prim.logical_xor(ahead, behind) if x.dtype == "bool" else prim.sub(ahead, behind)
    return x


@diff.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((3, 5))
    yield Sample(x)
    yield Sample(x, 2, 0)
    yield Sample(rng.standard_normal((0, 3)), 1, 0)
    yield Sample(x, 1, 1, rng.standard_normal((3, 1)), rng.standard_normal((3, 2)))


def _cumulative_extreme(name: str, x: Tensor, axis: int | None, dtype: str, kind: str) -> tuple[Tensor, Tensor]:
    """The running extreme along `axis` and the last index at which it was met; NaN, once met, is the extreme."""
    if axis is None:
        x, axis = prim.reshape(x, shape=(x.type.size,)), 0
    at = axis_of(name, axis, x.ndim)
    if not x.ndim:
        return x, prim.constant(0, dtype)
    best = prim.cumulative(x, axis=at, kind=kind)
    index = prim.iota(shape=x.shape, axis=at, dtype="int64")
    met = prim.eq(x, best)
    if kind_of(x.dtype) == 2:
        met = prim.logical_or(met, prim.ne(x, x))
    here = prim.select(met, index, prim.constant(-1, "int64", x.shape))
    where = prim.cumulative(here, axis=at, kind="max")
    return best, where if dtype == "int64" else prim.cast(where, dtype=dtype)


def running_samples(rng: np.random.Generator) -> Iterator[Sample]:
    """With ties, flattened and along an axis."""
    x = rng.integers(0, 4, (3, 5))
    yield Sample(x)
    yield Sample(x.astype(np.float64), 1, "int32")
    yield Sample(np.array([1.0, np.nan, 3.0, np.nan, 0.0]))


@operator(samples=running_samples)
def cummax(x: Tensor, axis: int | None = None, dtype: str = "int64") -> tuple[Tensor, Tensor]:
    """The running maximum along `axis` (or over the flattened tensor) and its index, the last one of equals."""
    return _cumulative_extreme("cummax", x, axis, dtype, "max")


@operator(samples=running_samples)
def cummin(x: Tensor, axis: int | None = None, dtype: str = "int64") -> tuple[Tensor, Tensor]:
    """The running minimum along `axis` (or over the flattened tensor) and its index, the last one of equals."""
    return _cumulative_extreme("cummin", x, axis, dtype, "min")


def accumulate(rng: np.random.Generator) -> Iterator[Sample]:
    """Flattened and along an axis."""
    x = rng.standard_normal((3, 4))
    yield Sample(x)
    yield Sample(x, 0)
    yield Sample(x.astype(np.float32), -1)


def _accumulate(name: str, x: Tensor, axis: int | None, kind: str) -> Tensor:
    if axis is None:
        x, axis = prim.reshape(x, shape=(x.type.size,)), 0
    return prim.cumulative(x, axis=axis_of(name, axis, x.ndim), kind=kind) if x.ndim else x


@operator(inplace=True, aliases={"input": "x", "dim": "axis"}, samples=accumulate)
def cumsum(x: Tensor, axis: int | None = None, dtype: str | None = None) -> Tensor:
    """The running sum along `axis`, or over the flattened tensor; booleans and integers are summed in int64."""
    if dtype is None and kind_of(x.dtype) < 2 and x.dtype != "int64":
        dtype = "int64"
    return _accumulate("cumsum", in_dtype(x, dtype), axis, "sum")


@operator(inplace=True, aliases=INPUT, samples=accumulate)
def cumprod(x: Tensor, dim: int | None = None, dtype: str | None = None) -> Tensor:
    """The running product along `dim`, or over the flattened tensor."""
    return _accumulate("cumprod", in_dtype(x, dtype), dim, "prod")


@operator(promote="float", samples=accumulate)
def logcumsumexp(x: Tensor, axis: int | None = None, dtype: str | None = None) -> Tensor:
    """The running ``log(sum(exp(x)))`` along `axis`, or over the flattened tensor."""
    return _accumulate("logcumsumexp", in_dtype(x, dtype), axis, "logsumexp")
