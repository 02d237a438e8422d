"""Elementwise arithmetic."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.ops.arguments import pairs
from argosy_phi_ops.reference.kernels import KERNELS
from argosy_tensorcore.tensor import Tensor


@operator(
    axes="..., ... -> ...", promote="binary", inplace=True, aliases={"input": "x", "other": "y"}, keywords=("alpha",)
)
def add(x: Tensor, y: Tensor) -> Tensor:
    """``x + y`` with broadcasting; of two booleans whether either holds."""
    return prim.logical_or(x, y) if x.dtype == "bool" == y.dtype else prim.add(x, y)


add.reference(KERNELS["add"])
add.samples(pairs)


@operator(
    axes="..., ... -> ...", promote="binary", inplace=True, aliases={"input": "x", "other": "y"}, keywords=("alpha",)
)
def subtract(x: Tensor, y: Tensor) -> Tensor:
    """``x - y`` with broadcasting."""
    return prim.sub(x, y)


subtract.reference(KERNELS["sub"])
subtract.samples(pairs)


@operator(axes="..., ... -> ...", promote="binary", inplace=True, aliases={"input": "x", "other": "y"})
def multiply(x: Tensor, y: Tensor) -> Tensor:
    """``x * y`` with broadcasting; of two booleans whether both hold."""
    return prim.logical_and(x, y) if x.dtype == "bool" == y.dtype else prim.mul(x, y)


multiply.reference(KERNELS["mul"])
multiply.samples(pairs)


@operator(
    axes="..., ... -> ...",
    promote="divide",
    inplace=True,
    aliases={"input": "x", "other": "y"},
    keywords=("rounding_mode",),
)
def divide(x: Tensor, y: Tensor) -> Tensor:
    """True division ``x / y`` with broadcasting; integers divide in float32."""
    return prim.div(x, y)


divide.reference(KERNELS["div"])


@divide.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.uniform(1, 2, (2, 1)))
    yield Sample(rng.integers(0, 9, 3), rng.integers(1, 9, 3))


@operator(axes="..., ... -> ...", promote="binary", inplace=True, aliases={"input": "x", "other": "y", "exponent": "y"})
def pow_(x: Tensor, y: Tensor) -> Tensor:
    """``x`` to the power ``y`` with broadcasting."""
    return prim.pow(x, y)


pow_.reference(KERNELS["pow"])


@pow_.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.uniform(0.1, 2, (2, 3)), rng.standard_normal(3))
    yield Sample(rng.integers(1, 5, 3), rng.integers(0, 4, 3))
    yield Sample(rng.standard_normal((2, 3)).astype(np.float32), 2.0)
