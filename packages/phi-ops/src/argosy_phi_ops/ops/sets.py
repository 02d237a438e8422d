"""Set routines: distinct elements and membership."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.reference.kernels.registry import Array
from argosy_tensorcore.tensor import Tensor


@operator(opaque=True, constant=True)  # which elements there are is a choice
def unique(
    x: Tensor,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    dtype: str = "int64",
    sorted: bool = True,
) -> Tensor:
    """The different elements (or slices along `axis`) in order; on request where they are, and counts. Eager only."""
    raise NotImplementedError  # opaque: the kernel below is all there is


@unique.reference
def _(
    x: Array,
    return_index: bool,
    return_inverse: bool,
    return_counts: bool,
    axis: int | None,
    dtype: str,
    sorted: bool,
) -> Any:
    find: Any = np.unique  # its overloads do not know flags that are variables
    found = find(x, return_index, return_inverse, return_counts, axis)
    if not isinstance(found, tuple):
        return found
    return (found[0], *(np.asarray(v).reshape(-1).astype(dtype) for v in found[1:]))


@unique.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(np.array([3, 1, 3, 2]))
    yield Sample(np.array([[3, 1], [3, 1], [0, 2]]), axis=0, return_index=True, return_inverse=True, return_counts=True)


@operator(promote="binary", aliases={"elements": "x", "test_elements": "test_x"})
def isin(x: Tensor, test_x: Tensor, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element of `x` occurs in `test_x` (does not, if `invert`)."""
    size = test_x.type.size
    shape = (*x.shape, size)
    wanted = prim.broadcast(prim.reshape(test_x, shape=(size,)), shape=shape, axes=(x.ndim,))
    given = prim.broadcast(x, shape=shape, axes=tuple(range(x.ndim)))
    found = prim.reduce_or(prim.eq(given, wanted), axes=(x.ndim,))
    return prim.logical_not(found) if invert else found


@isin.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.integers(0, 5, (2, 3)), np.array([1, 3]))
    yield Sample(rng.integers(0, 5, (2, 3)), np.array([1, 3]), invert=True)
