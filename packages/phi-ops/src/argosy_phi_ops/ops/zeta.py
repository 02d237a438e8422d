"""The zeta function and the modified Bessel functions of the second kind."""

from __future__ import annotations

from collections.abc import Iterator
from math import factorial

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.ops.arguments import positive
from argosy_phi_ops.ops.special import polynomial
from argosy_tensorcore.tensor import Tensor

_TERMS = 10
_BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330,
)  # fmt: skip


@operator(axes="..., ... -> ...", promote="float", upcast=True)
def zeta(x: Tensor, q: Tensor) -> Tensor:
    """Hurwitz' zeta function ``sum over k >= 0 of (q + k)^-x`` for x > 1 and q > 0; Riemann's with `q` = 1.

    Infinite at x = 1 or q = 0, NaN below. Ten terms of the sum, and the Euler-Maclaurin formula for the others (DLMF
    25.11.5).
    """
    shape = prim.broadcast_shapes([x.shape, q.shape])
    x, q = prim.broadcast_to(x, shape), prim.broadcast_to(q, shape)
    inside = prim.logical_and(prim.gt(x, 1.0), prim.gt(q, 0.0))
    s, start = prim.select(inside, x, 2.0), prim.select(inside, q, 1.0)
    power = prim.neg(s)
    total = prim.pow(start, power)
    for k in range(1, _TERMS):
        total = prim.add(total, prim.pow(prim.add(start, float(k)), power))
    end = prim.add(start, float(_TERMS))
    last = prim.pow(end, power)
    rest = prim.add(prim.div(end, prim.sub(s, 1.0)), 0.5)
    factor = prim.div(s, end)  # s (s + 1) ... (s + 2 j - 2) / end^(2 j - 1)
    for j, number in enumerate(_BERNOULLI, 1):
        rest = prim.add(rest, prim.mul(factor, number / factorial(2 * j)))
        ahead = prim.mul(prim.add(s, 2.0 * j - 1), prim.add(s, 2.0 * j))
        factor = prim.div(prim.mul(factor, ahead), prim.mul(end, end))
    found = prim.add(total, prim.mul(last, rest))
    pole = prim.logical_or(
        prim.logical_and(prim.eq(x, 1.0), prim.ge(q, 0.0)), prim.logical_and(prim.eq(q, 0.0), prim.ge(x, 1.0))
    )
    outside = prim.select(pole, prim.constant(float("inf"), x.dtype, shape), float("nan"))
    return prim.select(inside, found, outside)


@zeta.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.uniform(1.2, 6, (2, 3)), rng.uniform(0.3, 4, (2, 3)))
    yield Sample(rng.uniform(1.2, 6, (2, 1)), rng.uniform(0.3, 4, 3))


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


def _integral(x: Tensor, order: int) -> Tensor:
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
    series, integral = _power_series(small, order), _integral(large, order)
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
    yield from positive(rng)
    yield Sample(rng.uniform(2.5, 30, (2, 3)))


for _each in (k0, k0e, k1, k1e):
    _each.samples(on_both_sides)
