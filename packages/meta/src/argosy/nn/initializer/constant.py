"""Initialisers without randomness."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy.nn.initializer.initializer import Initializer
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.tensor import Tensor

__all__ = ["Assign", "Constant", "fill"]


def fill(parameter: Tensor, values: Any) -> None:
    """Overwrite the parameter's data with an array that broadcasts to its shape, cast to its dtype."""
    parameter.payload.fill_from(values)
    parameter.payload.bump_version()


class Constant(Initializer):
    """Every element ``value``."""

    def __init__(self, value: float = 0.0) -> None:
        if isinstance(value, str):
            raise TypeError(f"Constant(): argument 'value' must be a number, got {value!r:.60}")
        self.value = value

    def forward(self, var: Tensor, block: object = None) -> None:
        """Fill ``var``."""
        fill(var, np.asarray(self.value))


class Assign(Initializer):
    """The elements of ``value``: an array, a tensor or nested lists with as many elements as the parameter."""

    def __init__(self, value: Any, name: str | None = None) -> None:
        if not isinstance(value, (Tensor, np.ndarray, list, tuple)):
            raise TypeError(f"Assign(): argument 'value' must be a Tensor, an array or a list, got {value!r:.80}")
        self.value = to_numpy(value) if isinstance(value, Tensor) else np.asarray(value)

    def forward(self, var: Tensor, block: object = None) -> None:
        """Fill ``var``. Raises ValueError when the shapes differ."""
        if list(self.value.shape) != list(var.shape):
            raise ValueError(
                f"Assign: the value has shape {list(self.value.shape)}, parameter {var.name} has {list(var.shape)}"
            )
        fill(var, self.value)
