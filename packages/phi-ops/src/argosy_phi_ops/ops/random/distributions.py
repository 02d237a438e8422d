"""Random numbers: functions of (seed, draw, element index) by Philox, so the same eager, compiled and sharded.

A random operator's last operand is the generator's state uint64[2] and its last attribute the number of the draw;
both are filled in by dispatch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.call_overloads import sizes_from
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.common.arguments import FACTORY, INPUT, section, table
from argosy_phi_ops.ops.random.values import PARTS, normal_values, random_bits, uniform_values, word_pairs
from argosy_phi_ops.reference.kernels.registry import Array
from argosy_tensorcore.dtype import default_dtype
from argosy_tensorcore.rng import normal_from_bits, uniform_from_bits
from argosy_tensorcore.tensor import Tensor


def _dims(shape: int | Sequence[Any]) -> tuple[Any, ...]:
    return (shape,) if isinstance(shape, int) or hasattr(shape, "evaluate") else tuple(shape)


def _of_seed(seed: int) -> Tensor:
    """The state of a generator of that seed that has drawn nothing."""
    return table(np.array([seed & 0xFFFFFFFFFFFFFFFF, 0], np.uint64))


@operator(random=True, aliases={"size": "shape", "low": "min", "high": "max"}, keywords=FACTORY)
def uniform(
    shape: int | Sequence[int],
    dtype: str | None = None,
    min: float = 0.0,
    max: float = 1.0,
    seed: int = 0,
    rng: Tensor | None = None,
    counter: int = 0,
) -> Tensor:
    """Numbers uniform in [min, max); with a `seed` other than 0 the same ones at every call."""
    if seed:
        rng, counter = _of_seed(seed), 0
    values = uniform_values(rng, counter, _dims(shape), dtype or default_dtype().name)
    return prim.add(prim.mul(values, float(max - min)), float(min))


@uniform.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample([2, 3])
    yield Sample([5], "float64", 0.0, 3.0)
    yield Sample([4], "bfloat16")
    yield Sample([3], seed=7)


def floats(rng: np.random.Generator) -> Iterator[Sample]:
    """Shapes and dtypes."""
    yield Sample([2, 3])
    yield Sample([], "float64")
    yield Sample([4, 0], "float16")


@operator(random=True, aliases={"size": "shape"}, keywords=FACTORY, form=sizes_from(0), samples=floats)
def rand(shape: int | Sequence[int], dtype: str | None = None, rng: Tensor | None = None, counter: int = 0) -> Tensor:
    """Numbers uniform in [0, 1)."""
    return uniform_values(rng, counter, _dims(shape), dtype or default_dtype().name)


@rand.reference
def _(shape: int | Sequence[int], dtype: str | None, rng: Array, counter: int) -> Array:
    name = dtype or default_dtype().name
    return uniform_from_bits(random_bits(rng, counter, _dims(shape), name), name)


@operator(random=True, aliases={"size": "shape"}, keywords=FACTORY, form=sizes_from(0), samples=floats)
def randn(shape: int | Sequence[int], dtype: str | None = None, rng: Tensor | None = None, counter: int = 0) -> Tensor:
    """Standard normal numbers."""
    return normal_values(rng, counter, _dims(shape), dtype or default_dtype().name)


@randn.reference
def _(shape: int | Sequence[int], dtype: str | None, rng: Array, counter: int) -> Array:
    name = dtype or default_dtype().name
    if name in PARTS:
        part = PARTS[name]
        pairs = normal_from_bits(random_bits(rng, counter, (*_dims(shape), 2), part), part) * np.dtype(part).type(
            0.5**0.5
        )
        return np.asarray(pairs[..., 0] + 1j * pairs[..., 1], name)
    return normal_from_bits(random_bits(rng, counter, _dims(shape), name), name)


@operator(random=True, aliases={"size": "shape"})
def gaussian(
    shape: int | Sequence[int],
    mean: float = 0.0,
    std: float = 1.0,
    seed: int = 0,
    dtype: str | None = None,
    rng: Tensor | None = None,
    counter: int = 0,
) -> Tensor:
    """Normal numbers with that mean and standard deviation; with a `seed` other than 0 the same ones at every call."""
    if seed:
        rng, counter = _of_seed(seed), 0
    values = normal_values(rng, counter, _dims(shape), dtype or default_dtype().name)
    return prim.add(prim.mul(values, float(std)), float(mean))


@gaussian.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample([2, 3], 1.0, 0.02)
    yield Sample([3], dtype="float64")
    yield Sample([3], seed=7)


@operator(random=True, aliases={"size": "shape"})
def normal(
    mean: Tensor = 0.0,
    std: Tensor = 1.0,
    shape: int | Sequence[int] | None = None,
    rng: Tensor | None = None,
    counter: int = 0,
) -> Tensor:
    """Normal numbers: of `shape` for numbers `mean` and `std`, else in the shape that the tensors broadcast to.

    About a complex `mean` they are complex, and `std` is that of the whole, not of a part.
    """
    dims = prim.broadcast_shapes([mean.shape, std.shape]) if shape is None else _dims(shape)
    dtype = mean.dtype if mean.ndim else std.dtype if std.ndim else default_dtype().name
    if mean.dtype.startswith("complex") and dtype not in PARTS:
        dtype = "complex128" if dtype == "float64" else "complex64"
    given = [v if v.dtype == dtype else prim.cast(v, dtype=dtype) for v in (mean, std)]
    return prim.add(prim.mul(normal_values(rng, counter, dims, dtype), given[1]), given[0])


@normal.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(0.0, 2.0, [2, 3])
    yield Sample(rng.standard_normal((2, 3)), np.asarray(2.0))


@operator(random=True, constant=True, keywords=FACTORY)
def rand_like(input: Tensor, dtype: str | None = None, rng: Tensor | None = None, counter: int = 0) -> Tensor:
    """Numbers uniform in [0, 1) in the shape (and dtype, unless told) of `input`."""
    return uniform_values(rng, counter, input.shape, dtype or input.dtype)


def like_samples(rng: np.random.Generator) -> Iterator[Sample]:
    """The operand's dtype, and another."""
    yield Sample(rng.standard_normal((2, 3)))
    yield Sample(rng.standard_normal((2, 3)), dtype="float32")


rand_like.samples(like_samples)


@operator(random=True, constant=True, aliases=INPUT, keywords=FACTORY, samples=like_samples)
def randn_like(x: Tensor, dtype: str | None = None, rng: Tensor | None = None, counter: int = 0) -> Tensor:
    """Standard normal numbers in the shape (and dtype, unless told) of `x`."""
    return normal_values(rng, counter, x.shape, dtype or x.dtype)


@operator(random=True)
def randint(
    low: int = 0,
    high: int | None = None,
    shape: int | Sequence[int] = (1,),
    dtype: str | None = None,
    rng: Tensor | None = None,
    counter: int = 0,
) -> Tensor:
    """Integers uniform in [low, high), in [0, low) without `high`: the high word of a 32-bit draw times the range, or,
    of a range of more than 2**32 integers, what a draw of 64 bits leaves of it."""
    if high is None:
        low, high = 0, low
    if not (low < high and -(1 << 63) <= low and high <= 1 << 63):
        raise ShapeError(f"randint from {low} to {high}: the range should hold an integer, and 64-bit ones only")
    if high - low > 1 << 32:
        drawn = word_pairs(rng, counter, _dims(shape))
        drawn = prim.bitcast(drawn if high - low == 1 << 64 else prim.rem(drawn, high - low), dtype="int64")
    else:
        bits = prim.cast(prim.rng_bits(rng, shape=_dims(shape), counter=counter), dtype="uint64")
        drawn = prim.cast(prim.shift_right(prim.mul(bits, high - low), 32), dtype="int64")
    return prim.cast(prim.add(drawn, low), dtype=dtype or "int64")


@randint.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(-5, 5, [2, 3])
    yield Sample(7, shape=[4], dtype="int32")
    yield Sample(-(2**62), 2**40, [2, 3])


@operator(random=True, keywords=FACTORY)
def randperm(n: int, dtype: str = "int64", rng: Tensor | None = None, counter: int = 0) -> Tensor:
    """The integers below `n` in random order: sorted by a random word each."""
    bits = prim.rng_bits(rng, shape=(n,), counter=counter)
    order = prim.sort(bits, prim.iota(shape=(n,), axis=0, dtype="int64"), axis=0, keys=1)[1]
    return order if dtype == "int64" else prim.cast(order, dtype=dtype)


@randperm.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(6)
    yield Sample(3, "int32")


@operator(random=True)
def bernoulli(x: Tensor, p: float | None = None, rng: Tensor | None = None, counter: int = 0) -> Tensor:
    """1 with the probability that `x` holds (or with `p`), else 0, in the dtype of `x`."""
    draw = uniform_values(rng, counter, x.shape, x.dtype)
    return prim.cast(prim.lt(draw, x if p is None else float(p)), dtype=x.dtype)


@bernoulli.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.random((2, 3)))
    yield Sample(np.zeros((2, 3), np.float32), 0.5)


@operator(random=True)
def exponential(x: Tensor, lam: float = 1.0, rng: Tensor | None = None, counter: int = 0) -> Tensor:
    """Exponentially distributed numbers of rate `lam` in the shape and dtype of `x`."""
    return prim.div(prim.neg(prim.log1p(prim.neg(uniform_values(rng, counter, x.shape, x.dtype)))), float(lam))


@exponential.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), 2.0)


@operator(random=True, aliases=INPUT)
def multinomial(
    x: Tensor, num_samples: int = 1, replacement: bool = False, rng: Tensor | None = None, counter: int = 0
) -> Tensor:
    """Indices along the last axis drawn with probabilities proportional to `x`, as int64.

    With `replacement` by inverting the distribution function; without, the first arrivals of exponential clocks of
    rates `x` (Efraimidis and Spirakis, 2006). Raises :class:`ShapeError` for more samples than there are categories.
    """
    last, size = x.ndim - 1, x.shape[-1]
    if replacement:
        return _invert(x, uniform_values(rng, counter, (*x.shape[:-1], num_samples), x.dtype))
    if isinstance(size, int) and num_samples > size:
        raise ShapeError(f"multinomial: {num_samples} samples without replacement from {size} categories of {x.type}")
    clock = prim.neg(prim.log1p(prim.neg(uniform_values(rng, counter, x.shape, x.dtype))))
    arrival = prim.div(clock, x)
    order = prim.sort(arrival, prim.iota(shape=x.shape, axis=last, dtype="int64"), axis=last, keys=1)[1]
    return section(order, last, 0, num_samples)


def _invert(x: Tensor, draw: Tensor) -> Tensor:
    """How many steps of the distribution function lie at or below each draw."""
    last, size = x.ndim - 1, x.shape[-1]
    steps = prim.cumulative(x, axis=last, kind="sum")
    total = prim.reduce_sum(x, axes=(last,))
    shape = (*draw.shape, size)
    scaled = prim.mul(draw, prim.broadcast(total, shape=draw.shape, axes=tuple(range(last))))
    below = prim.le(
        prim.broadcast(steps, shape=shape, axes=(*range(last), last + 1)),
        prim.broadcast(scaled, shape=shape, axes=tuple(range(last + 1))),
    )
    final = size - 1 if isinstance(size, int) else prim.dim_size(dim=size - 1, dtype="int64")
    return prim.minimum(prim.reduce_sum(prim.cast(below, dtype="int64"), axes=(last + 1,)), final)


@multinomial.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.random((2, 4)), 3)
    yield Sample(rng.random(4).astype(np.float32), 9, replacement=True)
