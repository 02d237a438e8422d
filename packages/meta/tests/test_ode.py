"""``odeint`` with adaptive steps: accuracy, adjoint derivatives, eager and captured."""

import numpy as np
import pytest

import argosy as paddle
from argosy import science

TIGHT = {"method": "dopri5", "rtol": 1e-9, "atol": 1e-11}


def tensor(values, moves=True):
    return paddle.to_tensor(np.asarray(values, np.float64), stop_gradient=not moves)


def turning(t, y, rate):
    """y'' = -rate^2 y as a system."""
    return paddle.stack([y[1], -rate * rate * y[0]])


@pytest.mark.parametrize("tolerance", [1e-4, 1e-7, 1e-10])
def test_the_error_follows_the_tolerance(tolerance):
    """Of an oscillation, forwards and backwards in time."""
    for times in (np.linspace(0, 3, 4), np.linspace(3, 0, 3), np.array([0.0])):
        start = tensor([np.cos(2 * times[0]), -2 * np.sin(2 * times[0])])
        path = science.odeint(
            turning, start, tensor(times), tensor(2.0), method="dopri5", rtol=tolerance, atol=tolerance
        )
        np.testing.assert_allclose(path.numpy()[:, 0], np.cos(2 * times), atol=50 * tolerance)


def test_steps_become_small_where_they_must():
    """A narrow pulse in the middle: its area."""
    evaluations = []

    def pulse(t, y):
        evaluations.append(float(t))
        return 1 / ((t - 0.5) ** 2 / 1e-4 + 1) + y * 0

    path = science.odeint(pulse, tensor(0.0), tensor([0.0, 1.0]), **TIGHT)
    np.testing.assert_allclose(float(path[-1]), 0.02 * np.arctan(50), rtol=1e-7)
    gaps = np.diff(sorted(set(evaluations)))
    assert gaps.max() > 20 * np.median(gaps)


def test_adjoint_derivatives_eager_and_captured():
    """cos(w t) a: by the start, the times and the rate."""

    def derivatives(start, times, rate):
        path = science.odeint(turning, start, times, rate, **TIGHT)
        found = paddle.grad((path[:, 0] * paddle.arange(1.0, 4.0, dtype="float64")).sum(), [start, times, rate])
        return paddle.concat([path[:, 0], found[0], found[1], found[2].reshape([1])])

    times, weights, w = np.array([0.2, 0.9, 1.7]), np.arange(1.0, 4.0), 1.3
    given = tensor([1.0, 0.5]), tensor(times), tensor(w)
    got = derivatives(*given).numpy()
    compiled = paddle.jit.to_static(derivatives, full_graph=True)(*given)
    np.testing.assert_allclose(compiled.numpy(), got, rtol=1e-8, atol=1e-9)
    t = times - times[0]
    u = np.cos(w * t) + 0.5 / w * np.sin(w * t)
    slope = -w * np.sin(w * t) + 0.5 * np.cos(w * t)
    by_w = -t * np.sin(w * t) + 0.5 * (t / w * np.cos(w * t) - np.sin(w * t) / w**2)
    by_times = weights * slope
    by_times[0] = -(weights * slope)[1:].sum()
    exact = [*u, weights @ np.cos(w * t), weights @ np.sin(w * t) / w, *by_times, weights @ by_w]
    np.testing.assert_allclose(got, exact, rtol=1e-6, atol=1e-7)


def test_parameters_of_a_layer():
    """They get gradients by themselves: those of many small fixed steps."""
    paddle.seed(0)
    layer = paddle.nn.Linear(2, 2).astype("float64")

    class Field(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.inner = layer

        def forward(self, t, y):
            return paddle.tanh(self.inner(y)) * paddle.cos(t)

    times, start = tensor([0.0, 0.5, 1.0], False), tensor([[0.3, -0.2]])
    found = []
    for keywords in (TIGHT, {"method": "rk4", "substeps": 40}):
        loss = (science.odeint(Field(), start, times, **keywords) ** 2).sum()
        found.append(paddle.grad(loss, [start, layer.weight, layer.bias]))
    for adaptive, fixed in zip(*found, strict=True):
        np.testing.assert_allclose(adaptive.numpy(), fixed.numpy(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("compiled", [False, True])
def test_second_derivatives_with_adaptive_steps(compiled):
    """y = u exp(a t): that of the last value by a is t u exp(a t), whose derivatives by a, u and the times follow."""

    def second(a, u, t):
        path = science.odeint(lambda s, y, a: a * y, u, t, a, **TIGHT)
        (g,) = paddle.grad(path[-1].sum(), a, create_graph=True)
        return paddle.grad(g, [a, u, t])

    a, u, times = 0.7, np.array([1.5, -0.5]), np.array([0.0, 0.3, 1.0])
    run = paddle.jit.to_static(second, full_graph=True) if compiled else second
    got = run(tensor(a), tensor(u), tensor(times))
    e = np.exp(a)
    by_time = (1 + a) * e * u.sum()
    for found, exact in zip(got, [e * u.sum(), [e, e], [-by_time, 0, by_time]], strict=True):
        np.testing.assert_allclose(found.numpy(), exact, rtol=1e-6, atol=1e-8)


def test_second_derivatives_of_several_dtypes_and_of_a_layer():
    """A complex solution with a real rate, cos(w t) its real part; and a layer's parameters, as with fixed steps."""
    w, times = tensor(1.3), tensor([0.0, 0.8], False)
    start = paddle.to_tensor(np.array([1.0 + 0j]))
    path = science.odeint(lambda t, y, w: paddle.complex(w * 0, w) * y, start, times, w, **TIGHT)
    (g,) = paddle.grad(path[-1].real().sum(), w, create_graph=True)
    np.testing.assert_allclose(float(g), -0.8 * np.sin(1.3 * 0.8), rtol=1e-6)
    np.testing.assert_allclose(float(paddle.grad(g, w)[0]), -0.64 * np.cos(1.3 * 0.8), rtol=1e-6)

    class Field(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.rate = self.create_parameter([2], dtype="float64")
            self.rate.set_value(np.array([0.4, -0.9]))

        def forward(self, t, y):
            return paddle.sin(self.rate * y)

    field, u, found = Field(), tensor([1.0, 0.7]), []
    for keywords in (TIGHT, {"method": "rk4", "substeps": 60}):
        end = science.odeint(field, u, times, **keywords)[-1]
        (g,) = paddle.grad((end**2).sum(), field.rate, create_graph=True)
        found.append(paddle.grad((g**2).sum(), [field.rate, u]))
    for adaptive, fixed in zip(*found, strict=True):
        np.testing.assert_allclose(adaptive.numpy(), fixed.numpy(), rtol=1e-6)


def test_captured_derivatives_above_the_second_are_refused():
    """They would be of a loop whose steps were chosen by the error: an error with the line, not a number."""

    def third(a):
        path = science.odeint(lambda s, y, a: a * y, tensor([1.0]), tensor([0.0, 1.0], False), a, **TIGHT)
        g = path[-1].sum()
        for _ in range(3):
            (g,) = paddle.grad(g, a, create_graph=True)
        return g

    with pytest.raises(NotImplementedError, match=r"odeint\(\): while capturing.*above order 2.*test_ode"):
        paddle.jit.to_static(third, full_graph=True)(tensor(0.7))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: science.odeint(lambda t, y: y, 1.0, x), TypeError, r"odeint\(\): y0 should be .*got float"),
        (lambda x: science.odeint(lambda t, y: y, x.astype("int64"), x), TypeError, "y0 should be .*got int64"),
        (lambda x: science.odeint(lambda t, y: y, x, [0.0, 1.0]), TypeError, "t should be .*got list"),
        (lambda x: science.odeint(lambda t, y: y.sum(), x, x), ValueError, r"what it takes, \[2\], got \[\]"),
        (lambda x: science.odeint(lambda t, y: None, x, x, method="dopri5"), TypeError, "give a Tensor, got NoneType"),
        (lambda x: science.odeint(3.0, x, x), TypeError, "should be callable, got float"),
        (lambda x: science.root(lambda y: (y * y).sum(), x), ValueError, r"root\(\): .*\[2\], got \[\]"),
        (lambda x: science.root(lambda y: y, 1.0), TypeError, "x0 should be"),
        (lambda x: science.fixed_point(lambda y: y.sum(), x), ValueError, r"fixed_point\(\): .*\[2\], got \[\]"),
        (lambda x: science.linear_solve(lambda y: y, [1.0]), TypeError, r"linear_solve\(\): b should be"),
        (lambda x: science.linear_solve(lambda y: y.sum(), x), ValueError, r"\[2\], got \[\]"),
        (lambda x: science.levenberg_marquardt(lambda y: y, 1.0), TypeError, "x0 should be .*got float"),
        (lambda x: science.levenberg_marquardt(lambda y: [y], x, compiled=False), TypeError, "residuals should be"),
        (lambda x: science.levenberg_marquardt(lambda y: paddle.complex(y, y), x), TypeError, "should be real"),
        (lambda x: science.levenberg_marquardt(lambda y: y, x, damping=-1.0), ValueError, "damping should be 0 or"),
        (lambda x: science.levenberg_marquardt(lambda y: y, x, inner=0), ValueError, "inner should be 1 or more"),
    ],
)
def test_what_does_not_fit_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call(tensor([0.5, 1.0]))


def test_too_many_steps_and_bad_tolerances():
    """NaN where the steps ran out; errors name the argument."""
    path = science.odeint(lambda t, y: -1e4 * (y - t), tensor(1.0), tensor([0.0, 0.001, 9.0]), max_steps=300, **TIGHT)
    assert np.isfinite(path.numpy()).tolist() == [True, True, False]
    with pytest.raises(ValueError, match="rtol -1"):
        science.odeint(turning, tensor([1.0, 0.0]), tensor([0.0]), method="dopri5", rtol=-1)
    with pytest.raises(ValueError, match="'rk5' is unknown"):
        science.odeint(turning, tensor([1.0, 0.0]), tensor([0.0]), method="rk5")
