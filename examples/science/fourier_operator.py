"""A Fourier neural operator (Li et al., 2021) for Burgers' equation: from u(x, 0) to u(x, 1), periodic, nu = 0.01.

Initial values are random smooth functions; solutions come from our own spectral solver. The layers multiply the lowest
Fourier modes by complex weights: rfft, a product of matrices, irfft.
"""

from __future__ import annotations

import numpy as np
from pinn import Array, Tensor, error, options, paddle, report, tensor, train
from spectral import evolve, wavenumbers

VISCOSITY, POINTS, MODES, WIDTH = 0.01, 128, 16, 32
nn, F = paddle.nn, paddle.nn.functional


def solutions(rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Initial values and solutions at t = 1, [count, POINTS] each."""
    k = wavenumbers(POINTS, 1.0)
    kept = np.abs(np.fft.fftfreq(POINTS, 1 / POINTS)) < POINTS / 3  # no aliases of the square
    decay = 6 * (1 + (k / (2 * np.pi)) ** 2) ** -1.5
    start = np.fft.fft(np.fft.ifft(np.fft.fft(rng.standard_normal((count, POINTS))) * decay).real) * kept

    def transport(v: Array) -> Array:
        moved: Array = -0.5j * k * kept * np.fft.fft(np.fft.ifft(v).real ** 2)
        return moved

    end = evolve(start, -VISCOSITY * k**2, transport, np.array([0.0, 1.0]), 400)[-1]
    return np.fft.ifft(start).real, np.fft.ifft(end).real


class Spectral(nn.Layer):
    """[batch, WIDTH, points]: every low mode has a complex matrix of its own."""

    def __init__(self) -> None:
        super().__init__()
        spread = nn.initializer.Normal(0.0, 1 / WIDTH)
        shape = [MODES, WIDTH, WIDTH]
        self.re = self.create_parameter(shape, default_initializer=spread)
        self.im = self.create_parameter(shape, default_initializer=spread)

    def forward(self, x: Tensor) -> Tensor:
        """The filtered signal."""
        low = paddle.fft.rfft(x)[:, :, :MODES].transpose([2, 0, 1])
        made = paddle.matmul(low, paddle.complex(self.re, self.im)).transpose([1, 2, 0])
        return paddle.fft.irfft(made, n=x.shape[-1])


class Operator(nn.Layer):
    """u(x, 0) [batch, points] -> u(x, 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.lift = nn.Linear(3, WIDTH)
        self.spectral = nn.LayerList([Spectral() for _ in range(4)])
        self.local = nn.LayerList([nn.Linear(WIDTH, WIDTH) for _ in range(4)])
        self.head = nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, 1))
        angle = 2 * np.pi * np.arange(POINTS) / POINTS
        self.register_buffer("place", tensor(np.stack([np.cos(angle), np.sin(angle)], -1)))

    def forward(self, u: Tensor) -> Tensor:
        """[batch, points]."""
        place = paddle.expand(self.place, [u.shape[0], POINTS, 2])
        h = self.lift(paddle.concat([u.unsqueeze(-1), place], -1))
        for spectral, local in zip(self.spectral, self.local, strict=True):
            h = F.gelu(spectral(h.transpose([0, 2, 1])).transpose([0, 2, 1]) + local(h))
        return self.head(h)[:, :, 0]


def main() -> float:
    """Train, compare on new initial values, draw one; gives the mean relative error."""
    arguments = options(__doc__, steps=4000)
    paddle.seed(arguments.seed)
    rng = np.random.default_rng(arguments.seed)
    starts, ends = solutions(rng, 1100)
    model = Operator()

    def loss(u: Tensor, wanted: Tensor) -> Tensor:
        off = ((model(u) - wanted) ** 2).sum(-1) / (wanted**2).sum(-1)
        return off.sqrt().mean()

    def sample() -> list[Tensor]:
        chosen = rng.integers(0, 1000, 20)
        return [tensor(starts[chosen]), tensor(ends[chosen])]

    train(loss, model.parameters(), sample, arguments.steps, arguments.rate, refresh=1)
    with paddle.no_grad():
        made = model(tensor(starts[1000:])).numpy()
    found = float(np.mean([error(m, e) for m, e in zip(made, ends[1000:], strict=True)]))
    x = np.arange(POINTS) / POINTS
    labels, start = ("x", "u at t = 1"), ("u at t = 0", starts[1000])
    report("Fourier operator", made[0], ends[1000], (x,), labels, arguments.plots, data=start)
    print(f"mean relative L2 error of 100 new solutions: {found:.2e}")
    return found


if __name__ == "__main__":
    main()
