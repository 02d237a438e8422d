"""Classify sentences with a bidirectional LSTM: does a sentence made from a small grammar speak well of its subject?

python examples/scripts/text_lstm.py [--steps 200]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import confusion, curve, draw, fixed_weights, options, steps

import argosy as paddle
import argosy.nn.functional as F
from argosy import nn

SUBJECTS = ["the film", "this book", "our dinner", "that song", "the play"]
GOOD, BAD = ["fine", "lovely", "bright", "superb"], ["dull", "awful", "weak", "dreary"]
FILLERS = ["really", "quite", "rather", "indeed"]


def sentences(rng: np.random.Generator, count: int) -> tuple[list[str], np.ndarray]:
    """``count`` sentences and their labels; "not" turns the meaning."""
    texts, labels = [], []
    for _ in range(count):
        good, negated = rng.integers(2), rng.integers(2)
        word = rng.choice(GOOD if good else BAD)
        middle = " ".join(rng.choice(FILLERS, rng.integers(3)))
        texts.append(f"{rng.choice(SUBJECTS)} was {'not ' if negated else ''}{middle} {word}")
        labels.append(int(good != negated))
    return texts, np.array(labels, "int64")


VOCABULARY = {w: i + 1 for i, w in enumerate(sorted({w for s in SUBJECTS for w in s.split()} | {"was", "not"}))}
VOCABULARY |= {w: i + 1 + len(VOCABULARY) for i, w in enumerate(GOOD + BAD + FILLERS)}
LENGTH = 8


def encode(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Word numbers [N, LENGTH], padded with 0, and lengths [N]."""
    numbers = [[VOCABULARY[w] for w in text.split()] for text in texts]
    padded = np.array([n + [0] * (LENGTH - len(n)) for n in numbers], "int64")
    return padded, np.array([len(n) for n in numbers], "int64")


class Classifier(nn.Layer):
    """Embedding, bidirectional LSTM, and a linear layer on its last states."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(VOCABULARY) + 1, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, 24, direction="bidirect")
        self.out = nn.Linear(48, 2)

    def forward(self, words: paddle.Tensor, lengths: paddle.Tensor) -> paddle.Tensor:
        """Logits [N, 2]."""
        _, (h, _) = self.lstm(self.embedding(words), sequence_length=lengths)
        logits: paddle.Tensor = self.out(paddle.concat([h[0], h[1]], axis=-1))
        return logits


def main(count: int | None = None, total: int = 200, plots: str = "") -> list[float]:
    """Train and, without ``count``, test. Gives the losses."""
    rng = np.random.default_rng(1)
    model = Classifier()
    fixed_weights(model)
    clip = nn.ClipGradByGlobalNorm(1.0)
    optimizer = paddle.optimizer.Adam(0.01, parameters=model.parameters(), grad_clip=clip)
    losses = []
    for _ in steps(count or total):
        texts, labels = sentences(rng, 32)
        words, lengths = encode(texts)
        logits = model(paddle.to_tensor(words), paddle.to_tensor(lengths))
        loss = F.cross_entropy(logits, paddle.to_tensor(labels))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    if count is None:
        model.eval()
        texts, labels = sentences(rng, 500)
        words, lengths = encode(texts)
        found = model(paddle.to_tensor(words), paddle.to_tensor(lengths)).argmax(-1).numpy()
        print(f"loss {losses[-1]:.4f}, accuracy on new sentences {(found == labels).mean():.3f}")

        def paint(loss: Any, table: Any) -> None:
            curve(loss, losses)
            confusion(table, labels, found, ("bad", "good"))

        draw("text_lstm", plots, 2, paint)
    return losses


if __name__ == "__main__":
    given = options(__doc__, steps=200)
    main(total=given.steps, plots=given.plots)
