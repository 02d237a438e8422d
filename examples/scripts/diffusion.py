"""A diffusion model (Ho, Jain and Abbeel, 2020) that draws handwritten digits of the class it is asked for.

python examples/scripts/diffusion.py [--steps 6000]

A network learns to tell the noise in a noisy image; from pure noise, taking away a little of it again and again
leaves a digit. The training step is one compiled program.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import curve, draw, options, steps, tiles
from sklearn.datasets import load_digits

import argosy as paddle
from argosy import nn

TIMES = 100
BETAS = np.linspace(1e-3, 0.12, TIMES)
KEPT = np.cumprod(1 - BETAS)  # of the image's variance, at each time
WIDTH = 256


class Denoiser(nn.Layer):
    """The noise in images [n, 64] at times [n] of classes [n]."""

    def __init__(self) -> None:
        super().__init__()
        self.times, self.classes = nn.Embedding(TIMES, WIDTH), nn.Embedding(10, WIDTH)
        self.first, self.last = nn.Linear(64, WIDTH), nn.Linear(WIDTH, 64)
        self.blocks = nn.LayerList([
            nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Silu(), nn.Linear(2 * WIDTH, WIDTH))
            for _ in range(3)
        ])  # fmt: skip

    def forward(self, x: paddle.Tensor, time: paddle.Tensor, label: paddle.Tensor) -> paddle.Tensor:
        """[n, 64]."""
        about = self.times(time) + self.classes(label)
        h = self.first(x) + about
        for block in self.blocks:
            h = h + block(h + about)
        made: paddle.Tensor = self.last(h)
        return made


def sample(model: nn.Layer, labels: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, list[np.ndarray]]:
    """Images of these classes, and what they were on the way."""
    x = rng.standard_normal((len(labels), 64)).astype("float32")
    classes = paddle.to_tensor(labels)
    way = []
    noise_of = paddle.jit.to_static(model.forward, full_graph=True)
    with paddle.no_grad():
        for t in reversed(range(TIMES)):
            if t % 20 == 19:
                way.append(x.copy())
            time = paddle.full([len(labels)], t, "int64")
            noise = noise_of(paddle.to_tensor(x), time, classes).numpy()
            x = (x - BETAS[t] / np.sqrt(1 - KEPT[t]) * noise) / np.sqrt(1 - BETAS[t])
            if t:
                x += np.sqrt(BETAS[t]) * rng.standard_normal(x.shape)
            x = x.astype("float32")
    return x, [*way, x]


def likeness(drawn: np.ndarray, wanted: np.ndarray) -> float:
    """How many drawn images have their nearest real one in the class that was asked for."""
    images, labels = load_digits(return_X_y=True)
    images = images / 8 - 1
    nearest = ((drawn[:, None] - images[None]) ** 2).sum(-1).argmin(1)
    return float((labels[nearest] == wanted).mean())


def main(total: int = 6000, plots: str = "") -> float:
    """Train and draw ten digits of each class; gives the share that is like its class."""
    paddle.seed(0)
    rng = np.random.default_rng(0)
    images, labels = load_digits(return_X_y=True)
    images, labels = (images / 8 - 1).astype("float32"), labels.astype("int64")
    model = Denoiser()
    schedule = paddle.optimizer.lr.CosineAnnealingDecay(1e-3, T_max=total, eta_min=1e-5)
    optimizer = paddle.optimizer.AdamW(schedule, parameters=model.parameters(), weight_decay=1e-4)

    @paddle.jit.to_static(full_graph=True)
    def step(
        x: paddle.Tensor, noise: paddle.Tensor, time: paddle.Tensor, kept: paddle.Tensor, label: paddle.Tensor
    ) -> paddle.Tensor:
        noisy = kept.sqrt() * x + (1 - kept).sqrt() * noise
        loss: paddle.Tensor = ((model(noisy, time, label) - noise) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    losses = []
    for _ in steps(total):
        chosen, time = rng.integers(0, len(images), 128), rng.integers(0, TIMES, 128)
        noise, kept = rng.standard_normal((128, 64), dtype="float32"), KEPT[time, None].astype("float32")
        arrays = images[chosen], noise, time, kept, labels[chosen]
        losses.append(float(step(*map(paddle.to_tensor, arrays))))
        schedule.step()
    wanted = np.arange(100, dtype="int64") % 10
    model.eval()
    drawn, way = sample(model, wanted, rng)
    found = likeness(drawn, wanted)
    print(
        f"loss {np.mean(losses[-50:]):.4f}; {found:.2f} of 100 drawn digits are nearest to one of the class asked for"
    )

    def paint(stages: Any, sheet: Any, loss: Any) -> None:
        stages.imshow(
            tiles(np.concatenate([w[:10] for w in way]).reshape(-1, 8, 8), 10), cmap="gray_r", vmin=-1, vmax=1
        )
        stages.set(title="from noise to digits", xticks=[], yticks=[])
        sheet.imshow(tiles(drawn.reshape(-1, 8, 8), 10), cmap="gray_r", vmin=-1, vmax=1)
        sheet.set(title="drawn: 0 to 9, ten times", xticks=[], yticks=[])
        curve(loss, losses, log=True)

    draw("diffusion", plots, 3, paint)
    return found


if __name__ == "__main__":
    given = options(__doc__, steps=6000)
    main(given.steps, given.plots)
