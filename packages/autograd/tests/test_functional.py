"""Jacobians, Hessians, products with derivatives, and the checker itself."""

from __future__ import annotations

import numpy as np
import pytest

import argosy_autograd as ag
from argosy_autograd.errors import DifferentiationError, UnusedInput
from argosy_phi_ops import get_operator
from argosy_tensorcore.tensor import Tensor

exp, tanh, matmul = (get_operator(name) for name in ("exp", "tanh", "matmul"))
A = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]])


def leaf(data):
    return Tensor(np.asarray(data, np.float64), stop_gradient=False)


def test_jacobian_of_a_linear_map_is_its_matrix():
    """Rows are computed when asked for; the whole and a single element agree."""
    x = leaf([1.0, 2.0, 3.0])
    j = ag.jacobian(matmul(Tensor(A), x), x)
    assert j.shape == [2, 3]
    np.testing.assert_allclose(j[1].numpy(), A[1])
    np.testing.assert_allclose(j[:].numpy(), A)
    assert float(j[0, 1].numpy()) == 2.0


def test_batched_jacobian_is_one_matrix_for_each_sample():
    """batch_axis=0 keeps samples apart."""
    x = leaf(np.arange(6.0).reshape(2, 3))
    j = ag.jacobian(matmul(x * x, Tensor(A.T)), x, batch_axis=0)
    assert j.shape == [2, 2, 3]
    expected = A[None] * 2 * x.numpy()[:, None]
    np.testing.assert_allclose(j.numpy(), expected)


def test_tuples_give_nested_tuples():
    """One Jacobian for each pair of output and input."""
    x, y = leaf([1.0, 2.0]), leaf([3.0])
    (a, b), (c, d) = ag.jacobian((x * y, y * y), (x, y))
    np.testing.assert_allclose(a[:].numpy(), np.diag([3.0, 3.0]))
    np.testing.assert_allclose(b[:].numpy(), [[1.0], [2.0]])
    np.testing.assert_allclose(c[:].numpy(), [[0.0, 0.0]])
    np.testing.assert_allclose(d[:].numpy(), [[6.0]])


def test_hessian_of_a_quadratic_form_is_symmetric():
    """x^T M x has the Hessian M + M^T."""
    m = np.array([[1.0, 2.0], [0.0, 3.0]])
    x = leaf([1.0, -1.0])
    h = ag.hessian((matmul(Tensor(m), x) * x).sum(), x)
    np.testing.assert_allclose(h[:].numpy(), m + m.T)


def test_vjp_and_jvp_of_functions_are_transposes():
    """<g, J v> = <J* g, v>; outputs come along."""
    x, v, g = np.array([0.3, -0.2, 0.5]), np.array([1.0, 2.0, -1.0]), np.array([0.5, -2.0])

    def f(t):
        return tanh(matmul(Tensor(A), t))

    y, pulled = ag.vjp(f, Tensor(x), Tensor(g))
    z, pushed = ag.jvp(f, Tensor(x), Tensor(v))
    np.testing.assert_allclose(y.numpy(), np.tanh(A @ x))
    np.testing.assert_allclose(z.numpy(), y.numpy())
    np.testing.assert_allclose(pushed.numpy(), (1 - np.tanh(A @ x) ** 2) * (A @ v))
    np.testing.assert_allclose((pushed.numpy() * g).sum(), (pulled.numpy() * v).sum())


@pytest.mark.parametrize("complex_step", [False, True])
def test_check_grads_accepts_right_gradients(complex_step):
    """By differences and by a complex step, to second order."""
    ag.check_grads(lambda x, y: exp(x * y) + x * x * x, [np.array([0.3, 0.5]), np.array([1.0, -0.4])],
                   complex_step=complex_step)  # fmt: skip


def test_check_grads_finds_wrong_gradients():
    """A wrong derivative does not pass."""

    class Wrong(ag.PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * 3.0

    with pytest.raises(AssertionError, match="gradient of order 1"):
        ag.check_grads(Wrong.apply, [np.array([0.3])], order=1)


@pytest.mark.parametrize("outer", [ag.vjp, ag.jvp])
@pytest.mark.parametrize("inner", [ag.vjp, ag.jvp])
def test_products_nest(outer, inner):
    """Of x^4: the third derivative from three of them, by what moves and by what the function reads."""
    scale = Tensor(np.array(2.0), stop_gradient=False)
    x = Tensor(np.array([0.5, -1.5]))
    third = outer(lambda x: inner(lambda x: outer(lambda x: x * x * x * x * scale, x)[1], x)[1], x)[1]
    np.testing.assert_allclose(third.numpy(), 48 * x.numpy(), rtol=1e-14)
    np.testing.assert_allclose(ag.grad(third.sum(), scale)[0].numpy(), -24.0, rtol=1e-14)
    with ag.no_grad():
        assert inner(lambda x: x * x, x)[1].stop_gradient


STRICT = {
    "jacobian": (lambda x, z: ag.jacobian(z * z, x, strict=True), "jacobian(): output 0", 1),
    "jacobian of two": (lambda x, z: ag.jacobian([x * z, z * z], x, strict=True), "jacobian(): output 1", 1),
    "jacobian by two": (lambda x, z: ag.jacobian(z * z, [z, x], strict=True), "do not depend on input 1", 1),
    "hessian": (lambda x, z: ag.hessian((z * z).sum(), x, strict=True), "hessian(): output 0", 1),
    "hessian of linear": (lambda x, z: ag.hessian((x * 2.0).sum(), x, strict=True), "hessian(): output 0", 2),
    "vjp": (lambda x, z: ag.vjp(lambda a: exp(z), x, strict=True), "vjp(): output 0", 1),
    "jvp": (lambda x, z: ag.jvp(lambda a, b: exp(a), [x, z], strict=True), "do not depend on input 1", 1),
}


@pytest.mark.parametrize("case", STRICT)
def test_what_does_not_depend_is_an_error_if_strict(case):
    """It names which output or input, the order and the line; otherwise there are zeros, as in Paddle."""
    call, text, order = STRICT[case]
    with pytest.raises(UnusedInput) as caught:
        call(leaf([1.0, 2.0]), leaf([3.0, 4.0]))
    assert text in str(caught.value)
    assert f"derivative of order {order} ({__file__}" in str(caught.value)


@pytest.mark.parametrize("derivative", [ag.vjp, ag.jvp])
def test_what_is_no_function_is_refused(derivative):
    with pytest.raises(TypeError, match="'func' must be a function of tensors, got 3"):
        derivative(3, leaf([1.0]))


def test_what_depends_is_given_if_strict():
    """With strict=True nothing else changes; without it what does not depend is zero."""
    x, z = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    np.testing.assert_allclose(ag.hessian((x * x * x).sum(), x, strict=True).numpy(), np.diag([6.0, 12.0]))
    np.testing.assert_allclose(ag.vjp(exp, x, strict=True)[1].numpy(), np.exp([1.0, 2.0]))
    np.testing.assert_allclose(ag.jvp(exp, x, strict=True)[1].numpy(), np.exp([1.0, 2.0]))
    for zero in (ag.jacobian(z * z, x), ag.hessian((z * z).sum(), x)):
        np.testing.assert_array_equal(zero.numpy(), np.zeros((2, 2)))


def test_a_hessian_of_or_by_integers_is_refused():
    """By its own name; there are no zeros for it."""
    x, i = leaf([1.0, 2.0]), Tensor(np.array([1, 2]))
    with pytest.raises(DifferentiationError, match=r"hessian\(\): ys is a tensor of int64"):
        ag.hessian(x.astype("int64").sum(), x)
    with pytest.raises(DifferentiationError, match=r"hessian\(\): xs is a tensor of int64"):
        ag.hessian((x * x).sum(), [x, i])
