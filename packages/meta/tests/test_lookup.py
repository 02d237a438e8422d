"""Embedding: rows shortened in the table, gradients averaged over the places that take a row."""

from contextlib import nullcontext

import numpy as np
import pytest

import argosy as paddle
from argosy import nn

TABLE = np.arange(12, dtype="float32").reshape(4, 3)
PLACES = np.array([[1, 1, 2], [0, 1, 2]])


def _layer(**options):
    layer = nn.Embedding(4, 3, **options)
    layer.weight.set_value(TABLE)
    return layer


@pytest.mark.parametrize("captured", [False, True])
def test_rows_that_are_taken_and_too_long_are_shortened_in_the_table(captured):
    layer = _layer(max_norm=5.0)
    forward = paddle.jit.to_static(paddle.no_grad()(lambda x: layer(x)), full_graph=True) if captured else layer
    result = forward(paddle.to_tensor(PLACES))
    norms = np.linalg.norm(TABLE, axis=1)
    wanted = np.where((norms > 5.0)[:, None], TABLE * (5.0 / (norms + 1e-7))[:, None], TABLE)
    wanted[3] = TABLE[3]  # which nobody took
    np.testing.assert_allclose(layer.weight.numpy(), wanted, rtol=1e-6)
    np.testing.assert_allclose(result.numpy(), wanted[PLACES], rtol=1e-6)


def test_a_captured_table_that_shortens_its_rows_is_trained():
    """Its writes cannot be repeated for a gradient that is asked for outside, so it runs as it does eagerly."""
    gradients = []
    for captured in (False, True):
        layer = _layer(max_norm=5.0)
        forward = paddle.jit.to_static(lambda x, layer=layer: layer(x), full_graph=True) if captured else layer
        with pytest.warns(UserWarning, match="operator by operator") if captured else nullcontext():
            result = forward(paddle.to_tensor(PLACES))
        result.square().sum().backward()
        gradients.append(layer.weight.grad.numpy())
    np.testing.assert_allclose(*gradients, rtol=1e-6)


@pytest.mark.parametrize("captured", [False, True])
def test_gradients_are_divided_by_how_often_a_row_is_taken(captured):
    layer = _layer(padding_idx=2, scale_grad_by_freq=True)

    def loss(x, weights):
        total = (layer(x) * weights).sum()
        total.backward()
        return total

    step = paddle.jit.to_static(loss, full_graph=True) if captured else loss
    weights = np.random.default_rng(0).standard_normal((2, 3, 1)).astype("float32")
    step(paddle.to_tensor(PLACES), paddle.to_tensor(weights))
    means = [weights[PLACES == row].mean() if row < 2 else 0.0 for row in range(4)]
    np.testing.assert_allclose(layer.weight.grad.numpy(), np.outer(means, np.ones(3)), rtol=1e-6)


def test_a_limit_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="max_norm"):
        nn.functional.embedding(paddle.to_tensor([0]), paddle.ones([2, 2]), max_norm=0.0)
