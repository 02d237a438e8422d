"""Floating point routines, elementwise: signs, exponents, neighbours, special values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.declare.promotion import kind_of
from argosy_phi_ops.ops.common.arguments import INPUT, pairs
from argosy_phi_ops.ops.rounding import rounding_samples
from argosy_phi_ops.primitives.checks import FLOATING
from argosy_tensorcore.dtype import finfo
from argosy_tensorcore.tensor import Tensor


@operator(axes="... -> ...", inplace=True, aliases=INPUT, samples=rounding_samples)
def nan_to_num(x: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """NaN and infinities replaced by numbers; by default the infinities become the largest finite ones."""
    if x.dtype not in FLOATING:
        return x
    largest = finfo(x.dtype).max
    bounded = prim.select(prim.is_nan(x), nan, x)
    bounded = prim.select(prim.eq(bounded, float("inf")), largest if posinf is None else posinf, bounded)
    return prim.select(prim.eq(bounded, float("-inf")), -largest if neginf is None else neginf, bounded)


@operator(axes="... -> ...")
def signbit(x: Tensor) -> Tensor:
    """Whether the sign bit is set: for negative numbers and -0.0."""
    if x.dtype in ("bool", "uint8", "uint16", "uint32", "uint64"):
        return prim.constant(False, "bool", x.shape)
    if x.dtype.startswith("int"):
        return prim.lt(x, 0)
    infinity = prim.div(1.0, prim.select(prim.eq(x, 0.0), x, 1.0))  # tells -0.0 from 0.0
    return prim.logical_or(prim.lt(x, 0.0), prim.lt(infinity, 0.0))


@signbit.reference
def _(x: Any) -> Any:
    return np.signbit(x) if x.dtype.kind in "fiV" else np.zeros(x.shape, bool)


@signbit.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(np.array([-1.0, -0.0, 0.0, 2.0]))
    yield Sample(np.array([-1, 0, 3]))


@operator(axes="... -> ..., ...", promote="float")
def frexp(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mantissa in [0.5, 1) in size and exponent with ``x = mantissa * 2**exponent``, both in the dtype of `x`."""
    size = prim.abs(x)
    plain = prim.logical_and(prim.is_finite(x), prim.ne(x, 0.0))
    bits = prim.div(prim.log(prim.select(plain, size, 1.0)), 0.6931471805599453)
    exponent = prim.add(prim.floor(bits), 1.0)
    mantissa = prim.div(x, _two_to(exponent))
    large = prim.ge(prim.abs(mantissa), 1.0)  # the logarithm is rounded
    exponent = prim.select(large, prim.add(exponent, 1.0), exponent)
    small = prim.lt(prim.abs(prim.div(x, _two_to(exponent))), 0.5)
    exponent = prim.select(small, prim.sub(exponent, 1.0), exponent)
    exponent = prim.select(plain, exponent, 0.0)
    return prim.select(plain, prim.div(x, prim.stop_gradient(_two_to(exponent))), x), prim.stop_gradient(exponent)


def _two_to(exponent: Tensor) -> Tensor:
    """Powers of two, exactly: in two factors, so that neither overflows."""
    half = prim.floor(prim.mul(exponent, 0.5))
    two = prim.constant(2.0, exponent.dtype, exponent.shape)
    return prim.mul(prim.pow(two, half), prim.pow(two, prim.sub(exponent, half)))


@frexp.reference
def _(x: Any) -> Any:
    mantissa, exponent = np.frexp(x.astype(np.float32) if x.dtype.itemsize < 4 else x)
    return mantissa.astype(x.dtype), exponent.astype(x.dtype)


@frexp.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)) * 100)
    yield Sample(np.array([5.0, 9.0, -0.3]))


@operator(axes="..., ... -> ...", promote="widest float", samples=pairs)
def nextafter(x: Tensor, y: Tensor) -> Tensor:
    """The next representable number after `x` towards `y`."""
    return prim.nextafter(x, y)


@operator(axes="..., ... -> ...", promote="binary", inplace=True)
def copysign(x: Tensor, y: Tensor) -> Tensor:
    """The magnitude of `x` with the sign of `y` (of floating zeros, too)."""
    if y.dtype in FLOATING:
        y = prim.select(prim.eq(y, 0.0), prim.div(1.0, y), y)
    negative = prim.lt(y, 0)
    magnitude = prim.abs(x)
    return prim.select(negative, prim.neg(magnitude), magnitude)


@copysign.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield from pairs(rng)
    yield Sample(np.array([1.0, -2.0]), np.array([-0.0, 0.0]))


@operator(inplace=True)
def ldexp(x: Tensor, y: Tensor) -> Tensor:
    """``x * 2**y`` in float64 where one of them is of it, else in float32; complex `x` in its own dtype."""
    wide = x.dtype if kind_of(x.dtype) == 3 else "float64" if "float64" in (x.dtype, y.dtype) else "float32"
    x, y = (v if v.dtype == wide else prim.cast(v, dtype=wide) for v in (x, y))
    return prim.mul(x, prim.pow(prim.constant(2, x.dtype, y.shape), y))


@ldexp.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.integers(1, 5, 3), rng.integers(0, 4, 3))
