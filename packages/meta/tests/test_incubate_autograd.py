"""``incubate.autograd``: matrices of functions, products with them, eager and captured."""

import numpy as np
import pytest

import argosy as paddle
from argosy_autograd.errors import DifferentiationError

A = paddle.incubate.autograd


def test_jacobian_of_a_product_of_matrices():
    """The example of Paddle's documentation: two inputs side by side."""
    x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])
    j = A.Jacobian(paddle.matmul, [x, x])
    expected = [
        [1.0, 3.0, 0.0, 0.0, 1.0, 0.0, 2.0, 0.0],
        [2.0, 4.0, 0.0, 0.0, 0.0, 1.0, 0.0, 2.0],
        [0.0, 0.0, 1.0, 3.0, 3.0, 0.0, 4.0, 0.0],
        [0.0, 0.0, 2.0, 4.0, 0.0, 3.0, 0.0, 4.0],
    ]
    assert j.shape == [4, 8]
    np.testing.assert_allclose(j[:, :].numpy(), expected)
    np.testing.assert_allclose(j[0, :].numpy(), expected[0])
    np.testing.assert_allclose(j[:, 0].numpy(), [1, 2, 0, 0])
    assert float(j[-1, -1]) == 4.0
    with pytest.raises(IndexError, match="ellipsis"):
        j[..., 0]


def test_batched_jacobian_and_hessian():
    """One matrix for each sample; the Hessian of sum x^3 y is known."""
    x, y = (paddle.to_tensor(v) for v in np.random.default_rng(0).uniform(1, 2, (2, 4, 1)))
    j = A.Jacobian(lambda x, y: (x * y, x**2), [x, y], is_batched=True)
    assert j.shape == [4, 2, 2]
    a, b = x.numpy()[:, 0], y.numpy()[:, 0]
    np.testing.assert_allclose(j[:, 0, :].numpy(), np.stack([b, a], -1))
    np.testing.assert_allclose(j[:, 1, 0].numpy(), 2 * a)
    h = A.Hessian(lambda x, y: x**3 * y, [x, y], is_batched=True)
    expected = np.stack([np.stack([6 * a * b, 3 * a**2], -1), np.stack([3 * a**2, 0 * a], -1)], 1)
    np.testing.assert_allclose(h[:].numpy(), expected, rtol=1e-12)
    with pytest.raises(DifferentiationError, match="scalar"):
        A.Hessian(lambda x: x, x)[:]


def test_hessian_in_a_captured_program():
    """The matrix of x^T M x is M + M^T, eager and compiled."""
    m = np.array([[1.0, 2.0], [0.0, 3.0]])

    def matrix(x):
        return A.Hessian(lambda z: (z @ paddle.to_tensor(m) * z).sum(), x)[:]

    x = paddle.to_tensor([1.0, -1.0], dtype="float64")
    np.testing.assert_allclose(matrix(x).numpy(), m + m.T)
    np.testing.assert_allclose(paddle.jit.to_static(matrix, full_graph=True)(x).numpy(), m + m.T)


def test_forward_and_reverse_of_computed_tensors():
    """Both are the same for elementwise functions; the directions scale the result."""
    x = paddle.to_tensor([0.3, 0.7], stop_gradient=False)
    y = paddle.sin(x)
    np.testing.assert_allclose(A.grad(y, x).numpy(), np.cos(x.numpy()), rtol=1e-6)
    v = paddle.to_tensor([2.0, -1.0])
    np.testing.assert_allclose(A.forward_grad(y, x, v).numpy(), np.cos(x.numpy()) * v.numpy(), rtol=1e-6)
    (constant,) = A.forward_grad([v * 2], [x])
    assert not constant.numpy().any()


def test_products_of_functions():
    """vjp and jvp give the function's results and the product."""
    x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])
    func = lambda z: paddle.matmul(z, z)  # noqa: E731
    ones, m = np.ones((2, 2)), x.numpy()
    np.testing.assert_allclose(A.vjp(func, x)[1].numpy(), ones @ m.T + m.T @ ones)
    np.testing.assert_allclose(A.jvp(func, x)[1].numpy(), ones @ m + m @ ones)


def test_switching_primitives_is_remembered():
    """enable_prim and disable_prim."""
    A.enable_prim()
    assert A.prim_enabled()
    A.disable_prim()
    assert not A.prim_enabled()
