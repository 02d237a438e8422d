"""A vision transformer (Dosovitskiy et al., 2021) on handwritten digits, its training step captured and compiled.

python examples/scripts/vit.py [--steps 300]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import confusion, curve, draw, fixed_weights, options, steps, tiles
from sklearn.datasets import load_digits

import argosy as paddle
import argosy.nn.functional as F
from argosy import nn


class VisionTransformer(nn.Layer):
    """Patches of 2 x 2 as tokens, a class token, learned positions, pre-norm encoder layers."""

    def __init__(self, width: int = 32, depth: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2D(1, width, 2, stride=2)
        self.token = self.create_parameter([1, 1, width])
        self.positions = self.create_parameter([1, 17, width])
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, activation="gelu", normalize_before=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, images: paddle.Tensor) -> paddle.Tensor:
        """Logits [N, 10] of images [N, 1, 8, 8]."""
        x = self.patches(images).flatten(2).transpose([0, 2, 1])
        x = paddle.concat([self.token.expand([x.shape[0], -1, -1]), x], axis=1) + self.positions
        logits: paddle.Tensor = self.head(self.norm(self.encoder(x))[:, 0])
        return logits


def attention(model: VisionTransformer, images: paddle.Tensor) -> np.ndarray:
    """Images [12, 1, 8, 8], row by row above maps of what the class token of the last layer attends to: [24, 8, 8]."""
    with paddle.no_grad():
        x = model.patches(images).flatten(2).transpose([0, 2, 1])
        x = paddle.concat([model.token.expand([x.shape[0], -1, -1]), x], axis=1) + model.positions
        for layer in model.encoder.layers[:-1]:
            x = layer(x)
        last = model.encoder.layers[-1]
        x, heads = last.norm1(x), last.self_attn
        q, k = (f(x).reshape([12, 17, heads.num_heads, -1]) for f in (heads.q_proj, heads.k_proj))
        scores = paddle.einsum("bhd,bthd->bht", q[:, 0], k) / q.shape[-1] ** 0.5
        weights = F.softmax(scores, -1).mean(1)[:, 1:].numpy().reshape(12, 4, 4)
    maps = np.kron(weights / weights.max((1, 2), keepdims=True), np.ones((2, 2)))
    shown = images.numpy()[:, 0]
    return np.concatenate([shown[:6], maps[:6], shown[6:], maps[6:]])


def main(count: int | None = None, total: int = 300, plots: str = "") -> list[float]:
    """Train and, without ``count``, test. Gives the losses."""
    rng = np.random.default_rng(3)
    images, labels = load_digits(return_X_y=True)
    images, labels = (images.reshape(-1, 1, 8, 8) / 16).astype("float32"), labels.astype("int64")
    model = VisionTransformer()
    fixed_weights(model)
    schedule = paddle.optimizer.lr.LinearWarmup(2e-3, 20, 0.0, 2e-3)
    optimizer = paddle.optimizer.AdamW(schedule, parameters=model.parameters(), weight_decay=0.01)

    @paddle.jit.to_static
    def forward(x: paddle.Tensor, y: paddle.Tensor) -> paddle.Tensor:
        return F.cross_entropy(model(x), y)

    losses = []
    for _ in steps(count or total):
        chosen = rng.integers(0, 1500, 50)
        loss = forward(paddle.to_tensor(images[chosen]), paddle.to_tensor(labels[chosen]))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        schedule.step()
        losses.append(float(loss))
    if count is None:
        model.eval()
        with paddle.no_grad():
            found = model(paddle.to_tensor(images[1500:])).argmax(-1).numpy()
        print(f"loss {losses[-1]:.4f}, accuracy on new images {(found == labels[1500:]).mean():.3f}")

        def paint(seen: Any, loss: Any, table: Any) -> None:
            seen.imshow(tiles(attention(model, paddle.to_tensor(images[1500:1512])), 6), cmap="magma")
            seen.set(title="digits, and below where the class token looks", xticks=[], yticks=[])
            curve(loss, losses, log=True)
            confusion(table, labels[1500:], found, range(10))

        draw("vit", plots, 3, paint)
    return losses


if __name__ == "__main__":
    given = options(__doc__, steps=300)
    main(total=given.steps, plots=given.plots)
