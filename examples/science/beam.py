"""A cantilever beam under a uniform load (Euler-Bernoulli): w'''' = q on 0 < x < 1, fourth order, in float64.

Clamped on the left, w(0) = w'(0) = 0, free on the right, w''(1) = w'''(1) = 0. The reference is the exact quartic.
"""

from __future__ import annotations

import numpy as np
from pinn import Array, Network, Tensor, by, options, paddle, report, train

LOAD = -1.0


def exact(x: Array) -> Array:
    """w = q (x^4 / 24 - x^3 / 6 + x^2 / 4)."""
    return LOAD * (x**4 / 24 - x**3 / 6 + x**2 / 4)


def main() -> float:
    """Train, compare, draw; gives the error."""
    arguments = options(__doc__, steps=3000)
    paddle.seed(arguments.seed)
    network = Network([1, 20, 20, 20, 1])
    network.to(dtype="float64")
    rng = np.random.default_rng(arguments.seed)

    def deflection(x: Tensor) -> Tensor:
        return x[:, 0] ** 2 * network(x)[:, 0]  # clamped

    def loss(x: Tensor, tip: Tensor) -> Tensor:
        load = by(deflection(x), x, 0, 0, 0, 0) - LOAD
        moment = by(deflection(tip), tip, 0, 0)
        shear = by(moment, tip, 0)
        return (load**2).mean() + (moment**2).mean() + (shear**2).mean()

    tip = paddle.to_tensor(np.ones((1, 1)), stop_gradient=False)

    def sample() -> list[Tensor]:
        return [paddle.to_tensor(rng.uniform(0, 1, (100, 1)), stop_gradient=False), tip]

    train(loss, network.parameters(), sample, arguments.steps, arguments.rate)
    x = np.linspace(0, 1, 201)
    with paddle.no_grad():
        field = deflection(paddle.to_tensor(x[:, None])).numpy()
    return report("Beam", field, exact(x), (x,), ("x", "w"), arguments.plots)


if __name__ == "__main__":
    main()
