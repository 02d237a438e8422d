"""Joining and splitting of tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.common.arguments import axis_of, require_multiple, section
from argosy_tensorcore.tensor import Tensor


@operator(promote="same", aliases={"tensors": "x", "dim": "axis"})
def concat(x: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors one after another along `axis`; their dtypes must agree."""
    return prim.concat(*x, axis=axis_of("concat", axis, x[0].ndim))


@concat.reference
def _(x: Sequence[np.ndarray], axis: int) -> np.ndarray:
    return np.concatenate(x, axis)


@concat.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample([rng.standard_normal((2, 3)), rng.standard_normal((1, 3))])
    yield Sample([rng.standard_normal((2, 3)), rng.standard_normal((2, 4))], axis=-1)


@operator(promote="same", aliases={"tensors": "x", "dim": "axis"})
def stack(x: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors of one shape side by side along a new `axis`."""
    at = axis_of("stack", axis, x[0].ndim + 1)
    parts = [prim.reshape(v, shape=(*v.shape[:at], 1, *v.shape[at:])) for v in x]
    return prim.concat(*parts, axis=at)


@stack.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample([rng.standard_normal((2, 3)) for _ in range(3)])
    yield Sample([rng.standard_normal((2, 3)) for _ in range(2)], axis=-1)


@operator(aliases={"dim": "axis"})
def split(x: Tensor, num_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Parts along `axis`: that many equal ones, or of those sizes (one may be -1)."""
    at = axis_of("split", axis, x.ndim)
    size = x.shape[at]
    if isinstance(num_or_sections, int):
        if isinstance(size, int) and size % num_or_sections:
            raise ShapeError(f"split: axis {axis} of {x.type} does not divide into {num_or_sections} equal parts")
        require_multiple("split", size, num_or_sections)
        sections: list[Any] = [size // num_or_sections] * num_or_sections
    else:
        sections = list(num_or_sections)
        if -1 in sections:
            gap = sections.index(-1)
            sections[gap] = size - sum(n for i, n in enumerate(sections) if i != gap)
    return _cut("split", x, at, sections)


def _cut(name: str, x: Tensor, axis: int, sections: Sequence[Any]) -> tuple[Tensor, ...]:
    parts, start = [], 0
    for n in sections:
        parts.append(section(x, axis, start, start + n))
        start = start + n
    if isinstance(x.shape[axis], int) and start != x.shape[axis]:
        raise ShapeError(f"{name}: sections {list(sections)} do not add up to axis {axis} of {x.type}")
    return tuple(parts)


@split.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((4, 6)), 2)
    yield Sample(rng.standard_normal((4, 6)), [1, -1, 2], axis=-1)


@operator(aliases={"input": "x", "dim": "axis"})
def chunk(x: Tensor, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts along `axis`, all as large as the first but the last; all of them where it is empty."""
    at = axis_of("chunk", axis, x.ndim)
    size = x.shape[at]
    each = -(-size // chunks)
    if not isinstance(size, int):
        require_multiple("chunk", size, chunks)
        return _cut("chunk", x, at, [size // chunks] * chunks)
    if size == 0:
        return _cut("chunk", x, at, [0] * chunks)
    return _cut("chunk", x, at, [min(each, size - start) for start in range(0, size, each)])


@chunk.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((4, 6)), 2, axis=1)
    yield Sample(rng.standard_normal((0, 3)), 2)


@operator(view=True, aliases={"dim": "axis"})
def unbind(input: Tensor, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along `axis`, which disappears. Views."""
    at = axis_of("unbind", axis, input.ndim)
    size = input.shape[at]
    if not isinstance(size, int):
        raise ShapeError(f"unbind: axis {axis} of {input.type} has a symbolic size, so that it has no number of slices")
    shape = tuple(n for i, n in enumerate(input.shape) if i != at)
    return tuple(prim.reshape(section(input, at, i, i + 1), shape=shape) for i in range(size))


@unbind.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), axis=1)
