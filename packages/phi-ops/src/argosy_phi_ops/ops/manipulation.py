"""Operators that rearrange elements: shapes, axes, joining and splitting, dtypes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import AxisError, ShapeError
from argosy_phi_ops.ops.arguments import Axes, axes_of, axis_of, resolved_shape, section
from argosy_phi_ops.ops.bits import reread, reread_array
from argosy_phi_ops.ops.forms import sizes_from, two_axes
from argosy_phi_ops.reference.kernels import KERNELS
from argosy_pir.dims import dim_bounds, maximum
from argosy_tensorcore.tensor import Tensor


@operator(view=True, inplace=True, aliases={"input": "x"}, form=sizes_from(1, 1))
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

    An open size of at most one, as that of ``x[:, 0:1]``, counts as one: a program has no meaning where it is zero.
    """
    axes = axes_of("squeeze", axis, x.ndim)
    gone = [i in axes and (n == 1 or (not isinstance(n, int) and dim_bounds(n)[1] == 1)) for i, n in enumerate(x.shape)]
    shape = tuple(n for n, out in zip(x.shape, gone, strict=True) if not out)
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
        rolled = _rolled(prim.reshape(x, shape=(x.type.size,)), 0, shifts if isinstance(shifts, int) else shifts[0])
        return prim.reshape(rolled, shape=x.shape)
    steps = (shifts,) if isinstance(shifts, int) else shifts
    axes = (axis,) if isinstance(axis, int) else axis
    for step, at in zip(steps, axes, strict=True):
        x = _rolled(x, axis_of("roll", at, x.ndim), step)
    return x


def _rolled(x: Tensor, axis: int, step: int) -> Tensor:
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
def cast(x: Tensor, dtype: str) -> Tensor:
    """The elements converted to `dtype`."""
    return prim.cast(x, dtype=dtype)


cast.reference(KERNELS["cast"])


def castable(rng: np.random.Generator) -> Iterator[Sample]:
    """Between floats and integers, and to the same dtype."""
    yield Sample(rng.standard_normal((2, 3)) * 5, "int32")
    yield Sample(rng.integers(0, 3, 4), "bool")
    yield Sample(rng.standard_normal(3), "float64")


cast.samples(castable)


@operator()
def astype(x: Tensor, dtype: str) -> Tensor:
    """The elements converted to `dtype`, as :func:`cast`."""
    return prim.cast(x, dtype=dtype)


astype.reference(KERNELS["cast"])


astype.samples(castable)


def copied(rng: np.random.Generator) -> Iterator[Sample]:
    """A matrix and a 0-D tensor."""
    yield Sample(rng.standard_normal((2, 3)))
    yield Sample(np.asarray(True))


@operator()
def clone(x: Tensor) -> Tensor:
    """A copy in memory of its own, through which gradients flow."""
    return prim.copy(x)


clone.reference(KERNELS["copy"])


clone.samples(copied)


@operator()
def assign(x: Tensor) -> Tensor:
    """A copy in memory of its own, as :func:`clone`."""
    return prim.copy(x)


assign.reference(KERNELS["copy"])


assign.samples(copied)


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
