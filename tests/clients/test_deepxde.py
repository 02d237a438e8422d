"""DeepXDE with argosy as its Paddle back end, unmodified: three of its public examples for some steps."""

import warnings

import numpy as np
import pytest

from argosy_hwadapt import why

without_opencl = pytest.mark.skipif(why("opencl") is not None, reason="no OpenCL runtime")


@pytest.fixture
def deepxde(as_paddle, monkeypatch):
    """The library with its Paddle back end."""
    monkeypatch.setenv("DDE_BACKEND", "paddle")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = pytest.importorskip("deepxde")
    assert library.backend.backend_name == "paddle"
    library.config.set_random_seed(0)
    yield library
    as_paddle.set_default_dtype("float32")


def _trained(deepxde, data, sizes, steps, **options):
    """The model, its first and its last loss."""
    model = deepxde.Model(data, deepxde.nn.FNN(sizes, "tanh", "Glorot uniform"))
    model.compile("adam", lr=1e-3, verbose=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        history, _ = model.train(iterations=steps, display_every=steps, verbose=0)
    first, *_, last = (float(np.sum(loss)) for loss in history.loss_train)
    return model, first, last


def test_burgers(deepxde):
    """First and second derivatives by its Jacobian and Hessian, boundary and initial conditions: the loss falls, and
    the residual at new points is what the equation says of the network's values."""
    dde = deepxde

    def pde(x, y):
        dy_x = dde.grad.jacobian(y, x, i=0, j=0)
        dy_t = dde.grad.jacobian(y, x, i=0, j=1)
        return dy_t + y * dy_x - 0.01 / np.pi * dde.grad.hessian(y, x, i=0, j=0)

    geometry = dde.geometry.GeometryXTime(dde.geometry.Interval(-1, 1), dde.geometry.TimeDomain(0, 0.99))
    border = dde.icbc.DirichletBC(geometry, lambda x: 0, lambda _, on: on)
    start = dde.icbc.IC(geometry, lambda x: -np.sin(np.pi * x[:, 0:1]), lambda _, on: on)
    data = dde.data.TimePDE(geometry, pde, [border, start], num_domain=200, num_boundary=20, num_initial=40)
    model, first, last = _trained(dde, data, [2, 20, 20, 20, 1], 30)
    assert last < 0.8 * first
    x = geometry.random_points(5)
    step = np.array([1e-2, 0])
    slope = (model.predict(x + step) - model.predict(x - step)) / 2e-2
    got = model.predict(x, operator=lambda x, y: dde.grad.jacobian(y, x, i=0, j=0))
    np.testing.assert_allclose(got, slope, atol=2e-3)


def test_euler_beam(deepxde):
    """Fourth derivatives, conditions on the second and third, float64, Adam, then L-BFGS: close to the exact one."""
    dde = deepxde
    dde.config.set_default_float("float64")

    def bending(x, y, *_):
        return dde.grad.hessian(y, x)

    geometry = dde.geometry.Interval(0, 1)
    at = [lambda x, on, end=end: on and dde.utils.isclose(x[0], end) for end in (0, 1)]
    conditions = [
        dde.icbc.DirichletBC(geometry, lambda x: 0, at[0]),
        dde.icbc.NeumannBC(geometry, lambda x: 0, at[0]),
        dde.icbc.OperatorBC(geometry, bending, at[1]),
        dde.icbc.OperatorBC(geometry, lambda x, y, _: dde.grad.jacobian(bending(x, y), x), at[1]),
    ]
    data = dde.data.PDE(
        geometry, lambda x, y: dde.grad.hessian(bending(x, y), x) + 1, conditions, num_domain=10, num_boundary=2,
        solution=lambda x: -(x**4) / 24 + x**3 / 6 - x**2 / 4, num_test=20,
    )  # fmt: skip
    try:
        model, first, last = _trained(dde, data, [1, 20, 20, 1], 20, metrics=["l2 relative error"])
        assert last < first
        dde.optimizers.set_LBFGS_options(maxiter=60)
        model.compile("L-BFGS", metrics=["l2 relative error"], verbose=0)
        history, _ = model.train(display_every=60, verbose=0)
        assert history.metrics_test[-1][0] < 0.1
    finally:
        dde.config.set_default_float("float32")


def _poisson(dde):
    """-u'' = pi^2 sin(pi x) with an output transform that keeps the border, and a network."""
    geometry = dde.geometry.Interval(-1, 1)

    def pde(x, y):
        return -dde.grad.hessian(y, x) - np.pi**2 * dde.backend.sin(np.pi * x)

    data = dde.data.PDE(geometry, pde, [], num_domain=32, solution=lambda x: np.sin(np.pi * x), num_test=50)
    net = dde.nn.FNN([1, 20, 20, 1], "tanh", "Glorot uniform")
    net.apply_output_transform(lambda x, y: (1 - x**2) * y)
    return dde.Model(data, net)


def test_poisson_with_hard_constraints(deepxde):
    model = _poisson(deepxde)
    model.compile("adam", lr=1e-2, metrics=["l2 relative error"], verbose=0)
    history, _ = model.train(iterations=200, display_every=200, verbose=0)
    assert history.metrics_test[-1][0] < 0.2 < history.metrics_test[0][0]


@pytest.mark.parametrize("device", ["virtual", pytest.param("opencl", marks=without_opencl)])
def test_poisson_on_a_device(deepxde, as_paddle, device, monkeypatch):
    """All of a training runs there, without a fallback, and loses what it loses on the CPU."""
    monkeypatch.setenv("ARGOSY_FALLBACK", "error")
    losses = []
    try:
        for place in ("cpu", device):
            as_paddle.device.set_device(place)
            deepxde.config.set_random_seed(0)
            model = _poisson(deepxde)
            model.compile("adam", lr=1e-3, verbose=0)
            history, _ = model.train(iterations=100, display_every=20, verbose=0)
            assert {p.place.kind for p in model.net.parameters()} == {place}
            losses.append(np.ravel(history.loss_train))
    finally:
        as_paddle.device.set_device("cpu")
    assert losses[0][-1] < 0.8 * losses[0][0]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
