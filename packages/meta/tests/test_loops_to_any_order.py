"""Taylor mode through captured loops and branches: they carry coefficients, so that order n costs O(n^2)."""

from __future__ import annotations

import numpy as np
import pytest

import argosy as paddle
from argosy import autograd, science
from argosy.static import nn
from argosy_autograd.jets import PIPELINE
from argosy_autograd.taylor.cost import cost
from argosy_phi_ops.capture.tracer import Tracer
from argosy_pir import TensorType
from argosy_pir.passes import PassManager

pytestmark = pytest.mark.usefixtures("verified_passes")

POINTS = np.array([0.3, 0.7, -0.4])
ROWS = np.array([[0.3, -0.2], [0.7, 0.1], [-0.4, 0.5]])
TABLE = np.linspace(0.0, 1.0, 6)
WEIGHTS = np.linspace(-0.5, 0.5, 16).reshape(4, 4)


def constant(data):
    return paddle.to_tensor(data)


def counted(x):
    return nn.while_loop(lambda i, y: i < 4, lambda i, y: [i + 1, paddle.sin(y) * x + y], [constant(0), x])[1]


def counted_out(x):
    y = x
    for _ in range(4):
        y = paddle.sin(y) * x + y
    return y


def scanned(x):
    """What is carried moves, what is scanned moves, and there are stacked results."""
    rows = paddle.outer(constant(TABLE), x)

    def step(carried, row):
        return [paddle.sin(carried[0]) * x + row[0]], [carried[0] * row[0]]

    (last,), (path,) = science.scan(step, [x * 0.5], [rows])
    return last + path.sum(0)


def scanned_out(x):
    last, path = x * 0.5, []
    for c in TABLE:
        row = x * c
        path.append(last * row)
        last = paddle.sin(last) * x + row
    return last + sum(path[1:], path[0])


def gradient_of(function):
    """Reverse mode goes back through a scan by a scan."""
    return lambda x: paddle.grad((function(x) ** 2).sum(), x, create_graph=True)[0]


def branched(x):
    return nn.cond(x.sum() > 0, lambda: paddle.exp(x) * x, lambda: x) ** 2


def branched_out(x):
    return (paddle.exp(x) * x) ** 2


def nested(x):
    """A branch in a loop in a loop."""

    def outer(i, y):
        def inner(j, z):
            return [j + 1, nn.cond(i < 2, lambda: paddle.sin(z) * y + x, lambda: z * x)]

        return [i + 1, nn.while_loop(lambda j, z: j < 2, inner, [constant(0), y * 0.5])[1] * y]

    return nn.while_loop(lambda i, y: i < 3, outer, [constant(0), x * x])[1]


def nested_out(x):
    y = x * x
    for i in range(3):
        z = y * 0.5
        for _ in range(2):
            z = paddle.sin(z) * y + x if i < 2 else z * x
        y = z * y
    return y


def solved(x):
    return science.odeint(lambda t, y: -paddle.sin(y) * y, x, constant(np.linspace(0.0, 1.0, 4)), method="rk4")[-1]


def solved_out(x):
    def slope(y):
        return -paddle.sin(y) * y

    h = 1 / 3
    for _ in range(3):
        a = slope(x)
        b = slope(x + a * (h / 2))
        c = slope(x + b * (h / 2))
        x = x + (a + 2 * (b + c) + slope(x + c * h)) * (h / 6)
    return x


PAIRS = {
    "while": (counted, counted_out), "scan": (scanned, scanned_out), "if": (branched, branched_out),
    "nested": (nested, nested_out), "gradient": (gradient_of(scanned), gradient_of(scanned_out)),
}  # fmt: skip


def jet_of(function, order):
    series = ((1.0, *[0.0] * (order - 1)),)
    return paddle.jit.to_static(lambda x: autograd.jet(function, (x,), series)[1], full_graph=True)


@pytest.mark.parametrize("name", PAIRS)
def test_a_jet_of_a_loop_is_that_of_its_steps(name):
    """To order 8, against the loop written out."""
    got, want = (jet_of(function, 8)(constant(POINTS)) for function in PAIRS[name])
    for k, (g, w) in enumerate(zip(got, want, strict=True), 1):
        np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-11, atol=1e-12, err_msg=f"order {k}")


def test_a_jet_along_a_curve():
    """Coefficients of the curve flow into the loop at every order."""
    series = ((0.5, -1.0, 2.0, 0.25),)
    got, want = (
        paddle.jit.to_static(lambda x, f=f: autograd.jet(f, (x,), series)[1], full_graph=True)(constant(POINTS))
        for f in PAIRS["scan"]
    )
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-11)


def program_of(function, order):
    """The jet of ``function`` as primitives."""
    with Tracer("jet") as tracer:
        x = tracer.input(TensorType((3,), "float64"), stop_gradient=False)
        results = autograd.jet(function, (x,), ((1.0, *[0.0] * (order - 1)),))[1]
        captured = tracer.finish(results)
    PassManager(PIPELINE).run(captured.program)
    return captured.program


@pytest.mark.parametrize("function", [counted, scanned, solved, nested])
def test_the_order_costs_its_square(function):
    """There are two loops, of values and of coefficients, whatever the order; and no more than O(n^2) operations."""
    found = {order: program_of(function, order) for order in (2, 4, 8, 16)}
    loops = {
        order: sum(op.name.startswith("control.") and bool(op.regions) for op in p.walk()) for order, p in found.items()
    }
    assert len(set(loops.values())) == 1
    costs = {order: cost(program) for order, program in found.items()}
    for order in (4, 8):
        assert costs[2 * order] <= 4 * costs[order]


def derivative(function, order):
    def asked(x):
        y = function(x)
        for _ in range(order):
            (y,) = paddle.grad(y.sum(), x, create_graph=True)
        return y

    return asked


def leaf(data):
    return paddle.to_tensor(data, stop_gradient=False)


HIGH = [pytest.param(name, 5, marks=[pytest.mark.exhaustive] * (i > 0)) for i, name in enumerate(PAIRS)]


@pytest.mark.parametrize(("name", "order"), [*((name, 2) for name in PAIRS), *HIGH])
def test_nested_gradients_become_one_loop(name, order):
    """By choice: `explain` says so."""
    function, written_out = PAIRS[name]
    step = paddle.jit.to_static(derivative(function, order), full_graph=True)
    got = step(leaf(POINTS)).numpy()
    want = paddle.jit.to_static(derivative(written_out, order), full_graph=True)(leaf(POINTS)).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-11)
    if order > 2:
        assert "derivatives of derivatives: a forward sweep" in str(paddle.explain(step, leaf(POINTS), measure=False))


def test_the_equation_of_an_integrator_to_order_five():
    """odeint with fixed steps, and nested gradients: those of the steps written out."""
    got, want = (paddle.jit.to_static(derivative(f, 5), full_graph=True)(leaf(POINTS)) for f in (solved, solved_out))
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-10)


def network(x, weights):
    first = paddle.matmul(x, constant(np.ones((2, 4))))
    (h,), _ = science.scan(
        lambda h, row: ([paddle.tanh(paddle.matmul(h[0], weights) + row[0] * first)], []), [first], [constant(TABLE)]
    )
    return h.sum(-1)


def network_out(x, weights):
    first = h = paddle.matmul(x, constant(np.ones((2, 4))))
    for c in TABLE:
        h = paddle.tanh(paddle.matmul(h, weights) + first * c)
    return h.sum(-1)


def test_a_recurrent_network_in_an_equation():
    """The Laplacian of each row's value, its mixed third derivatives, and the gradient of both by the weights."""

    def residual(function):
        def step(x, weights):
            u = function(x, weights)
            (g,) = paddle.grad(u.sum(), x, create_graph=True)
            (h,) = paddle.grad(g[:, 0].sum(), x, create_graph=True)
            (k,) = paddle.grad(h[:, 1].sum(), x, create_graph=True)
            loss = (autograd.laplacian(u, x) ** 2).sum() + (k**2).sum()
            return loss, paddle.grad(loss, weights)[0]

        return step

    for eager in (False, True):
        found = []
        for function in (network, network_out):
            step = residual(function)
            step = step if eager and function is network_out else paddle.jit.to_static(step, full_graph=True)
            found.append([t.numpy() for t in step(leaf(ROWS), leaf(WEIGHTS))])
        for got, want in zip(*found, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9)


def test_many_directions_go_through_a_loop():
    """A Laplacian in more dimensions than the coefficients are kept apart for."""

    def step(x, function):
        return autograd.laplacian(function(x), x)

    def loop(x):
        return nn.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, paddle.sin(y) * y + x], [constant(0), x])[1].sum(
            -1
        )

    def written_out(x):
        y = x
        for _ in range(3):
            y = paddle.sin(y) * y + x
        return y.sum(-1)

    x = leaf(np.random.default_rng(0).standard_normal((2, 14)))
    got, want = (paddle.jit.to_static(step, full_graph=True)(x, f) for f in (loop, written_out))
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-11)
