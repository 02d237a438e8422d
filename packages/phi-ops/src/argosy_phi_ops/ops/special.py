"""Special functions: Bessel functions, polygamma, and the incomplete gamma functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import factorial, pi, sqrt
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import DTypeError, OperatorError
from argosy_phi_ops.ops.arguments import real, size_of, table
from argosy_phi_ops.primitives.checks import COMPLEX
from argosy_tensorcore.dtype import finfo
from argosy_tensorcore.tensor import Tensor

_FAR: dict[Any, tuple[float, int, int]] = {"float32": (10.0, 19, 12), "float64": (26.0, 40, 20)}
"""Where the power series of the Bessel functions hands over to the asymptotic one, and terms of each: what is left out
is below 1e-8 and 1e-16."""
_OVERFLOW: dict[Any, float] = {"float32": 92.0, "float64": 714.0}
"""Where the modified Bessel functions of the first kind are infinite."""


def polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """The polynomial with these coefficients, lowest first, by Horner's rule; for ``|x| < 1``."""
    total = prim.constant(coefficients[-1], x.dtype, x.shape)
    for c in reversed(coefficients[:-1]):
        total = prim.add(prim.mul(total, x), c)
    return total


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
    return prim.select(far, _large(beyond, order, asymptotic_terms), series)


def _asymptotic(x: Tensor, order: int, terms: int) -> Tensor:
    """``exp(-x) sqrt(2 pi x) I_order(x)`` for large `x`."""
    coefficients = [1.0]
    for k in range(1, terms):
        coefficients.append(-coefficients[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8 * k))
    return polynomial(prim.div(1.0, x), coefficients)


def _front(x: Tensor) -> Tensor:
    """``1 / sqrt(2 pi x)``, of any `x`."""
    return prim.mul(prim.rsqrt(x), 1 / sqrt(2 * pi))


def _large(x: Tensor, order: int, terms: int) -> Tensor:
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


def _real(name: str, x: Tensor) -> Tensor:
    if x.dtype in COMPLEX:
        raise DTypeError(f"{name}(): argument 'x' should be a tensor of real numbers, got {x.type}")
    return x


@operator(axes="... -> ...", promote="float", inplace=True, upcast=True)
def i0(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""
    return _bessel(size_of(_real("i0", x)), 0, False)


i0.samples(real)


@operator(axes="... -> ...", promote="float", upcast=True)
def i0e(x: Tensor) -> Tensor:
    """The modified Bessel function of order 0, times ``exp(-|x|)``."""
    return _bessel(prim.abs(_real("i0e", x)), 0, True)


i0e.samples(real)


@operator(axes="... -> ...", promote="float", upcast=True)
def i1(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 1; odd."""
    return _odd(x, _bessel(size_of(x), 1, False))


i1.samples(real)


@operator(axes="... -> ...", promote="float", upcast=True)
def i1e(x: Tensor) -> Tensor:
    """The modified Bessel function of order 1, times ``exp(-|x|)``; odd."""
    return _odd(x, _bessel(size_of(x), 1, True))


i1e.samples(real)


def _odd(x: Tensor, positive: Tensor) -> Tensor:
    return prim.select(prim.lt(x, 0.0), prim.neg(positive), positive)


_SHIFT = 12
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


@operator(axes="... -> ...", promote="float", inplace=True, upcast=True)
def polygamma(x: Tensor, n: int) -> Tensor:
    """The `n`-th derivative of ``digamma``, of positive `x` unless `n` is 0.

    Recurrence to x + 12 and the asymptotic series there (Abramowitz and Stegun 6.4.6 and 6.4.11).
    """
    if not isinstance(n, int) or n < 0:
        raise OperatorError(f"polygamma: n should be a non-negative integer, got {n!r}")
    if n == 0:
        return prim.digamma(x)
    total = prim.constant(0.0, x.dtype, x.shape)
    for k in range(_SHIFT):
        total = prim.add(total, prim.mul(_inverse_power(prim.add(x, float(k)), n + 1), float(factorial(n))))
    z = prim.add(x, float(_SHIFT))
    total = prim.add(total, prim.mul(_inverse_power(z, n), float(factorial(n - 1))))
    total = prim.add(total, prim.mul(_inverse_power(z, n + 1), factorial(n) / 2))
    for k, number in enumerate(_BERNOULLI, 1):
        factor = number * factorial(2 * k + n - 1) / factorial(2 * k)
        total = prim.add(total, prim.mul(_inverse_power(z, 2 * k + n), factor))
    return total if n % 2 else prim.neg(total)


def _inverse_power(x: Tensor, n: int) -> Tensor:
    return prim.pow(x, prim.constant(float(-n), x.dtype, x.shape))


@polygamma.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    for n in (0, 1, 2, 5):
        yield Sample(rng.uniform(0.2, 4, (2, 3)), n)


_SERIES = 160
_FRACTION = 120
_NODES, _WEIGHTS = (np.polynomial.legendre.leggauss(16) + np.array([[1.0], [0.0]])) / 2
"""The Gauss-Legendre rule on [0, 1]: exact for powers below 32."""


def _log_weight(a: Tensor, x: Tensor) -> Tensor:
    """The logarithm of ``x^a exp(-x) / gamma(a)``."""
    return prim.sub(prim.sub(prim.mul(a, prim.log(x)), x), prim.lgamma(a))


def _lower_series(a: Tensor, x: Tensor) -> Tensor:
    """P(a, x) by its power series (Abramowitz and Stegun 6.5.29), good below about a + 1."""
    term = prim.div(1.0, a)
    total = term
    for k in range(1, _SERIES):
        term = prim.mul(term, prim.div(x, prim.add(a, float(k))))
        total = prim.add(total, term)
    return prim.mul(total, prim.exp(_log_weight(a, x)))


def _upper_fraction(a: Tensor, x: Tensor) -> Tensor:
    """Q(a, x) by Legendre's continued fraction, evaluated from its far end; good above about a + 1."""
    value = prim.add(prim.sub(x, a), 2.0 * _FRACTION + 1)
    for k in range(_FRACTION, 0, -1):
        numerator = prim.mul(prim.sub(a, float(k)), float(k))
        value = prim.add(prim.add(prim.sub(x, a), 2.0 * k - 1), prim.div(numerator, value))
    return prim.div(prim.exp(_log_weight(a, x)), value)


def _rise(a: Tensor, x: Tensor) -> Tensor:
    """Zero, with the derivatives of P(a, x) in x: the integral of ``t^(a-1) exp(-t) / gamma(a)`` to x from where x is.

    With d = x - stop_gradient(x), that is ``d`` times the integral of the integrand at x + s d over s in [0, 1]. Its
    derivative of order n has the factor ``n s^(n-1)``, whatever the point, for which the rule is exact up to order 32;
    beyond, the derivative is off by a relative error of 6e-13 up to order 40, 4e-10 up to 48, 3e-7 up to 64. So none of
    the terms of the expansions below is differentiated.
    """
    start = prim.stop_gradient(x)
    ahead = prim.sub(x, start)
    shape, axes = (*x.shape, len(_NODES)), tuple(range(x.ndim))
    rule = (prim.cast(table(each), dtype=x.dtype) for each in (_NODES, _WEIGHTS))
    nodes, weights = (prim.broadcast(each, shape=shape, axes=(x.ndim,)) for each in rule)
    start, wide, power, scale = (
        prim.broadcast(each, shape=shape, axes=axes) for each in (start, ahead, prim.sub(a, 1.0), prim.lgamma(a))
    )
    point = prim.add(start, prim.mul(wide, nodes))
    # At zero the logarithm is infinite, elsewhere the power may be.
    at_zero, one = prim.eq(start, 0.0), prim.constant(1.0, x.dtype, shape)
    base = prim.pow(prim.select(at_zero, point, one), power)
    growth = prim.mul(power, prim.log(prim.select(at_zero, one, point)))
    density = prim.mul(base, prim.exp(prim.sub(prim.sub(growth, point), scale)))
    return prim.mul(ahead, prim.reduce_sum(prim.mul(density, weights), axes=(x.ndim,)))


def _incomplete(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """P(a, x) and Q(a, x) = 1 - P, each from the expansion that is accurate there; NaN outside a > 0, x >= 0."""
    a, x = prim.broadcast_to(a, prim.broadcast_shapes([a.shape, x.shape])), x
    x = prim.broadcast_to(x, a.shape)
    low = prim.lt(x, prim.add(a, 1.0))
    inside = prim.logical_and(prim.gt(a, 0.0), prim.gt(x, 0.0))
    at_zero = prim.logical_and(prim.eq(x, 0.0), prim.gt(a, 0.0))
    # At zero all derivatives that exist are zero unless the shape is whole; there the integrand is a polynomial's.
    smooth = prim.logical_or(inside, prim.logical_and(at_zero, prim.eq(a, prim.floor(a))))
    rise = _rise(prim.select(smooth, a, 1.0), prim.select(smooth, x, 1.0))
    rise = prim.select(smooth, rise, 0.0)
    safe_a, x = prim.select(inside, a, 1.0), prim.stop_gradient(x)
    lower = _lower_series(safe_a, prim.select(prim.logical_and(inside, low), x, 1.0))
    upper = _upper_fraction(
        safe_a, prim.select(prim.logical_and(inside, prim.logical_not(low)), x, prim.add(safe_a, 2.0))
    )
    p = prim.add(prim.select(low, lower, prim.sub(1.0, upper)), rise)
    q = prim.sub(prim.select(low, prim.sub(1.0, lower), upper), rise)
    nan = prim.constant(float("nan"), x.dtype, x.shape)
    return (
        prim.select(inside, p, prim.select(at_zero, rise, nan)),
        prim.select(inside, q, prim.select(at_zero, prim.sub(1.0, rise), nan)),
    )


@operator(axes="..., ... -> ...", promote="float", inplace=True, upcast=True)
def gammainc(x: Tensor, y: Tensor) -> Tensor:
    """The regularized lower incomplete gamma function P(x, y)."""
    return _incomplete(x, y)[0]


@operator(axes="..., ... -> ...", promote="float", inplace=True, upcast=True)
def gammaincc(x: Tensor, y: Tensor) -> Tensor:
    """The regularized upper incomplete gamma function Q(x, y)."""
    return _incomplete(x, y)[1]


def shapes_and_points(rng: np.random.Generator) -> Iterator[Sample]:
    """Points on both sides of the shape, and broadcasting."""
    yield Sample(rng.uniform(0.3, 4, (2, 3)), rng.uniform(0.1, 9, (2, 3)))
    yield Sample(rng.uniform(0.3, 4, (2, 1)), rng.uniform(0.1, 9, 3))


gammainc.samples(shapes_and_points)
gammaincc.samples(shapes_and_points)


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


@operator(axes="... -> ...")
def isreal(x: Tensor) -> Tensor:
    """Whether the imaginary part is zero."""
    if not x.dtype.startswith("complex"):
        return prim.constant(True, "bool", x.shape)
    return prim.eq(prim.imag(x), 0.0)


@isreal.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(np.array([1 + 0j, 2 - 1j]))
    yield Sample(rng.standard_normal(3))


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
