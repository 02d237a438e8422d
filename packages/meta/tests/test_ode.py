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


def test_too_many_steps_and_bad_tolerances():
    """NaN where the steps ran out; errors name the argument."""
    path = science.odeint(lambda t, y: -1e4 * (y - t), tensor(1.0), tensor([0.0, 0.001, 9.0]), max_steps=300, **TIGHT)
    assert np.isfinite(path.numpy()).tolist() == [True, True, False]
    with pytest.raises(ValueError, match="rtol -1"):
        science.odeint(turning, tensor([1.0, 0.0]), tensor([0.0]), method="dopri5", rtol=-1)
    with pytest.raises(ValueError, match="'rk5' is unknown"):
        science.odeint(turning, tensor([1.0, 0.0]), tensor([0.0]), method="rk5")
