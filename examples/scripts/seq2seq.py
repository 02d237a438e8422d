"""Sequence to sequence: reverse a string of digits, with a GRU encoder, a GRU decoder and beam search.

python examples/scripts/seq2seq.py [--steps 600]
"""

from __future__ import annotations

import numpy as np
from common import curve, draw, fixed_weights, options, steps

import argosy as paddle
import argosy.nn.functional as F
from argosy import nn

START, END, SYMBOLS, LENGTH = 10, 11, 12, 5


class Reverser(nn.Layer):
    """The encoder's last state starts the decoder, a GRU cell over the symbols so far."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, 16)
        self.encoder = nn.GRU(16, width)
        self.cell = nn.GRUCell(16, width)
        self.out = nn.Linear(width, SYMBOLS)

    def encode(self, source: paddle.Tensor) -> paddle.Tensor:
        """source [N, T] -> state [N, width]."""
        state: paddle.Tensor = self.encoder(self.embedding(source))[1][0]
        return state

    def forward(self, source: paddle.Tensor, target: paddle.Tensor) -> paddle.Tensor:
        """Logits [N, T, SYMBOLS] of what follows each symbol of ``target`` [N, T]."""
        outputs, _ = nn.RNN(self.cell)(self.embedding(target), self.encode(source))
        logits: paddle.Tensor = self.out(outputs)
        return logits

    def search(self, source: paddle.Tensor, beams: int = 3) -> np.ndarray:
        """The best sequence for each source, by beam search: [N, T]."""
        decoder = nn.BeamSearchDecoder(
            self.cell,
            start_token=START,
            end_token=END,
            beam_size=beams,
            embedding_fn=self.embedding,
            output_fn=self.out,
        )
        found, _ = nn.dynamic_decode(decoder, inits=self.encode(source), max_step_num=LENGTH)
        symbols: np.ndarray = found.numpy()[:, :, 0]
        return symbols


def examples(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Digits [N, LENGTH] and their reverses between START and END."""
    source = rng.integers(0, 10, (count, LENGTH))
    ends = np.full((count, 1), START), np.full((count, 1), END)
    return source, np.concatenate([ends[0], source[:, ::-1], ends[1]], 1)


def main(count: int | None = None, total: int = 600, plots: str = "") -> list[float]:
    """Train and, without ``count``, decode new strings. Gives the losses."""
    rng = np.random.default_rng(5)
    model = Reverser()
    fixed_weights(model, scale=0.2)
    optimizer = paddle.optimizer.Adam(5e-3, parameters=model.parameters())
    losses = []
    for _ in steps(count or total):
        source, target = (paddle.to_tensor(a) for a in examples(rng, 64))
        logits = model(source, target[:, :-1])
        loss = F.cross_entropy(logits.reshape([-1, SYMBOLS]), target[:, 1:].reshape([-1]))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    source, target = examples(rng, 8 if count else 200)
    model.eval()
    with paddle.no_grad():
        found = model.search(paddle.to_tensor(source))
    if count is None:
        right = (found[:, :LENGTH] == target[:, 1:-1]).all(1)
        print(f"loss {losses[-1]:.4f}, {right.mean():.3f} of new strings reversed by beam search")

        def paint(loss, text) -> None:
            curve(loss, losses, log=True)
            pairs = zip(source[:12], found[:12], strict=True)
            lines = [f"{''.join(map(str, s))}  ->  {''.join(map(str, f[:LENGTH]))}" for s, f in pairs]
            text.text(0.5, 0.5, "\n".join(lines), family="monospace", ha="center", va="center")
            text.set(title="new strings and what the search found", xticks=[], yticks=[])

        draw("seq2seq", plots, 2, paint)
    return [*losses, *(float(x) for x in found[:, :LENGTH].sum(1))] if count else losses


if __name__ == "__main__":
    given = options(__doc__, steps=600)
    main(total=given.steps, plots=given.plots)
