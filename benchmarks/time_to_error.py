"""Seconds of training until the error against the exact solution falls below a bound: Burgers' equation and the beam.

``torch-deepxde`` and ``argosy-deepxde`` are DeepXDE's own examples of the two, unmodified, on each back end (torch's,
and Paddle's with argosy in its place); ``argosy`` is the same network, loss, points and optimizer written out, with the
whole step compiled. All train with Adam at a rate of 1e-3; the error is looked at every 250 steps, and not counted.
Needs ``deepxde``; ``--seconds`` ends a run that does not get there.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from timing import arguments

BOUNDS = {"burgers": 0.1, "beam": 0.01}
SIZES = {"burgers": [2, 20, 20, 20, 1], "beam": [1, 20, 20, 20, 1]}
VISCOSITY = 0.01 / np.pi
EVERY = 250


def burgers(x: Any, t: Any) -> Any:
    """u at points given by equal arrays: Cole-Hopf, by Gauss-Hermite quadrature (Basdevant et al., 1986)."""
    nodes, weights = np.polynomial.hermite.hermgauss(100)
    y = x[:, None] - np.sqrt(4 * VISCOSITY * np.maximum(t, 1e-12))[:, None] * nodes
    heights = np.exp(-(np.cos(np.pi * y) - 1) / (2 * np.pi * VISCOSITY) - 1 / (np.pi * VISCOSITY)) * weights
    return -(np.sin(np.pi * y) * heights).sum(-1) / heights.sum(-1)


def checked(case: str) -> tuple[Any, Any]:
    """Points [n, d] to compare at, and the exact values [n]."""
    if case == "beam":
        x = np.linspace(0, 1, 201)
        return x[:, None], -(x**4) / 24 + x**3 / 6 - x**2 / 4
    grid = np.stack([a.ravel() for a in np.meshgrid(np.linspace(-1, 1, 101), np.linspace(0, 0.99, 51))], -1)
    return grid, burgers(*grid.T)


class Clock:
    """Counts the time between looks at the error; ``done`` once it is small enough or time is up."""

    def __init__(self, case: str, limit: float) -> None:
        self.points, self.exact = checked(case)
        self.bound, self.limit = BOUNDS[case], limit
        self.spent, self.steps, self.error = 0.0, 0, float("inf")
        self.since = time.perf_counter()

    def look(self, steps: int, predict: Callable[[Any], Any]) -> bool:
        """Compare; whether training may stop."""
        self.spent += time.perf_counter() - self.since
        self.steps = steps
        found = np.asarray(predict(self.points)).reshape(-1)
        self.error = float(np.linalg.norm(found - self.exact) / np.linalg.norm(self.exact))
        self.since = time.perf_counter()
        return self.error < self.bound or self.spent > self.limit


def deepxde_run(case: str, clock: Clock) -> None:
    """DeepXDE's example, trained until the clock stops it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import deepxde as dde
    dde.config.set_random_seed(0)
    if case == "beam":
        dde.config.set_default_float("float64")
    data = _burgers_data(dde) if case == "burgers" else _beam_data(dde)
    model = dde.Model(data, dde.nn.FNN(SIZES[case], "tanh", "Glorot uniform"))
    model.compile("adam", lr=1e-3, verbose=0)

    class Look(dde.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_end(self) -> None:
            if self.model.train_state.epoch % EVERY == 0:
                self.model.stop_training = clock.look(self.model.train_state.epoch, self.model.predict)

    clock.since = time.perf_counter()
    model.train(iterations=10**6, display_every=10**7, callbacks=[Look()], verbose=0)


def _burgers_data(dde: Any) -> Any:
    def pde(x: Any, y: Any) -> Any:
        slope, rate = (dde.grad.jacobian(y, x, i=0, j=j) for j in (0, 1))
        return rate + y * slope - VISCOSITY * dde.grad.hessian(y, x, i=0, j=0)

    geometry = dde.geometry.GeometryXTime(dde.geometry.Interval(-1, 1), dde.geometry.TimeDomain(0, 0.99))
    border = dde.icbc.DirichletBC(geometry, lambda x: 0, lambda _, on: on)
    start = dde.icbc.IC(geometry, lambda x: -np.sin(np.pi * x[:, 0:1]), lambda _, on: on)
    return dde.data.TimePDE(geometry, pde, [border, start], num_domain=2540, num_boundary=80, num_initial=160)


def _beam_data(dde: Any) -> Any:
    def bending(x: Any, y: Any, *_: Any) -> Any:
        return dde.grad.hessian(y, x)

    geometry = dde.geometry.Interval(0, 1)
    left, right = ((lambda x, on, end=end: on and dde.utils.isclose(x[0], end)) for end in (0, 1))
    conditions = [
        dde.icbc.DirichletBC(geometry, lambda x: 0, left),
        dde.icbc.NeumannBC(geometry, lambda x: 0, left),
        dde.icbc.OperatorBC(geometry, bending, right),
        dde.icbc.OperatorBC(geometry, lambda x, y, _: dde.grad.jacobian(bending(x, y), x), right),
    ]
    return dde.data.PDE(
        geometry, lambda x, y: dde.grad.hessian(bending(x, y), x) + 1, conditions, num_domain=10, num_boundary=2
    )


def compiled_run(case: str, clock: Clock) -> None:
    """The same by hand: one compiled program is a step."""
    import argosy as paddle

    paddle.seed(0)
    dtype = "float64" if case == "beam" else "float32"
    paddle.set_default_dtype(dtype)
    layers = [paddle.nn.Linear(i, o) for i, o in zip(SIZES[case], SIZES[case][1:], strict=False)]
    for layer in layers:
        paddle.nn.initializer.XavierUniform()(layer.weight)
    stack = paddle.nn.Sequential(*[part for layer in layers for part in (layer, paddle.nn.Tanh())][:-1])
    optimizer = paddle.optimizer.Adam(1e-3, parameters=stack.parameters())
    rng = np.random.default_rng(0)
    loss, points = (_burgers_loss if case == "burgers" else _beam_loss)(paddle, stack, rng, dtype)

    @paddle.jit.to_static(full_graph=True)  # type: ignore[untyped-decorator]
    def step(*points: Any) -> Any:
        value = loss(*points)
        value.backward()
        optimizer.step()
        optimizer.clear_grad()
        return value

    def predict(x: Any) -> Any:
        with paddle.no_grad():
            return stack(paddle.to_tensor(x.astype(dtype))).numpy()

    clock.since = time.perf_counter()
    number, done = 0, False
    while not done:
        step(*points)
        number += 1
        done = number % EVERY == 0 and clock.look(number, predict)


def _by(paddle: Any, u: Any, points: Any, *axes: int) -> Any:
    for axis in axes:
        (slope,) = paddle.grad(u.sum(), points, create_graph=True)
        u = slope[:, axis : axis + 1]
    return u


def _burgers_loss(paddle: Any, stack: Any, rng: Any, dtype: str) -> tuple[Callable[..., Any], list[Any]]:
    x, t = rng.uniform(-1, 1, 160), rng.uniform(0, 0.99, 80)
    inside = rng.uniform([-1, 0], [1, 0.99], (2540, 2))
    border = np.stack([np.where(np.arange(80) % 2, 1.0, -1.0), t], -1)
    start = np.stack([x, 0 * x], -1)
    everywhere = paddle.to_tensor(np.concatenate([border, start, inside]).astype(dtype), stop_gradient=False)
    wanted = paddle.to_tensor(-np.sin(np.pi * x)[:, None].astype(dtype))

    def loss(q: Any) -> Any:
        u = stack(q)
        slope = _by(paddle, u, q, 0)
        residual = _by(paddle, u, q, 1) + u * slope - VISCOSITY * _by(paddle, slope, q, 0)
        return (residual**2).mean() + (u[:80] ** 2).mean() + ((u[80:240] - wanted) ** 2).mean()

    return loss, [everywhere]


def _beam_loss(paddle: Any, stack: Any, rng: Any, dtype: str) -> tuple[Callable[..., Any], list[Any]]:
    x = np.concatenate([[0.0, 1.0], (np.arange(10) + 1) / 11])[:, None]
    points = paddle.to_tensor(x.astype(dtype), stop_gradient=False)

    def loss(x: Any) -> Any:
        w = stack(x)
        slope = _by(paddle, w, x, 0)
        moment = _by(paddle, slope, x, 0)
        shear = _by(paddle, moment, x, 0)
        load = _by(paddle, shear, x, 0)
        return ((load + 1) ** 2).mean() + w[0, 0] ** 2 + slope[0, 0] ** 2 + moment[1, 0] ** 2 + shear[1, 0] ** 2

    return loss, [points]


def main() -> None:
    """One run, one JSON line."""
    options = arguments(__doc__ or "", ("argosy", "argosy-deepxde", "torch-deepxde"), tuple(BOUNDS))
    clock = Clock(options.case, options.seconds)
    if options.framework == "argosy":
        compiled_run(options.case, clock)
    else:
        os.environ["DDE_BACKEND"] = "pytorch" if options.framework == "torch-deepxde" else "paddle"
        if options.framework == "argosy-deepxde":
            import argosy

            argosy.__version__ = "3.1.0"  # the last before memory-mapped storage, which it would ask for
            sys.modules["paddle"] = argosy
        deepxde_run(options.case, clock)
    print(
        json.dumps({
            "workload": "time_to_error", "case": options.case, "framework": options.framework,
            "threads": options.threads, "bound": clock.bound, "reached": clock.error < clock.bound,
            "seconds": round(clock.spent, 2), "steps": clock.steps, "error": clock.error,
            "ms_per_step": round(clock.spent / max(clock.steps, 1) * 1e3, 3),
            "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        })
    )  # fmt: skip


if __name__ == "__main__":
    main()
