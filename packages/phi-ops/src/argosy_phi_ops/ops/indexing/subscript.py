"""``x[index]`` and ``x[index] = value`` in numpy's generality, but that numbers are taken before tensors, as in Paddle:
they do not move the axes that tensors give.

An index becomes a *key*: plain data with one entry for each part of the index, and the integer tensors among the
parts as operands. Entries are ``("int", i)``, ``("slice", start, stop, step)``, ``("new",)``, ``("all",)`` for the
ellipsis and ``("tensor",)``. Boolean masks become their positions first, which needs their values: while capturing, a
mask can only be assigned a scalar.

Sizes that are symbolic are taken to be no smaller than the offsets an index names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import AxisError
from argosy_phi_ops.ops.common.subscript_keys import TAKING, Key, parse
from argosy_phi_ops.reference.kernels.registry import Array
from argosy_pir.dims import minimum
from argosy_tensorcore.tensor import Tensor

# What a key means for a shape


class PlannedAxis:
    """One entry applied to one axis: bounds of the slice taken, and what becomes of it."""

    __slots__ = ("backwards", "kind", "limit", "start", "stride")

    def __init__(self, kind: str, start: Any, limit: Any, stride: int = 1, backwards: bool = False) -> None:
        self.kind = kind  # keep, drop (an integer) or index (a tensor)
        self.start = start
        self.limit = limit
        self.stride = stride
        self.backwards = backwards

    @property
    def size(self) -> Any:
        return (self.limit - self.start + self.stride - 1) // self.stride


class IndexRecipe:
    """A key on a shape: the slice of every axis, the shape after it, and where tensors index that.

    ``layout`` lists the parts of the result in order: ("axis", number), ("new",) and, once, ("indexed",) for the axes
    that the tensors give.
    """

    def __init__(self, key: Key, shape: Sequence[Any]) -> None:
        self.axes: list[PlannedAxis] = []
        self.layout: list[tuple[Any, ...]] = []
        entries = _complete(key, len(shape))
        advanced = [i for i, e in enumerate(entries) if e[0] == "tensor"]
        between = entries[advanced[0] : advanced[-1] + 1] if advanced else []
        together = bool(advanced) and all(e[0] in ("tensor", "int") for e in between)
        if advanced and not together:
            self.layout.append(("indexed",))
        for position, entry in enumerate(entries):
            if together and position == advanced[0]:
                self.layout.append(("indexed",))
            if entry[0] == "new":
                self.layout.append(("new",))
            if entry[0] in ("new", "all"):
                continue
            axis = _apply(entry, len(self.axes), shape[len(self.axes)])
            if axis.kind == "keep":
                self.layout.append(("axis", len(self.axes)))
            self.axes.append(axis)
        self.indexed = tuple(i for i, axis in enumerate(self.axes) if axis.kind == "index")

    @property
    def sliced_shape(self) -> tuple[Any, ...]:
        return tuple(axis.size for axis in self.axes)


def _complete(key: Key, rank: int) -> list[tuple[Any, ...]]:
    """The entries with the ellipsis (at the end, if there is none) spelled out after its mark.

    The mark stays because an ellipsis separates tensors even where it stands for no axis, as in numpy.
    """
    used = sum(entry[0] in TAKING for entry in key)
    if used > rank:
        raise AxisError(f"too many indices: {used} for a tensor of {rank} axes")
    whole = [("slice", None, None, None)] * (rank - used)
    entries: list[tuple[Any, ...]] = []
    for entry in key if ("all",) in key else (*key, ("all",)):
        entries += [entry, *whole] if entry[0] == "all" else [entry]
    return entries


def _apply(entry: tuple[Any, ...], number: int, size: Any) -> PlannedAxis:
    if entry[0] == "tensor":
        return PlannedAxis("index", 0, size)
    if entry[0] == "int":
        i = entry[1]
        if isinstance(size, int) and isinstance(i, int) and not -size <= i < size:
            raise AxisError(f"index {i} is out of range for axis {number} of size {size}")
        first = i + size if isinstance(i, int) and i < 0 else i
        return PlannedAxis("drop", first, first + 1)
    _, start, stop, step = entry
    step = 1 if step is None else step
    if step == 0:
        raise ValueError("a slice cannot have a step of zero")
    if isinstance(size, int) and all(v is None or isinstance(v, int) for v in (start, stop)):
        return _static_slice(start, stop, step, size)
    return _symbolic_slice(start, stop, step, size)


def _static_slice(start: int | None, stop: int | None, step: int, size: int) -> PlannedAxis:
    steps = range(*slice(start, stop, step).indices(size))
    if not steps:
        return PlannedAxis("keep", 0, 0)
    low, high = min(steps[0], steps[-1]), max(steps[0], steps[-1])
    return PlannedAxis("keep", low, high + 1, abs(step), step < 0)


def _symbolic_slice(start: Any, stop: Any, step: int, size: Any) -> PlannedAxis:
    def resolve_bound(value: Any, default: Any) -> Any:
        if value is None:
            return default
        if isinstance(value, int):
            return value + size if value < 0 else value
        return value

    if step < 0:
        first = resolve_bound(start, size - 1)
        first = minimum(size - 1, first) if isinstance(start, int) and start >= 0 else first
        count = (first - resolve_bound(stop, -1) - step - 1) // -step
        return PlannedAxis("keep", first + (count - 1) * step, first + 1, -step, True)
    limit = resolve_bound(stop, size)
    if isinstance(stop, int) and stop >= 0:
        limit = minimum(size, limit)
    return PlannedAxis("keep", resolve_bound(start, 0), limit, step)


# The operators


@operator(view=True)
def getitem(x: Tensor, indices: Sequence[Tensor], key: Key) -> Tensor:
    """``x[key]``, with `indices` in the places that the key leaves to tensors. A view unless there are any."""
    plan = IndexRecipe(key, x.shape)
    sliced = slice_by(x, plan)
    if not indices:
        return _arrange(sliced, plan, ())
    address, shape = addresses_of(indices, plan, sliced)
    found = prim.gather(sliced, address, axes=plan.indexed)  # [indexed..., remaining axes]
    return _arrange(found, plan, shape)


def slice_by(x: Tensor, plan: IndexRecipe) -> Tensor:
    """Every axis cut to its slice, and turned round where the step is negative."""
    if plan.sliced_shape != tuple(x.shape) or any(axis.stride != 1 for axis in plan.axes):
        x = prim.slice(
            x,
            start=tuple(axis.start for axis in plan.axes),
            limit=tuple(axis.limit for axis in plan.axes),
            stride=tuple(axis.stride for axis in plan.axes),
        )
    backwards = tuple(i for i, axis in enumerate(plan.axes) if axis.backwards)
    return prim.reverse(x, axes=backwards) if backwards else x


def addresses_of(indices: Sequence[Tensor], plan: IndexRecipe, sliced: Tensor) -> tuple[Tensor, tuple[Any, ...]]:
    """Index vectors [indexed..., number of tensors], counted from the front, and the shape of the indexed axes."""
    shape = prim.broadcast_shapes([i.shape for i in indices])
    columns = []
    for axis, index in zip(plan.indexed, indices, strict=True):
        size = sliced.shape[axis]
        wide = prim.cast(index, dtype="int64") if index.dtype != "int64" else index
        extent = size if isinstance(size, int) else prim.dim_size(dim=size, dtype="int64")
        wide = prim.select(prim.lt(wide, 0), prim.add(wide, extent), wide)
        columns.append(prim.reshape(prim.broadcast_to(wide, shape), shape=(*shape, 1)))
    return (columns[0] if len(columns) == 1 else prim.concat(*columns, axis=len(shape))), shape


def _arrange(x: Tensor, plan: IndexRecipe, indexed: tuple[Any, ...]) -> Tensor:
    """[indexed..., remaining axes] in the order and shape of the result."""
    kept = [entry[1] for entry in plan.layout if entry[0] == "axis"]
    remaining = [i for i in range(len(plan.axes)) if i not in plan.indexed]
    place = {axis: len(indexed) + n for n, axis in enumerate(remaining)}
    order, shape = [], []
    for entry in plan.layout:
        if entry[0] == "new":
            shape.append(1)
        elif entry[0] == "indexed":
            order += range(len(indexed))
            shape += indexed
        else:
            order.append(place[entry[1]])
            shape.append(plan.axes[entry[1]].size)
    dropped = [place[axis] for axis in remaining if axis not in kept]
    permutation = (*order, *dropped)
    if permutation != tuple(range(len(permutation))):
        x = prim.transpose(x, permutation=permutation)
    return x if tuple(x.shape) == tuple(shape) else prim.reshape(x, shape=tuple(shape))


_NUMPY: dict[str, Any] = {"slice": slice, "int": lambda i: i, "new": lambda: None, "all": lambda: Ellipsis}


def numpy_index(key: Key, indices: Sequence[Array]) -> tuple[Any, ...]:
    arrays = iter(indices)
    return tuple([next(arrays) if entry[0] == "tensor" else _NUMPY[entry[0]](*entry[1:]) for entry in key])


def count_numbers(x: Array, key: Key) -> tuple[Array, Key]:
    """A view of `x` at the numbers of a key with tensors, and the rest of the key."""
    if not any(kind == "int" for kind, *_ in key):
        return x, key
    rest = tuple(entry for entry in key if entry[0] != "int")
    whole = ("slice", None, None, None)
    first = tuple(entry if entry[0] in ("int", "all") else whole for entry in key if entry[0] != "new")
    return x[_view_index(first)], rest


def _view_index(key: Key) -> tuple[Any, ...]:
    """The index of a key without tensors, such that numpy gives an array: numbers alone would give a copy."""
    index = numpy_index(key, ())
    return index if any(kind == "all" for kind, *_ in key) else (*index, ...)


@getitem.reference
def _(x: Array, indices: Sequence[Array], key: Key) -> Array:
    if not indices:
        return np.asarray(x[_view_index(key)])
    x, key = count_numbers(x, key)
    return np.asarray(x[numpy_index(key, indices)])


@getitem.check_own_bounds
def _(x: Array, indices: Sequence[Array], key: Key) -> Iterator[tuple[Array, int, int]]:
    yield from spans(x, indices, key)


def spans(x: Array, indices: Sequence[Array], key: Key) -> Iterator[tuple[Array, int, int]]:
    """Each of the indices with the least one allowed and the size of its axis."""
    plan = IndexRecipe(key, x.shape)
    for axis, index in zip(plan.indexed, indices, strict=True):
        yield index, -x.shape[axis], x.shape[axis]


@getitem.specialize
def _(types: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """A view: its index is made once."""
    if len(types) != 1:
        return None
    index = _view_index(attributes["key"])
    return lambda x: x[index]


@getitem.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((4, 5, 6))
    i, j = np.array([[0, -1], [2, 3]]), np.array([1, -2])
    subscripts: list[tuple[Any, ...]] = [
        (1,), (-1, slice(1, None)), (slice(None, None, -1), Ellipsis, slice(-3, None, 2)), (None, 0, Ellipsis, None),
        (slice(3, 0, -2),), (slice(5, 9),), (i,), (slice(None), j), (j, slice(None), j), (0, slice(None), j),
        (slice(None), 1, j), (Ellipsis, i, j), (None, i, slice(1, 3)), (),
        (1, slice(None), i), (i, 1, j), (2, Ellipsis, j),
    ]  # fmt: skip
    for subscript in subscripts:
        key, arrays = sample_key(subscript)
        yield Sample(x, arrays, key)


def sample_key(subscript: tuple[Any, ...]) -> tuple[Key, list[Array]]:
    arrays = [part for part in subscript if isinstance(part, np.ndarray)]
    return parse(subscript)[0], arrays
