"""Derivatives that users give hold where a captured forward function is trained by a ``backward()`` outside of it."""

import numpy as np
import pytest

import argosy as paddle


class Weighted(paddle.autograd.PyLayer):
    """Three times the value; as gradient the saved value times what arrives, which is not the derivative."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 3

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensor()[0] * 100


def with_pylayer(x, weight):
    """Between other operations, on a parameter as well."""
    return (Weighted.apply(x * 2) * Weighted.apply(weight)).sum()


def with_hook(x, weight):
    """A gradient that a hook turns round."""
    y = x * weight
    y.register_hook(lambda g: -7 * g)
    return (y * y).sum()


def gradients(run):
    """Those of an input and of a parameter, of two calls."""
    weight = paddle.create_parameter([3], "float32")
    weight.set_value(np.array([1.0, -2.0, 0.5], np.float32))
    found = []
    for scale in (1.0, 3.0):
        x = paddle.to_tensor([scale, 2.0, -1.0], stop_gradient=False)
        run(x, weight).backward()
        found += [x.grad.numpy(), weight.grad.numpy()]
        weight.clear_grad()
    return found


@pytest.mark.parametrize("function", [with_pylayer, with_hook])
@pytest.mark.parametrize("whole", [True, False])
def test_given_derivatives_are_asked(function, whole):
    """The compiled forward's node has the gradients of eager execution."""
    compiled = paddle.jit.to_static(function, full_graph=whole)
    for found, expected in zip(gradients(compiled), gradients(function), strict=True):
        np.testing.assert_array_equal(found, expected)
