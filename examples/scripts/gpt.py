"""A small GPT that learns a text letter by letter, and continues it.

python examples/scripts/gpt.py [--steps 300] [--file text]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from common import curve, draw, fixed_weights, steps

import argosy as paddle
import argosy.nn.functional as F
from argosy import nn

TEXT = "the quick brown fox jumps over the lazy dog; pack my box with five dozen liquor jugs. " * 20


class Block(nn.Layer):
    """Causal self-attention and a feed-forward part, each after a layer norm and added to its input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        """x [N, T, width]."""
        n, t, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape([n, t, 3, self.heads, -1]).unbind(2)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.reshape([n, t, width]))
        result: paddle.Tensor = x + self.down(F.gelu(self.up(self.norm2(x))))
        return result


class Gpt(nn.Layer):
    """Logits of the next letter at each position."""

    def __init__(self, letters: int, context: int, width: int = 48, depth: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.context = context
        self.letters, self.positions = nn.Embedding(letters, width), nn.Embedding(context, width)
        self.blocks = nn.LayerList([Block(width, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters, bias_attr=False)

    def forward(self, numbers: paddle.Tensor) -> paddle.Tensor:
        """numbers [N, T] -> logits [N, T, letters]."""
        x = self.letters(numbers) + self.positions(paddle.arange(numbers.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits: paddle.Tensor = self.head(self.norm(x))
        return logits


def generate(model: Gpt, numbers: list[int], count: int) -> list[int]:
    """``count`` most likely letters after ``numbers``."""
    model.eval()
    with paddle.no_grad():
        for _ in range(count):
            logits = model(paddle.to_tensor([numbers[-model.context :]]))
            numbers = [*numbers, int(logits[0, -1].argmax())]
    return numbers


def main(count: int | None = None, total: int = 300, text: str = TEXT, plots: str = "") -> list[float]:
    """Train and, without ``count``, continue the text. Gives the losses."""
    rng = np.random.default_rng(4)
    letters = sorted(set(text))
    numbers = np.array([letters.index(c) for c in text], "int64")
    model = Gpt(len(letters), 32)
    fixed_weights(model, scale=0.05)
    optimizer = paddle.optimizer.AdamW(3e-3, parameters=model.parameters(), weight_decay=0.01)
    losses = []
    for _ in steps(count or total):
        starts = rng.integers(0, len(numbers) - 33, 16)
        batch = paddle.to_tensor(np.stack([numbers[s : s + 33] for s in starts]))
        logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.reshape([-1, len(letters)]), batch[:, 1:].reshape([-1]))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    if count is None:
        written = "".join(letters[i] for i in generate(model, list(numbers[:10]), 60))
        print(f"loss {losses[-1]:.4f}: {written!r}")

        def paint(loss: Any, page: Any) -> None:
            curve(loss, losses, log=True)
            lines = [written[i : i + 24] for i in range(0, len(written), 24)]
            page.text(0.5, 0.5, "\n".join(lines), family="monospace", ha="center", va="center", fontsize=13)
            page.set(title="generated after ten letters", xticks=[], yticks=[])

        draw("gpt", plots, 2, paint)
    return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--plots", default="plots", help="a folder for the picture; empty: none")
    given = parser.parse_args()
    main(total=given.steps, text=given.file.read_text() if given.file else TEXT, plots=given.plots)
