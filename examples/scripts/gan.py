"""A generative adversarial network (Goodfellow et al., 2014) that learns eight clusters on a circle.

python examples/scripts/gan.py [--steps 3000]

Two networks train against each other: one makes points, the other tells them from real ones. The penalty of the
second one's gradient by its input (Mescheder et al., 2018) keeps the game stable; it is a derivative within a
derivative, in one compiled step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import curve, draw, options, steps

import argosy as paddle
import argosy.nn.functional as F
from argosy import nn

CENTRES = np.stack([np.cos(np.arange(8) * np.pi / 4), np.sin(np.arange(8) * np.pi / 4)], 1) * 2
SPREAD = 0.08


def real(rng: np.random.Generator, count: int) -> np.ndarray:
    """Points [count, 2] of the eight clusters."""
    points = CENTRES[rng.integers(0, 8, count)] + SPREAD * rng.standard_normal((count, 2))
    return points.astype("float32")


def network(inputs: int, outputs: int) -> nn.Layer:
    """Two hidden layers."""
    return nn.Sequential(
        nn.Linear(inputs, 128), nn.LeakyReLU(0.2), nn.Linear(128, 128), nn.LeakyReLU(0.2), nn.Linear(128, outputs)
    )


def judge(points: np.ndarray) -> tuple[float, int]:
    """The share of points within four spreads of a cluster, and the clusters with at least one point in fifty."""
    distances = np.linalg.norm(points[:, None] - CENTRES[None], axis=-1)
    good = distances.min(1) < 4 * SPREAD
    counts = np.bincount(distances.argmin(1)[good], minlength=8)
    return float(good.mean()), int((counts >= len(points) / 50).sum())


def main(total: int = 3000, plots: str = "") -> tuple[float, int]:
    """Train; gives what `judge` says of 2000 points."""
    paddle.seed(0)
    rng = np.random.default_rng(0)
    generator, critic = network(4, 2), network(2, 1)
    rates = [paddle.optimizer.lr.CosineAnnealingDecay(1e-3, T_max=total, eta_min=1e-5) for _ in range(2)]
    of_generator = paddle.optimizer.Adam(rates[0], beta1=0.0, beta2=0.99, parameters=generator.parameters())
    of_critic = paddle.optimizer.Adam(rates[1], beta1=0.0, beta2=0.99, parameters=critic.parameters())

    @paddle.jit.to_static(full_graph=True)
    def step(points: paddle.Tensor, noise: paddle.Tensor) -> tuple[paddle.Tensor, paddle.Tensor]:
        scores = critic(points)
        (slope,) = paddle.grad(scores.sum(), points, create_graph=True)
        penalty = (slope**2).sum(-1).mean()
        loss = F.softplus(-scores).mean() + F.softplus(critic(generator(noise).detach())).mean()
        (loss + 0.1 * penalty).backward()
        of_critic.step()
        of_critic.clear_grad()
        other = F.softplus(-critic(generator(noise))).mean()
        other.backward()
        of_generator.step()
        of_generator.clear_grad()
        of_critic.clear_grad()
        return loss, other

    losses = []
    for _ in steps(total):
        points = paddle.to_tensor(real(rng, 256), stop_gradient=False)
        noise = paddle.to_tensor(rng.standard_normal((256, 4), dtype="float32"))
        losses.append([float(value) for value in step(points, noise)])
        for rate in rates:
            rate.step()
    with paddle.no_grad():
        made = generator(paddle.to_tensor(rng.standard_normal((2000, 4), dtype="float32"))).numpy()
    share, clusters = judge(made)
    print(f"{share:.2f} of the points made lie in a cluster, {clusters} of 8 clusters are found")

    def paint(truth: Any, found: Any, loss: Any) -> None:
        for axes, title, points in ((truth, "real", real(rng, 2000)), (found, "made", made)):
            axes.plot(*points.T, ".", markersize=2)
            axes.set(title=title, xlim=(-3, 3), ylim=(-3, 3), aspect="equal")
        curve(loss, np.array(losses)[:, 0], "loss of the critic")
        loss.axhline(2 * np.log(2), color="black", linewidth=1, linestyle=":")  # it cannot tell any more

    draw("gan", plots, 3, paint)
    return share, clusters


if __name__ == "__main__":
    given = options(__doc__, steps=3000)
    main(given.steps, given.plots)
