"""Ranges of numbers, and grids of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.common.arguments import FACTORY
from argosy_phi_ops.ops.creation.constants import Number, fill_shape
from argosy_phi_ops.primitives.checks import FLOATING
from argosy_tensorcore.dtype import default_dtype
from argosy_tensorcore.tensor import Tensor


@operator(keywords=FACTORY)
def arange(start: Number = 0, end: Number | None = None, step: Number = 1, dtype: str | None = None) -> Tensor:
    """``start, start + step, ...`` below `end`; `start` alone is the end. int64 unless a number is a float.

    Raises :class:`ShapeError` for a step of zero.
    """
    if end is None:
        start, end = 0, start
    if dtype is None:
        dtype = default_dtype().name if any(isinstance(v, float) for v in (start, end, step)) else "int64"
    elif dtype not in FLOATING:  # as Paddle does, the bounds are rounded towards zero first
        start, end, step = (int(v) if isinstance(v, float) else v for v in (start, end, step))
    if step == 0:
        raise ShapeError(f"arange from {start} to {end}: the step must not be zero")
    if hasattr(end, "evaluate") or hasattr(start, "evaluate"):  # a symbolic length
        if step != 1:
            raise NotImplementedError("arange over a symbolic range with a step other than 1 is not implemented")
        size: Any = end - start
    else:
        size = max(ceil((end - start) / step), 0)
    wide = dtype if dtype in FLOATING else "int64"
    index = prim.iota(shape=(size,), axis=0, dtype=wide)
    scaled = index if step == 1 else prim.mul(index, step)
    if hasattr(start, "evaluate"):
        scaled = prim.add(scaled, prim.cast(prim.dim_size(dim=start, dtype="int64"), dtype=wide))
    elif start:
        scaled = prim.add(scaled, start)
    return scaled if dtype == wide else prim.cast(scaled, dtype=dtype)


@arange.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(5)
    yield Sample(2, 11, 3)
    yield Sample(5, 0, -2, "int32")
    yield Sample(0.0, 1.0, 0.25)
    yield Sample(3, 1)


@operator(aliases={"end": "stop", "steps": "num"}, keywords=FACTORY)
def linspace(start: Number, stop: Number, num: int, dtype: str | None = None) -> Tensor:
    """`num` numbers from `start` to `stop`, both included, equally far apart."""
    wide = dtype if dtype in FLOATING else default_dtype().name
    if num == 1:
        return fill_shape(start, dtype or wide, (1,))
    index = prim.iota(shape=(num,), axis=0, dtype=wide)
    step = (stop - start) / (num - 1)
    # Counted from the nearer end, so that both ends are exact.
    front = prim.add(prim.mul(index, step), float(start))
    back = prim.sub(float(stop), prim.mul(prim.sub(float(num - 1), index), step))
    result = prim.select(prim.lt(index, num / 2), front, back)
    return result if dtype is None or dtype == wide else prim.cast(result, dtype=dtype)


@linspace.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(0, 1, 5)
    yield Sample(-1.0, 2.0, 4, "float64")
    yield Sample(3, 9, 1)


@operator()
def logspace(start: float, stop: float, num: int, base: float = 10.0, dtype: str | None = None) -> Tensor:
    """`base` to the powers that :func:`linspace` gives."""
    powers = linspace.body(start, stop, num, dtype)
    return prim.pow(prim.constant(float(base), powers.dtype, powers.shape), powers)


@logspace.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(0.0, 3.0, 4)
    yield Sample(0.0, 3.0, 4, 2.0, "float64")


@operator()
def meshgrid(args: Sequence[Tensor], indexing: str | None = None) -> tuple[Tensor, ...]:
    """Vectors spread over the grid that they span: result i varies along axis i (of "xy": the first two exchanged)."""
    order = list(range(len(args)))
    if indexing == "xy" and len(args) > 1:
        order[:2] = [1, 0]
    shape = [args[i].type.size for i in order]
    flat = [prim.reshape(x, shape=(x.type.size,)) for x in args]
    return tuple(prim.broadcast(x, shape=tuple(shape), axes=(order.index(i),)) for i, x in enumerate(flat))


@meshgrid.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample([rng.standard_normal(3), rng.standard_normal(2)])
    yield Sample([rng.standard_normal(3), rng.standard_normal(2), np.asarray(1.0)], indexing="xy")
