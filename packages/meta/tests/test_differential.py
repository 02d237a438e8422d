"""Differential operators, eager and captured, against closed forms; derivatives of derivatives in compiled steps."""

import numpy as np
import pytest

import argosy as paddle
from argosy_autograd.errors import DifferentiationError

RNG = np.random.default_rng(0)


def points(d, n=5):
    return paddle.to_tensor(RNG.uniform(0.2, 1.0, (n, d)), stop_gradient=False)


def eager_and_compiled(function, *inputs):
    """Both results: they agree."""
    eager = function(*inputs)
    compiled = paddle.jit.to_static(function, full_graph=True)(*inputs)
    np.testing.assert_allclose(compiled.numpy(), eager.numpy(), rtol=1e-10, atol=1e-12)
    return eager.numpy()


def test_laplacian_and_biharmonic_of_a_polynomial():
    """u = x^4 y + z^2: its Laplacian is 12 x^2 y + 2, the Laplacian of that 24 y."""
    x = points(3)
    a, b, _ = x.numpy().T

    def u(x):
        return x[:, 0] ** 4 * x[:, 1] + x[:, 2] ** 2

    got = eager_and_compiled(lambda x: paddle.autograd.laplacian(u(x), x), x)
    np.testing.assert_allclose(got, 12 * a**2 * b + 2, rtol=1e-12)
    got = eager_and_compiled(lambda x: paddle.autograd.biharmonic(u(x), x), x)
    np.testing.assert_allclose(got, 24 * b, rtol=1e-12)


def test_several_values_for_each_point():
    """Each column of ys on its own."""
    x = points(2)
    got = eager_and_compiled(lambda x: paddle.autograd.laplacian(paddle.stack([x[:, 0] ** 2, x[:, 1] ** 3], -1), x), x)
    np.testing.assert_allclose(got, np.stack([np.full(5, 2.0), 6 * x.numpy()[:, 1]], -1), rtol=1e-12)


def test_divergence_and_curl():
    """Of the field (y z, x z^2, x y): divergence 0, curl (x - 2 x z, 0, z^2 - z); and of a field in the plane."""
    x = points(3)
    a, _, c = x.numpy().T

    def field(x):
        return paddle.stack([x[:, 1] * x[:, 2], x[:, 0] * x[:, 2] ** 2, x[:, 0] * x[:, 1]], -1)

    assert not eager_and_compiled(lambda x: paddle.autograd.divergence(field(x), x), x).any()
    got = eager_and_compiled(lambda x: paddle.autograd.curl(field(x), x), x)
    np.testing.assert_allclose(got, np.stack([a - 2 * a * c, 0 * a, c**2 - c], -1), atol=1e-12)
    y = points(2)
    got = eager_and_compiled(lambda y: paddle.autograd.curl(paddle.stack([-(y[:, 1] ** 2), y[:, 0]], -1), y), y)
    np.testing.assert_allclose(got, 1 + 2 * y.numpy()[:, 1], rtol=1e-12)


def test_linear_operator():
    """Values, mixed derivatives, and a coefficient for each point."""
    x = points(2)
    a, b = x.numpy().T

    def apply(x):
        u = paddle.sin(x[:, 0]) * x[:, 1] ** 2
        return paddle.autograd.linear_operator(u, x, {(): 2.0, (1, 0): x[:, 1], (0, 0, 0, 0): 1.0})

    got = eager_and_compiled(apply, x)
    np.testing.assert_allclose(got, 3 * np.sin(a) * b**2 + b * np.cos(a) * 2 * b, rtol=1e-12)


@pytest.mark.parametrize("name", ["laplacian", "divergence", "curl", "linear_operator"])
def test_shapes_that_do_not_fit_are_told(name):
    """The error names the operator and both shapes."""
    x = points(4)
    y = (x * x).sum()
    extra = ({(0,): 1.0},) if name == "linear_operator" else ()
    with pytest.raises(DifferentiationError, match=rf"{name}: .*\[5, 4\]|{name}: .*points"):
        getattr(paddle.autograd, name)(y, x, *extra)
    with pytest.raises(DifferentiationError, match="outside the 4 coordinates"):
        paddle.autograd.linear_operator(x[:, 0], x, {(4,): 1.0})


def test_training_on_a_third_order_residual():
    """A compiled step on Korteweg-de Vries: the losses are those of eager nested gradients."""

    def trainer():
        paddle.seed(3)
        net = paddle.nn.Sequential(paddle.nn.Linear(2, 12), paddle.nn.Tanh(), paddle.nn.Linear(12, 1))
        net.to(dtype="float64")
        optimizer = paddle.optimizer.Adam(1e-2, parameters=net.parameters())

        def step(q):
            u = net(q)
            du = paddle.grad(u.sum(), q, create_graph=True)[0]
            duu = paddle.grad(du[:, 0].sum(), q, create_graph=True)[0]
            duuu = paddle.grad(duu[:, 0].sum(), q, create_graph=True)[0]
            loss = ((du[:, 1] + u[:, 0] * du[:, 0] + duuu[:, 0]) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        return step

    q = points(2, 16)
    eager, compiled = trainer(), paddle.jit.to_static(trainer(), full_graph=True)
    first = [float(eager(q)) for _ in range(6)]
    np.testing.assert_allclose([float(compiled(q)) for _ in range(6)], first, rtol=1e-9)
    assert first[-1] < first[0]


def test_explain_shows_the_choice_and_what_each_way_would_cost():
    """The remark of the pass is a section of the report."""
    x = points(2)
    report = paddle.explain(lambda x: paddle.autograd.biharmonic(paddle.tanh(x).sum(-1), x), x, measure=False)
    (text,) = [section.body[0] for section in report.sections if section.title.startswith("choices")]
    assert "a forward sweep; estimated operations: nested reverse mode" in text
