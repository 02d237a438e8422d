"""Elementary functions, elementwise: exponentials, logarithms, trigonometry, special functions."""

from __future__ import annotations

from collections.abc import Iterator
from math import factorial, pi
from math import log as natural_log

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.ops.arguments import complex_too, positive, real, unit
from argosy_phi_ops.primitives.checks import COMPLEX
from argosy_phi_ops.reference.kernels import KERNELS
from argosy_tensorcore.tensor import Tensor


def above_one(rng: np.random.Generator) -> Iterator[Sample]:
    """Numbers above one."""
    yield Sample(rng.uniform(1.1, 3, (2, 3)))


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def exp(x: Tensor) -> Tensor:
    """``e ** x`` elementwise."""
    return prim.exp(x)


exp.reference(KERNELS["exp"])


exp.samples(real)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def expm1(x: Tensor) -> Tensor:
    """``e ** x - 1`` elementwise, accurate near 0."""
    return prim.expm1(x)


expm1.reference(KERNELS["expm1"])


expm1.samples(real)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def log(x: Tensor) -> Tensor:
    """The natural logarithm elementwise."""
    return prim.log(x)


log.reference(KERNELS["log"])


log.samples(positive)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def log1p(x: Tensor) -> Tensor:
    """``log(1 + x)`` elementwise, accurate near 0."""
    return prim.log1p(x)


log1p.reference(KERNELS["log1p"])


log1p.samples(positive)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def sqrt(x: Tensor) -> Tensor:
    """The square root elementwise."""
    return prim.sqrt(x)


sqrt.reference(KERNELS["sqrt"])


sqrt.samples(positive)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def rsqrt(x: Tensor) -> Tensor:
    """``1 / sqrt(x)`` elementwise."""
    return prim.rsqrt(x)


rsqrt.reference(KERNELS["rsqrt"])


rsqrt.samples(positive)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def sin(x: Tensor) -> Tensor:
    """The sine of angles in radians."""
    return prim.sin(x)


sin.reference(KERNELS["sin"])


sin.samples(real)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def cos(x: Tensor) -> Tensor:
    """The cosine of angles in radians."""
    return prim.cos(x)


cos.reference(KERNELS["cos"])


cos.samples(real)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def tan(x: Tensor) -> Tensor:
    """The tangent of angles in radians."""
    return prim.tan(x)


tan.reference(KERNELS["tan"])


tan.samples(unit)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def asin(x: Tensor) -> Tensor:
    """The inverse sine, in radians."""
    return prim.asin(x)


asin.reference(KERNELS["asin"])


asin.samples(unit)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def acos(x: Tensor) -> Tensor:
    """The inverse cosine, in radians."""
    return prim.acos(x)


acos.reference(KERNELS["acos"])


acos.samples(unit)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def atan(x: Tensor) -> Tensor:
    """The inverse tangent, in radians."""
    return prim.atan(x)


atan.reference(KERNELS["atan"])


atan.samples(real)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def sinh(x: Tensor) -> Tensor:
    """The hyperbolic sine."""
    return prim.sinh(x)


sinh.reference(KERNELS["sinh"])


sinh.samples(real)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def cosh(x: Tensor) -> Tensor:
    """The hyperbolic cosine."""
    return prim.cosh(x)


cosh.reference(KERNELS["cosh"])


cosh.samples(real)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return prim.tanh(x)


tanh.reference(KERNELS["tanh"])


tanh.samples(real)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def asinh(x: Tensor) -> Tensor:
    """The inverse hyperbolic sine."""
    return prim.asinh(x)


asinh.reference(KERNELS["asinh"])


asinh.samples(real)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def acosh(x: Tensor) -> Tensor:
    """The inverse hyperbolic cosine of numbers from 1 on."""
    return prim.acosh(x)


acosh.reference(KERNELS["acosh"])


acosh.samples(above_one)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def atanh(x: Tensor) -> Tensor:
    """The inverse hyperbolic tangent of numbers in (-1, 1)."""
    return prim.atanh(x)


atanh.reference(KERNELS["atanh"])


atanh.samples(unit)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def sigmoid(x: Tensor) -> Tensor:
    """The logistic function ``1 / (1 + exp(-x))``."""
    return prim.logistic(x)


sigmoid.reference(KERNELS["logistic"])


sigmoid.samples(real)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def erf(x: Tensor) -> Tensor:
    """The error function."""
    return prim.erf(x)


erf.reference(KERNELS["erf"])


erf.samples(real)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def erfinv(x: Tensor) -> Tensor:
    """The inverse of the error function on (-1, 1)."""
    return prim.erfinv(x)


erfinv.reference(KERNELS["erfinv"])


erfinv.samples(unit)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def lgamma(x: Tensor) -> Tensor:
    """The logarithm of ``|gamma(x)|``."""
    return prim.lgamma(x)


lgamma.reference(KERNELS["lgamma"])


lgamma.samples(positive)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def digamma(x: Tensor) -> Tensor:
    """The derivative of ``lgamma``."""
    return prim.digamma(x)


digamma.reference(KERNELS["digamma"])


digamma.samples(positive)


def _logarithm(x: Tensor, base: int) -> Tensor:
    """Complex numbers by parts: divided as such, an infinite real part would make the other one NaN."""
    found, scale = prim.log(x), natural_log(base)
    if x.dtype not in COMPLEX:
        return prim.div(found, scale)
    return prim.complex(prim.div(prim.real(found), scale), prim.div(prim.imag(found), scale))


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"}, upcast=True)
def log2(x: Tensor) -> Tensor:
    """The logarithm to base 2 elementwise."""
    return _logarithm(x, 2)


log2.samples(positive)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"}, upcast=True)
def log10(x: Tensor) -> Tensor:
    """The logarithm to base 10 elementwise."""
    return _logarithm(x, 10)


log10.samples(positive)


@operator(axes="... -> ...", inplace=True, aliases={"input": "x"})
def square(x: Tensor) -> Tensor:
    """``x * x`` elementwise."""
    return prim.mul(x, x)


square.reference(lambda x: KERNELS["mul"](x, x))


square.samples(real)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def reciprocal(x: Tensor) -> Tensor:
    """``1 / x`` elementwise."""
    return prim.div(1.0, x)


reciprocal.samples(positive)


@operator(axes="... -> ...", inplace=True, aliases={"input": "x"})
def neg(x: Tensor) -> Tensor:
    """``-x`` elementwise."""
    return prim.neg(x)


neg.reference(KERNELS["neg"])


neg.samples(real)


@operator(axes="... -> ...", inplace=True, aliases={"input": "x"})
def abs_(x: Tensor) -> Tensor:
    """``|x|`` elementwise; real for complex `x`."""
    return x if x.dtype == "bool" else prim.abs(x)


abs_.samples(complex_too)


@operator(axes="... -> ...", inplace=True, aliases={"input": "x"})
def sign(x: Tensor) -> Tensor:
    """-1, 0 or 1 elementwise; ``x / |x|`` for complex `x`."""
    return prim.sign(x)


sign.samples(complex_too)


@operator(axes="... -> ...", promote="float", inplace=True)
def deg2rad(x: Tensor) -> Tensor:
    """Degrees in radians."""
    return prim.mul(x, pi / 180)


deg2rad.samples(real)


@operator(axes="... -> ...", promote="float", inplace=True)
def rad2deg(x: Tensor) -> Tensor:
    """Radians in degrees."""
    return prim.mul(x, 180 / pi)


rad2deg.samples(real)


@operator(axes="... -> ...", promote="float", inplace=True, upcast=True)
def logit(x: Tensor, eps: float | None = None) -> Tensor:
    """``log(x / (1 - x))``, of `x` moved into [eps, 1 - eps] if given; NaN outside [0, 1] otherwise."""
    if eps is not None:
        x = prim.minimum(prim.maximum(x, eps), 1 - eps)
    outside = prim.sub(prim.log(x), prim.log1p(prim.neg(x)))  # its derivative at 0 and 1 is infinite, not NaN
    middle = prim.lt(prim.abs(prim.sub(x, 0.5)), 0.25)  # where the difference cancels
    inside = prim.select(middle, x, 0.5)
    quotient = prim.div(prim.sub(prim.mul(inside, 2.0), 1.0), prim.sub(1.0, inside))
    return prim.select(middle, prim.log1p(quotient), outside)


@logit.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.uniform(0.1, 0.9, (2, 3)))
    yield Sample(np.array([-1.0, 0.5, 2.0]), eps=0.1)


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


@operator(axes="... -> ...", promote="float", upcast=True)
def stanh(x: Tensor, scale_a: float = 0.67, scale_b: float = 1.7159) -> Tensor:
    """``scale_b * tanh(scale_a * x)``."""
    return prim.mul(prim.tanh(prim.mul(x, scale_a)), scale_b)


stanh.samples(real)
