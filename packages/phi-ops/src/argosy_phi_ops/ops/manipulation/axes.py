"""Axes in another order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.call_overloads import two_axes
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import AxisError, ShapeError
from argosy_phi_ops.ops.common.arguments import axis_of
from argosy_tensorcore.tensor import Tensor


@operator(view=True, form=two_axes)
def transpose(x: Tensor, perm: Sequence[int]) -> Tensor:
    """The axes in the order `perm`. A view."""
    if len(perm) != x.ndim:
        raise ShapeError(f"transpose: perm {list(perm)} should name each of the {x.ndim} axes of {x.type}")
    return prim.transpose(x, permutation=tuple(axis_of("transpose", axis, x.ndim) for axis in perm))


@transpose.reference
def _(x: np.ndarray, perm: Sequence[int]) -> np.ndarray:
    return x.transpose(perm)


@transpose.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3, 4)), [2, 0, 1])
    yield Sample(rng.standard_normal((2, 3)), [-1, 0])


@operator(view=True)
def t(input: Tensor) -> Tensor:
    """The transposed matrix; vectors and 0-D tensors as they are. A view."""
    if input.ndim > 2:
        raise ShapeError(f"t takes at most 2 axes, got {input.type}; use transpose")
    return prim.transpose(input, permutation=(1, 0)) if input.ndim == 2 else input


@t.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)))
    yield Sample(rng.standard_normal(3))


@operator(view=True)
def matrix_transpose(x: Tensor) -> Tensor:
    """The last two axes exchanged. A view."""
    if x.ndim < 2:
        raise ShapeError(f"matrix_transpose needs two axes, got {x.type}")
    return prim.transpose(x, permutation=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


@matrix_transpose.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3, 4)))


@operator(view=True)
def moveaxis(x: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """The axes `source` moved to the places `destination`, the others kept in order. A view."""
    sources, targets = (
        [axis_of("moveaxis", a, x.ndim) for a in ((axes,) if isinstance(axes, int) else axes)]
        for axes in (source, destination)
    )
    if len(sources) != len(targets) or len(set(sources)) != len(sources) or len(set(targets)) != len(targets):
        raise AxisError(f"moveaxis: {source} and {destination} should be as many distinct axes")
    rest = iter(axis for axis in range(x.ndim) if axis not in sources)
    moved = dict(zip(targets, sources, strict=True))
    return prim.transpose(x, permutation=tuple(moved[i] if i in moved else next(rest) for i in range(x.ndim)))


@moveaxis.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3, 4)), 0, -1)
    yield Sample(rng.standard_normal((2, 3, 4)), [0, 2], [1, 0])


@operator(view=True, aliases={"input": "x", "axis0": "perm", "dim0": "perm", "dim1": "axis1"})
def swapaxes(x: Tensor, perm: int | Sequence[int], axis1: int | None = None) -> Tensor:
    """The axes `perm` and `axis1` exchanged; or with a list `perm` alone as by `transpose`. A view."""
    if axis1 is None:
        if isinstance(perm, int):
            raise AxisError(f"swapaxes: takes two axes or a permutation of all, got axis {perm} alone")
        return transpose(x, perm)
    order = list(range(x.ndim))
    first, second = axis_of("swapaxes", perm, x.ndim), axis_of("swapaxes", axis1, x.ndim)
    order[first], order[second] = second, first
    return prim.transpose(x, permutation=tuple(order))


@swapaxes.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3, 4)), 0, -1)
    yield Sample(rng.standard_normal((2, 3, 4)), [2, 0, 1])
