"""An inverse problem: the three parameters of Lorenz' equations from noisy observations of a trajectory.

x' = s (y - x), y' = x (r - z) - y, z' = x y - b z with s = 10, r = 28, b = 8/3. Each short stretch of the observations
starts an integration of its own (multiple shooting), so that chaos does not spoil the gradients; they go through
``science.odeint``, one compiled loop, and Levenberg-Marquardt does the rest.
"""

from __future__ import annotations

import numpy as np
from pinn import Progress, Tensor, error, options, paddle, report

TRUE = np.array([10.0, 28.0, 8 / 3])
STRETCH, STRETCHES, STEP, NOISE = 10, 20, 0.02, 0.05


def field(t: Tensor, state: Tensor, p: Tensor) -> Tensor:
    """The right-hand side for states [..., 3]."""
    x, y, z = state[..., 0], state[..., 1], state[..., 2]
    return paddle.stack([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z], -1)


def main() -> float:
    """Fit, compare, draw; gives the relative error of the parameters."""
    arguments = options(__doc__, steps=25)
    rng = np.random.default_rng(arguments.seed)
    times = paddle.to_tensor(np.arange(STRETCH * STRETCHES + 1) * STEP)
    start = paddle.to_tensor(np.array([-8.0, 7.0, 27.0]))
    with paddle.no_grad():
        path = paddle.science.odeint(field, start, times, paddle.to_tensor(TRUE), substeps=4).numpy()
    observed = path + NOISE * rng.standard_normal(path.shape)
    windows = np.stack([observed[i : i + STRETCH + 1] for i in range(0, STRETCH * STRETCHES, STRETCH)], 1)
    data, short = paddle.to_tensor(windows), times[: STRETCH + 1]

    def residuals(unknown: Tensor) -> Tensor:
        parameters, starts = unknown[:3], unknown[3:].reshape([STRETCHES, 3])
        made = paddle.science.odeint(field, starts, short, parameters, substeps=2)
        return (made - data) / NOISE

    bar = Progress(arguments.steps)
    unknown = paddle.to_tensor(np.concatenate([[5.0, 15.0, 1.0], windows[0].ravel()]))
    for number in range(arguments.steps):
        fit = paddle.science.levenberg_marquardt(residuals, unknown, steps=1, inner=60)
        moved = float((fit.x - unknown).abs().max())
        unknown = fit.x
        bar.show(number + 1, f"cost {fit.cost:.4e}  s, r, b = {np.round(unknown.numpy()[:3], 3)}")
        if moved < 1e-8:
            bar.show(arguments.steps, f"cost {fit.cost:.4e}")
            break
    bar.end()
    found = unknown[:3]
    print("parameters:", np.round(found.numpy(), 4), "true:", np.round(TRUE, 4))
    with paddle.no_grad():
        again = paddle.science.odeint(field, start, times, found, substeps=4).numpy()
    seen = ("observed", observed[:, 0])
    report("Lorenz", again[:, 0], path[:, 0], (times.numpy(),), ("t", "x"), arguments.plots, by="fit", data=seen)
    off = error(found.numpy(), TRUE)
    print(f"parameters: relative error {off:.2e}")
    return off


if __name__ == "__main__":
    main()
