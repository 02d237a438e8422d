"""``argosy.science``: loops, differential equations, implicit functions and least squares, eager and captured."""

import numpy as np
import pytest

import argosy as paddle
from argosy import science

RNG = np.random.default_rng(0)


def tensor(values, moves=True):
    return paddle.to_tensor(np.asarray(values, np.float64), stop_gradient=not moves)


def both(function, *inputs, rtol=1e-8, backend="CINN"):
    """The eager result; the captured one agrees."""
    eager = function(*inputs)
    compiled = paddle.jit.to_static(function, full_graph=True, backend=backend)(*inputs)
    np.testing.assert_allclose(compiled.numpy(), eager.numpy(), rtol=rtol, atol=1e-9)
    return eager.numpy()


def test_scan_is_a_loop_with_gradients():
    """Horner's rule: the value, and the derivatives by the point and by the coefficients."""

    def slopes(z, c):
        (p,), (path,) = science.scan(lambda carried, row: ([carried[0] * z + row[0]],) * 2, [z * 0], [c])
        dz, dc = paddle.grad(p + path[-1] * 0, [z, c])
        return paddle.concat([paddle.stack([p, dz]), dc])

    c = RNG.standard_normal(5)
    got = both(slopes, tensor(0.7), tensor(c))
    p = np.poly1d(c)
    np.testing.assert_allclose(got, [p(0.7), p.deriv()(0.7), *0.7 ** np.arange(4, -1, -1)], rtol=1e-12)
    with pytest.raises(ValueError, match=r"shapes \[\[2\], \[3\]\]"):
        science.scan(lambda a, b: (a, b), [], [tensor([1, 2]), tensor([1, 2, 3])])


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("midpoint", 2), ("rk4", 4)])
def test_order_of_the_methods(method, order):
    """Halving the steps divides the error of y' = y t by 2^order."""
    t = tensor(np.linspace(0, 1, 3))
    errors = [
        abs(float(science.odeint(lambda t, y: y * t, tensor(1.0), t, method=method, substeps=n)[-1]) - np.exp(0.5))
        for n in (8, 16)
    ]
    assert errors[0] / errors[1] == pytest.approx(2**order, rel=0.2)


def test_gradients_of_a_solution():
    """y = y0 exp(-k t): by y0, k and the last time."""

    def slopes(y0, k, t):
        y = science.odeint(lambda t, y, k: -k * y, y0, t, k, substeps=20)
        dy, dk, dt = paddle.grad(y[-1], [y0, k, t])
        return paddle.stack([y[-1], dy, dk, dt[-1]])

    got = both(slopes, tensor(2.0), tensor(0.5), tensor([0, 1.0, 3.0]))
    e = np.exp(-1.5)
    np.testing.assert_allclose(got, [2 * e, e, -3 * 2 * e, -0.5 * 2 * e], rtol=1e-5)


def test_linear_solve_is_differentiable():
    """A^-1 b by products: the value, gradients by b and A, and a second derivative."""
    a, b = np.eye(4) * 4 + RNG.standard_normal((4, 4)), RNG.standard_normal(4)
    product = lambda x, m: m @ x  # noqa: E731

    def slopes(m, b):
        x = science.linear_solve(product, b, m)
        dm, db = paddle.grad((x * x).sum(), [m, b])
        return paddle.concat([x, db, dm.flatten()])

    got = both(slopes, tensor(a), tensor(b))
    x = np.linalg.solve(a, b)
    w = np.linalg.solve(a.T, 2 * x)
    np.testing.assert_allclose(got, np.concatenate([x, w, -np.outer(w, x).ravel()]), rtol=1e-7, atol=1e-9)

    def second(b):
        (g,) = paddle.grad((science.linear_solve(product, b, tensor(a, False)) ** 3).sum(), b, create_graph=True)
        return paddle.grad(g.sum(), b)[0]

    inverse = np.linalg.inv(a)
    np.testing.assert_allclose(second(tensor(b)).numpy(), inverse.T @ (6 * x * (inverse @ np.ones(4))), rtol=1e-6)


@pytest.mark.parametrize("find", [science.root, science.fixed_point])
def test_implicit_functions(find):
    """The square root of a by an equation: 1 / (2 sqrt a), and -1 / (4 a^1.5)."""

    def residual(x, a):
        return x * x - a if find is science.root else (x + a / x) / 2

    def slope(a):
        x = find(residual, paddle.ones_like(a), a)
        (g,) = paddle.grad(x.sum(), a)
        return paddle.stack([x, g])

    a = np.array([2.0, 5.0])
    got = both(slope, tensor(a))  # loops within loops
    np.testing.assert_allclose(got, [np.sqrt(a), 0.5 / np.sqrt(a)], rtol=1e-7)
    leaf = tensor(a)
    (g,) = paddle.grad(find(residual, paddle.ones_like(leaf), leaf).sum(), leaf, create_graph=True)
    np.testing.assert_allclose(paddle.grad(g.sum(), leaf)[0].numpy(), -0.25 * a**-1.5, rtol=1e-6)


@pytest.mark.parametrize("compiled", [True, False])
def test_levenberg_marquardt_on_rosenbrock(compiled):
    """The valley's minimum at (1, 1), as least squares; and a fit of an exponential."""
    rosenbrock = lambda x: paddle.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])  # noqa: E731
    fit = science.levenberg_marquardt(rosenbrock, tensor([-1.2, 1.0]), compiled=compiled)
    np.testing.assert_allclose(fit.x.numpy(), [1, 1], atol=1e-6)
    t = tensor(np.linspace(0, 1, 20), False)
    data = 2 * paddle.exp(-3 * t)
    fit = science.levenberg_marquardt(
        lambda x: x[0] * paddle.exp(x[1] * t) - data, tensor([1.0, 0.0]), compiled=compiled
    )
    np.testing.assert_allclose(fit.x.numpy(), [2, -3], rtol=1e-6)
    assert fit.cost < 1e-14


def test_the_operation_that_made_the_first_nan_is_named():
    """A square root at zero is fine until it is differentiated: the division of its gradient, and this line."""
    x = tensor([0.0, 4.0])

    def value(x):
        return paddle.sqrt(x).sum()

    def slope(x):
        return paddle.grad(value(x) * 2, x)[0]

    assert science.first_nan(value, x) is None
    culprit = science.first_nan(slope, x)
    assert culprit.phase == "input-gradient"
    assert culprit.elements == 1
    assert "test_science.py" in culprit.where
    assert science.first_nan(slope, x, infinities=False) is None
    logarithm = science.first_nan(lambda x: paddle.log(x - 1) * 2, x)
    assert logarithm.operation == "log"
    assert logarithm.operands == ((-1.0, 3.0),)
    assert "log (forward) at " in str(logarithm)
