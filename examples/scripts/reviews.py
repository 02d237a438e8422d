"""Tell good reviews from bad ones in a `datasets.Dataset` of Hugging Face: no Trainer, a loop of one's own.

python examples/scripts/reviews.py [--steps 200] [--plots plots]

The reviews are made up here, so that nothing is downloaded; `datasets.load_dataset(...)` gives others.
"""

from __future__ import annotations

from typing import Any

import datasets
import numpy as np
from common import confusion, curve, draw, options

import argosy as paddle
from argosy import nn
from argosy.nn import functional as F

GOOD = "great lovely superb moving clever warm".split()
BAD = "dull awful slow clumsy noisy cold".split()
FILL = "the film story music acting end was and very quite".split()
WORDS = ["<pad>", *FILL, *GOOD, *BAD]
LENGTH = 12


def reviews(count: int, seed: int = 0) -> datasets.Dataset:
    """Sentences of filling words and one to three that tell, as a data set with the columns text and label."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(count):
        label = int(rng.integers(2))
        telling = rng.choice(GOOD if label else BAD, rng.integers(1, 4))
        words = [*telling, *rng.choice(FILL, rng.integers(4, LENGTH - 3))]
        texts.append(" ".join(rng.permutation(words)))
        labels.append(label)
    return datasets.Dataset.from_dict({"text": texts, "label": labels})


def numbered(batch: dict[str, list[str]]) -> dict[str, list[list[int]]]:
    """The words' numbers, filled up to one length: a function for ``Dataset.map``."""
    rows = [[WORDS.index(word) for word in text.split()] for text in batch["text"]]
    return {"words": [row + [0] * (LENGTH - len(row)) for row in rows]}


class Classifier(nn.Layer):
    """The mean of the words' vectors, and two layers."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.words = nn.Embedding(len(WORDS), width, padding_idx=0)
        self.inner = nn.Linear(width, width)
        self.out = nn.Linear(width, 2)

    def forward(self, words: paddle.Tensor) -> paddle.Tensor:
        """words [N, T] -> logits [N, 2]."""
        logits: paddle.Tensor = self.out(F.relu(self.inner(self.words(words).mean(axis=1))))
        return logits


def main(steps: int = 200, plots: str = "") -> list[float]:
    """Train, and say how many of new reviews are told right. The losses."""
    paddle.seed(0)
    data = reviews(512).map(numbered, batched=True).with_format("numpy", columns=["words", "label"])
    test = reviews(256, seed=1).map(numbered, batched=True).with_format("numpy", columns=["words", "label"])
    loader = paddle.io.DataLoader(data, batch_size=32, shuffle=True, drop_last=True)
    model = Classifier()
    optimizer = paddle.optimizer.Adam(0.01, parameters=model.parameters())

    @paddle.jit.to_static(full_graph=True)
    def step(words: paddle.Tensor, label: paddle.Tensor) -> paddle.Tensor:
        loss = F.cross_entropy(model(words), label)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    losses: list[float] = []
    while len(losses) < steps:
        for batch in loader:
            losses.append(float(step(batch["words"], batch["label"])))
    model.eval()
    found = model(paddle.to_tensor(test["words"][:])).argmax(-1).numpy()
    truth = np.asarray(test["label"][:])
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.4f}; {(found == truth).mean():.1%} of new reviews told right")

    def paint(loss: Any, table: Any) -> None:
        curve(loss, losses, log=True)
        confusion(table, truth, found, ["bad", "good"])

    draw("reviews", plots, 2, paint)
    return losses


if __name__ == "__main__":
    arguments = options(__doc__, steps=200)
    main(arguments.steps, arguments.plots)
