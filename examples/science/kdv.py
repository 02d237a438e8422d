"""Korteweg-de Vries, third order: u_t + 6 u u_x + u_xxx = 0 on -8 < x < 8, -1 < t < 1: one soliton overtakes another.

Initial and boundary values are those of the exact two-soliton solution (Hirota, 1971), u = 2 (log F)_xx, which is also
the reference.
"""

from __future__ import annotations

import numpy as np
from pinn import Array, Network, Tensor, by, evaluate, grid, options, paddle, report, tensor, train, uniform

SPEEDS = (1.0, 1.6)


def exact(x: Array, t: Array) -> Array:
    """u at points given by equal arrays."""
    k, m = SPEEDS
    shift = ((k - m) / (k + m)) ** 2
    a, b = np.exp(k * (x - k * k * t)), np.exp(m * (x - m * m * t))
    f = 1 + a + b + shift * a * b
    f_x = k * a + m * b + (k + m) * shift * a * b
    f_xx = k * k * a + m * m * b + (k + m) ** 2 * shift * a * b
    return 2 * (f_xx * f - f_x * f_x) / (f * f)


def main() -> float:
    """Train, compare, draw; gives the error."""
    arguments = options(__doc__, steps=20000)
    paddle.seed(arguments.seed)
    rng = np.random.default_rng(arguments.seed)
    network = Network([2, 40, 40, 40, 1], features=lambda q: q * tensor([1 / 4, 1.0]))

    def u(q: Tensor) -> Tensor:
        return network(q)[:, 0]

    def loss(q: Tensor, given: Tensor, values: Tensor) -> Tensor:
        value = u(q)
        residual = by(value, q, 1) + 6 * value * by(value, q, 0) + by(value, q, 0, 0, 0)
        return (residual**2).mean() + 20 * ((u(given) - values) ** 2).mean()

    def sample() -> list[Tensor]:
        x, t = rng.uniform(-8, 8, 400), rng.uniform(-1, 1, 200)
        given = np.concatenate([
            np.stack([x, np.full(400, -1.0)], -1), np.stack([np.full(200, -8.0), t], -1),
            np.stack([np.full(200, 8.0), t], -1),
        ])  # fmt: skip
        return [uniform(rng, [-8, -1], [8, 1], 2000), tensor(given), tensor(exact(*given.T))]

    train(loss, network.parameters(), sample, arguments.steps, arguments.rate)
    x, t = np.linspace(-8, 8, 201), np.linspace(-1, 1, 101)
    points = grid(x, t)
    field = evaluate(u, points).reshape(201, 101)
    return report("KdV", field, exact(*points.T).reshape(201, 101), (x, t), "xtu", arguments.plots)


if __name__ == "__main__":
    main()
