"""A variational autoencoder (Kingma and Welling, 2014) on handwritten digits.

python examples/scripts/vae.py [--steps 500]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import curve, draw, fixed_weights, options, steps, tiles
from sklearn.datasets import load_digits

import argosy as paddle
import argosy.nn.functional as F
from argosy import nn


class Vae(nn.Layer):
    """Encoder to mean and log-variance of ``latent`` normal variables, and decoder to pixel logits."""

    def __init__(self, latent: int = 4, hidden: int = 64) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, hidden), nn.Tanh(), nn.Linear(hidden, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.Tanh(), nn.Linear(hidden, 64))

    def forward(self, x: paddle.Tensor, noise: paddle.Tensor) -> tuple[paddle.Tensor, ...]:
        """Pixel logits, mean and log-variance."""
        mean, log_variance = paddle.chunk(self.encoder(x), 2, axis=-1)
        z = mean + paddle.exp(0.5 * log_variance) * noise
        return self.decoder(z), mean, log_variance


def negative_elbo(
    logits: paddle.Tensor, x: paddle.Tensor, mean: paddle.Tensor, log_variance: paddle.Tensor
) -> paddle.Tensor:
    """Reconstruction loss and divergence from the standard normal, per image."""
    reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = -0.5 * paddle.sum(1 + log_variance - mean**2 - paddle.exp(log_variance))
    loss: paddle.Tensor = (reconstruction + divergence) / x.shape[0]
    return loss


def main(count: int | None = None, total: int = 500, plots: str = "") -> list[float]:
    """Train and, without ``count``, draw two digits. Gives the losses."""
    rng = np.random.default_rng(2)
    images = (load_digits(return_X_y=True)[0] / 16).astype("float32")
    model = Vae()
    fixed_weights(model)
    optimizer = paddle.optimizer.AdamW(3e-3, parameters=model.parameters(), weight_decay=1e-4)
    losses = []
    for _ in steps(count or total):
        x = paddle.to_tensor(images[rng.integers(0, len(images), 64)])
        noise = paddle.to_tensor(rng.standard_normal((64, 4)).astype("float32"))
        logits, mean, log_variance = model(x, noise)
        loss = negative_elbo(logits, x, mean, log_variance)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    if count is None:
        print(f"negative ELBO {np.mean(losses[-20:]):.2f} per image; two digits drawn from noise:")
        with paddle.no_grad():
            drawn = F.sigmoid(model.decoder(paddle.to_tensor(rng.standard_normal((2, 4)).astype("float32"))))
        for rows in zip(*drawn.numpy().reshape(2, 8, 8), strict=True):
            print("   ".join("".join(" .:+*#"[int(v * 5.99)] * 2 for v in row) for row in rows))

        def paint(given: Any, made: Any, loss: Any) -> None:
            x = paddle.to_tensor(images[:32])
            with paddle.no_grad():
                again = F.sigmoid(model(x, paddle.zeros([32, 4]))[0]).numpy()
                noise = paddle.to_tensor(rng.standard_normal((64, 4)).astype("float32"))
                drawn = F.sigmoid(model.decoder(noise)).numpy()
            pairs = np.concatenate([images[:32].reshape(4, 8, 64), again.reshape(4, 8, 64)], 1).reshape(-1, 8, 8)
            given.imshow(tiles(pairs, 8), cmap="gray_r")
            given.set(title="digits, and below what is left of them", xticks=[], yticks=[])
            made.imshow(tiles(drawn.reshape(-1, 8, 8), 8), cmap="gray_r")
            made.set(title="drawn from noise", xticks=[], yticks=[])
            curve(loss, losses, "negative ELBO")

        draw("vae", plots, 3, paint)
    return losses


if __name__ == "__main__":
    given = options(__doc__, steps=500)
    main(total=given.steps, plots=given.plots)
