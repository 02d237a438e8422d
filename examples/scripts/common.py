"""What the scripts share: weights that are the same everywhere, a progress bar, pictures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np


def fixed_weights(model: object, seed: int = 0, scale: float = 0.1) -> None:
    """Fill what ``model`` drew at random from numpy's generator instead, so that runs of any framework start alike."""
    rng = np.random.default_rng(seed)
    for parameter in model.parameters():  # type: ignore[attr-defined]
        if parameter.numpy().std() > 0:
            parameter.set_value((scale * rng.standard_normal(parameter.shape)).astype("float32"))


def steps(count: int, what: str = "training") -> Iterator[int]:
    """0, 1, ..., with a bar on a terminal."""
    live = sys.stdout.isatty()
    for i in range(count):
        if live:
            done = 30 * (i + 1) // count
            sys.stdout.write(f"\r{what} [{'=' * done}{' ' * (30 - done)}] {i + 1}/{count}")
        yield i
    if live:
        sys.stdout.write("\n")


def options(description: str | None, **numbers: int) -> argparse.Namespace:
    """The command line: ``--plots``, a folder for pictures, and numbers with their defaults, such as ``--steps``."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--plots", default="plots", help="a folder for the picture; empty: none")
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


def draw(name: str, folder: str, columns: int, paint: Callable[..., None], size: float = 3.4) -> None:
    """Save ``folder/name.png``: ``paint`` gets ``columns`` axes side by side. Without matplotlib it says so."""
    if not folder:
        return
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        print("no picture: python -m pip install matplotlib")
        return
    figure = Figure(figsize=(size * 1.25 * columns, size), layout="constrained")
    paint(*np.atleast_1d(figure.subplots(1, columns)))
    target = Path(folder) / f"{name}.png"
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=100)
    print(f"picture: {target}")


def tiles(images: Any, columns: int) -> np.ndarray:
    """Images [n, h, w] beside and below each other, with a line between them."""
    n, h, w = images.shape
    rows = -(-n // columns)
    sheet = np.full((rows * (h + 1) - 1, columns * (w + 1) - 1), np.nan, np.float32)
    for i, image in enumerate(images):
        top, left = i // columns * (h + 1), i % columns * (w + 1)
        sheet[top : top + h, left : left + w] = image
    return sheet


def curve(axes: Any, values: Any, title: str = "loss", log: bool = False) -> None:
    """A curve over steps, with its running mean."""
    values = np.asarray(values, float)
    width = max(len(values) // 40, 1)
    axes.plot(values, alpha=0.35)
    axes.plot(np.arange(width - 1, len(values)), np.convolve(values, np.full(width, 1 / width), "valid"), color="C0")
    axes.set(title=title, xlabel="step", yscale="log" if log else "linear")


def confusion(axes: Any, truth: Any, found: Any, names: Any) -> None:
    """How often each class was taken for each."""
    counts = np.zeros((len(names), len(names)))
    np.add.at(counts, (np.asarray(truth), np.asarray(found)), 1)
    axes.imshow(counts / np.maximum(counts.sum(1, keepdims=True), 1), cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(range(len(names)), names, fontsize=8)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set(title="confusion", xlabel="found", ylabel="truth")
