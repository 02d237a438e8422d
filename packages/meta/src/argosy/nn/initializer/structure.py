"""Initialisers that give weights a structure: orthogonal matrices, identities, interpolation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from argosy.nn.initializer.constant import fill
from argosy.nn.initializer.initializer import Initializer
from argosy_phi_ops.context import context
from argosy_tensorcore.rng import normal_from_bits, philox_bits
from argosy_tensorcore.tensor import Tensor

__all__ = ["Bilinear", "Dirac", "Orthogonal"]


class Orthogonal(Initializer):
    """Rows (or columns, the fewer of the two) orthonormal, times ``gain``; axes after the first count as one.

    Source: Saxe, McClelland and Ganguli, 2014, by the QR decomposition of normal numbers.
    """

    def __init__(self, gain: float = 1.0, name: str | None = None) -> None:
        if gain is None:
            raise ValueError("Orthogonal: gain is a number, got None")
        self.gain = gain

    def forward(self, param: Tensor, block: object = None) -> None:
        """Fill ``param``. Raises ValueError for fewer than two axes."""
        shape = list(param.shape)
        if len(shape) < 2:
            raise ValueError(f"Orthogonal: parameter {param.name} has shape {shape}; at least two axes are needed")
        rows, columns = shape[0], math.prod(shape[1:])
        tall = [max(rows, columns), min(rows, columns)]
        drawn = normal_from_bits(philox_bits(*context().generator.draw(), tall)).astype(np.float64)
        q, r = np.linalg.qr(drawn)
        q = q * np.sign(np.diagonal(r))  # so that every orthogonal matrix is equally likely
        fill(param, self.gain * (q.T if rows < columns else q).reshape(shape))


class Dirac(Initializer):
    """Convolutions that pass their input on: channel i of each of ``groups`` groups takes input channel i alone."""

    def __init__(self, groups: int = 1, name: str | None = None) -> None:
        if not isinstance(groups, int) or groups < 1:
            raise ValueError(f"Dirac: groups is a positive integer, got {groups!r}")
        self.groups = groups

    def forward(self, param: Tensor, block: object = None) -> None:
        """Fill ``param`` [out, in, *kernel]. Raises ValueError for other ranks, and when groups do not divide out."""
        shape = list(param.shape)
        if len(shape) not in (3, 4, 5) or shape[0] % self.groups:
            raise ValueError(
                f"Dirac: parameter {param.name} of shape {shape} is no weight [out, in, ...] of {self.groups} groups"
            )
        values, size = np.zeros(shape), shape[0] // self.groups
        centre = tuple(n // 2 for n in shape[2:])
        for group in range(self.groups):
            for channel in range(min(size, shape[1])):
                values[(group * size + channel, channel, *centre)] = 1.0
        fill(param, values)


class Bilinear(Initializer):
    """Transposed convolutions that interpolate: every filter of [out, in, size, size] is a tent."""

    def forward(self, var: Tensor, block: object = None) -> None:
        """Fill ``var``. Raises ValueError when it is not [.., .., size, size]."""
        shape = list(var.shape)
        if len(shape) != 4 or shape[2] != shape[3]:
            raise ValueError(f"Bilinear: parameter {var.name} of shape {shape} is not [out, in, size, size]")
        fill(var, np.broadcast_to(_tent(shape[3]), shape))


def _tent(size: int) -> Any:
    """[size, size]; as in Paddle the row number has the column's share as its fraction."""
    half = math.ceil(size / 2)
    centre = (2 * half - 1 - half % 2) / (2 * half)
    place = np.arange(size * size)
    across, down = place % size, (place / size) % size
    return ((1 - abs(across / half - centre)) * (1 - abs(down / half - centre))).reshape(size, size)
