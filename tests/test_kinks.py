"""At kinks, eager and compiled derivatives agree with each other and with the real wheel (3.3.1)."""

import pytest

import argosy as paddle

F = paddle.nn.functional
KINKS = {
    "relu": (F.relu, [0.0], [0.0]),
    "relu6": (F.relu6, [0.0, 6.0], [0.0, 0.0]),
    "hardtanh": (F.hardtanh, [-1.0, 1.0], [0.0, 0.0]),
    "hardsigmoid": (F.hardsigmoid, [-3.0, 3.0], [0.0, 0.0]),
    "hardswish": (F.hardswish, [-3.0, 0.0, 3.0], [0.0, 0.5, 1.0]),
    "leaky_relu": (F.leaky_relu, [0.0], [1.0]),
    "clip": (lambda x: paddle.clip(x, -1.0, 1.0), [-1.0, 1.0], [1.0, 1.0]),
    "softshrink": (F.softshrink, [-0.5, 0.5], [0.0, 0.0]),
    "hardshrink": (F.hardshrink, [-0.5, 0.5], [1.0, 1.0]),
    "elu": (F.elu, [0.0], [1.0]),
    "celu": (F.celu, [0.0], [1.0]),
    "thresholded_relu": (F.thresholded_relu, [1.0], [0.0]),
    "abs": (paddle.abs, [0.0], [0.0]),
    "maximum": (lambda x: paddle.maximum(x, paddle.zeros([1])), [0.0], [0.5]),
    "softplus": (F.softplus, [20.0], [1.0]),
}


@pytest.mark.parametrize("name", KINKS)
def test_derivatives_at_kinks(name):
    function, points, expected = KINKS[name]

    def gradient(x):
        return paddle.grad(function(x).sum(), x)[0]

    x = paddle.to_tensor(points, stop_gradient=False)
    assert gradient(x).tolist() == expected
    assert paddle.jit.to_static(gradient, full_graph=True)(x).tolist() == expected
