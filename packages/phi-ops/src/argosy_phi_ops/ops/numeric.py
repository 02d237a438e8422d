"""Numerical operators on sequences and sets of numbers: differences, running extremes, divisors, distances, counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.declare.promotion import kind_of
from argosy_phi_ops.errors import OperatorError, ShapeError
from argosy_phi_ops.ops.arguments import axis_of, in_float32, integer_pairs, section
from argosy_phi_ops.ops.loops import scan
from argosy_phi_ops.ops.norms import length
from argosy_phi_ops.reference.kernels.registry import Array, widened
from argosy_tensorcore.dtype import as_dtype
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


def _running(name: str, x: Tensor, axis: int | None, dtype: str, kind: str) -> tuple[Tensor, Tensor]:
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


def running(rng: np.random.Generator) -> Iterator[Sample]:
    """With ties, flattened and along an axis."""
    x = rng.integers(0, 4, (3, 5))
    yield Sample(x)
    yield Sample(x.astype(np.float64), 1, "int32")
    yield Sample(np.array([1.0, np.nan, 3.0, np.nan, 0.0]))


@operator()
def cummax(x: Tensor, axis: int | None = None, dtype: str = "int64") -> tuple[Tensor, Tensor]:
    """The running maximum along `axis` (or over the flattened tensor) and its index, the last one of equals."""
    return _running("cummax", x, axis, dtype, "max")


cummax.samples(running)


@operator()
def cummin(x: Tensor, axis: int | None = None, dtype: str = "int64") -> tuple[Tensor, Tensor]:
    """The running minimum along `axis` (or over the flattened tensor) and its index, the last one of equals."""
    return _running("cummin", x, axis, dtype, "min")


cummin.samples(running)


def _common_divisor(x: Any, y: Any) -> Any:
    """Euclid's algorithm on integers that broadcast, with as many steps as the widest numbers of the dtype can need
    (Lamé, 1844: five for each decimal digit of the smaller one)."""
    shape = prim.broadcast_shapes([x.shape, y.shape])
    steps = prim.constant(False, "bool", (round(as_dtype(x.dtype).itemsize * 8 * 1.5),))

    def step(_: Sequence[Any], carried: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        larger, smaller = carried
        ended = prim.eq(smaller, 0)
        rest = prim.rem(larger, prim.select(ended, 1, smaller))
        return (), (prim.select(ended, larger, smaller), prim.select(ended, smaller, rest))

    sizes = [prim.abs(prim.broadcast_to(v, shape)) for v in (x, y)]
    return prim.abs(scan(step, [steps], sizes)[1][0])


@operator(promote="binary", inplace=True)
def gcd(x: Tensor, y: Tensor) -> Tensor:
    """The greatest common divisor of integers, 0 of zeros."""
    return _common_divisor(x, y)


gcd.reference(np.gcd)
gcd.samples(integer_pairs)


@operator(promote="binary", inplace=True)
def lcm(x: Tensor, y: Tensor) -> Tensor:
    """The least common multiple of integers, 0 where one of them is."""
    divisor = _common_divisor(x, y)
    part = prim.floor_div(prim.abs(prim.broadcast_to(x, divisor.shape)), prim.maximum(divisor, 1))
    return prim.mul(part, prim.abs(prim.broadcast_to(y, divisor.shape)))


lcm.reference(np.lcm)
lcm.samples(integer_pairs)


@operator(promote="binary", upcast=True)
def dist(x: Tensor, y: Tensor, p: float = 2) -> Tensor:
    """The p-norm of the difference of two tensors that broadcast."""
    difference = prim.sub(x, y)
    return length(difference, p, tuple(range(difference.ndim)))


@dist.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal(3))
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((2, 3)), float("inf"))


@operator(promote="same", upcast=True)
def cdist(x: Tensor, y: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """The p-norm distance of every row of x [..., m, d] to every row of y [..., n, d]: [..., m, n].

    Differences are always formed, whatever `compute_mode`: exact, and gradients are finite away from equal rows.
    """
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-1]:
        raise ShapeError(f"cdist takes rows of one length, got {x.type} and {y.type}")
    left = prim.reshape(x, shape=(*x.shape[:-1], 1, x.shape[-1]))
    right = prim.reshape(y, shape=(*y.shape[:-2], 1, *y.shape[-2:]))
    difference = prim.sub(left, right)
    return length(difference, p, (difference.ndim - 1,))


@cdist.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((3, 4)), rng.standard_normal((2, 4)))
    yield Sample(rng.standard_normal((2, 3, 4)), rng.standard_normal((1, 2, 4)), 1.0)


@operator(aliases={"x1": "x", "x2": "y", "eps": "epsilon"}, upcast=True)
def pairwise_distance(x: Tensor, y: Tensor, p: float = 2.0, epsilon: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of ``x - y + epsilon`` over the last axis."""
    difference = prim.add(prim.sub(x, y), epsilon)
    result = length(difference, p, (difference.ndim - 1,))
    return prim.reshape(result, shape=(*difference.shape[:-1], 1)) if keepdim else result


@pairwise_distance.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((2, 3)))
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((2, 3)), 1.0, keepdim=True)


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
    input = widened(input)
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


@histogram.refusing
def _(input: Array, bins: int, min: float, max: float) -> None:
    _range(widened(input), bins, min, max)  # compiled code does not look


def _range(x: Array, bins: int, low: Any, high: Any) -> tuple[Any, Any]:
    """The bounds in the dtype of `x` (integers cut off fractions); those of the data where they are equal, and one
    further out on each side where these are equal, too: as in Paddle."""
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


@operator(inplace=True)
def ldexp(x: Tensor, y: Tensor) -> Tensor:
    """``x * 2**y`` in float64 where one of them is of it, else in float32; complex `x` in its own dtype."""
    wide = x.dtype if kind_of(x.dtype) == 3 else "float64" if "float64" in (x.dtype, y.dtype) else "float32"
    x, y = (v if v.dtype == wide else prim.cast(v, dtype=wide) for v in (x, y))
    return prim.mul(x, prim.pow(prim.constant(2, x.dtype, y.shape), y))


@ldexp.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.integers(1, 5, 3), rng.integers(0, 4, 3))


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


@operator(promote="float", inplace=True)
def multigammaln(x: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension `p`."""
    total = prim.constant(p * (p - 1) / 4 * float(np.log(np.pi)), x.dtype, x.shape)
    for j in range(p):
        total = prim.add(total, prim.lgamma(prim.sub(x, j / 2)))
    return total


@multigammaln.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.uniform(2, 5, (2, 3)), 3)
