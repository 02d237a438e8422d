"""Modified Bessel functions of the first and the second kind, of orders 0 and 1."""

from __future__ import annotations

from collections.abc import Iterator
from math import factorial, pi, sqrt
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import DTypeError
from argosy_phi_ops.ops.common.arguments import positive_samples, real_samples, smooth_abs
from argosy_phi_ops.ops.special.polynomials import polynomial
from argosy_phi_ops.primitives.checks import COMPLEX
from argosy_tensorcore.dtype import finfo
from argosy_tensorcore.tensor import Tensor

_FAR: dict[Any, tuple[float, int, int]] = {"float32": (10.0, 19, 12), "float64": (26.0, 40, 20)}
"""Where the power series of the Bessel functions hands over to the asymptotic one, and terms of each: what is left out
is below 1e-8 and 1e-16."""

_OVERFLOW: dict[Any, float] = {"float32": 92.0, "float64": 714.0}
"""Where the modified Bessel functions of the first kind are infinite."""


def _series(x: Tensor, order: int, terms: int) -> Tensor:
    """``sum x^k / (k! (k + order)!)``, nested so that neither a term nor a derivative overflows."""
    total = prim.constant(1.0, x.dtype, x.shape)
    for k in range(terms - 1, 0, -1):
        total = prim.add(prim.mul(total, prim.mul(x, 1 / (k * (k + order)))), 1.0)
    return total


def _bessel(size: Tensor, order: int, scaled: bool) -> Tensor:
    """``I_order(|x|)`` for order 0 or 1 (Abramowitz and Stegun 9.6.10 and 9.7.1), times ``exp(-|x|)`` if `scaled`."""
    limit, terms, asymptotic_terms = _FAR[size.dtype]
    far = prim.ge(size, limit)
    near = prim.select(far, limit, size)
    series = _series(prim.mul(prim.mul(near, near), 0.25), order, terms)
    if order:
        series = prim.mul(series, prim.mul(near, 0.5))
    beyond = prim.select(far, size, limit)
    if scaled:
        tail = prim.mul(_asymptotic(beyond, order, asymptotic_terms), _front(beyond))
        return prim.select(far, tail, prim.mul(series, prim.exp(prim.neg(near))))
    return prim.select(far, _large_argument_value(beyond, order, asymptotic_terms), series)


def _asymptotic(x: Tensor, order: int, terms: int) -> Tensor:
    """``exp(-x) sqrt(2 pi x) I_order(x)`` for large `x`."""
    coefficients = [1.0]
    for k in range(1, terms):
        coefficients.append(-coefficients[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8 * k))
    return polynomial(prim.div(1.0, x), coefficients)


def _front(x: Tensor) -> Tensor:
    """``1 / sqrt(2 pi x)``, of any `x`."""
    return prim.mul(prim.rsqrt(x), 1 / sqrt(2 * pi))


def _large_argument_value(x: Tensor, order: int, terms: int) -> Tensor:
    """``I_order(x)`` for large `x`, finite also where ``exp(x)`` is not.

    So that the exponential is no slope either, the value is a constant to differentiation, and what multiplies it are
    the relative changes of the factors: each is 1, with all derivatives.
    """
    limit = _OVERFLOW[x.dtype]
    near = prim.select(prim.lt(x, limit), x, limit)  # infinite slopes of several signs would make NaN
    smooth, half = _asymptotic(near, order, terms), prim.exp(prim.mul(x, 0.5))
    value = prim.mul(prim.mul(prim.mul(smooth, _front(near)), half), half)
    largest = finfo(x.dtype).max
    bounded = prim.select(prim.le(x, largest), x, largest)  # infinities have no difference
    growth = prim.sub(bounded, prim.stop_gradient(bounded))
    root = prim.mul(prim.log(prim.div(near, prim.stop_gradient(near))), 0.5)
    changes = prim.mul(prim.exp(prim.sub(growth, root)), prim.div(smooth, prim.stop_gradient(smooth)))
    return prim.mul(prim.stop_gradient(value), changes)


def _check_real(name: str, x: Tensor) -> Tensor:
    if x.dtype in COMPLEX:
        raise DTypeError(f"{name}(): argument 'x' should be a tensor of real numbers, got {x.type}")
    return x


@operator(axes="... -> ...", promote="float", inplace=True, upcast=True, samples=real_samples)
def i0(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""
    return _bessel(smooth_abs(_check_real("i0", x)), 0, False)


@operator(axes="... -> ...", promote="float", upcast=True, samples=real_samples)
def i0e(x: Tensor) -> Tensor:
    """The modified Bessel function of order 0, times ``exp(-|x|)``."""
    return _bessel(prim.abs(_check_real("i0e", x)), 0, True)


@operator(axes="... -> ...", promote="float", upcast=True, samples=real_samples)
def i1(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 1; odd."""
    return _with_sign(x, _bessel(smooth_abs(x), 1, False))


@operator(axes="... -> ...", promote="float", upcast=True, samples=real_samples)
def i1e(x: Tensor) -> Tensor:
    """The modified Bessel function of order 1, times ``exp(-|x|)``; odd."""
    return _with_sign(x, _bessel(smooth_abs(x), 1, True))


def _with_sign(x: Tensor, positive: Tensor) -> Tensor:
    return prim.select(prim.lt(x, 0.0), prim.neg(positive), positive)


_NEAR = 2.0
"""Where the power series hands over to the integral."""

_NODES = 24

_EULER = 0.5772156649015329

_HARMONIC = tuple(sum(1 / i for i in range(1, k + 1)) for k in range(20))


def _power_series(x: Tensor, order: int) -> Tensor:
    """``K_order(x)`` for small positive x (Abramowitz and Stegun 9.6.11 to 9.6.13)."""
    half = prim.mul(x, 0.5)
    square = prim.mul(half, half)
    first = polynomial(square, [1 / (factorial(k) * factorial(k + order)) for k in range(18)])
    if order == 0:
        other = polynomial(square, [_HARMONIC[k] / factorial(k) ** 2 for k in range(18)])
        return prim.sub(other, prim.mul(prim.add(prim.log(half), _EULER), first))
    psi = [_HARMONIC[k] + _HARMONIC[k + 1] - 2 * _EULER for k in range(18)]
    other = polynomial(square, [p / (2 * factorial(k) * factorial(k + 1)) for k, p in enumerate(psi)])
    return prim.add(prim.div(1.0, x), prim.mul(half, prim.sub(prim.mul(prim.log(half), first), other)))


def _trapezoid_integral(x: Tensor, order: int) -> Tensor:
    """``exp(x) K_order(x)``: the integral of ``exp(-x (cosh t - 1)) cosh(order t)`` over t >= 0 (DLMF 10.32.9).

    The trapezoid rule gains digits with every node as the integrand is analytic and falls that fast. Its step fits the
    width of the integrand; derivatives are those of the sum at a given step.
    """
    last = prim.mul(prim.asinh(prim.sqrt(prim.div(19.0, x))), 2.0)  # acosh(1 + 38 / x)
    step = prim.stop_gradient(prim.mul(last, 1 / _NODES))
    total = prim.constant(0.5, x.dtype, x.shape)
    for k in range(1, _NODES + 1):
        rise = prim.sinh(prim.mul(step, k / 2))  # cosh t - 1 = 2 sinh^2(t / 2)
        rise = prim.mul(prim.mul(rise, rise), 2.0)
        term = prim.exp(prim.neg(prim.mul(x, rise)))
        total = prim.add(total, prim.mul(term, prim.add(rise, 1.0)) if order else term)
    return prim.mul(total, step)


def _second(x: Tensor, order: int, scaled: bool) -> Tensor:
    inside = prim.gt(x, 0.0)
    near = prim.logical_and(inside, prim.le(x, _NEAR))
    small = prim.select(near, x, 1.0)
    large = prim.select(prim.gt(x, _NEAR), x, 4.0)
    series, integral = _power_series(small, order), _trapezoid_integral(large, order)
    if scaled:
        series = prim.mul(series, prim.exp(small))
    else:
        integral = prim.mul(integral, prim.exp(prim.neg(large)))
    outside = prim.select(prim.eq(x, 0.0), prim.constant(float("inf"), x.dtype, x.shape), float("nan"))
    return prim.select(inside, prim.select(near, series, integral), outside)


@operator(axes="... -> ...", promote="float", upcast=True)
def k0(x: Tensor) -> Tensor:
    """The modified Bessel function of the second kind of order 0, of positive `x`; infinite at 0, NaN below."""
    return _second(x, 0, False)


@operator(axes="... -> ...", promote="float", upcast=True)
def k0e(x: Tensor) -> Tensor:
    """The modified Bessel function of the second kind of order 0, times ``exp(x)``."""
    return _second(x, 0, True)


@operator(axes="... -> ...", promote="float", upcast=True)
def k1(x: Tensor) -> Tensor:
    """The modified Bessel function of the second kind of order 1, of positive `x`; infinite at 0, NaN below."""
    return _second(x, 1, False)


@operator(axes="... -> ...", promote="float", upcast=True)
def k1e(x: Tensor) -> Tensor:
    """The modified Bessel function of the second kind of order 1, times ``exp(x)``."""
    return _second(x, 1, True)


def on_both_sides(rng: np.random.Generator) -> Iterator[Sample]:
    """Where the series serves, and where the integral does."""
    yield from positive_samples(rng)
    yield Sample(rng.uniform(2.5, 30, (2, 3)))


for _each in (k0, k0e, k1, k1e):
    _each.samples(on_both_sides)
