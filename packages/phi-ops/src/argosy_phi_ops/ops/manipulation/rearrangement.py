"""Rearrangement of elements: flips, rotations, shifts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.ops.common.arguments import Axes, axes_of, axis_of, section
from argosy_pir.dims import maximum
from argosy_tensorcore.tensor import Tensor


@operator()
def flip(x: Tensor, axis: Axes) -> Tensor:
    """The order of the elements along `axis` (one or several, or none of an empty list) turned round."""
    if isinstance(axis, Sequence) and not axis:
        return prim.reverse(x, axes=())
    return prim.reverse(x, axes=axes_of("flip", axis, x.ndim))


@flip.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), 1)
    yield Sample(rng.standard_normal((2, 3)), [0, -1])


@operator(aliases={"dims": "axis"})
def roll(x: Tensor, shifts: int | Sequence[int], axis: Axes = None) -> Tensor:
    """Elements moved on by `shifts` along `axis`, those that fall off coming back in front.

    Without `axis`, or with no axes, the tensor is rolled as if it were flat.
    """
    if axis is None or axis in ((), []):
        rolled = _roll(prim.reshape(x, shape=(x.type.size,)), 0, shifts if isinstance(shifts, int) else shifts[0])
        return prim.reshape(rolled, shape=x.shape)
    steps = (shifts,) if isinstance(shifts, int) else shifts
    axes = (axis,) if isinstance(axis, int) else axis
    for step, at in zip(steps, axes, strict=True):
        x = _roll(x, axis_of("roll", at, x.ndim), step)
    return x


def _roll(x: Tensor, axis: int, step: int) -> Tensor:
    size = x.shape[axis]
    if size == 0:
        return x
    start = (-step) % maximum(size, 1)  # an open size may be none at a call
    return prim.concat(section(x, axis, start, size), section(x, axis, 0, start), axis=axis)


@roll.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((3, 4))
    yield Sample(x, 5)
    yield Sample(x, -1, 0)
    yield Sample(x, [1, 2], [0, 1])


@operator()
def rot90(x: Tensor, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """The plane of two axes turned by `k` right angles, from the first axis towards the second."""
    first, second = (axis_of("rot90", axis, x.ndim) for axis in axes)
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    turns = k % 4
    if turns == 0:
        return x
    if turns == 2:
        return prim.reverse(x, axes=(first, second))
    if turns == 1:
        return prim.transpose(prim.reverse(x, axes=(second,)), permutation=tuple(order))
    return prim.reverse(prim.transpose(x, permutation=tuple(order)), axes=(second,))


@rot90.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    for k in (1, 2, 3, 4):
        yield Sample(rng.standard_normal((2, 3, 4)), k, [1, 2])
