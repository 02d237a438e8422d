"""Further ways to cut, turn and reinterpret tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.arguments import axis_of, resolved_shape
from argosy_phi_ops.ops.subscript import getitem
from argosy_tensorcore.tensor import Tensor


def _sliced(
    name: str, x: Tensor, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int], strides: Sequence[int]
) -> Tensor:
    key: list[tuple[Any, ...]] = [("slice", None, None, None)] * x.ndim
    for axis, start, end, stride in zip(axes, starts, ends, strides, strict=True):
        key[axis_of(name, axis, x.ndim)] = ("slice", start, end, stride)
    return getitem(x, [], tuple(key))


@operator(view=True)
def slice_(input: Tensor, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int]) -> Tensor:
    """``input[..., start:end, ...]`` along each of `axes`; bounds outside are moved in. A view."""
    return _sliced("slice", input, axes, starts, ends, (1,) * len(axes))


@slice_.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((4, 5, 6)), [0, 2], [1, -3], [3, 6])


@operator(view=True)
def strided_slice(
    x: Tensor, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int], strides: Sequence[int]
) -> Tensor:
    """``x[..., start:end:stride, ...]`` along each of `axes`. A view."""
    return _sliced("strided_slice", x, axes, starts, ends, strides)


@strided_slice.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((4, 5, 6)), [1, 2], [0, 1], [5, 6], [2, 3])


@operator(view=True)
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """`length` indices along `dim` from `start` on. A view."""
    at = axis_of("narrow", dim, input.ndim)
    first = start + input.shape[at] if start < 0 else start
    return _sliced("narrow", input, (at,), (first,), (first + length,), (1,))


@narrow.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((4, 5)), 1, 1, 3)
    yield Sample(rng.standard_normal((4, 5)), 0, -2, 2)


@operator(view=True, aliases={"input": "x", "dim": "axis", "sizes": "shape"})
def unflatten(x: Tensor, axis: int, shape: Sequence[int]) -> Tensor:
    """One axis made several, of the sizes `shape` (one may be -1). A view."""
    at = axis_of("unflatten", axis, x.ndim)
    sizes = resolved_shape("unflatten", shape, (x.shape[at],))
    return prim.reshape(x, shape=(*x.shape[:at], *sizes, *x.shape[at + 1 :]))


@unflatten.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((4, 6)), 0, [2, -1])


@operator(
    view=True,
)
def ravel(input: Tensor) -> Tensor:
    """All elements as one axis."""
    return prim.reshape(input, shape=(input.type.size,))


@ravel.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)))


@operator(view=True)
def view_as(x: Tensor, other: Tensor) -> Tensor:
    """The elements under the shape of `other`."""
    return prim.reshape(x, shape=other.shape)


@view_as.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((3, 2)))


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


@operator()
def as_complex(x: Tensor) -> Tensor:
    """Pairs along the last axis as complex numbers."""
    if x.ndim == 0 or x.shape[-1] != 2:
        raise ShapeError(f"as_complex needs a last axis of size 2, got {x.type}")
    parts = []
    for i in (0, 1):
        start, limit = [0] * x.ndim, list(x.shape)
        start[-1], limit[-1] = i, i + 1
        part = prim.slice(x, start=tuple(start), limit=tuple(limit), stride=(1,) * x.ndim)
        parts.append(prim.reshape(part, shape=x.shape[:-1]))
    return prim.complex(*parts)


@as_complex.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((3, 4, 2)))


@operator()
def as_real(x: Tensor) -> Tensor:
    """Complex numbers as pairs along a new last axis."""
    shape = (*x.shape, 1)
    parts = [prim.reshape(part, shape=shape) for part in (prim.real(x), prim.imag(x))]
    return prim.concat(*parts, axis=x.ndim)


@as_real.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4)))


@operator()
def broadcast_tensors(input: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The tensors repeated to the shape that all broadcast to."""
    shape = prim.broadcast_shapes([x.shape for x in input])
    return tuple(prim.broadcast_to(x, shape) for x in input)


@broadcast_tensors.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample([rng.standard_normal((2, 1)), rng.standard_normal(3)])


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


@operator()
def increment(x: Tensor, value: float = 1.0) -> Tensor:
    """``x + value`` of a tensor with one element."""
    return prim.add(x, value if not x.dtype.startswith(("int", "uint")) else int(value))


@increment.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal(1))
    yield Sample(np.array([3]), 2.0)
