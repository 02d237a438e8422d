"""Initialisers that draw from a distribution with given parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from argosy.nn.initializer.constant import fill
from argosy.nn.initializer.initializer import Initializer
from argosy_phi_ops.context import context
from argosy_tensorcore.erfinv import erfinv
from argosy_tensorcore.rng import normal_from_bits, philox_bits, philox_part_bits, uniform_from_bits
from argosy_tensorcore.tensor import Tensor

__all__ = ["Normal", "TruncatedNormal", "Uniform", "draw_normal", "draw_uniform"]


def _draw(param: Tensor, convert: Callable[[Any], Any]) -> None:
    """Fill ``param`` with ``convert(bits)``, elementwise, of random bits, uint32; of a distributed one each rank draws
    those of its own part."""
    seed, counter = context().generator.draw()
    part = getattr(param.payload, "part", None)
    if part is None:
        fill(param, convert(philox_bits(seed, counter, param.shape)))
    else:
        param.payload.fill_part(convert(philox_part_bits(seed, counter, part.offset, part.shape, param.shape)))
        param.payload.bump_version()


def draw_uniform(param: Tensor, low: float, high: float) -> None:
    """Fill ``param`` with uniform numbers from [low, high)."""
    _draw(param, lambda bits: uniform_from_bits(bits) * np.float32(high - low) + np.float32(low))


def draw_normal(param: Tensor, mean: float, std: float) -> None:
    """Fill ``param`` with normal numbers."""
    _draw(param, lambda bits: normal_from_bits(bits) * np.float32(std) + np.float32(mean))


class Uniform(Initializer):
    """Uniform numbers from [low, high)."""

    def __init__(self, low: float = -1.0, high: float = 1.0, name: str | None = None) -> None:
        if low > high:
            raise ValueError(f"Uniform: low {low} is greater than high {high}")
        self.low, self.high = float(low), float(high)

    def forward(self, var: Tensor, block: object = None) -> None:
        """Fill ``var``."""
        draw_uniform(var, self.low, self.high)


class Normal(Initializer):
    """Normal numbers of the given mean and standard deviation."""

    def __init__(self, mean: float = 0.0, std: float = 1.0, name: str | None = None) -> None:
        self.mean, self.std = float(mean), float(std)

    def forward(self, var: Tensor, block: object = None) -> None:
        """Fill ``var``."""
        draw_normal(var, self.mean, self.std)


class TruncatedNormal(Initializer):
    """Normal numbers conditioned to lie within [a, b], by the inverse of the distribution function.

    The bounds are those of the result, whatever ``mean`` and ``std`` are.
    """

    def __init__(
        self, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, name: str | None = None
    ) -> None:
        if a >= b:
            raise ValueError(f"TruncatedNormal: a {a} must be less than b {b}")
        self.mean, self.std, self.a, self.b = float(mean), float(std), float(a), float(b)

    def forward(self, var: Tensor, block: object = None) -> None:
        """Fill ``var``."""
        low, high = (math.erf((x - self.mean) / self.std / math.sqrt(2)) for x in (self.a, self.b))

        def convert(bits: Any) -> Any:
            u = uniform_from_bits(bits) * np.float32(high - low) + np.float32(low)
            z = erfinv(u) * np.float32(math.sqrt(2))
            return (z * np.float32(self.std) + np.float32(self.mean)).clip(self.a, self.b)

        _draw(var, convert)
