"""Smooth functions whose code chooses between two sides have all of their derivatives where the choice changes."""

from __future__ import annotations

import numpy as np
import pytest

import argosy as paddle

mpmath = pytest.importorskip("mpmath")
F = paddle.nn.functional
ORDER = 4


def number(value):
    return paddle.to_tensor([value], "float64")


def with_one(x):
    return paddle.concat([x, number(1.0)])


def softplus(z):
    return mpmath.log(1 + mpmath.exp(z))


#: name: (our function, mpmath's, the place of the choice)
FUNCTIONS = {
    "softplus": (F.softplus, softplus, 0),
    "mish": (F.mish, lambda z: z * mpmath.tanh(softplus(z)), 0),
    "log_sigmoid": (F.log_sigmoid, lambda z: -softplus(-z), 0),
    "logaddexp": (lambda x: paddle.logaddexp(x, 2 * x), lambda z: z + softplus(z), 0),
    "hypot at an axis": (lambda x: paddle.hypot(x, number(1.0)), lambda z: mpmath.hypot(z, 1), 0),
    "hypot of equal sides": (lambda x: paddle.hypot(x, number(1.0)), lambda z: mpmath.hypot(z, 1), 1),
    "cross entropy with logits": (
        lambda x: F.binary_cross_entropy_with_logits(x, number(0.3)), lambda z: softplus(z) - z * mpmath.mpf(0.3), 0
    ),
    "weighted cross entropy": (
        lambda x: F.binary_cross_entropy_with_logits(x, number(1.0), pos_weight=number(2.0)),
        lambda z: 2 * softplus(-z), 0,
    ),
    "soft_margin_loss": (lambda x: F.soft_margin_loss(x, number(1.0)), lambda z: softplus(-z), 0),
    "smooth_l1_loss": (lambda x: F.smooth_l1_loss(x, number(0.0)), lambda z: z * z / 2, 0),
    "norm": (lambda x: paddle.linalg.norm(with_one(x)), lambda z: mpmath.hypot(z, 1), 0),
    "norm of order 4": (
        lambda x: paddle.linalg.norm(with_one(x), p=4), lambda z: mpmath.root(z**4 + 1, 4), 0
    ),
    "dist": (lambda x: paddle.dist(with_one(x), paddle.zeros([2], "float64")), lambda z: mpmath.hypot(z, 1), 0),
    "whole powers": (lambda x: paddle.pow(x, number(2.0)), lambda z: z**2, 0),
    "powers of themselves": (lambda x: x**x, lambda z: z**z, 2),
    "power at a whole exponent": (lambda x: paddle.pow(x, x - 1), lambda z: z ** (z - 1), 1),
}  # fmt: skip


def nested(function):
    def derivatives(x):
        y, found = function(x), []
        for _ in range(ORDER):
            if y is not None:
                (y,) = paddle.grad(y.sum(), x, create_graph=True, allow_unused=True)
            found.append(paddle.zeros_like(x) if y is None else y)
        return found

    return derivatives


@pytest.mark.parametrize("way", ["eager", "captured", "jet"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_to_order_four(name, way):
    """What is computed from |x| or a maximum is right at the kink of these, too, in every mode."""
    ours, theirs, place = FUNCTIONS[name]
    x = paddle.to_tensor([float(place)], "float64", stop_gradient=False)
    if way == "jet":
        found = paddle.autograd.jet(ours, (x,), ((1.0, *[0.0] * (ORDER - 1)),))[1]
    else:
        function = nested(ours)
        found = (paddle.jit.to_static(function, full_graph=True) if way == "captured" else function)(x)
    with mpmath.workdps(60):
        wanted = [float(mpmath.diff(theirs, mpmath.mpf(place), n)) for n in range(1, ORDER + 1)]
    np.testing.assert_allclose([float(y.sum()) for y in found], wanted, rtol=1e-11, atol=1e-12)


LENGTHS = {
    "norm": lambda x: paddle.linalg.norm(x),
    "norm of order 3": lambda x: paddle.linalg.norm(x, p=3),
    "fro": lambda x: paddle.linalg.norm(x.reshape([1, 2]), p="fro"),
    "hypot": lambda x: paddle.hypot(x[0], x[1]),
    "dist": lambda x: paddle.dist(x, paddle.zeros_like(x)),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_lengths_of_nothing_have_no_slope(name):
    """As in Paddle: a zero vector is where a norm is least, and its gradient there is zero, no NaN."""
    x = paddle.to_tensor([0.0, 0.0], stop_gradient=False)
    (found,) = paddle.grad(LENGTHS[name](x), x)
    assert found.numpy().tolist() == [0, 0]


def test_normalised_nothing_has_the_slope_of_its_floor():
    """The norm counts as at least epsilon: what is divided by it has its reciprocal as slope."""
    x = paddle.to_tensor([[0.0, 0.0]], stop_gradient=False)
    (found,) = paddle.grad(F.normalize(x, epsilon=0.5)[0, 0], x)
    assert found.numpy().tolist() == [[2, 0]]
