"""The wave equation: u_tt = u_xx on 0 < x < 1, 0 < t < 1, fixed ends: a string with two tones, plucked at rest.

u(x, 0) = sin(pi x) + sin(3 pi x) / 2 and u_t(x, 0) = 0, whose standing waves are the reference.
"""

from __future__ import annotations

import numpy as np
from pinn import Network, Tensor, by, evaluate, grid, options, paddle, report, train, uniform


def main() -> float:
    """Train, compare, draw; gives the error."""
    arguments = options(__doc__, steps=15000)
    paddle.seed(arguments.seed)
    rng = np.random.default_rng(arguments.seed)
    network = Network([2, 50, 50, 50, 1], features=lambda q: 4 * q - 2)

    def u(q: Tensor) -> Tensor:
        x, t = q[:, 0], q[:, 1]
        start = paddle.sin(np.pi * x) + paddle.sin(3 * np.pi * x) / 2
        return start + 10 * t * t * x * (1 - x) * network(q)[:, 0]  # at rest at t = 0

    def loss(q: Tensor) -> Tensor:
        value = u(q)
        return ((by(value, q, 1, 1) - by(value, q, 0, 0)) ** 2).mean()

    train(loss, network.parameters(), lambda: [uniform(rng, [0, 0], [1, 1], 1500)], arguments.steps, arguments.rate)
    x = np.linspace(0, 1, 101)
    points = grid(x, x)
    a, t = points.T
    reference = np.sin(np.pi * a) * np.cos(np.pi * t) + np.sin(3 * np.pi * a) * np.cos(3 * np.pi * t) / 2
    field = evaluate(u, points).reshape(101, 101)
    return report("Wave", field, reference.reshape(101, 101), (x, x), "xtu", arguments.plots)


if __name__ == "__main__":
    main()
