"""The nonlinear Schrodinger equation, complex: i h_t + h_xx / 2 + |h|^2 h = 0, 0 < t < pi / 2, h decays in x.

h(x, 0) = 2 sech(x), which breathes: it contracts to a peak of 4 and two side lobes and spreads again, and errors made
early grow. So time is taken in windows, with a network for each that starts from the end of the one before:
h = h_before + (t - start) sech(x) N(x, t), which decays as the solution does; the residual is one complex tensor. The
reference is spectral, on a circle of length 20.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from pinn import Array, Network, Tensor, by, evaluate, grid, options, paddle, report, train
from spectral import evolve, wavenumbers

END, WINDOWS, POINTS = np.pi / 2, 6, 1536
WIDTH = END / WINDOWS


def reference(x: Array, t: Array) -> Array:
    """|h| on the grid [x, t]."""
    fine = -10 + 20 * np.arange(512) / 512
    k = wavenumbers(512, 20.0)

    def turn(v: Array) -> Array:
        h = np.fft.ifft(v)
        return 1j * np.fft.fft(np.abs(h) ** 2 * h)

    path = np.fft.ifft(evolve(np.fft.fft(2 / np.cosh(fine) + 0j), -0.5j * k**2, turn, t, 20))
    return np.stack([np.interp(x, fine, np.abs(row)) for row in path], 1)


def features(q: Tensor) -> Tensor:
    """Even in x, bounded, and a window's time between -1 and 1."""
    x, t = q[:, 0:1], q[:, 1:2]
    sech = 1 / paddle.cosh(x)
    return paddle.concat([t * (2 / WIDTH) - 1, 2 * sech - 1, sech * sech, 2 / paddle.cosh(2 * x) - 1], -1)


def growth(network: Network, q: Tensor) -> tuple[Tensor, Tensor]:
    """What a window adds at the points [x, time since its start]: real and imaginary part."""
    made = network(q)
    scale = 4 * q[:, 1] / paddle.cosh(q[:, 0])
    return scale * made[:, 0], scale * made[:, 1]


def since(networks: list[Network], q: Tensor) -> tuple[Tensor, Tensor]:
    """h at the points [x, time since the start of the last window]."""
    u, v = 2 / paddle.cosh(q[:, 0]), 0 * q[:, 0]
    for number, network in enumerate(networks):
        last = number == len(networks) - 1
        there = q if last else paddle.stack([q[:, 0], paddle.full_like(q[:, 0], WIDTH)], -1)
        du, dv = growth(network, there)
        u, v = u + du, v + dv
    return u, v


def start_of(networks: list[Network]) -> Callable[[Tensor], list[Tensor]]:
    """The state that the next window starts from, and its second derivatives by x, compiled."""

    @paddle.jit.to_static(full_graph=True)
    def state(q: Tensor) -> list[Tensor]:
        x = q[:, 0]
        at_end = paddle.stack([x, paddle.full_like(x, WIDTH)], -1)
        u, v = since(networks, at_end)
        u_xx, v_xx = (paddle.autograd.linear_operator(part, q, {(0, 0): 1.0}) for part in (u, v))  # v is 0 at first
        return [part.detach() for part in (u, v, u_xx, v_xx)]

    return state


def window(networks: list[Network], steps: int, rate: float, rng: np.random.Generator) -> Network:
    """Train the network of the next window."""
    network = Network([4, 50, 50, 50, 2], features=features)
    state = start_of(networks)

    def loss(q: Tensor, u0: Tensor, v0: Tensor, u0_xx: Tensor, v0_xx: Tensor) -> Tensor:
        u, v = growth(network, q)
        h, h_t = paddle.complex(u0 + u, v0 + v), paddle.complex(by(u, q, 1), by(v, q, 1))
        h_xx = paddle.complex(u0_xx + by(u, q, 0, 0), v0_xx + by(v, q, 0, 0))
        residual = 1j * h_t + 0.5 * h_xx + h * (h * h.conj())
        return (residual * residual.conj()).real().mean()

    def sample() -> list[Tensor]:
        x = 6 * rng.uniform(0, 1, POINTS) ** 1.5  # more of them where h is large
        q = np.stack([x, rng.uniform(0, WIDTH, POINTS)], -1).astype(np.float32)
        points = paddle.to_tensor(q, stop_gradient=False)
        return [points, *state(points)]

    train(loss, network.parameters(), sample, steps, rate)
    return network


def main() -> float:
    """Train, compare, draw; gives the error of |h|."""
    arguments = options(__doc__, steps=12000)
    paddle.seed(arguments.seed)
    rng = np.random.default_rng(arguments.seed)
    networks: list[Network] = []
    for _ in range(WINDOWS):
        networks.append(window(networks, max(arguments.steps // WINDOWS, 1), arguments.rate, rng))
    x, t = np.linspace(-5, 5, 201), np.linspace(0, END, 101)
    field = np.zeros((len(x), len(t)))
    for number in range(WINDOWS):
        held = networks[: number + 1]
        there = (t >= number * WIDTH) if number == WINDOWS - 1 else (t >= number * WIDTH) & (t < (number + 1) * WIDTH)

        def size(q: Tensor, held: list[Any] = held) -> Tensor:
            return paddle.abs(paddle.complex(*since(held, q)))

        points = grid(x, t[there] - number * WIDTH)
        field[:, there] = evaluate(size, points).reshape(len(x), -1)
    return report("Schrodinger", field, reference(x, t), (x, t), ("x", "t", "|h|"), arguments.plots)


if __name__ == "__main__":
    main()
