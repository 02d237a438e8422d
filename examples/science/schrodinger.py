"""The nonlinear Schrodinger equation, complex: i h_t + h_xx / 2 + |h|^2 h = 0 on -5 < x < 5, 0 < t < pi / 2.

h(x, 0) = 2 sech(x), which breathes. The network gives real and imaginary part; the residual is one complex tensor. The
reference is spectral, on a circle of length 20.
"""

from __future__ import annotations

import numpy as np
from pinn import Array, Network, Tensor, by, evaluate, grid, options, paddle, report, train, uniform
from spectral import evolve, wavenumbers

END = np.pi / 2


def reference(x: Array, t: Array) -> Array:
    """|h| on the grid [x, t]."""
    fine = -10 + 20 * np.arange(512) / 512
    k = wavenumbers(512, 20.0)

    def turn(v: Array) -> Array:
        h = np.fft.ifft(v)
        return 1j * np.fft.fft(np.abs(h) ** 2 * h)

    path = np.fft.ifft(evolve(np.fft.fft(2 / np.cosh(fine) + 0j), -0.5j * k**2, turn, t, 20))
    return np.stack([np.interp(x, fine, np.abs(row)) for row in path], 1)


def main() -> float:
    """Train, compare, draw; gives the error of |h|."""
    arguments = options(__doc__, steps=8000)
    paddle.seed(arguments.seed)
    rng = np.random.default_rng(arguments.seed)
    network = Network([2, 50, 50, 50, 50, 2])

    def parts(q: Tensor) -> tuple[Tensor, Tensor]:
        x, t = q[:, 0], q[:, 1]
        even = paddle.stack([x * x / 5, t], -1)  # the solution is even in x
        made = network(even)
        sech = 2 / paddle.cosh(x)
        return sech + t * made[:, 0], t * made[:, 1]

    def loss(q: Tensor, ends: Tensor) -> Tensor:
        u, v = parts(q)
        h = paddle.complex(u, v)
        h_t = paddle.complex(by(u, q, 1), by(v, q, 1))
        h_xx = paddle.complex(by(u, q, 0, 0), by(v, q, 0, 0))
        residual = 1j * h_t + 0.5 * h_xx + h * (h * h.conj())
        border = paddle.complex(*parts(ends))
        return (residual * residual.conj()).real().mean() + (border * border.conj()).real().mean()

    def sample() -> list[Tensor]:
        return [uniform(rng, [0, 0], [5, END], 2000), uniform(rng, [5, 0], [5.001, END], 50)]

    train(loss, network.parameters(), sample, arguments.steps, arguments.rate)
    x, t = np.linspace(-5, 5, 201), np.linspace(0, END, 101)
    field = evaluate(lambda q: paddle.abs(paddle.complex(*parts(q))), grid(x, t)).reshape(201, 101)
    return report("Schrodinger", field, reference(x, t), (x, t), "xt", arguments.plots)


if __name__ == "__main__":
    main()
