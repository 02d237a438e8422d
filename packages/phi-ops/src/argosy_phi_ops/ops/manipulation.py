"""Operators that rearrange elements: shapes, axes, joining and splitting, repetition, masks and triangles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.errors import AxisError, ShapeError
from argosy_phi_ops.operator import Sample, operator
from argosy_phi_ops.ops.arguments import Axes, axes_of, axis_of, resolved_shape
from argosy_phi_ops.reference.kernels import KERNELS
from argosy_tensorcore.tensor import Tensor


@operator(view=True, inplace=True, aliases={"input": "x"})
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


@operator(view=True)
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


@operator(view=True)
def swapaxes(x: Tensor, axis0: int, axis1: int) -> Tensor:
    """Two axes exchanged. A view."""
    order = list(range(x.ndim))
    first, second = axis_of("swapaxes", axis0, x.ndim), axis_of("swapaxes", axis1, x.ndim)
    order[first], order[second] = second, first
    return prim.transpose(x, permutation=tuple(order))


@swapaxes.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3, 4)), 0, -1)


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
    """Without the axes of size one, all of them or those among `axis`. A view."""
    axes = axes_of("squeeze", axis, x.ndim)
    return prim.reshape(x, shape=tuple(n for i, n in enumerate(x.shape) if i not in axes or n != 1))


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


def section(x: Tensor, axis: int, start: Any, limit: Any) -> Tensor:
    """`x` from `start` up to `limit` along `axis`."""
    starts, limits = [0] * x.ndim, list(x.shape)
    starts[axis], limits[axis] = start, limit
    return prim.slice(x, start=tuple(starts), limit=tuple(limits), stride=(1,) * x.ndim)


@operator(view=True, aliases={"dim": "axis"})
def split(x: Tensor, num_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Parts along `axis`: that many equal ones, or of those sizes (one may be -1). Views."""
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


@operator(view=True, aliases={"input": "x", "dim": "axis"})
def chunk(x: Tensor, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts along `axis`, all as large as the first but the last. Views."""
    at = axis_of("chunk", axis, x.ndim)
    size = x.shape[at]
    each = -(-size // chunks)
    if not isinstance(size, int):
        return _cut("chunk", x, at, [size // chunks] * chunks)
    return _cut("chunk", x, at, [min(each, size - start) for start in range(0, size, max(each, 1))])


@chunk.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((4, 6)), 2, axis=1)


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


@operator(aliases={"input": "x", "size": "shape"})
def broadcast_to(x: Tensor, shape: Sequence[int]) -> Tensor:
    """`x` repeated to `shape`, its axes aligned at the right; -1 keeps the size of an axis."""
    extra = len(shape) - x.ndim
    if extra < 0:
        raise ShapeError(f"broadcast_to: {x.type} has more axes than shape {list(shape)}")
    sizes = tuple(x.shape[i - extra] if n == -1 and i >= extra else n for i, n in enumerate(shape))
    return prim.broadcast_to(x, sizes)


def broadcastable(rng: np.random.Generator) -> Iterator[Sample]:
    """Sizes given and kept."""
    yield Sample(rng.standard_normal((2, 1)), [-1, 5])
    yield Sample(rng.standard_normal((1, 3)), [5, 7, 3])


broadcast_to.samples(broadcastable)


@operator(aliases={"input": "x", "size": "shape"})
def expand(x: Tensor, shape: Sequence[int]) -> Tensor:
    """`x` repeated to `shape`, as :func:`broadcast_to`."""
    return broadcast_to(x, shape)


expand.samples(broadcastable)


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


@operator(aliases={"input": "x", "dim": "axis"})
def repeat_interleave(x: Tensor, repeats: int, axis: int | None = None) -> Tensor:
    """Each slice along `axis` (each element of the flattened tensor) `repeats` times in a row."""
    if not isinstance(repeats, int):
        raise NotImplementedError("repeat_interleave: a number of repeats for each slice is not implemented")
    if axis is None:
        x, axis = prim.reshape(x, shape=(x.type.size,)), 0
    at = axis_of("repeat_interleave", axis, x.ndim)
    shape = (*x.shape[: at + 1], repeats, *x.shape[at + 1 :])
    spread = prim.broadcast(x, shape=shape, axes=tuple(i if i <= at else i + 1 for i in range(x.ndim)))
    return prim.reshape(spread, shape=(*x.shape[:at], x.shape[at] * repeats, *x.shape[at + 1 :]))


@repeat_interleave.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), 2)
    yield Sample(rng.standard_normal((2, 3)), 3, axis=1)


@operator()
def flip(x: Tensor, axis: Axes) -> Tensor:
    """The order of the elements along `axis` (one or several) turned round."""
    return prim.reverse(x, axes=axes_of("flip", axis, x.ndim))


@flip.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), 1)
    yield Sample(rng.standard_normal((2, 3)), [0, -1])


@operator()
def roll(x: Tensor, shifts: int | Sequence[int], axis: Axes = None) -> Tensor:
    """Elements moved on by `shifts` along `axis`, those that fall off coming back in front.

    Without `axis` the tensor is rolled as if it were flat.
    """
    if axis is None:
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
    start = (-step) % size
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


@operator(promote="where", inplace=True, aliases={"input": "x", "other": "y"})
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


def below_diagonal(rows: Any, columns: Any, diagonal: int) -> Tensor:
    """Where the column index is at most the row index plus `diagonal`, [rows, columns]."""
    row, column = (prim.iota(shape=(rows, columns), axis=i, dtype="int64") for i in (0, 1))
    return prim.le(column, prim.add(row, diagonal) if diagonal else row)


def _triangle(x: Tensor, mask: Tensor) -> Tensor:
    return prim.select(mask, x, prim.constant(0, x.dtype, x.shape))


@operator(inplace=True)
def tril(x: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangles up to `diagonal`, the rest zero."""
    return _triangle(x, below_diagonal(*x.shape[-2:], diagonal))


def triangles(rng: np.random.Generator) -> Iterator[Sample]:
    """Matrices and diagonals on both sides."""
    yield Sample(rng.standard_normal((3, 4)))
    yield Sample(rng.standard_normal((2, 3, 3)), 1)
    yield Sample(rng.integers(0, 9, (3, 3)), -1)


tril.samples(triangles)


@operator(inplace=True)
def triu(x: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangles from `diagonal` on, the rest zero."""
    return _triangle(x, prim.logical_not(below_diagonal(*x.shape[-2:], diagonal - 1)))


triu.samples(triangles)


@operator(view=True)
def view(x: Tensor, shape_or_dtype: Sequence[int] | str) -> Tensor:
    """The same elements under another shape, or the same bits under another dtype of that width."""
    if isinstance(shape_or_dtype, str):
        return prim.bitcast(x, dtype=shape_or_dtype)
    return prim.reshape(x, shape=resolved_shape("view", shape_or_dtype, x.shape))


@view.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), [-1])
    yield Sample(rng.standard_normal((2, 3)), "int64")


@operator()
def pad(
    x: Tensor,
    pad: Sequence[int],
    mode: str = "constant",
    value: float = 0.0,
    data_format: str | None = None,
    pad_from_left_axis: bool = True,
) -> Tensor:
    """Elements added around `x`: two counts for each axis, or for each spatial axis (the last one first).

    With counts for all axes they start from the first axis, or from the last unless `pad_from_left_axis`. Modes:
    constant (`value`), reflect, replicate and circular.
    """
    before, after = _pad_counts(x.ndim, tuple(pad), data_format, pad_from_left_axis)
    if mode == "constant":
        filler = prim.constant(value if x.dtype.startswith(("float", "bfloat", "complex")) else int(value), x.dtype)
        return prim.pad(x, filler, low=before, high=after, interior=(0,) * x.ndim)
    for axis in range(x.ndim):
        if before[axis] or after[axis]:
            x = _extended(x, axis, before[axis], after[axis], mode)
    return x


def _pad_counts(
    rank: int, pad: tuple[int, ...], data_format: str | None, from_left: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    if len(pairs) == rank and from_left:
        chosen = pairs
    elif len(pairs) == rank:
        chosen = pairs[::-1]
    else:
        channels_last = data_format is not None and data_format[-1] == "C"
        spatial = list(range(1, rank - 1) if channels_last else range(rank - len(pairs), rank))
        chosen = [(0, 0)] * rank
        for axis, pair in zip(reversed(spatial), pairs, strict=True):
            chosen[axis] = pair
    return tuple(p[0] for p in chosen), tuple(p[1] for p in chosen)


def _extended(x: Tensor, axis: int, low: int, high: int, mode: str) -> Tensor:
    size = x.shape[axis]
    if mode == "replicate":
        ends = [section(x, axis, 0, 1)] * low, [section(x, axis, size - 1, size)] * high
        return prim.concat(*ends[0], x, *ends[1], axis=axis)
    if mode == "reflect":
        front = prim.reverse(section(x, axis, 1, low + 1), axes=(axis,))
        back = prim.reverse(section(x, axis, size - 1 - high, size - 1), axes=(axis,))
    elif mode == "circular":
        front, back = section(x, axis, size - low, size), section(x, axis, 0, high)
    else:
        raise ShapeError(f"pad: mode {mode!r} is unknown; there are constant, reflect, replicate and circular")
    return prim.concat(front, x, back, axis=axis)


@pad.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((1, 2, 3, 4))
    yield Sample(x, [0, 0, 1, 0, 0, 2, 1, 1], value=7.0)
    for mode in ("constant", "reflect", "replicate", "circular"):
        yield Sample(x, [1, 2, 0, 1], mode=mode)
    yield Sample(x, [1, 0, 0, 2], data_format="NHWC")


@operator(view=True)
def diagonal(x: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The diagonal `offset` of the matrices over `axis1` and `axis2`, as a last axis."""
    first, second = axis_of("diagonal", axis1, x.ndim), axis_of("diagonal", axis2, x.ndim)
    rows, columns = x.shape[first] + min(offset, 0), x.shape[second] - max(offset, 0)
    if not (isinstance(rows, int) and isinstance(columns, int)):
        raise NotImplementedError(f"diagonal of symbolic sizes is not implemented: {x.type}")
    length = max(min(rows, columns), 0)
    at = prim.iota(shape=(length, 2), axis=0, dtype="int64")
    shift = prim.mul(prim.iota(shape=(length, 2), axis=1, dtype="int64"), offset)
    if offset < 0:
        shift = prim.sub(shift, offset)
    found = prim.gather(x, prim.add(at, shift), axes=(first, second))
    return prim.transpose(found, permutation=(*range(1, found.ndim), 0))


@diagonal.reference
def _(x: np.ndarray, offset: int, axis1: int, axis2: int) -> np.ndarray:
    found = x.diagonal(offset, axis1, axis2)
    found.flags.writeable = x.flags.writeable
    return found


@diagonal.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((3, 4)))
    yield Sample(rng.standard_normal((2, 3, 4)), 1, 1, 2)
    yield Sample(rng.standard_normal((2, 3, 4)), -1, 2, 1)


@operator()
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices (over `dim1` and `dim2` of the result) with the last axis of `input` on the diagonal `offset`."""
    rank = input.ndim + 1
    first, second = axis_of("diag_embed", dim1, rank), axis_of("diag_embed", dim2, rank)
    size = input.shape[-1] + abs(offset)
    rows, columns = (prim.iota(shape=(size, size), axis=i, dtype="int64") for i in (0, 1))
    low = max(-offset, 0)
    padded = prim.pad(
        input,
        prim.constant(0, input.dtype),
        low=(0,) * (input.ndim - 1) + (low,),
        high=(0,) * (input.ndim - 1) + (abs(offset) - low,),
        interior=(0,) * input.ndim,
    )
    shape = (*input.shape[:-1], size, size)
    spread = prim.broadcast(padded, shape=shape, axes=tuple(range(input.ndim)))
    matrix = prim.select(prim.eq(columns, prim.add(rows, offset)), spread, prim.constant(0, input.dtype, shape))
    rest = iter(range(rank - 2))
    places = {first: rank - 2, second: rank - 1}
    return prim.transpose(matrix, permutation=tuple(places[i] if i in places else next(rest) for i in range(rank)))


@diag_embed.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)))
    yield Sample(rng.standard_normal((2, 3)), -1, 0, 2)


@operator()
def diag(x: Tensor, offset: int = 0, padding_value: float = 0) -> Tensor:
    """The matrix with the vector `x` on its diagonal `offset`, or the diagonal of a matrix."""
    if x.ndim == 2:
        return diagonal(x, offset)
    matrix = diag_embed(x, offset)
    if not padding_value:
        return matrix
    rows, columns = (prim.iota(shape=matrix.shape, axis=i, dtype="int64") for i in (0, 1))
    return prim.select(
        prim.eq(columns, prim.add(rows, offset)), matrix, prim.constant(padding_value, x.dtype, matrix.shape)
    )


@diag.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal(3), 1)
    yield Sample(rng.standard_normal(3), padding_value=2.0)
    yield Sample(rng.standard_normal((3, 4)), -1)
