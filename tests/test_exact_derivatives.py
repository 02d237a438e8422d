"""Derivatives to order 8 against sympy, in mpmath's precision, by complex steps, and one mode against another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import argosy as paddle
from argosy_autograd.functional import jvp, vjp

sympy = pytest.importorskip("sympy")
mpmath = pytest.importorskip("mpmath")

X = sympy.Symbol("x", real=True)
POINTS = np.array([-0.7, 0.0, 0.31, 1.2])

#: name: (ours, sympy's)
FUNCTIONS = {
    "tanh of a polynomial": (
        lambda x: paddle.tanh(x**3 - x / 2 + 0.3),
        sympy.tanh(X**3 - X / 2 + sympy.Rational(3, 10)),
    ),
    "exp sin": (lambda x: paddle.exp(paddle.sin(2 * x)), sympy.exp(sympy.sin(2 * X))),
    "log of a square": (lambda x: paddle.log(x * x + 1.5), sympy.log(X * X + sympy.Rational(3, 2))),
    "quotient": (lambda x: paddle.cos(x) / (2 + x * x), sympy.cos(X) / (2 + X * X)),
    "real power": (lambda x: (x + 2.5) ** 1.7, (X + sympy.Rational(5, 2)) ** sympy.Rational(17, 10)),
    "root": (lambda x: paddle.sqrt(x * x + 0.8), sympy.sqrt(X * X + sympy.Rational(4, 5))),
    "gaussian": (lambda x: paddle.erf(x) * paddle.exp(-x * x), sympy.erf(X) * sympy.exp(-X * X)),
    "sigmoid": (lambda x: paddle.nn.functional.silu(x), X / (1 + sympy.exp(-X))),
    "atan": (lambda x: paddle.atan(x) + paddle.asinh(x), sympy.atan(X) + sympy.asinh(X)),
}


def tensor(values, moves=True):
    return paddle.to_tensor(np.asarray(values, np.float64), stop_gradient=not moves)


def exact(expression, order, points=POINTS):
    """Its derivative with 40 digits, rounded once."""
    with mpmath.workdps(40):
        function = sympy.lambdify(X, sympy.diff(expression, X, order), "mpmath")
        return np.array([float(function(mpmath.mpf(float(p)))) for p in points])


def reverse(function, order):
    def derivative(x):
        y = function(x)
        for k in range(order):
            (y,) = paddle.grad(y.sum(), x, create_graph=k < order - 1)
        return y

    return derivative


def forward(function, order):
    for _ in range(order):
        function = (lambda inner: lambda x: jvp(inner, x, paddle.ones_like(x))[1])(function)
    return function


def taylor(function, order):
    return lambda x: paddle.autograd.jet(function, (x,), ((1.0, *[0.0] * (order - 1)),))[1][-1]


def mixed(function, order):
    """Forward over reverse over forward."""
    modes = [forward, lambda f, _: lambda x: vjp(f, x, paddle.ones_like(x))[1], taylor]
    for k in range(order):
        function = modes[k % 3](function, 1)
    return function


MODES = {"reverse": reverse, "forward": forward, "taylor": taylor, "mixed": mixed}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_to_order_eight_against_sympy(name):
    """Eager jets of every order, and nested requests in a captured program, which become one sweep."""
    ours, expression = FUNCTIONS[name]
    x = tensor(POINTS)
    found = paddle.autograd.jet(ours, (x,), ((1.0, *[0.0] * 7),))[1]
    for order, got in enumerate(found, 1):
        expected = exact(expression, order)
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-10, atol=1e-11 * np.abs(expected).max())
    captured = paddle.jit.to_static(reverse(ours, 8), full_graph=True)(x)
    np.testing.assert_allclose(captured.numpy(), expected, rtol=1e-9, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_gives_the_third_derivative(mode):
    """Eager; so that any two of them agree."""
    for ours, expression in (FUNCTIONS["exp sin"], FUNCTIONS["quotient"]):
        got = MODES[mode](ours, 3)(tensor(POINTS)).numpy()
        np.testing.assert_allclose(got, exact(expression, 3), rtol=1e-11, atol=1e-11)


SPECIAL = {
    "lgamma": (paddle.lgamma, mpmath.loggamma, 1e-11),
    "digamma": (paddle.digamma, mpmath.digamma, 1e-11),
    "i0": (paddle.i0, lambda x: mpmath.besseli(0, x), 1e-11),
    "i1": (paddle.i1, lambda x: mpmath.besseli(1, x), 1e-11),
    "erfinv": (lambda x: paddle.erfinv(x / 2), lambda x: mpmath.erfinv(x / 2), 1e-11),
    "polygamma 1": (lambda x: paddle.polygamma(x, 1), lambda x: mpmath.polygamma(1, x), 1e-10),
    "polygamma 3": (lambda x: paddle.polygamma(x, 3), lambda x: mpmath.polygamma(3, x), 1e-10),
    "sinc": (paddle.sinc, lambda x: mpmath.sinc(mpmath.pi * x), 1e-11),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_in_mpmath_precision(name):
    """Values and first two derivatives: finite differences with 60 digits."""
    ours, theirs, tolerance = SPECIAL[name]
    points = np.array([0.15, 0.8, 1.3, 1.9])
    x = tensor(points)
    with mpmath.workdps(60):
        wanted = [[float(mpmath.diff(theirs, mpmath.mpf(float(p)), n)) for p in points] for n in range(3)]
    for order, expected in enumerate(wanted):
        got = reverse(ours, order)(x) if order else ours(x)
        np.testing.assert_allclose(got.numpy(), expected, rtol=tolerance * 10**order)


@pytest.mark.parametrize("name", ["exp sin", "quotient", "tanh of a polynomial"])
def test_complex_steps(name):
    """``im f(x + ih) / h`` with h = 1e-30 has no cancellation; of the first derivative it gives the second."""
    ours, _ = FUNCTIONS[name]
    step = paddle.to_tensor(POINTS + 1e-30j, stop_gradient=False)
    np.testing.assert_allclose(ours(step).imag().numpy() / 1e-30, reverse(ours, 1)(tensor(POINTS)).numpy(), rtol=1e-13)


UNARY = [paddle.sin, paddle.tanh, paddle.exp, lambda x: x * x, lambda x: 1 / (x * x + 1), paddle.atan, lambda x: -x]
BINARY = [lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x / (y * y + 1)]


@st.composite
def programs(draw):
    """A function of x by up to six operations on what is there already."""
    steps = draw(st.lists(st.tuples(st.booleans(), *[st.integers(0, 99)] * 3), min_size=1, max_size=6))

    def function(x):
        values = [x, paddle.tanh(x)]
        for unary, which, i, j in steps:
            a, b = values[i % len(values)], values[j % len(values)]
            made = UNARY[which % len(UNARY)](a) if unary else BINARY[which % len(BINARY)](a, b)
            values.append(paddle.tanh(made))  # bounded, so that errors are comparable
        return values[-1]

    return function


@settings(max_examples=6, deadline=None)
@given(programs(), st.integers(1, 2))
def test_modes_agree_on_random_programs(function, order):
    """Every mode against every other one."""
    x = tensor([-0.4, 0.3, 0.9])
    results = [mode(function, order)(x).numpy() for mode in MODES.values()]
    for other in results[1:]:
        np.testing.assert_allclose(other, results[0], rtol=1e-9, atol=1e-10 * (1 + np.abs(results[0]).max()))
