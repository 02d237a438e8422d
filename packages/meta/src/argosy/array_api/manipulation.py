"""Functions of the array API standard that move elements."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from argosy.array_api.promotion import apply, promote_operands
from argosy_tensorcore.shape import broadcast_shapes as broadcast_sizes
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis",
    "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "take", "take_along_axis", "tile", "unstack",
]  # fmt: skip

Axes = builtins.int | tuple[builtins.int, ...]


def normal_axes(function: str, axis: Axes | None, ndim: builtins.int) -> tuple[builtins.int, ...]:
    """Axes counted from the front, all of them for None. Raises ValueError for one that is not there or is given
    twice."""
    given = tuple(range(ndim)) if axis is None else (axis,) if isinstance(axis, builtins.int) else tuple(axis)
    for each in given:
        if not -ndim <= each < ndim:
            raise ValueError(f"{function}(): axis {each} is out of range for an array of {ndim} axes")
    found = tuple(each % ndim for each in given)
    if len(set(found)) < len(found):
        raise ValueError(f"{function}(): argument 'axis' names an axis twice: {given}")
    return found


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """The arrays in the shape that all of them broadcast to."""
    shape = broadcast_shapes(*[tuple(x.shape) for x in arrays])
    return tuple(broadcast_to(x, shape) for x in arrays)


def broadcast_shapes(*shapes: tuple[builtins.int, ...]) -> tuple[builtins.int, ...]:
    """The shape that all shapes broadcast to. Raises ValueError where there is none."""
    return broadcast_sizes(*shapes)


def broadcast_to(x: Tensor, /, shape: tuple[builtins.int, ...]) -> Tensor:
    """``x`` in a shape that it broadcasts to. Raises ValueError for any other."""
    wanted = tuple(shape)
    if broadcast_sizes(tuple(x.shape), wanted) != wanted:
        raise ValueError(f"broadcast_to(): an array of shape {list(x.shape)} does not broadcast to {list(wanted)}")
    return apply("broadcast_to", x, list(wanted))  # type: ignore[no-any-return]


def concat(arrays: Sequence[Tensor], /, *, axis: builtins.int | None = 0) -> Tensor:
    """Arrays one after another along ``axis``; flattened ones for None."""
    same = promote_operands("concat", *arrays)
    if axis is None:
        same, axis = tuple(reshape(x, (-1,)) for x in same), 0
    return apply("concat", list(same), axis)  # type: ignore[no-any-return]


def stack(arrays: Sequence[Tensor], /, *, axis: builtins.int = 0) -> Tensor:
    """Arrays of one shape along a new axis."""
    return apply("stack", list(promote_operands("stack", *arrays)), axis)  # type: ignore[no-any-return]


def unstack(x: Tensor, /, *, axis: builtins.int = 0) -> tuple[Tensor, ...]:
    """The slices along ``axis``, which they lose."""
    (at,) = normal_axes("unstack", axis, x.ndim)
    return tuple(x[(slice(None),) * at + (i,)] for i in range(x.shape[at]))


def expand_dims(x: Tensor, /, axis: Axes) -> Tensor:
    """``x`` with axes of size 1, which stand at ``axis`` in the result."""
    count = x.ndim + (1 if isinstance(axis, builtins.int) else len(axis))
    new = normal_axes("expand_dims", axis, count)
    sizes = iter(x.shape)
    return reshape(x, tuple(1 if i in new else next(sizes) for i in range(count)))


def squeeze(x: Tensor, /, axis: Axes) -> Tensor:
    """``x`` without axes of size 1. Raises ValueError for an axis of another size."""
    dropped = normal_axes("squeeze", axis, x.ndim)
    for each in dropped:
        if x.shape[each] != 1:
            raise ValueError(f"squeeze(): axis {each} has size {x.shape[each]}, not 1")
    return reshape(x, tuple(size for i, size in enumerate(x.shape) if i not in dropped))


def flip(x: Tensor, /, *, axis: Axes | None = None) -> Tensor:
    """The elements in reverse order along axes, all by default."""
    axes = normal_axes("flip", axis, x.ndim)
    return apply("flip", x, list(axes)) if axes else apply("assign", x)  # type: ignore[no-any-return]


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    """Axes moved to other places, the others in their order."""
    old, new = normal_axes("moveaxis", source, x.ndim), normal_axes("moveaxis", destination, x.ndim)
    if len(old) != len(new):
        raise ValueError(f"moveaxis(): {len(old)} axes cannot go to {len(new)} places")
    order = [i for i in range(x.ndim) if i not in old]
    for place, axis in sorted(zip(new, old, strict=True)):
        order.insert(place, axis)
    return permute_dims(x, tuple(order))


def permute_dims(x: Tensor, /, axes: tuple[builtins.int, ...]) -> Tensor:
    """The axes in another order."""
    order = normal_axes("permute_dims", tuple(axes), x.ndim)
    if len(order) != x.ndim:
        raise ValueError(f"permute_dims(): argument 'axes' should name all {x.ndim} axes, got {axes}")
    return apply("transpose", x, list(order)) if order else x


def reshape(x: Tensor, /, shape: tuple[builtins.int, ...], *, copy: builtins.bool | None = None) -> Tensor:
    """The elements in another shape, one size of which may be -1; a view where possible unless ``copy``. Raises
    ValueError where ``copy=False`` and a view is not possible."""
    if copy is False and not x.is_contiguous():
        raise ValueError(f"reshape(): elements of strides {x.strides} cannot be shown in another shape without a copy")
    wanted = list(shape)
    if 0 in x.shape and -1 in wanted:
        wanted[wanted.index(-1)] = 0
    found = apply("reshape", apply("assign", x) if copy else x, _literal(x, wanted))
    return found  # type: ignore[no-any-return]


def _literal(x: Tensor, shape: list[builtins.int]) -> Any:
    """A shape for the operator, whose 0 stands for the size that ``x`` has there: arrays without elements are made
    flat first."""
    return shape


def repeat(x: Tensor, repeats: builtins.int | Tensor, /, *, axis: builtins.int | None = None) -> Tensor:
    """Each element (or slice along ``axis``) several times, as many for all or for each."""
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    (at,) = normal_axes("repeat", axis, x.ndim)
    counts = repeats.tolist() if isinstance(repeats, Tensor) else repeats
    if isinstance(counts, list) and len(counts) == 1:
        counts = counts[0]
    each = [counts] * x.shape[at] if isinstance(counts, builtins.int) else counts
    places = [i for i, count in enumerate(each) for _ in range(count)]
    return take(x, Tensor(places, "int64"), axis=at)


def roll(x: Tensor, /, shift: Axes, *, axis: Axes | None = None) -> Tensor:
    """The elements moved along axes, those that leave coming back in front; flattened without ``axis``."""
    if axis is None:
        count = x.size
        flat = reshape(x, (-1,))
        moved = apply("roll", flat, shift % count if count else 0, 0)
        return reshape(moved, tuple(x.shape))
    axes = (axis,) if isinstance(axis, builtins.int) else tuple(axis)
    shifts = (shift,) * len(axes) if isinstance(shift, builtins.int) else tuple(shift)
    for by, at in zip(shifts, axes, strict=True):
        size = x.shape[at]
        x = apply("roll", x, by % size if size else 0, at)
    return x


def tile(x: Tensor, repetitions: tuple[builtins.int, ...], /) -> Tensor:
    """The whole array several times along each axis; the shorter of shape and repetitions gets ones in front."""
    return apply("tile", x, list(repetitions)) if repetitions else apply("assign", x)  # type: ignore[no-any-return]


def take(x: Tensor, indices: Tensor, /, *, axis: builtins.int | None = None) -> Tensor:
    """The elements at ``indices`` along ``axis``, which a vector may leave out."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take(): an array of {x.ndim} axes needs argument 'axis'")
        axis = 0
    (at,) = normal_axes("take", axis, x.ndim)
    return x[(slice(None),) * at + (indices,)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: builtins.int = -1) -> Tensor:
    """The elements at ``indices`` along ``axis``, each slice by indices of its own."""
    (at,) = normal_axes("take_along_axis", axis, x.ndim)
    return apply("take_along_axis", x, indices, at)  # type: ignore[no-any-return]
