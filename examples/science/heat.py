"""The heat equation in two dimensions: u_t = 0.1 (u_xx + u_yy) on the unit square, 0 < t < 1, u = 0 on the border.

Starts as sin(pi x) sin(2 pi y), whose decay is known exactly. The plot shows t = 0.2.
"""

from __future__ import annotations

import numpy as np
from pinn import Network, Tensor, by, evaluate, grid, options, paddle, report, train, uniform

DIFFUSIVITY, SHOWN = 0.1, 0.2


def main() -> float:
    """Train, compare, draw; gives the error."""
    arguments = options(__doc__, steps=3000)
    paddle.seed(arguments.seed)
    rng = np.random.default_rng(arguments.seed)
    network = Network([3, 40, 40, 40, 1], features=lambda q: 2 * q - 1)

    def u(q: Tensor) -> Tensor:
        x, y, t = q[:, 0], q[:, 1], q[:, 2]
        start = paddle.sin(np.pi * x) * paddle.sin(2 * np.pi * y)
        return start * (1 + t * network(q)[:, 0])

    def loss(q: Tensor) -> Tensor:
        value = u(q)
        residual = by(value, q, 2) - DIFFUSIVITY * (by(value, q, 0, 0) + by(value, q, 1, 1))
        return (residual**2).mean()

    train(loss, network.parameters(), lambda: [uniform(rng, [0] * 3, [1] * 3, 1500)], arguments.steps, arguments.rate)
    x = np.linspace(0, 1, 81)
    points = grid(x, x, np.array([SHOWN]))
    start = np.sin(np.pi * points[:, 0]) * np.sin(2 * np.pi * points[:, 1])
    reference = (start * np.exp(-5 * np.pi**2 * DIFFUSIVITY * SHOWN)).reshape(81, 81)
    return report("Heat", evaluate(u, points).reshape(81, 81), reference, (x, x), "xyu", arguments.plots)


if __name__ == "__main__":
    main()
