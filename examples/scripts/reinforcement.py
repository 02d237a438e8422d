"""Reinforcement learning: balance a pole on a cart (Barto, Sutton and Anderson, 1983) by policy gradients with a
baseline.

python examples/scripts/reinforcement.py [--steps 80]

64 carts play at the same time. A network says how likely a push to the right should be; another one how long the
pole will stand. Pushes that did better than expected become likelier (Williams, 1992).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import curve, draw, options, steps

import argosy as paddle
import argosy.nn.functional as F
from argosy import nn

CARTS, LONGEST = 64, 200
GRAVITY, CART, POLE, LENGTH, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02


def move(state: np.ndarray, right: np.ndarray) -> np.ndarray:
    """States [n, 4] (place, speed, angle, turning speed) after a push."""
    _, speed, angle, turning = state.T
    force = np.where(right, FORCE, -FORCE)
    sine, cosine = np.sin(angle), np.cos(angle)
    pushed = (force + POLE * LENGTH * turning**2 * sine) / (CART + POLE)
    turned = (GRAVITY * sine - cosine * pushed) / (LENGTH * (4 / 3 - POLE * cosine**2 / (CART + POLE)))
    moved = pushed - POLE * LENGTH * turned * cosine / (CART + POLE)
    rates = np.stack([speed, moved, turning, turned], 1)
    return state + SECONDS * rates


def play(policy: nn.Layer, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States [t, n, 4], pushes [t, n], and which carts still stood [t, n]."""
    state = rng.uniform(-0.05, 0.05, (CARTS, 4))
    alive = np.ones(CARTS, bool)
    states: list[np.ndarray] = []
    pushes: list[np.ndarray] = []
    standing: list[np.ndarray] = []
    while alive.any() and len(states) < LONGEST:
        with paddle.no_grad():
            logit = policy(paddle.to_tensor(state.astype("float32"))).numpy()[:, 0]
        right = rng.random(CARTS) < 1 / (1 + np.exp(-logit))
        states.append(state.astype("float32"))
        pushes.append(right)
        standing.append(alive)
        state = np.where(alive[:, None], move(state, right), state)
        alive = alive & (np.abs(state[:, 0]) < 2.4) & (np.abs(state[:, 2]) < 12 * np.pi / 180)
    return np.stack(states), np.stack(pushes), np.stack(standing)


def returns(standing: np.ndarray, discount: float = 0.98) -> np.ndarray:
    """What each push led to, later rewards counting less: [t, n]."""
    found, later = np.zeros(standing.shape, np.float32), np.zeros(CARTS)
    for t in reversed(range(len(standing))):
        later = standing[t] * (1 + discount * later)
        found[t] = later
    return found


def network() -> nn.Layer:
    """States [n, 4] -> [n, 1]."""
    return nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))


def main(total: int = 80, plots: str = "") -> float:
    """Learn; gives how long the pole stands on average in the last ten rounds, of 200 at most."""
    paddle.seed(0)
    rng = np.random.default_rng(0)
    policy, critic = network(), network()
    optimizer = paddle.optimizer.Adam(0.01, parameters=[*policy.parameters(), *critic.parameters()])

    @paddle.jit.to_static(
        full_graph=True,
        input_spec=[paddle.static.InputSpec([None, 4]), *(paddle.static.InputSpec([None]) for _ in range(2))],
    )
    def step(states: paddle.Tensor, right: paddle.Tensor, reached: paddle.Tensor) -> paddle.Tensor:
        expected = critic(states)[:, 0]
        advantage = (reached - expected).detach()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        logit = policy(states)[:, 0]
        chosen = F.binary_cross_entropy_with_logits(logit, right, reduction="none")  # -log of the chance of the push
        loss: paddle.Tensor = (chosen * advantage).mean() + 0.01 * F.mse_loss(expected, reached)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    lengths = []
    for _ in steps(total):
        states, pushes, standing = play(policy, rng)
        arrays = states[standing], pushes[standing].astype("float32"), returns(standing)[standing]
        for _ in range(3):
            step(*map(paddle.to_tensor, arrays))
        lengths.append(float(standing.sum(0).mean()))
    found = float(np.mean(lengths[-10:]))
    print(f"the pole stands for {lengths[0]:.0f} steps at the beginning, for {found:.0f} of {LONGEST} in the end")

    def paint(learning: Any, angles: Any, map_of_pushes: Any) -> None:
        states, _, standing = play(policy, rng)
        curve(learning, lengths, "steps that the pole stands")
        learning.set(xlabel="round of 64 carts")
        angles.plot(np.where(standing, states[..., 2] * 180 / np.pi, np.nan)[:, :12], linewidth=0.8)
        angles.set(title="angle of twelve poles, degrees", xlabel="step")
        angle, turning = np.meshgrid(np.linspace(-0.2, 0.2, 60), np.linspace(-1.5, 1.5, 60))
        at = np.stack([0 * angle, 0 * angle, angle, turning], -1).reshape(-1, 4).astype("float32")
        with paddle.no_grad():
            chance = F.sigmoid(policy(paddle.to_tensor(at))).numpy().reshape(60, 60)
        map_of_pushes.pcolormesh(angle * 180 / np.pi, turning, chance, cmap="RdBu_r", vmin=0, vmax=1)
        map_of_pushes.set(title="chance of a push to the right", xlabel="angle", ylabel="turning speed")

    draw("reinforcement", plots, 3, paint)
    return found


if __name__ == "__main__":
    given = options(__doc__, steps=80)
    main(given.steps, given.plots)
