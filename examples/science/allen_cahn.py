"""The Allen-Cahn equation: u_t = 0.001 u_xx + 5 (u - u^3), periodic on -1 < x < 1, 0 < t < 1: phases part.

u(x, 0) = x^2 cos(pi x). The network reads cos and sin of pi x, so it is periodic; the residual at late times counts
only once early ones are small (Wang, Sankaran and Perdikaris, 2022). The reference is spectral.
"""

from __future__ import annotations

import numpy as np
from pinn import Array, Network, Tensor, by, evaluate, grid, options, paddle, report, tensor, train
from spectral import evolve, wavenumbers

DIFFUSIVITY, SLICES, ROW = 0.001, 32, 64


def reference(x: Array, t: Array) -> Array:
    """u on the grid [x, t]."""
    fine = -1 + 2 * np.arange(512) / 512
    k = wavenumbers(512, 2.0)

    def reaction(v: Array) -> Array:
        return -5 * np.fft.fft(np.fft.ifft(v).real ** 3)

    start = np.fft.fft(fine**2 * np.cos(np.pi * fine))
    path = evolve(start, -DIFFUSIVITY * k**2 + 5, reaction, t, 20)
    values = np.fft.ifft(path).real
    return np.stack([np.interp(x, np.append(fine, 1.0), np.append(row, row[0])) for row in values], 1)


def main() -> float:
    """Train, compare, draw; gives the error."""
    arguments = options(__doc__, steps=20000)
    paddle.seed(arguments.seed)
    rng = np.random.default_rng(arguments.seed)

    def waves(q: Tensor) -> Tensor:
        a, t = np.pi * q[:, 0:1], q[:, 1:2]
        return paddle.concat([t * 2 - 1, *(f(k * a) for k in (1, 2, 3) for f in (paddle.cos, paddle.sin))], -1)

    network = Network([7, 50, 50, 50, 1], features=waves)
    earlier = tensor(np.tril(np.ones((SLICES, SLICES)), -1))

    def u(q: Tensor) -> Tensor:
        x, t = q[:, 0], q[:, 1]
        return x * x * paddle.cos(np.pi * x) + t * network(q)[:, 0]

    def loss(q: Tensor) -> Tensor:
        value = u(q)
        residual = by(value, q, 1) - DIFFUSIVITY * by(value, q, 0, 0) - 5 * (value - value**3)
        slices = (residual**2).reshape([SLICES, ROW]).mean(1)
        return (paddle.exp(-2.0 * (earlier @ slices)).detach() * slices).mean()

    def sample() -> list[Tensor]:
        t = (np.arange(SLICES)[:, None] + rng.uniform(0, 1, (SLICES, ROW))) / SLICES
        points = np.stack([rng.uniform(-1, 1, t.shape), t], -1).reshape(-1, 2)
        return [paddle.to_tensor(points.astype(np.float32), stop_gradient=False)]

    train(loss, network.parameters(), sample, arguments.steps, arguments.rate)
    x, t = np.linspace(-1, 1, 201), np.linspace(0, 1, 101)
    field = evaluate(u, grid(x, t)).reshape(201, 101)
    return report("Allen-Cahn", field, reference(x, t), (x, t), "xtu", arguments.plots)


if __name__ == "__main__":
    main()
