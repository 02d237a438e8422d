"""What the examples share: a network, a training loop whose whole step is one compiled program, errors, plots."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import argosy as paddle

__all__ = [
    "Array", "Network", "Progress", "Tensor", "by", "error", "evaluate", "grid", "options", "paddle", "report",
    "tensor", "train", "uniform",
]  # fmt: skip

Array = np.ndarray[Any, Any]
Tensor = Any


def options(description: str | None, steps: int) -> argparse.Namespace:
    """Command line: ``--steps``, ``--rate``, ``--seed``, ``--plots`` (a folder; empty: none)."""
    parser = argparse.ArgumentParser(description=(description or "").split("\n")[0])
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--rate", type=float, default=2e-3, help="of Adam, at the start")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plots", default="plots")
    return parser.parse_args()


class Network(paddle.nn.Layer):
    """A tanh network. ``features`` maps the points [n, d] to what the first layer reads."""

    def __init__(self, sizes: Sequence[int], features: Callable[[Tensor], Tensor] | None = None) -> None:
        super().__init__()
        self.layers = paddle.nn.LayerList([paddle.nn.Linear(i, o) for i, o in pairwise(sizes)])
        self.features = features

    def forward(self, points: Tensor) -> Tensor:
        """[n, outputs]."""
        h = points if self.features is None else self.features(points)
        for layer in self.layers[:-1]:
            h = paddle.tanh(layer(h))
        return self.layers[-1](h)


def uniform(rng: np.random.Generator, low: Sequence[float], high: Sequence[float], count: int) -> Tensor:
    """Random points of a box, [count, d], which derivatives can be taken by."""
    points = rng.uniform(low, high, (count, len(low))).astype(np.float32)
    return paddle.to_tensor(points, stop_gradient=False)


def tensor(values: Any) -> Tensor:
    """Numbers as float32."""
    return paddle.to_tensor(np.asarray(values, np.float32))


def by(u: Tensor, points: Tensor, *axes: int) -> Tensor:
    """The partial derivative of ``u`` [n] along ``axes``, one after the other: [n].

    Written as gradients of gradients; the compiled step computes all of them in one forward sweep.
    """
    for axis in axes:
        (slope,) = paddle.grad(u.sum(), points, create_graph=True)
        u = slope[:, axis]
    return u


def train(
    loss: Callable[..., Tensor],
    parameters: Sequence[Tensor],
    sample: Callable[[], Sequence[Tensor]],
    steps: int,
    rate: float,
    refresh: int = 50,
) -> float:
    """Minimise ``loss(*sample())`` with Adam, whose rate falls along a cosine; points are drawn anew every ``refresh``
    steps. Gives the last loss."""
    schedule = paddle.optimizer.lr.CosineAnnealingDecay(rate, T_max=max(steps, 1), eta_min=rate / 100)
    optimizer = paddle.optimizer.Adam(schedule, parameters=list(parameters))

    @paddle.jit.to_static(full_graph=True)
    def step(*points: Tensor) -> Tensor:
        value = loss(*points)
        value.backward()
        optimizer.step()
        optimizer.clear_grad()
        return value

    bar = Progress(steps)
    value = float("nan")
    points = sample()
    for number in range(steps):
        if number % refresh == 0:
            points = sample()
        made = step(*points)
        schedule.step()
        if number % 20 == 0 or number == steps - 1:
            value = float(made)
            bar.show(number + 1, f"loss {value:.3e}")
    bar.end()
    return value


class Progress:
    """One line on the terminal: a bar, steps, time, and a note."""

    def __init__(self, total: int) -> None:
        self.total, self.start = total, time.perf_counter()

    def show(self, done: int, note: str) -> None:
        """Draw it."""
        passed = time.perf_counter() - self.start
        filled = 30 * done // max(self.total, 1)
        left = passed / done * (self.total - done)
        line = f"[{'=' * filled}{' ' * (30 - filled)}] {done}/{self.total}  {passed:4.0f} s, {left:4.0f} s left  {note}"
        sys.stderr.write("\r" + line + "  ")
        sys.stderr.flush()

    def end(self) -> None:
        """Leave the line."""
        sys.stderr.write("\n")


def evaluate(model: Callable[[Tensor], Tensor], points: Array) -> Array:
    """The model at many points [n, d], without recording."""
    with paddle.no_grad():
        found: Array = model(tensor(points)).numpy()
    return found


def grid(*axes: Array) -> Array:
    """All points of a grid as rows, the last axis fastest."""
    return np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], -1)


def error(field: Array, reference: Array) -> float:
    """Relative error in the L2 norm."""
    return float(np.linalg.norm(field - reference) / np.linalg.norm(reference))


def report(
    name: str,
    field: Array,
    reference: Array,
    axes: Sequence[Array],
    labels: Sequence[str],
    plots: str,
    *,
    by: str = "network",
    data: tuple[str, Array] | None = None,
) -> float:
    """Print the error and draw field, reference and error: curves over one axis, maps over two. Gives the error.

    ``labels`` name the axes, then what is drawn; ``by`` says what made the field; ``data`` is one more curve, drawn as
    points, and its name.
    """
    found = error(field, reference)
    print(f"{name}: relative L2 error {found:.2e}, largest error {np.abs(field - reference).max():.2e}")
    if plots:
        _draw(name, field, reference, axes, labels, plots, by, data)
    return found


def _draw(
    name: str,
    field: Array,
    reference: Array,
    axes: Sequence[Array],
    labels: Sequence[str],
    plots: str,
    by: str,
    data: tuple[str, Array] | None,
) -> None:
    try:
        import matplotlib
    except ModuleNotFoundError:
        print("no plot: python -m pip install matplotlib")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = ((by, field), ("reference", reference), ("error", field - reference))
    if len(axes) == 1:
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
        left.plot(axes[0], reference, label="reference", linewidth=3, alpha=0.5)
        left.plot(axes[0], field, "--", label=by)
        if data is not None:
            left.plot(axes[0], data[1], ".", color="black", markersize=2, label=data[0])
        left.set(title=name, xlabel=labels[0], ylabel=labels[1])
        left.legend()
        right.plot(axes[0], field - reference, color="tab:red")
        right.set(title="error", xlabel=labels[0], ylabel=labels[1])
    else:
        figure, places = pyplot.subplots(1, 3, figsize=(14, 3.6), layout="constrained")
        largest = np.abs(field - reference).max()
        mapped = {"cmap": "viridis", "vmin": reference.min(), "vmax": reference.max()}
        signed = {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest}
        for place, (title, values) in zip(places, panels, strict=True):
            colours = signed if title == "error" else mapped
            image = place.pcolormesh(axes[0], axes[1], values.T, shading="gouraud", rasterized=True, **colours)
            place.set(title=f"{name}: {title}", xlabel=labels[0], ylabel=labels[1])
            figure.colorbar(image, ax=place, label=labels[2])
    target = Path(plots) / f"{name.lower().replace(' ', '_')}.png"
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=120)
    pyplot.close(figure)
    print(f"plot: {target}")
