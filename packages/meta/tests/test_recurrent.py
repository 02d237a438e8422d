"""Recurrent networks: gradients, eager and captured alike, cells of the user's, decoding."""

import numpy as np
import pytest

import argosy as paddle
from argosy import nn
from argosy.nn import functional as F

KINDS = [nn.SimpleRNN, nn.GRU, nn.LSTM]


def _numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def _states(layer, count, batch):
    parts = [paddle.to_tensor(_numbers(count, batch, 4, seed=i)) for i in range(layer.state_components)]
    return parts[0] if len(parts) == 1 else tuple(parts)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_padded_sequences_in_both_directions_are_finite_differences(kind):
    """The derivative of a weighted sum of all outputs and states along a direction is what differences give."""
    layer = kind(3, 4, num_layers=2, direction="bidirect").double()
    x = paddle.to_tensor(_numbers(2, 5, 3), stop_gradient=False)
    states, lengths = _states(layer, 4, 2), paddle.to_tensor([2, 5])

    def loss():
        outputs, last = layer(x, states, lengths)
        parts = [outputs, *(last if isinstance(last, tuple) else [last])]
        return sum((p * paddle.to_tensor(_numbers(*p.shape, seed=9))).sum() for p in parts)

    loss().backward()
    for tensor in (x, layer.weight_hh_l0_reverse, layer.weight_ih_l1, layer.bias_hh_l1_reverse):
        way = _numbers(*tensor.shape, seed=5)
        start, step = tensor.numpy().copy(), 1e-6
        with paddle.no_grad():
            values = []
            for sign in (1, -1):
                tensor.set_value(start + sign * step * way)
                values.append(float(loss()))
            tensor.set_value(start)
        assert (values[0] - values[1]) / (2 * step) == pytest.approx(float((tensor.grad.numpy() * way).sum()), rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_equals_its_cell_called_step_by_step(kind):
    """The operator over time computes what the cell computes."""
    layer = kind(3, 4)
    cell, x, states = layer[0].cell, paddle.to_tensor(_numbers(2, 6, 3).astype("float32")), None
    outputs, _ = layer(x)
    for t in range(6):
        y, states = cell(x[:, t], states)
        np.testing.assert_allclose(outputs[:, t].numpy(), y.numpy(), rtol=1e-5, atol=1e-6)


def test_hooks_of_a_cell_run_at_every_step():
    """A cell with hooks is called step by step, so that they see each step."""
    cell, seen = nn.GRUCell(3, 4), []
    rnn, x = nn.RNN(cell), paddle.to_tensor(_numbers(2, 6, 3).astype("float32"))
    without, _ = rnn(x)
    cell.register_forward_post_hook(lambda layer, inputs, outputs: seen.append(1))
    outputs, _ = rnn(x)
    assert len(seen) == 6
    np.testing.assert_allclose(outputs.numpy(), without.numpy(), rtol=1e-5, atol=1e-6)


class _Classifier(nn.Layer):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(12, 6)
        self.lstm = nn.LSTM(6, 8, direction="bidirect")
        self.head = nn.Linear(16, 2)

    def forward(self, tokens, lengths):
        _, (h, _) = self.lstm(self.embedding(tokens), sequence_length=lengths)
        return self.head(F.concat([h[0], h[1]], axis=-1))


def _train(captured):
    paddle.seed(3)
    model = _Classifier()
    optimizer = paddle.optimizer.Adam(0.05, parameters=model.parameters())
    rng = np.random.default_rng(1)
    tokens = paddle.to_tensor(rng.integers(1, 12, (16, 7)))
    lengths = paddle.to_tensor(rng.integers(3, 8, 16))
    labels = (tokens[:, 0] > 5).astype("int64")

    def step(tokens, lengths, labels):
        loss = F.cross_entropy(model(tokens, lengths), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    run = paddle.jit.to_static(step, full_graph=True) if captured else step
    return [float(run(tokens, lengths, labels)) for _ in range(8)]


def test_a_captured_classifier_learns_as_the_eager_one():
    """Losses of a compiled training step of an LSTM go down and are the eager ones."""
    eager, captured = _train(False), _train(True)
    assert captured[-1] < 0.5 * captured[0]
    np.testing.assert_allclose(captured, eager, rtol=2e-3)


def test_a_captured_sequence_does_not_unroll():
    """The program of a longer sequence has as many operations."""
    layer = nn.GRU(3, 4)

    def operations(steps):
        traced = paddle.jit.to_static(lambda x: layer(x)[0], full_graph=True)
        traced(paddle.zeros([2, steps, 3]))
        return len(list(traced.main_program.walk()))

    assert operations(4) == operations(40)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: nn.LSTM(3, 4, direction="backward"), "direction"),
        (lambda: nn.BiRNN(nn.GRUCell(3, 4), nn.GRUCell(5, 4)), "3 and 5"),
        (lambda: nn.GRU(3, 4)(paddle.zeros([2, 5, 3]), paddle.zeros([2, 2, 4])), r"\[1, batch, units\]"),
        (lambda: nn.LSTM(3, 4)(paddle.zeros([2, 5, 3]), paddle.zeros([1, 2, 4])), "2 tensor"),
        (lambda: nn.GRU(3, 4)(paddle.zeros([2, 5, 7])), "gru"),
        (lambda: nn.LSTM(3, 4, proj_size=4), "proj_size"),
        (lambda: nn.BeamSearchDecoder(nn.GRUCell(3, 4), 0, 1, 0), "beam_size"),
    ],
)
def test_what_does_not_fit_is_refused(make, said):
    """Wrong directions, sizes and states are named."""
    with pytest.raises(ValueError, match=said):
        make()
