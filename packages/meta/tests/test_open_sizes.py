"""Captured functions with open sizes beside eager ones, at small sizes and odd ones."""

import numpy as np
import pytest

import argosy as paddle
from argosy.static import InputSpec


@pytest.mark.parametrize(
    ("function", "sizes"),
    [
        (lambda x: paddle.roll(x, 1, 0), (0, 1, 2, 5)),
        (lambda x: paddle.roll(x, -3), (0, 1, 2, 5)),
        (lambda x: paddle.quantile(x, 0.3, axis=0), (1, 2, 5)),
        (lambda x: paddle.quantile(x, [0.25, 0.5], axis=0, interpolation="lower"), (1, 2, 5)),
        (lambda x: paddle.fft.irfft(x, axis=0), (2, 3, 5)),
    ],
    ids=["roll", "roll-flat", "quantile", "quantiles-lower", "irfft"],
)
def test_an_open_axis_gives_what_eager_execution_gives(function, sizes):
    captured = paddle.jit.to_static(function, full_graph=True, input_spec=[InputSpec([None], "float32")])
    for size in sizes:
        x = paddle.to_tensor(np.random.default_rng(size).standard_normal(size).astype("float32"))
        expected = function(x).numpy()
        found = captured(x).numpy()
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * max(1, size))


@pytest.mark.parametrize("name", ["amax", "amin", "max", "min"])
@pytest.mark.parametrize("backend", ["CINN", None])
def test_extrema_over_an_open_axis_are_refused_over_no_elements(name, backend):
    """At the call, with operator and line; over elements, and along other axes, they are what they are eagerly."""
    function = getattr(paddle, name)
    whole = paddle.jit.to_static(
        lambda x: function(x), full_graph=True, input_spec=[InputSpec([None], "float32")], backend=backend
    )
    rows = paddle.jit.to_static(
        lambda x: function(x, axis=1), full_graph=True, input_spec=[InputSpec([None, 3], "float32")], backend=backend
    )
    for size in (1, 2, 5):
        x = paddle.randn([size])
        assert float(whole(x)) == float(function(x))
    assert rows(paddle.ones([0, 3])).shape == [0]
    for call in (whole, function):
        with pytest.raises((IndexError, ValueError), match=rf"{name}.*(axis with elements|no elements)"):
            call(paddle.ones([0]))


def test_a_gradient_through_an_extremum_over_an_open_axis():
    def slope(x):
        return paddle.grad(paddle.amax(x * x), [x])[0]

    captured = paddle.jit.to_static(slope, full_graph=True, input_spec=[InputSpec([None], "float32")])
    x = paddle.to_tensor([1.0, -3.0, 2.0], stop_gradient=False)
    np.testing.assert_allclose(captured(x).numpy(), slope(x).numpy())
