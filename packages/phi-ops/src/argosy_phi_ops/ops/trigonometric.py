"""Trigonometric and hyperbolic functions, elementwise, and angles."""

from __future__ import annotations

from collections.abc import Iterator
from math import factorial, pi

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.ops.common.arguments import INPUT, pairs, real_samples, smooth_abs, unit
from argosy_phi_ops.ops.exponential import above_one
from argosy_phi_ops.reference.kernels import KERNELS
from argosy_tensorcore.tensor import Tensor


@operator(axes="..., ... -> ...", promote="wide", samples=pairs)
def atan2(x: Tensor, y: Tensor) -> Tensor:
    """The angle of the point with ordinate `x` and abscissa `y`, in radians; of integers in float64."""
    return prim.atan2(x, y)


@operator(axes="..., ... -> ...", promote="float", inplace=True, upcast=True, samples=pairs)
def hypot(x: Tensor, y: Tensor) -> Tensor:
    """``sqrt(x^2 + y^2)`` without overflow in between."""
    a, b = smooth_abs(x), smooth_abs(y)
    first = prim.lt(b, a)  # one of two that are equal: maximum would share the derivative, and cut off further ones
    larger, smaller = prim.select(first, a, b), prim.select(first, b, a)
    nothing = prim.eq(larger, 0.0)
    ratio = prim.div(smaller, prim.select(nothing, 1.0, larger))
    length = prim.mul(larger, prim.sqrt(prim.add(prim.mul(ratio, ratio), 1.0)))
    return prim.select(prim.is_inf(larger), larger, prim.select(nothing, 0.0, length))


@operator(
    axes="... -> ...", promote="float", inplace=True, aliases=INPUT, reference=KERNELS["sin"], samples=real_samples
)
def sin(x: Tensor) -> Tensor:
    """The sine of angles in radians."""
    return prim.sin(x)


@operator(
    axes="... -> ...", promote="float", inplace=True, aliases=INPUT, reference=KERNELS["cos"], samples=real_samples
)
def cos(x: Tensor) -> Tensor:
    """The cosine of angles in radians."""
    return prim.cos(x)


@operator(axes="... -> ...", promote="float", inplace=True, aliases=INPUT, reference=KERNELS["tan"], samples=unit)
def tan(x: Tensor) -> Tensor:
    """The tangent of angles in radians."""
    return prim.tan(x)


@operator(axes="... -> ...", promote="float", inplace=True, aliases=INPUT, reference=KERNELS["asin"], samples=unit)
def asin(x: Tensor) -> Tensor:
    """The inverse sine, in radians."""
    return prim.asin(x)


@operator(axes="... -> ...", promote="float", inplace=True, aliases=INPUT, reference=KERNELS["acos"], samples=unit)
def acos(x: Tensor) -> Tensor:
    """The inverse cosine, in radians."""
    return prim.acos(x)


@operator(
    axes="... -> ...", promote="float", inplace=True, aliases=INPUT, reference=KERNELS["atan"], samples=real_samples
)
def atan(x: Tensor) -> Tensor:
    """The inverse tangent, in radians."""
    return prim.atan(x)


@operator(
    axes="... -> ...", promote="float", inplace=True, aliases=INPUT, reference=KERNELS["sinh"], samples=real_samples
)
def sinh(x: Tensor) -> Tensor:
    """The hyperbolic sine."""
    return prim.sinh(x)


@operator(
    axes="... -> ...", promote="float", inplace=True, aliases=INPUT, reference=KERNELS["cosh"], samples=real_samples
)
def cosh(x: Tensor) -> Tensor:
    """The hyperbolic cosine."""
    return prim.cosh(x)


@operator(
    axes="... -> ...", promote="float", inplace=True, aliases=INPUT, reference=KERNELS["tanh"], samples=real_samples
)
def tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return prim.tanh(x)


@operator(
    axes="... -> ...", promote="float", inplace=True, aliases=INPUT, reference=KERNELS["asinh"], samples=real_samples
)
def asinh(x: Tensor) -> Tensor:
    """The inverse hyperbolic sine."""
    return prim.asinh(x)


@operator(
    axes="... -> ...", promote="float", inplace=True, aliases=INPUT, reference=KERNELS["acosh"], samples=above_one
)
def acosh(x: Tensor) -> Tensor:
    """The inverse hyperbolic cosine of numbers from 1 on."""
    return prim.acosh(x)


@operator(axes="... -> ...", promote="float", inplace=True, aliases=INPUT, reference=KERNELS["atanh"], samples=unit)
def atanh(x: Tensor) -> Tensor:
    """The inverse hyperbolic tangent of numbers in (-1, 1)."""
    return prim.atanh(x)


@operator(axes="... -> ...", promote="float", inplace=True, samples=real_samples)
def deg2rad(x: Tensor) -> Tensor:
    """Degrees in radians."""
    return prim.mul(x, pi / 180)


@operator(axes="... -> ...", promote="float", inplace=True, samples=real_samples)
def rad2deg(x: Tensor) -> Tensor:
    """Radians in degrees."""
    return prim.mul(x, 180 / pi)


@operator(axes="... -> ...", promote="float", inplace=True, upcast=True)
def sinc(x: Tensor) -> Tensor:
    """``sin(pi x) / (pi x)``, and 1 at 0."""
    near = prim.lt(prim.abs(x), 0.475)  # the quotient of derivatives of order n cancels as z**-n
    far = prim.select(near, 1.0, x)
    series = _sinc_series(prim.mul(prim.select(near, x, 0.0), pi))
    return prim.select(near, series, prim.div(prim.mul(_sin_pi(far), 1 / pi), far))


def _sin_pi(x: Tensor) -> Tensor:
    """``sin(pi x)`` of `x` moved into [-1/2, 1/2] exactly, so that it is zero at whole numbers."""
    turned = prim.sub(x, prim.mul(prim.round(prim.mul(x, 0.5)), 2.0))
    folded = prim.sub(prim.sign(turned), turned)
    return prim.sin(prim.mul(prim.select(prim.gt(prim.abs(turned), 0.5), folded, turned), pi))


def _sinc_series(z: Tensor) -> Tensor:
    """``sin(z) / z`` for |z| < 3/2: the series up to ``z**26 / 27!``, whose derivatives to order 8 are good."""
    square = prim.mul(z, z)
    total = prim.add(prim.mul(square, 0.0), -1 / factorial(27))
    for k in range(12, -1, -1):
        total = prim.add(prim.mul(total, square), (-1) ** k / factorial(2 * k + 1))
    return total


@sinc.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(np.array([0.0, 0.25, -1.5]))


@operator(axes="... -> ...", promote="float", upcast=True, samples=real_samples)
def stanh(x: Tensor, scale_a: float = 0.67, scale_b: float = 1.7159) -> Tensor:
    """``scale_b * tanh(scale_a * x)``."""
    return prim.mul(prim.tanh(prim.mul(x, scale_a)), scale_b)
