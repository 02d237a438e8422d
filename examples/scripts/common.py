"""What the scripts share: weights that are the same everywhere, and a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Iterator

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
