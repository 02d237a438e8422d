"""Arithmetic, elementwise: the four rules, powers and roots, quotients, extremes, mixtures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, get_operator, operator
from argosy_phi_ops.errors import DTypeError, OperatorError, ShapeError
from argosy_phi_ops.ops.common.arguments import (
    INPUT,
    INPUT_OTHER,
    complex_too,
    integer_pairs,
    pairs,
    positive_samples,
    real_samples,
)
from argosy_phi_ops.primitives.checks import COMPLEX, FLOATING, INTEGER
from argosy_phi_ops.reference.kernels import KERNELS
from argosy_tensorcore.tensor import Tensor


@operator(
    axes="..., ... -> ...",
    promote="binary",
    inplace=True,
    aliases=INPUT_OTHER,
    keywords=("alpha",),
    reference=KERNELS["add"],
    samples=pairs,
)
def add(x: Tensor, y: Tensor) -> Tensor:
    """``x + y`` with broadcasting; of two booleans whether either holds."""
    return prim.logical_or(x, y) if x.dtype == "bool" == y.dtype else prim.add(x, y)


@operator(
    axes="..., ... -> ...",
    promote="binary",
    inplace=True,
    aliases=INPUT_OTHER,
    keywords=("alpha",),
    reference=KERNELS["sub"],
    samples=pairs,
)
def subtract(x: Tensor, y: Tensor) -> Tensor:
    """``x - y`` with broadcasting."""
    return prim.sub(x, y)


@operator(
    axes="..., ... -> ...", promote="binary", inplace=True, aliases=INPUT_OTHER, reference=KERNELS["mul"], samples=pairs
)
def multiply(x: Tensor, y: Tensor) -> Tensor:
    """``x * y`` with broadcasting; of two booleans whether both hold."""
    return prim.logical_and(x, y) if x.dtype == "bool" == y.dtype else prim.mul(x, y)


@operator(
    axes="..., ... -> ...",
    promote="divide",
    inplace=True,
    aliases=INPUT_OTHER,
    keywords=("rounding_mode",),
    reference=KERNELS["div"],
)
def divide(x: Tensor, y: Tensor) -> Tensor:
    """True division ``x / y`` with broadcasting; integers divide in float32."""
    return prim.div(x, y)


@divide.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.uniform(1, 2, (2, 1)))
    yield Sample(rng.integers(0, 9, 3), rng.integers(1, 9, 3))


@operator(
    axes="..., ... -> ...",
    promote="binary",
    inplace=True,
    aliases={"input": "x", "other": "y", "exponent": "y"},
    reference=KERNELS["pow"],
)
def pow_(x: Tensor, y: Tensor) -> Tensor:
    """``x`` to the power ``y`` with broadcasting."""
    return prim.pow(x, y)


@pow_.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.uniform(0.1, 2, (2, 3)), rng.standard_normal(3))
    yield Sample(rng.integers(1, 5, 3), rng.integers(0, 4, 3))
    yield Sample(rng.standard_normal((2, 3)).astype(np.float32), 2.0)


def quotients(rng: np.random.Generator) -> Iterator[Sample]:
    """Pairs without zeros in the second, of floats and integers."""
    yield from integer_pairs(rng)
    yield Sample(rng.standard_normal((2, 3)) * 5, rng.uniform(0.5, 2, (2, 3)) * rng.choice([-1.0, 1.0], (2, 3)))


@operator(
    axes="..., ... -> ...",
    promote="widest",
    inplace=True,
    aliases=INPUT_OTHER,
    reference=KERNELS["floor_div"],
    samples=quotients,
)
def floor_divide(x: Tensor, y: Tensor) -> Tensor:
    """``x / y`` rounded down. An integer divided by zero gives 0."""
    return prim.floor_div(x, y)


@operator(
    axes="..., ... -> ...",
    promote="binary",
    inplace=True,
    aliases=INPUT_OTHER,
    reference=KERNELS["floor_mod"],
    samples=quotients,
)
def remainder(x: Tensor, y: Tensor) -> Tensor:
    """``x - y * floor(x / y)``: it has the sign of the divisor."""
    return prim.floor_mod(x, y)


@operator(axes="..., ... -> ...", promote="widest", reference=KERNELS["maximum"], samples=pairs)
def maximum(x: Tensor, y: Tensor) -> Tensor:
    """The larger element; NaN where either is."""
    return prim.maximum(x, y)


@operator(axes="..., ... -> ...", promote="widest", reference=KERNELS["minimum"], samples=pairs)
def minimum(x: Tensor, y: Tensor) -> Tensor:
    """The smaller element; NaN where either is."""
    return prim.minimum(x, y)


def with_nan(rng: np.random.Generator) -> Iterator[Sample]:
    """Pairs, some with NaN on one side or both."""
    yield from pairs(rng)
    yield Sample(np.array([1.0, np.nan, np.nan]), np.array([np.nan, 2.0, np.nan]))
    yield Sample(rng.integers(0, 9, 4), rng.integers(0, 9, 4))


@operator(axes="..., ... -> ...", promote="widest", samples=with_nan)
def fmax(x: Tensor, y: Tensor) -> Tensor:
    """The larger element, or the one that is not NaN; of equal ones `x`, which takes the whole gradient."""
    return prim.select(prim.logical_or(prim.ge(x, y), prim.is_nan(y)), x, y)


@operator(axes="..., ... -> ...", promote="widest", samples=with_nan)
def fmin(x: Tensor, y: Tensor) -> Tensor:
    """The smaller element, or the one that is not NaN; of equal ones `x`, which takes the whole gradient."""
    return prim.select(prim.logical_or(prim.le(x, y), prim.is_nan(y)), x, y)


@operator(axes="..., ... -> ...", promote="binary")
def heaviside(x: Tensor, y: Tensor) -> Tensor:
    """0 where `x` is negative, 1 where it is positive, `y` where it is zero."""
    return prim.select(prim.eq(x, 0), y, prim.cast(prim.gt(x, 0), dtype=y.dtype))


@heaviside.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(np.array([-1.0, 0.0, 2.0]), np.array([0.5]))


@operator(axes="..., ..., ... -> ...", promote="binary", inplace=True)
def lerp(x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    """``x + weight * (y - x)``."""
    return prim.add(x, prim.mul(weight, prim.sub(y, x)))


@lerp.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((2, 3)), 0.3)
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal(3), rng.random((2, 1)))


@operator(promote="first", inplace=True, aliases=INPUT)
def clip(x: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    """`x` moved into [min, max], each a number or a tensor that broadcasts.

    The dtype stays that of `x`, unless `x` holds integers and a bound is floating.
    """
    if x.dtype in COMPLEX:
        raise DTypeError(f"clip(): argument 'x' should be a tensor of real numbers, got {x.type}")
    for bound in (min, max):
        if bound is not None and bound.dtype in FLOATING and x.dtype in INTEGER:
            x = _convert(x, bound.dtype)
    # Selections rather than extremes: on a bound the derivative is that of `x` alone.
    if min is not None:
        low = _convert(min, x.dtype)
        x = prim.select(prim.lt(x, low), low, x)
    if max is not None:
        high = _convert(max, x.dtype)
        x = prim.select(prim.gt(x, high), high, x)
    return x


@clip.refuse_values
def _(min: Any, max: Any) -> None:
    low, high = -np.inf if min is None else min, np.inf if max is None else max
    if not np.all(np.less_equal(low, high)):
        raise OperatorError(f"clip(): argument 'min' should be at most 'max', got min={low!s:.40}, max={high!s:.40}")


def _convert(x: Tensor, dtype: str) -> Tensor:
    return x if x.dtype == dtype else prim.cast(x, dtype=dtype)


@clip.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3))
    yield Sample(x, -0.5, 0.5)
    yield Sample(x, max=0.1)
    yield Sample(x, rng.standard_normal(3) - 1)
    yield Sample(rng.integers(-9, 9, 4), -2, 3)


@operator(promote="first", inplace=True)
def scale(
    x: Tensor, scale: Tensor = 1.0, bias: float = 0.0, bias_after_scale: bool = True, act: str | None = None
) -> Tensor:
    """``scale * x + bias``, or ``scale * (x + bias)``; then the activation named `act`, if any."""
    factor = _convert(scale, x.dtype)
    offset = bias if x.dtype in FLOATING | COMPLEX else int(bias)
    if not bias_after_scale:
        x = prim.add(x, offset)
    x = prim.mul(x, factor)
    if bias_after_scale:
        x = prim.add(x, offset)
    return x if act is None else get_operator(act)(x)


@scale.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3))
    yield Sample(x, 2.0, 1.0)
    yield Sample(x, 2.0, 1.0, bias_after_scale=False)
    yield Sample(x, np.asarray(0.5), act="relu")
    yield Sample(x, 2.0, act="sigmoid")
    yield Sample(rng.integers(0, 9, 3), 3, 1.0)


@operator()
def add_n(inputs: Sequence[Tensor]) -> Tensor:
    """The sum of tensors of one shape."""
    if any(x.shape != inputs[0].shape for x in inputs):
        raise ShapeError(f"add_n: shapes differ: {', '.join(str(x.type) for x in inputs)}")
    total = inputs[0]
    for x in inputs[1:]:
        total = prim.add(total, x)
    return total


@add_n.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample([rng.standard_normal((2, 3)) for _ in range(3)])


@operator(
    axes="... -> ...", promote="float", inplace=True, aliases=INPUT, reference=KERNELS["sqrt"], samples=positive_samples
)
def sqrt(x: Tensor) -> Tensor:
    """The square root elementwise."""
    return prim.sqrt(x)


@operator(
    axes="... -> ...",
    promote="float",
    inplace=True,
    aliases=INPUT,
    reference=KERNELS["rsqrt"],
    samples=positive_samples,
)
def rsqrt(x: Tensor) -> Tensor:
    """``1 / sqrt(x)`` elementwise."""
    return prim.rsqrt(x)


@operator(axes="... -> ...", inplace=True, aliases=INPUT, samples=real_samples)
def square(x: Tensor) -> Tensor:
    """``x * x`` elementwise."""
    return prim.mul(x, x)


square.reference(lambda x: KERNELS["mul"](x, x))


@operator(axes="... -> ...", promote="float", inplace=True, aliases=INPUT, samples=positive_samples)
def reciprocal(x: Tensor) -> Tensor:
    """``1 / x`` elementwise."""
    return prim.div(1.0, x)


@operator(axes="... -> ...", inplace=True, aliases=INPUT, reference=KERNELS["neg"], samples=real_samples)
def neg(x: Tensor) -> Tensor:
    """``-x`` elementwise."""
    return prim.neg(x)


@operator(axes="... -> ...", inplace=True, aliases=INPUT, samples=complex_too)
def abs_(x: Tensor) -> Tensor:
    """``|x|`` elementwise; real for complex `x`."""
    return x if x.dtype == "bool" else prim.abs(x)


@operator(axes="... -> ...", inplace=True, aliases=INPUT, samples=complex_too)
def sign(x: Tensor) -> Tensor:
    """-1, 0 or 1 elementwise; ``x / |x|`` for complex `x`."""
    return prim.sign(x)


@operator()
def increment(x: Tensor, value: float = 1.0) -> Tensor:
    """``x + value`` of a tensor with one element."""
    return prim.add(x, value if not x.dtype.startswith(("int", "uint")) else int(value))


@increment.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal(1))
    yield Sample(np.array([3]), 2.0)
