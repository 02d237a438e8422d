"""Casts and copies."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.reference.kernels import KERNELS
from argosy_tensorcore.tensor import Tensor


@operator(reference=KERNELS["cast"])
def cast(x: Tensor, dtype: str) -> Tensor:
    """The elements converted to `dtype`."""
    return prim.cast(x, dtype=dtype)


def cast_samples(rng: np.random.Generator) -> Iterator[Sample]:
    """Between floats and integers, and to the same dtype."""
    yield Sample(rng.standard_normal((2, 3)) * 5, "int32")
    yield Sample(rng.integers(0, 3, 4), "bool")
    yield Sample(rng.standard_normal(3), "float64")


cast.samples(cast_samples)


@operator(reference=KERNELS["cast"], samples=cast_samples)
def astype(x: Tensor, dtype: str) -> Tensor:
    """The elements converted to `dtype`, as :func:`cast`."""
    return prim.cast(x, dtype=dtype)


def copy_elements(rng: np.random.Generator) -> Iterator[Sample]:
    """A matrix and a 0-D tensor."""
    yield Sample(rng.standard_normal((2, 3)))
    yield Sample(np.asarray(True))


@operator(reference=KERNELS["copy"], samples=copy_elements)
def clone(x: Tensor) -> Tensor:
    """A copy in memory of its own, through which gradients flow."""
    return prim.copy(x)


@operator(reference=KERNELS["copy"], samples=copy_elements)
def assign(x: Tensor) -> Tensor:
    """A copy in memory of its own, as :func:`clone`."""
    return prim.copy(x)
