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
