"""Pre-training of a small Llama in one process. Nothing here knows of ranks.

    python examples/distributed/llama/one_process.py

Beside it, the same training on a grid of ranks: annotated.py says where tensors lie, collectives.py does by hand what
follows from that. Both take this model as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import argosy as paddle
from argosy import nn
from argosy.nn import functional as F

BATCH, LENGTH, VOCABULARY, STEPS = 8, 16, 64, 5


class Attention(nn.Layer):
    """Causal attention of ``heads`` heads with rotary positions: ``[batch, length, width]`` to the same shape."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.head_width = width // heads
        self.query, self.key, self.value, self.output = (nn.Linear(width, width, bias_attr=False) for _ in range(4))

    def forward(self, x: Any) -> Any:
        """Mix positions."""
        query, key, value = (
            project(x).reshape([*x.shape[:2], -1, self.head_width]) for project in (self.query, self.key, self.value)
        )
        mixed = F.scaled_dot_product_attention(rotate(query), rotate(key), value, is_causal=True)
        return self.output(mixed.flatten(2))


class Block(nn.Layer):
    """Attention and a gated feed-forward network, each behind a norm and beside the residual stream."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = Attention(width, heads)
        self.gate, self.up = (nn.Linear(width, 2 * width, bias_attr=False) for _ in range(2))
        self.down = nn.Linear(2 * width, width, bias_attr=False)
        self.norm1, self.norm2 = (nn.RMSNorm(width) for _ in range(2))

    def forward(self, x: Any) -> Any:
        """``[batch, length, width]`` to the same shape."""
        x = x + self.attention(self.norm1(x))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Layer):
    """Logits ``[batch, length, vocabulary]`` of tokens ``[batch, length]`` (Touvron et al., 2023)."""

    def __init__(self, width: int = 32, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias_attr=False)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, tokens: Any) -> Any:
        """Score each position's next token."""
        return self.head(self.norm(self.blocks(self.embedding(tokens))))


def rotate(x: Any) -> Any:
    """Turn pairs of numbers of ``[batch, length, heads, width]`` by angles that grow with the position."""
    frequencies = 10000.0 ** (-paddle.arange(0, x.shape[3], 2, dtype="float32") / x.shape[3])
    angles = paddle.arange(x.shape[1], dtype="float32").unsqueeze(1) * frequencies
    cosine, sine = angles.cos().unsqueeze(1), angles.sin().unsqueeze(1)
    first, second = x.chunk(2, -1)
    return paddle.concat([first * cosine - second * sine, second * cosine + first * sine], -1)


def batches() -> list[list[Any]]:
    """Sequences that count upwards: the next token is easy to learn."""
    starts = np.random.default_rng(0).integers(0, VOCABULARY, (STEPS, BATCH, 1))
    tokens = (starts + np.arange(LENGTH + 1)) % VOCABULARY
    return [[paddle.to_tensor(rows[:, :-1]), paddle.to_tensor(rows[:, 1:])] for rows in tokens]


def build() -> tuple[Llama, Any]:
    """A fresh model and its optimizer."""
    paddle.seed(0)
    model = Llama()
    clip = nn.ClipGradByGlobalNorm(0.5)
    return model, paddle.optimizer.AdamW(0.003, parameters=model.parameters(), weight_decay=0.1, grad_clip=clip)


def train(model: Llama, optimizer: Any, data: Iterable[Any]) -> list[float]:
    """The losses of a compiled step for each batch."""

    @paddle.jit.to_static(full_graph=True)
    def step(x: Any, y: Any) -> Any:
        loss = model.loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    return [float(step(x, y)) for x, y in data]


def main() -> None:
    """Train and print the losses."""
    print("\n".join(f"{loss:.6f}" for loss in train(*build(), batches())))


if __name__ == "__main__":
    main()
