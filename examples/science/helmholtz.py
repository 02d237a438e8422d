"""Helmholtz' equation on the unit square: u_xx + u_yy + k^2 u = f, k = 2 pi, u = 0 on the border.

f belongs to the exact solution u = sin(2 pi x) sin(2 pi y). The Laplacian is ``autograd.laplacian``: compiled, it costs
about four forward passes.
"""

from __future__ import annotations

import numpy as np
from pinn import Network, Tensor, evaluate, grid, options, paddle, report, train, uniform

K = 2 * np.pi


def main() -> float:
    """Train, compare, draw; gives the error."""
    arguments = options(__doc__, steps=4000)
    paddle.seed(arguments.seed)
    rng = np.random.default_rng(arguments.seed)
    network = Network([2, 50, 50, 50, 1], features=lambda q: 4 * q - 2)

    def u(q: Tensor) -> Tensor:
        x, y = q[:, 0], q[:, 1]
        return 16 * x * (1 - x) * y * (1 - y) * network(q)[:, 0]

    def loss(q: Tensor) -> Tensor:
        value = u(q)
        source = -K * K * paddle.sin(K * q[:, 0]) * paddle.sin(K * q[:, 1])
        residual = paddle.autograd.laplacian(value, q) + K * K * value - source.detach()
        return (residual**2).mean() / K**4

    def sample() -> list[Tensor]:
        return [uniform(rng, [0, 0], [1, 1], 1500)]

    train(loss, network.parameters(), sample, arguments.steps, arguments.rate)
    x = np.linspace(0, 1, 101)
    points = grid(x, x)
    reference = (np.sin(K * points[:, 0]) * np.sin(K * points[:, 1])).reshape(101, 101)
    return report("Helmholtz", evaluate(u, points).reshape(101, 101), reference, (x, x), "xyu", arguments.plots)


if __name__ == "__main__":
    main()
