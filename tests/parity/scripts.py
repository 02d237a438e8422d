"""A few lines of user code each, run in both frameworks: ``script(framework, *tensors, **settings)`` gives results."""

from __future__ import annotations

from typing import Any

import numpy as np


def _fill(paddle: Any, layer: Any) -> None:
    """Give every parameter of ``layer`` numbers that depend on its place alone."""
    for i, parameter in enumerate(layer.parameters()):
        count = int(np.prod(parameter.shape))
        values = np.sin(np.arange(count) * 0.7 + i).reshape(list(parameter.shape)).astype("float32")
        parameter.set_value(paddle.to_tensor(values))


# Recurrent networks


def own_cell(paddle: Any, x: Any, lengths: list[int] | None = None) -> Any:
    """A cell of the user's with a nest of states, along time."""

    class Cell(paddle.nn.RNNCellBase):  # type: ignore[misc, name-defined]
        def forward(self, inputs: Any, states: Any) -> Any:
            total = states["total"] + inputs
            return paddle.tanh(total), {"total": total, "last": [inputs]}

    states = {"total": paddle.zeros([2, 3]), "last": [paddle.zeros([2, 3])]}
    length = None if lengths is None else paddle.to_tensor(lengths)
    outputs, last = paddle.nn.RNN(Cell())(x, states, length)
    return [outputs, last["total"], last["last"]]


def beam_search(
    paddle: Any, h: Any, embedding: Any, projection: Any, steps: int, end: int = 1, time_major: bool = False
) -> Any:
    """Beam search over a GRU cell."""
    cell = paddle.nn.GRUCell(4, 4)
    _fill(paddle, cell)
    decoder = paddle.nn.BeamSearchDecoder(
        cell,
        0,
        end,
        3,
        lambda ids: paddle.nn.functional.embedding(ids, embedding),
        lambda y: paddle.matmul(y, projection),
    )
    ids, states, lengths = paddle.nn.dynamic_decode(
        decoder, h.detach(), steps, output_time_major=time_major, return_length=True
    )
    return [ids, states.log_probs.detach(), states.finished, lengths]


def greedy(paddle: Any, h: Any, embedding: Any, projection: Any, impute: bool) -> Any:
    """A decoder of the user's that takes the best token."""
    cell = paddle.nn.GRUCell(4, 4)
    _fill(paddle, cell)

    class Greedy(paddle.nn.decode.Decoder):  # type: ignore[misc, name-defined]
        def initialize(self, inits: Any) -> Any:
            tokens = paddle.zeros([3], "int64")
            return paddle.nn.functional.embedding(tokens, embedding), inits, tokens > 0

        def step(self, time: Any, inputs: Any, states: Any, **kwargs: Any) -> Any:
            outputs, states = cell(inputs, states)
            tokens = paddle.argmax(paddle.matmul(outputs, projection), -1)
            return tokens, states, paddle.nn.functional.embedding(tokens, embedding), tokens == 1

    tokens, states, lengths = paddle.nn.dynamic_decode(
        Greedy(), h.detach(), 4, impute_finished=impute, return_length=True
    )
    return [tokens, states.detach(), lengths]
