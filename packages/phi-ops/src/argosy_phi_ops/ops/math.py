"""Elementwise arithmetic."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.operator import Sample, operator
from argosy_tensorcore.tensor import Tensor


@operator(axes="..., ... -> ...", promote="binary", inplace=True, aliases={"input": "x", "other": "y"})
def add(x: Tensor, y: Tensor) -> Tensor:
    """``x + y`` with broadcasting."""
    return prim.add(x, y)


add.reference(np.add)


@add.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((2, 3)))
    yield Sample(rng.standard_normal((2, 1, 3)), rng.standard_normal((4, 1)))


@operator(axes="..., ... -> ...", promote="binary", inplace=True, aliases={"input": "x", "other": "y"})
def subtract(x: Tensor, y: Tensor) -> Tensor:
    """``x - y`` with broadcasting."""
    return prim.sub(x, y)


subtract.reference(np.subtract)


@operator(axes="..., ... -> ...", promote="binary", inplace=True, aliases={"input": "x", "other": "y"})
def multiply(x: Tensor, y: Tensor) -> Tensor:
    """``x * y`` with broadcasting."""
    return prim.mul(x, y)


multiply.reference(np.multiply)


@operator(axes="..., ... -> ...", promote="divide", inplace=True, aliases={"input": "x", "other": "y"})
def divide(x: Tensor, y: Tensor) -> Tensor:
    """True division ``x / y`` with broadcasting; integers divide in float32."""
    return prim.div(x, y)


divide.reference(np.true_divide)


@operator(axes="..., ... -> ...", promote="binary", inplace=True, aliases={"input": "x", "other": "y"})
def pow_(x: Tensor, y: Tensor) -> Tensor:
    """``x`` to the power ``y`` with broadcasting."""
    return prim.pow(x, y)


pow_.reference(np.power)


@operator(axes="... -> ...", promote="float", inplace=True, aliases={"input": "x"})
def rsqrt(x: Tensor) -> Tensor:
    """``1 / sqrt(x)`` elementwise."""
    return prim.rsqrt(x)
