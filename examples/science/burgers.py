"""Burgers' equation, which makes a shock of a sine: u_t + u u_x = nu u_xx, nu = 0.01 / pi, on -1 < x < 1, 0 < t < 1.

u(x, 0) = -sin(pi x) and u(-1, t) = u(1, t) = 0. The reference is the Cole-Hopf solution by Gauss-Hermite quadrature
(Basdevant et al., 1986).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from pinn import Array, Network, Tensor, by, evaluate, grid, options, paddle, report, train, uniform

VISCOSITY = 0.01 / np.pi


def exact(x: Array, t: Array) -> Array:
    """u on the grid [x, t]."""
    nodes, weights = np.polynomial.hermite.hermgauss(100)
    spread = np.sqrt(4 * VISCOSITY * np.maximum(t, 1e-12))[None, :, None]
    y = x[:, None, None] - spread * nodes
    heights = np.exp(-(np.cos(np.pi * y) - 1) / (2 * np.pi * VISCOSITY) - 1 / (np.pi * VISCOSITY)) * weights
    found: Array = -(np.sin(np.pi * y) * heights).sum(-1) / heights.sum(-1)
    return found


def solution(network: Network) -> Callable[[Tensor], Tensor]:
    """The network made to fit initial and boundary values exactly: q = (x, t) -> u [n]."""

    def u(q: Tensor) -> Tensor:
        x, t = q[:, 0], q[:, 1]
        return -paddle.sin(np.pi * x) + t * (1 - x * x) * network(q)[:, 0]

    return u


def main() -> float:
    """Train, compare, draw; gives the error."""
    arguments = options(__doc__, steps=6000)
    paddle.seed(arguments.seed)
    rng = np.random.default_rng(arguments.seed)
    network = Network([2, 40, 40, 40, 40, 1])
    u = solution(network)

    def loss(q: Tensor) -> Tensor:
        value = u(q)
        u_x = by(value, q, 0)
        residual = by(value, q, 1) + value * u_x - VISCOSITY * by(u_x, q, 0)
        return (residual**2 / (1 + u_x.detach().abs())).mean()  # the shock, where slopes are steep, must not rule

    def sample() -> list[Tensor]:
        return [uniform(rng, [-1, 0], [1, 1], 2500)]

    train(loss, network.parameters(), sample, arguments.steps, arguments.rate)
    x, t = np.linspace(-1, 1, 201), np.linspace(0, 1, 101)
    field = evaluate(u, grid(x, t)).reshape(201, 101)
    return report("Burgers", field, exact(x, t), (x, t), "xtu", arguments.plots)


if __name__ == "__main__":
    main()
