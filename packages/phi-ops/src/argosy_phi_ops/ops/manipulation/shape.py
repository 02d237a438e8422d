"""Shapes: reshaping, flattening, axes of size one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.call_overloads import sizes_from
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import AxisError
from argosy_phi_ops.ops.common.arguments import INPUT, Axes, axes_of, axis_of, require_size, resolved_shape
from argosy_phi_ops.ops.common.bit_casts import reread, reread_array
from argosy_pir.dims import dim_bounds, maximum
from argosy_tensorcore.tensor import Tensor


@operator(view=True, inplace=True, aliases=INPUT, form=sizes_from(1, 1))
def reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
    """The elements in row-major order under another shape; 0 copies the size of that axis, one -1 is worked out.

    A view where the strides allow it. Raises :class:`ShapeError` when the sizes do not fit.
    """
    return prim.reshape(x, shape=resolved_shape("reshape", shape, x.shape))


@reshape.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3, 4))
    yield Sample(x, [-1])
    yield Sample(x, [0, -1])
    yield Sample(x, [0, 0, 2, -1])
    yield Sample(np.asarray(1.0), [1, 1])


@operator(view=True, inplace=True, aliases={"input": "x", "start_dim": "start_axis", "end_dim": "stop_axis"})
def flatten(x: Tensor, start_axis: int = 0, stop_axis: int = -1) -> Tensor:
    """The axes from `start_axis` to `stop_axis` made one; a 0-D tensor gets one axis."""
    first, last = axis_of("flatten", start_axis, x.ndim), axis_of("flatten", stop_axis, x.ndim)
    if first > last:
        raise AxisError(f"flatten: start_axis {start_axis} lies behind stop_axis {stop_axis}")
    size: Any = 1
    for n in x.shape[first : last + 1]:
        size = size * n
    return prim.reshape(x, shape=(*x.shape[:first], size, *x.shape[last + 1 :]))


@flatten.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3, 4)))
    yield Sample(rng.standard_normal((2, 3, 4)), 1)
    yield Sample(np.asarray(1.0))


@operator(view=True, inplace=True, aliases={"input": "x", "dim": "axis"})
def squeeze(x: Tensor, axis: Axes = None) -> Tensor:
    """Without the axes of size one, all of them or those among `axis`. A view.

    An open size of at most one, as that of ``x[:, 0:1]``, counts as one: a program has no meaning where it is zero. Any
    other stays, and a program has no meaning where it is one.
    """
    axes = axes_of("squeeze", axis, x.ndim)
    gone = [i in axes and (n == 1 or (not isinstance(n, int) and dim_bounds(n)[1] == 1)) for i, n in enumerate(x.shape)]
    shape = tuple(n for n, out in zip(x.shape, gone, strict=True) if not out)
    for i, n in enumerate(x.shape):
        if i in axes and not gone[i]:
            require_size("squeeze, by which an open axis goes where it is one", maximum(n - 1, 1 - n))
    if any(out and n != 1 for n, out in zip(x.shape, gone, strict=True)):
        whole = [1 if out else n for n, out in zip(x.shape, gone, strict=True)]
        x = prim.slice(x, start=(0,) * x.ndim, limit=tuple(whole), stride=(1,) * x.ndim)
    return prim.reshape(x, shape=shape)


@squeeze.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 1, 3, 1)))
    yield Sample(rng.standard_normal((2, 1, 3, 1)), [1, 2])


@operator(view=True, inplace=True, aliases={"input": "x", "dim": "axis"})
def unsqueeze(x: Tensor, axis: int | Sequence[int]) -> Tensor:
    """New axes of size one at the places `axis` of the result, put in one after the other. A view."""
    shape = list(x.shape)
    for place in (axis,) if isinstance(axis, int) else axis:
        shape.insert(axis_of("unsqueeze", place, len(shape) + 1), 1)
    return prim.reshape(x, shape=tuple(shape))


@unsqueeze.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), 1)
    yield Sample(rng.standard_normal((2, 3)), [0, -1])


@operator(view=True, aliases={"dtype": "shape_or_dtype", "size": "shape_or_dtype"}, form=sizes_from(1, 1))
def view(x: Tensor, shape_or_dtype: Sequence[int] | str) -> Tensor:
    """The same elements under another shape, or the same bits under another dtype; the last axis grows for a narrower
    one and shrinks for a wider one. A view where the strides allow it.
    """
    if isinstance(shape_or_dtype, str):
        return reread("view", x, shape_or_dtype)
    return prim.reshape(x, shape=resolved_shape("view", shape_or_dtype, x.shape))


@view.reference
def _(x: Any, shape_or_dtype: Sequence[int] | str) -> Any:
    if isinstance(shape_or_dtype, str):
        return reread_array("view", x, shape_or_dtype)
    return x.reshape(resolved_shape("view", shape_or_dtype, x.shape))


@view.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), [-1])
    yield Sample(rng.standard_normal((2, 3)), "int64")
    yield Sample(rng.standard_normal((2, 3)), "int16")
    yield Sample(rng.integers(0, 100, (2, 4)).astype(np.int16), "float32")
    yield Sample(rng.standard_normal((2, 4)), "complex128")
    yield Sample(rng.standard_normal((2, 3)) + 1j, "uint32")


@operator(view=True, aliases={"input": "x", "dim": "axis", "sizes": "shape"})
def unflatten(x: Tensor, axis: int, shape: Sequence[int]) -> Tensor:
    """One axis made several, of the sizes `shape` (one may be -1). A view."""
    at = axis_of("unflatten", axis, x.ndim)
    sizes = resolved_shape("unflatten", shape, (x.shape[at],))
    return prim.reshape(x, shape=(*x.shape[:at], *sizes, *x.shape[at + 1 :]))


@unflatten.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((4, 6)), 0, [2, -1])


@operator(view=True)
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
