"""Bessel functions and the zeta function: values and derivatives to high order against mpmath."""

from __future__ import annotations

import math

import numpy as np
import pytest

import argosy as paddle
from argosy_autograd.jets import jet

mpmath = pytest.importorskip("mpmath")

POINTS = np.array([1e-3, 0.4, 1.9, 2.0, 2.1, 7.5, 18.0, 60.0])

#: name: (mpmath's function, sign in the recurrences, order, factor of the exponent, relative error allowed)
BESSEL = {
    "i0": (mpmath.besseli, 1, 0, 0, 1e-12),
    "i0e": (mpmath.besseli, 1, 0, -1, 1e-12),
    "i1": (mpmath.besseli, 1, 1, 0, 1e-12),
    "i1e": (mpmath.besseli, 1, 1, -1, 1e-12),
    "k0": (mpmath.besselk, -1, 0, 0, 1e-14),
    "k0e": (mpmath.besselk, -1, 0, 1, 1e-14),
    "k1": (mpmath.besselk, -1, 1, 0, 1e-14),
    "k1e": (mpmath.besselk, -1, 1, 1, 1e-14),
}


def derivatives(function, sign, order, factor, x):
    """The derivatives 0 to 2 at ``x`` with 40 digits, rounded once; B0' = s B1, B1' = s B0 - B1 / x (DLMF 10.29.3)."""
    with mpmath.workdps(40):
        x = mpmath.mpf(float(x))
        b0, b1 = function(0, x), function(1, x)
        if order == 0:
            f = [b0, sign * b1, b0 - sign * b1 / x]
        else:
            f = [b1, sign * b0 - b1 / x, b1 - sign * b0 / x + 2 * b1 / x**2]
        scaled = [f[0], f[1] + factor * f[0], f[2] + 2 * factor * f[1] + factor**2 * f[0]]
        return [float(each * mpmath.exp(factor * x)) for each in scaled]


@pytest.mark.parametrize("name", BESSEL)
def test_bessel_functions_and_their_derivatives(name):
    """On both sides of where one expansion hands over to the other, and exactly there."""
    *which, allowed = BESSEL[name]
    x = paddle.to_tensor(POINTS)
    value, moved = jet(getattr(paddle.special, name), (x,), ((1.0, 0.0),))
    expected = np.array([derivatives(*which, p) for p in POINTS]).T
    for order, (got, want) in enumerate(zip([value, *moved], expected, strict=True)):
        np.testing.assert_allclose(got.numpy(), want, rtol=allowed * 100**order, err_msg=f"order {order}")


@pytest.mark.parametrize("name", ["i0", "i1"])
def test_series_around_zero(name):
    """The derivatives of a smooth even or odd function at 0, from either side of a choice made there."""
    x = paddle.to_tensor([0.0, -0.0], "float64")
    _, moved = jet(getattr(paddle, name), (x,), ((1.0, 0.0, 0.0, 0.0, 0.0, 0.0),))
    want = [0, 1 / 2, 0, 3 / 8, 0, 5 / 16] if name == "i0" else [1 / 2, 0, 3 / 8, 0, 5 / 16, 0]
    np.testing.assert_allclose([m.numpy() for m in moved], np.transpose([want, want]), atol=1e-12)


def test_functions_of_the_second_kind_outside_of_their_domain():
    """Infinite at zero, undefined below; narrow dtypes."""
    for name in ("k0", "k0e", "k1", "k1e"):
        function = getattr(paddle.special, name)
        np.testing.assert_equal(function(paddle.to_tensor([0.0, -1.0, np.nan])).numpy(), [np.inf, np.nan, np.nan])
        narrow = function(paddle.to_tensor([0.5, 3.0], "float32"))
        np.testing.assert_allclose(narrow.numpy(), function(paddle.to_tensor([0.5, 3.0], "float64")).numpy(), rtol=1e-6)
    assert float(paddle.special.k0(paddle.to_tensor(800.0, "float64"))) == 0.0


ARGUMENTS = np.array([1.0001, 1.2, 2.0, 3.0, 7.0, 20.0, 60.0]), np.array([0.1, 0.5, 1.0, 2.5, 30.0, 0.7, 3.0])


def test_zeta_and_its_derivatives():
    """By both arguments, by the first one to second order; Riemann's at one; poles and what is outside."""
    s, q = (paddle.to_tensor(a, stop_gradient=False) for a in ARGUMENTS)
    value = paddle.special.zeta(s, q)
    by_s, by_q = paddle.grad(value.sum(), [s, q], create_graph=True)
    (twice,) = paddle.grad(by_s.sum(), s)
    pairs = list(zip(*ARGUMENTS, strict=True))
    with mpmath.workdps(30):
        wanted = [[float(mpmath.zeta(mpmath.mpf(a), mpmath.mpf(b), k)) for a, b in pairs] for k in range(3)]
        slopes = [float(-mpmath.mpf(a) * mpmath.zeta(mpmath.mpf(a) + 1, mpmath.mpf(b))) for a, b in pairs]
    for got, want in ((value, wanted[0]), (by_s, wanted[1]), (by_q, slopes), (twice, wanted[2])):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-11)
    one = paddle.special.zeta(paddle.to_tensor([2.0, 4.0], "float64"), 1.0)
    np.testing.assert_allclose(one.numpy(), [np.pi**2 / 6, np.pi**4 / 90], rtol=1e-15)
    outside = paddle.special.zeta(paddle.to_tensor([1.0, 0.5, 2.0, 2.0]), paddle.to_tensor([1.0, 1.0, 0.0, -1.5]))
    np.testing.assert_equal(outside.numpy(), [np.inf, np.nan, np.inf, np.nan])


def test_polygamma_is_a_zeta_function():
    """psi_n(x) = (-1)^(n + 1) n! zeta(n + 1, x)."""
    x = paddle.to_tensor(np.linspace(0.3, 5, 9))
    for n, factor in ((1, 1.0), (2, -2.0), (4, -24.0)):
        expected = factor * paddle.special.zeta(paddle.full_like(x, n + 1.0), x).numpy()
        np.testing.assert_allclose(paddle.polygamma(x, n).numpy(), expected, rtol=1e-11)


@pytest.mark.parametrize("captured", [False, True])
def test_incomplete_gamma_functions_at_zero(captured):
    """P(a, x) begins as x^a / gamma(a + 1): the derivatives at 0, of order up to 4, where they exist."""
    shapes = [1.0, 2.0, 3.0, 3.5]

    def derivatives(x):
        found = []
        for function in (paddle.gammainc, paddle.gammaincc):
            y = function(paddle.to_tensor(shapes, "float64"), x)
            for _ in range(4):
                (y,) = paddle.grad(y.sum(), x, create_graph=True)
                found.append(y)
        return found

    x = paddle.zeros([len(shapes)], "float64")
    x.stop_gradient = False
    got = (paddle.jit.to_static(derivatives, full_graph=True) if captured else derivatives)(x)
    for i, shape in enumerate(shapes):
        a = int(shape)
        for n in range(1, 5 if shape == a else a + 1):
            # The integrand x^(a-1) exp(-x) / gamma(a), differentiated n - 1 times by Leibniz's rule, at x = 0.
            want = math.comb(n - 1, a - 1) * (-1.0) ** (n - a) if n >= a and a == shape else 0.0
            np.testing.assert_allclose([got[n - 1][i].item(), got[n + 3][i].item()], [want, -want], atol=1e-12)


def test_sinc_to_order_eight():
    """Close to zero, where the quotient of derivatives would cancel, and on both sides of the end of the series."""
    points = np.array([0.0, 0.02, -0.1, 0.3, 0.47, 0.48, 1.0])
    derivatives = jet(paddle.sinc, (paddle.to_tensor(points),), ((1.0, *[0.0] * 7),))[1]
    with mpmath.workdps(50):
        wanted = np.transpose([mpmath.taylor(mpmath.sincpi, mpmath.mpf(float(p)), 8)[1:] for p in points])
    for order, (got, want) in enumerate(zip(derivatives, wanted, strict=True), 1):
        scale = math.factorial(order)
        size = np.pi**order / (order + 1)  # of the even ones at zero, which bound them
        np.testing.assert_allclose(got.numpy(), [float(scale * w) for w in want], rtol=0, atol=1e-11 * size)


@pytest.mark.parametrize("captured", [False, True])
def test_slopes_at_poles_are_infinite(captured):
    """The derivatives of digamma at its poles and of logit at both ends, as the wheel gives them."""

    def slopes(x, p):
        y = paddle.digamma(x).sum() + paddle.logit(p).sum()
        return paddle.grad(y, [x, p])

    x = paddle.to_tensor([0.0, -1.0, -2.0, 1.0], "float64", stop_gradient=False)
    p = paddle.to_tensor([0.0, 1.0, 0.5], "float64", stop_gradient=False)
    at_x, at_p = (paddle.jit.to_static(slopes, full_graph=True) if captured else slopes)(x, p)
    np.testing.assert_allclose(at_x.numpy(), [np.inf, np.inf, np.inf, math.pi**2 / 6], rtol=1e-13)
    np.testing.assert_array_equal(at_p.numpy(), [np.inf, np.inf, 4.0])


@pytest.mark.parametrize("name", ["log2", "log10"])
def test_logarithms_of_a_complex_zero(name):
    found = getattr(paddle, name)(paddle.to_tensor([0j, 1j])).numpy()
    np.testing.assert_allclose(
        found, [complex(-np.inf, 0), complex(0, math.pi / 2 / math.log(int(name[3:])))], rtol=1e-6
    )
