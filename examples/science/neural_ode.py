"""A neural ordinary differential equation: a network learns the right-hand side of a pendulum with friction from data.

theta'' = -sin(theta) - 0.15 theta'. Trained on stretches of four trajectories, it then runs alone from a start that it
has not seen. Gradients go through ``science.odeint``, one compiled loop.
"""

from __future__ import annotations

import numpy as np
from pinn import Array, Network, Tensor, options, paddle, report, tensor, train

STEP, STRETCH = 0.1, 20


def pendulum(t: Tensor, state: Tensor) -> Tensor:
    """The true right-hand side for states [..., 2]."""
    angle, speed = state[..., 0], state[..., 1]
    return paddle.stack([speed, -paddle.sin(angle) - 0.15 * speed], -1)


def trajectories(starts: Array, count: int) -> Array:
    """[count, n, 2] at multiples of STEP."""
    with paddle.no_grad():
        path: Array = paddle.science.odeint(
            pendulum, tensor(starts), tensor(np.arange(count) * STEP), substeps=4
        ).numpy()
    return path


def main() -> float:
    """Train, compare, draw; gives the error of the angle from a new start."""
    arguments = options(__doc__, steps=15000)
    paddle.seed(arguments.seed)
    rng = np.random.default_rng(arguments.seed)
    data = trajectories(np.array([[2.5, 0.0], [1.0, 0.0], [0.0, 1.8], [-2.0, -0.5]]), 101)
    network = Network([2, 40, 40, 2])
    times = tensor(np.arange(STRETCH + 1) * STEP)

    def field(t: Tensor, state: Tensor) -> Tensor:
        return network(state)

    def loss(starts: Tensor, wanted: Tensor) -> Tensor:
        return ((paddle.science.odeint(field, starts, times) - wanted) ** 2).mean()

    def sample() -> list[Tensor]:
        begin, which = rng.integers(0, 101 - STRETCH, 64), rng.integers(0, data.shape[1], 64)
        wanted = np.stack([data[b : b + STRETCH + 1, w] for b, w in zip(begin, which, strict=True)], 1)
        return [tensor(wanted[0]), tensor(wanted)]

    train(loss, network.parameters(), sample, arguments.steps, arguments.rate, refresh=1)
    start = np.array([[1.8, 0.0]])
    count = 151
    with paddle.no_grad():
        made = paddle.science.odeint(field, tensor(start), tensor(np.arange(count) * STEP)).numpy()
    reference = trajectories(start, count)
    axis = np.arange(count) * STEP
    return report("Neural ODE", made[:, 0, 0], reference[:, 0, 0], (axis,), ("t", "angle"), arguments.plots)


if __name__ == "__main__":
    main()
