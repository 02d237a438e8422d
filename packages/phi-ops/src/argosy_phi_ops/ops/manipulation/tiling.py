"""Tiling: repetition along axes, by broadcasting too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.call_overloads import sizes_from
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.common.arguments import axis_of, section
from argosy_tensorcore.tensor import Tensor


@operator()
def broadcast_tensors(input: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The tensors repeated to the shape that all broadcast to."""
    shape = prim.broadcast_shapes([x.shape for x in input])
    return tuple(prim.broadcast_to(x, shape) for x in input)


@broadcast_tensors.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample([rng.standard_normal((2, 1)), rng.standard_normal(3)])


@operator(aliases={"input": "x", "size": "shape"})
def broadcast_to(x: Tensor, shape: Sequence[int]) -> Tensor:
    """`x` repeated to `shape`, its axes aligned at the right; -1 keeps the size of an axis."""
    extra = len(shape) - x.ndim
    if extra < 0:
        raise ShapeError(f"broadcast_to: {x.type} has more axes than shape {list(shape)}")
    sizes = tuple(x.shape[i - extra] if n == -1 and i >= extra else n for i, n in enumerate(shape))
    return prim.broadcast_to(x, sizes)


def broadcast_samples(rng: np.random.Generator) -> Iterator[Sample]:
    """Sizes given and kept."""
    yield Sample(rng.standard_normal((2, 1)), [-1, 5])
    yield Sample(rng.standard_normal((1, 3)), [5, 7, 3])


broadcast_to.samples(broadcast_samples)


@operator(aliases={"input": "x", "size": "shape"}, form=sizes_from(1, 1), samples=broadcast_samples)
def expand(x: Tensor, shape: Sequence[int]) -> Tensor:
    """`x` repeated to `shape`, as :func:`broadcast_to`."""
    return broadcast_to(x, shape)


@operator()
def expand_as(x: Tensor, y: Tensor) -> Tensor:
    """`x` repeated to the shape of `y`."""
    return prim.broadcast_to(x, y.shape)


@expand_as.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 1)), rng.standard_normal((4, 2, 3)))


@operator(aliases={"input": "x", "dims": "repeat_times"})
def tile(x: Tensor, repeat_times: int | Sequence[int]) -> Tensor:
    """The whole of `x` repeated along each axis; missing axes are added in front."""
    times = (repeat_times,) if isinstance(repeat_times, int) else tuple(repeat_times)
    rank = max(len(times), x.ndim)
    times = (1,) * (rank - len(times)) + times
    shape = (1,) * (rank - x.ndim) + tuple(x.shape)
    paired = tuple(n for pair in zip(times, shape, strict=True) for n in pair)
    kept = tuple(range(2 * (rank - x.ndim) + 1, 2 * rank, 2))
    spread = prim.broadcast(x, shape=paired, axes=kept)
    return prim.reshape(spread, shape=tuple(r * n for r, n in zip(times, shape, strict=True)))


@tile.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), [2, 1])
    yield Sample(rng.standard_normal(3), [2, 2])
    yield Sample(rng.standard_normal((2, 3)), 2)


@operator(aliases={"input": "x", "dim": "axis"}, keywords=("output_size",))
def repeat_interleave(x: Tensor, repeats: int | Sequence[int], axis: int | None = None) -> Tensor:
    """Each slice along `axis` (each element of the flattened tensor) `repeats` times in a row.

    `repeats` is one number or one for each slice.
    """
    if axis is None:
        x, axis = prim.reshape(x, shape=(x.type.size,)), 0
    at = axis_of("repeat_interleave", axis, x.ndim)
    if not isinstance(repeats, int):
        return _repeated_each(x, repeats, at)
    shape = (*x.shape[: at + 1], repeats, *x.shape[at + 1 :])
    spread = prim.broadcast(x, shape=shape, axes=tuple(i if i <= at else i + 1 for i in range(x.ndim)))
    return prim.reshape(spread, shape=(*x.shape[:at], x.shape[at] * repeats, *x.shape[at + 1 :]))


def _repeated_each(x: Tensor, repeats: Sequence[int], axis: int) -> Tensor:
    size = x.shape[axis]
    counts = tuple(repeats) * size if len(repeats) == 1 and isinstance(size, int) else tuple(repeats)
    if len(counts) != size:
        raise ShapeError(f"repeat_interleave: {len(counts)} repeats for the {size} slices of {x.type}")
    pieces = [section(x, axis, i, i + 1) for i, count in enumerate(counts) for _ in range(count)]
    return prim.concat(*pieces, axis=axis) if pieces else section(x, axis, 0, 0)


@repeat_interleave.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), 2)
    yield Sample(rng.standard_normal((2, 3)), 3, axis=1)
    yield Sample(rng.standard_normal((2, 3)), [0, 2, 1], axis=1)
