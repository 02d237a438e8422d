"""Layout primitives: they move elements and compute none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy_phi_ops.declare.axes import Axis, AxisNotation
from argosy_phi_ops.errors import AxisError, DTypeError, ShapeError
from argosy_phi_ops.primitives.checks import (
    BOOL,
    NUMERIC,
    check_axes,
    check_dtype,
    check_permutation,
    check_same_dtype,
    format_shape,
    require,
)
from argosy_phi_ops.primitives.cost import no_cost
from argosy_phi_ops.primitives.declaration import Shape, primitive
from argosy_pir.dims import dim_product
from argosy_pir.types import TensorType


def _factors(rank: int, mixing: Sequence[int] = ()) -> tuple[tuple[Axis, ...], frozenset[str]]:
    return tuple((f"d{i}",) for i in range(rank)), frozenset(f"d{i}" for i in mixing)


@primitive("layout")
def broadcast(x: TensorType, *, shape: Shape, axes: Shape) -> TensorType:
    """Repeat ``x`` to ``shape``; axis ``i`` of ``x`` becomes axis ``axes[i]``, which has its size unless it is one."""
    check_axes("broadcast", axes, len(shape))
    require(
        len(axes) == len(x.shape) and list(axes) == sorted(axes),
        f"prim.broadcast: axes {tuple(axes)} must increase and name one axis for each of {x}",
        AxisError,
    )
    for size, axis in zip(x.shape, axes, strict=True):
        require(
            size in (1, shape[axis]), f"prim.broadcast: {x} does not fit {format_shape(shape)} at axes {tuple(axes)}"
        )
    return TensorType(tuple(shape), x.dtype)


@broadcast.axes
def _(x: TensorType, *, shape: Shape, axes: Shape) -> AxisNotation:
    result, _ = _factors(len(shape))
    return AxisNotation(
        [[() if s == 1 and shape[a] != 1 else result[a] for s, a in zip(x.shape, axes, strict=True)]], [result]
    )


@primitive("layout")
def reshape(x: TensorType, *, shape: Shape) -> TensorType:
    """The elements of ``x`` in row-major order, in another ``shape`` of equal size."""
    sizes = dim_product(x.shape), dim_product(shape)
    if sizes[0] != sizes[1]:
        error = ShapeError(
            f"prim.reshape: {x} has {sizes[0]} elements, {format_shape(shape)} has {sizes[1]}; the two should be equal"
        )
        error.sizes = sizes
        raise error
    return TensorType(tuple(shape), x.dtype)


@reshape.axes
def _(x: TensorType, *, shape: Shape) -> AxisNotation:
    return reshape_notation(x.shape, tuple(shape))


@primitive("layout")
def transpose(x: TensorType, *, permutation: Shape) -> TensorType:
    """Axis ``i`` of the result is axis ``permutation[i]`` of ``x``."""
    check_permutation("transpose", permutation, len(x.shape))
    return TensorType(tuple(x.shape[i] for i in permutation), x.dtype)


@transpose.axes
def _(x: TensorType, *, permutation: Shape) -> AxisNotation:
    term, _ = _factors(len(x.shape))
    return AxisNotation([term], [[term[i] for i in permutation]])


@primitive("layout", name="slice")
def slice_(x: TensorType, *, start: Shape, limit: Shape, stride: Shape) -> TensorType:
    """Elements ``start, start + stride, ...`` below ``limit`` of every axis; strides are positive."""
    rank = len(x.shape)
    require(
        len(start) == len(limit) == len(stride) == rank,
        f"prim.slice: start, limit and stride need one entry for each axis of {x}",
    )
    for size, lo, hi, step in zip(x.shape, start, limit, stride, strict=True):
        static = all(isinstance(v, int) for v in (size, lo, hi))
        require(
            step >= 1 and (not static or 0 <= lo <= hi <= size),
            f"prim.slice: [{lo}:{hi}:{step}] is outside an axis of {size}; it should lie within",
        )
    return TensorType(tuple((hi - lo + s - 1) // s for lo, hi, s in zip(start, limit, stride, strict=True)), x.dtype)


@slice_.axes
def _(x: TensorType, *, start: Shape, limit: Shape, stride: Shape) -> AxisNotation:
    whole = [s == 0 and h == n and k == 1 for s, h, n, k in zip(start, limit, x.shape, stride, strict=True)]
    term, mixing = _factors(len(x.shape), [i for i, w in enumerate(whole) if not w])
    return AxisNotation([term], [term], mixing)


@primitive("layout", work=0)
def pad(x: TensorType, value: TensorType, *, low: Shape, high: Shape, interior: Shape) -> TensorType:
    """Put ``low`` and ``high`` copies of the 0-D ``value`` around every axis and ``interior`` between its elements.

    Negative ``low`` and ``high`` cut elements off.
    """
    check_same_dtype("pad", (x, value))
    require(value.shape == (), f"prim.pad: value {value} must be 0-D")
    require(
        len(low) == len(high) == len(interior) == len(x.shape),
        f"prim.pad: low, high and interior need one entry for each axis of {x}",
    )
    return TensorType(tuple(_pad(n, a, b, k) for n, a, b, k in zip(x.shape, low, high, interior, strict=True)), x.dtype)


def _pad(size: Any, low: Any, high: Any, interior: int) -> Any:
    spread = size + (size - 1) * interior if interior and size != 0 else size
    result = spread + low + high
    if isinstance(result, int):
        require(
            result >= 0, f"prim.pad: an axis of {size} padded by {low} and {high} has a negative size; it should not"
        )
    return result


@pad.axes
def _(x: TensorType, value: TensorType, *, low: Shape, high: Shape, interior: Shape) -> AxisNotation:
    touched = [i for i, edges in enumerate(zip(low, high, interior, strict=True)) if edges != (0, 0, 0)]
    term, mixing = _factors(len(x.shape), touched)
    return AxisNotation([term, ()], [term], mixing)


@primitive("layout", work=0)
def concat(*xs: TensorType, axis: int) -> TensorType:
    """Join tensors along ``axis``; their other axes agree."""
    require(len(xs) > 0, "prim.concat needs at least one operand")
    check_same_dtype("concat", xs)
    check_axes("concat", (axis,), len(xs[0].shape))
    for x in xs[1:]:
        same = len(x.shape) == len(xs[0].shape) and x.shape[:axis] == xs[0].shape[:axis]
        require(
            same and x.shape[axis + 1 :] == xs[0].shape[axis + 1 :],
            f"prim.concat: {xs[0]} and {x} should be of one shape, but for axis {axis}",
        )
    total = sum((x.shape[axis] for x in xs[1:]), xs[0].shape[axis])
    return TensorType((*xs[0].shape[:axis], total, *xs[0].shape[axis + 1 :]), xs[0].dtype)


@concat.axes
def _(*xs: TensorType, axis: int) -> AxisNotation:
    term, mixing = _factors(len(xs[0].shape), [axis])
    return AxisNotation([term] * len(xs), [term], mixing)


@primitive("layout")
def reverse(x: TensorType, *, axes: Shape) -> TensorType:
    """Reverse the order of elements along ``axes``."""
    check_axes("reverse", axes, len(x.shape))
    return x


@reverse.axes
def _(x: TensorType, *, axes: Shape) -> AxisNotation:
    term, mixing = _factors(len(x.shape), axes)
    return AxisNotation([term], [term], mixing)


@primitive("layout")
def iota(*, shape: Shape, axis: int, dtype: str) -> TensorType:
    """The index along ``axis``, as a tensor of ``shape``."""
    check_axes("iota", (axis,), len(shape))
    result = TensorType(tuple(shape), dtype)
    check_dtype("iota", result, NUMERIC, "dtype")
    return result


@iota.axes
def _(*, shape: Shape, axis: int, dtype: str) -> AxisNotation:
    return AxisNotation([], [_factors(len(shape))[0]])


@primitive("layout")
def relayout(x: TensorType, *like: TensorType, target: str = "") -> TensorType:
    """``x``, which from here on is laid out over processes as ``target`` says, or as a cotangent of ``like``.

    A mark for the partitioner, which alone reads ``target``; the values stay, and without a mesh nothing happens.
    """
    require(len(like) <= 1, f"prim.relayout takes x and at most one tensor to be laid out like, got {1 + len(like)}")
    return x


@relayout.axes
def _(x: TensorType, *like: TensorType, target: str = "") -> AxisNotation:
    term, _ = _factors(len(x.shape))
    return AxisNotation([term] * (1 + len(like)), [term])


@primitive("layout", work=0)
def place(x: TensorType, *, source: str, target: str) -> TensorType:
    """``x`` in the memory of the device ``target``, such as ``"cpu"`` or ``"virtual:1"``; it was in that of ``source``.

    What is computed from it runs there, so that one program spans devices; a compiler for one device copies nothing.
    """
    require(bool(source and target), "prim.place: source and target name devices; they should not be empty")
    return x


@place.axes
def _(x: TensorType, *, source: str, target: str) -> AxisNotation:
    term, _ = _factors(len(x.shape))
    return AxisNotation([term], [term])


@primitive("layout", work=0)
def to_local(x: TensorType, *like: TensorType, target: str = "", shape: Shape) -> TensorType:
    """This process's part, of ``shape``, of ``x`` as it lies over processes, or as a cotangent of ``like`` lies.

    Cotangents of parts are parts of a tensor that lies as ``target`` says (empty: as a cotangent of ``x``). Values may
    differ between processes from here on. Without a mesh one process has all of it.
    """
    require(len(like) <= 1, f"prim.to_local takes x and at most one tensor to be laid out like, got {1 + len(like)}")
    return TensorType(tuple(shape), x.dtype)


@primitive("layout", work=0)
def from_local(x: TensorType, *like: TensorType, target: str = "", shape: Shape) -> TensorType:
    """The tensor of ``shape`` of which every process has a part ``x``: the inverse of :func:`to_local`.

    It lies as ``target`` says, or as a cotangent of ``like``.
    """
    require(len(like) <= 1, f"prim.from_local takes x and at most one tensor to be laid out like, got {1 + len(like)}")
    return TensorType(tuple(shape), x.dtype)


@primitive("layout", work=0)
def dim_size(*, dim: Any, dtype: str = "int64") -> TensorType:
    """The run-time value of a (symbolic) dim as a 0-D integer tensor."""
    require(dtype in NUMERIC and dtype not in BOOL, f"prim.dim_size: dtype {dtype} is not numeric", DTypeError)
    return TensorType((), dtype)


for _view in (broadcast, reshape, transpose, slice_, reverse, iota, relayout):
    _view.costs(no_cost)


def reshape_notation(before: Shape, after: Shape) -> AxisNotation:
    """Split both shapes into the coarsest groups of equal size; a group that is one axis on one side factors on the
    other.

    ``[b, s, (h d)] -> [b, s, h, d]`` keeps every factor; groups that merge and split at once (``[4, 6] -> [3, 8]``)
    mix.
    """
    left: list[Axis] = []
    right: list[Axis] = []
    mixing: set[str] = set()
    for number, (xs, ys) in enumerate(_equal_groups(before, after)):
        name = f"g{number}"
        if not xs or not ys:  # axes of size one that the other side lacks
            left += [()] * len(xs)
            right += [()] * len(ys)
        elif len(xs) == 1 or len(ys) == 1:
            parts = tuple(f"{name}_{i}" for i in range(max(len(xs), len(ys))))
            left += [(p,) for p in parts] if len(ys) == 1 else [parts]
            right += [(p,) for p in parts] if len(xs) == 1 and len(ys) != 1 else [parts]
        else:
            mixing.add(name)
            left += [(name,) for _ in xs]
            right += [(name,) for _ in ys]
    return AxisNotation([left], [right], frozenset(mixing))


def _equal_groups(before: Shape, after: Shape) -> list[tuple[list[Any], list[Any]]]:
    groups: list[tuple[list[Any], list[Any]]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        ones = before[i : i + 1] == (1,), after[j : j + 1] == (1,)
        if ones[0] != ones[1]:  # the other side lacks this axis, or has it elsewhere
            groups.append(([1], []) if ones[0] else ([], [1]))
            i, j = i + ones[0], j + ones[1]
            continue
        xs, ys = [], []
        if i < len(before):
            xs.append(before[i])
            i += 1
        if j < len(after):
            ys.append(after[j])
            j += 1
        while dim_product(xs) != dim_product(ys):
            take_left = j >= len(after) or (i < len(before) and not _exceeds(dim_product(xs), dim_product(ys)))
            if take_left and i < len(before):
                xs.append(before[i])
                i += 1
            elif j < len(after):
                ys.append(after[j])
                j += 1
            elif dim_product(before) == dim_product(after):  # of no elements, as different axes say
                return [(list(before), list(after))]
            else:
                raise ShapeError(f"prim.reshape: {format_shape(before)} and {format_shape(after)} differ in size")
        groups.append((xs, ys))
    return groups


def _exceeds(x: Any, y: Any) -> bool:
    if isinstance(x, int) and isinstance(y, int):
        return x > y
    # Of two symbolic products the one with more symbols is taken to be the larger; a wrong guess only merges more axes.
    return len(getattr(x, "symbols", ())) > len(getattr(y, "symbols", ()))
