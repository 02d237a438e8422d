"""Masks: selection and replacement where a condition holds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.ops.common.arguments import INPUT, INPUT_OTHER
from argosy_phi_ops.reference.kernels.registry import Array
from argosy_tensorcore.tensor import Tensor

# Results whose size depends on the values: these run eagerly only


@operator(opaque=True, aliases=INPUT)
def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """The elements of `x` where `mask` holds, as a vector. Its size depends on the values: eager only."""
    raise NotImplementedError  # opaque: the kernel below is all there is


@masked_select.reference
def _(x: Array, mask: Array) -> Array:
    both = np.broadcast_arrays(x, mask)
    return both[0][both[1]]


@masked_select.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), np.array([True, False, True]))


@operator(opaque=True, aliases=INPUT)
def nonzero(x: Tensor) -> Tensor:
    """The positions of the elements that are not zero, [count, axes]. Eager only."""
    raise NotImplementedError  # opaque: the kernel below is all there is


@nonzero.reference
def _(x: Array) -> Array:
    return np.stack(np.atleast_1d(x).nonzero(), 1).astype(np.int64) if x.ndim else np.zeros((int(x != 0), 0), np.int64)


@nonzero.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(np.array([[0, 1], [2, 0]]))


@operator(promote="where", inplace=True, aliases=INPUT_OTHER)
def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """`x` where `condition` holds, else `y`, with broadcasting."""
    if condition.dtype != "bool":
        condition = prim.cast(condition, dtype="bool")
    return prim.select(condition, x, y)


@where.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.random((2, 3)) < 0.5, rng.standard_normal((2, 3)), rng.standard_normal(3))
    yield Sample(rng.random((2, 3)) < 0.5, rng.standard_normal((2, 1)), 0.0)


@operator(promote="first", inplace=True)
def masked_fill(x: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """`value` (a number or a 0-D tensor) where `mask` holds, else `x`; the dtype stays that of `x`."""
    filler = value if value.dtype == x.dtype else prim.cast(value, dtype=x.dtype)
    return prim.select(mask, filler, x)


@masked_fill.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.random(3) < 0.5, -1.0)
    yield Sample(rng.standard_normal((2, 3)), rng.random((2, 3)) < 0.5, np.asarray(7.0))


@operator(inplace=True)
def masked_scatter(x: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """`x` with the elements where `mask` holds replaced, in order, by the first elements of `value`."""
    mask = prim.broadcast_to(mask, x.shape)
    size = x.type.size
    flat = prim.reshape(prim.cast(mask, dtype="int64"), shape=(size,))
    rank = prim.sub(prim.cumulative(flat, axis=0, kind="sum"), 1)
    source = prim.reshape(value, shape=(value.type.size,))
    found = prim.gather(source, prim.reshape(rank, shape=(size, 1)), axes=(0,))
    return prim.select(mask, prim.reshape(found, shape=x.shape), x)


@masked_scatter.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.random((2, 3)) < 0.5, rng.standard_normal(6))


@operator()
def sequence_mask(x: Tensor, maxlen: int, dtype: str = "int64") -> Tensor:
    """For each length in `x` a row of `maxlen` that is 1 up to there, then 0."""
    shape = (*x.shape, maxlen)
    index = prim.iota(shape=shape, axis=x.ndim, dtype=x.dtype)
    return prim.cast(prim.lt(index, prim.broadcast(x, shape=shape, axes=tuple(range(x.ndim)))), dtype=dtype)


@sequence_mask.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(np.array([1, 3, 0]), 4)
