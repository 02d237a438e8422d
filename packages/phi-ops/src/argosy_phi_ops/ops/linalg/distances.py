"""Distances between vectors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.linalg.norms import length
from argosy_tensorcore.tensor import Tensor


@operator(promote="binary", upcast=True)
def dist(x: Tensor, y: Tensor, p: float = 2) -> Tensor:
    """The p-norm of the difference of two tensors that broadcast."""
    difference = prim.sub(x, y)
    return length(difference, p, tuple(range(difference.ndim)))


@dist.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal(3))
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((2, 3)), float("inf"))


@operator(promote="same", upcast=True)
def cdist(x: Tensor, y: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """The p-norm distance of every row of x [..., m, d] to every row of y [..., n, d]: [..., m, n].

    Differences are always formed, whatever `compute_mode`: exact, and gradients are finite away from equal rows.
    """
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-1]:
        raise ShapeError(f"cdist takes rows of one length, got {x.type} and {y.type}")
    left = prim.reshape(x, shape=(*x.shape[:-1], 1, x.shape[-1]))
    right = prim.reshape(y, shape=(*y.shape[:-2], 1, *y.shape[-2:]))
    difference = prim.sub(left, right)
    return length(difference, p, (difference.ndim - 1,))


@cdist.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((3, 4)), rng.standard_normal((2, 4)))
    yield Sample(rng.standard_normal((2, 3, 4)), rng.standard_normal((1, 2, 4)), 1.0)


@operator(aliases={"x1": "x", "x2": "y", "eps": "epsilon"}, upcast=True)
def pairwise_distance(x: Tensor, y: Tensor, p: float = 2.0, epsilon: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of ``x - y + epsilon`` over the last axis."""
    difference = prim.add(prim.sub(x, y), epsilon)
    result = length(difference, p, (difference.ndim - 1,))
    return prim.reshape(result, shape=(*difference.shape[:-1], 1)) if keepdim else result


@pairwise_distance.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((2, 3)))
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((2, 3)), 1.0, keepdim=True)
