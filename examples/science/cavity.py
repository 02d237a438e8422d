"""The lid-driven cavity: steady two-dimensional Navier-Stokes flow at Reynolds number 100 on the unit square.

The network gives the stream function (so that the flow has no divergence) and the pressure; momentum needs third
derivatives. The lid moves with 16 x^2 (1 - x)^2, which is smooth in the corners. The reference is a vorticity and
stream function solver with finite differences of second order on 81 x 81 points.
"""

from __future__ import annotations

import numpy as np
from pinn import Array, Network, Tensor, by, evaluate, grid, options, paddle, report, train, uniform

REYNOLDS, N = 100, 81


def lid(x: Array) -> Array:
    """Its speed."""
    speed: Array = 16 * x**2 * (1 - x) ** 2
    return speed


def reference() -> tuple[Array, Array]:
    """Grid and speed |(u, v)| [x, y], by time steps to the steady state; Poisson's equation by sine transforms."""
    x = np.linspace(0, 1, N)
    h, dt = x[1], 0.002
    modes = np.arange(1, N - 1)
    sines = np.sin(np.pi * np.outer(modes, x[1:-1]))
    values = 2 * (np.cos(np.pi * modes * h) - 1) / h**2
    inverse = 4 * h * h / (values[:, None] + values)
    vorticity, psi = np.zeros((N, N)), np.zeros((N, N))
    u = v = np.zeros((N - 2, N - 2))
    for _ in range(8000):
        psi[1:-1, 1:-1] = sines @ (inverse * (sines @ -vorticity[1:-1, 1:-1] @ sines)) @ sines
        vorticity[:, -1] = -2 * psi[:, -2] / h**2 - 2 * lid(x) / h
        vorticity[:, 0] = -2 * psi[:, 1] / h**2
        vorticity[0], vorticity[-1] = -2 * psi[1] / h**2, -2 * psi[-2] / h**2
        u = (psi[1:-1, 2:] - psi[1:-1, :-2]) / (2 * h)
        v = -(psi[2:, 1:-1] - psi[:-2, 1:-1]) / (2 * h)
        w = vorticity
        around = w[2:, 1:-1] + w[:-2, 1:-1] + w[1:-1, 2:] + w[1:-1, :-2] - 4 * w[1:-1, 1:-1]
        carried = u * (w[2:, 1:-1] - w[:-2, 1:-1]) + v * (w[1:-1, 2:] - w[1:-1, :-2])
        change = dt * (around / (REYNOLDS * h**2) - carried / (2 * h))
        w[1:-1, 1:-1] += change
        if np.abs(change).max() < 1e-7:
            break
    speed = np.zeros((N, N))
    speed[1:-1, 1:-1] = np.hypot(u, v)
    speed[:, -1] = lid(x)
    return x, speed


def main() -> float:
    """Train, compare, draw; gives the error of the speed."""
    arguments = options(__doc__, steps=6000)
    paddle.seed(arguments.seed)
    rng = np.random.default_rng(arguments.seed)
    network = Network([2, 50, 50, 50, 2], features=lambda q: 4 * q - 2)

    def flow(q: Tensor) -> tuple[Tensor, Tensor]:
        """Stream function, zero on the border as its slope is but at the lid, and pressure."""
        x, y = q[:, 0], q[:, 1]
        made = network(q)
        walls = 16 * (x * (1 - x)) ** 2 * y * y
        return walls * (y - 1) * (1 + 4 * (1 - y) * made[:, 0]), made[:, 1]

    def loss(q: Tensor) -> Tensor:
        psi, p = flow(q)
        u, v = by(psi, q, 1), -by(psi, q, 0)
        east = u * by(u, q, 0) + v * by(u, q, 1) + by(p, q, 0) - (by(u, q, 0, 0) + by(u, q, 1, 1)) / REYNOLDS
        north = u * by(v, q, 0) + v * by(v, q, 1) + by(p, q, 1) - (by(v, q, 0, 0) + by(v, q, 1, 1)) / REYNOLDS
        return (east**2 + north**2).mean()

    train(loss, network.parameters(), lambda: [uniform(rng, [0, 0], [1, 1], 1500)], arguments.steps, arguments.rate)

    def speed(q: Tensor) -> Tensor:
        q.stop_gradient = False
        with paddle.enable_grad():
            psi, _ = flow(q)
            (slope,) = paddle.grad(psi.sum(), q)
        return (slope**2).sum(-1).sqrt()

    x, wanted = reference()
    found = evaluate(speed, grid(x, x)).reshape(N, N)
    return report("Cavity", found, wanted, (x, x), ("x", "y", "speed"), arguments.plots)


if __name__ == "__main__":
    main()
