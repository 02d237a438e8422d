"""Indexing primitives: elements chosen by the values of other tensors; and sorting."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

from argosy_phi_ops.declare.axes import Axis, AxisNotation
from argosy_phi_ops.errors import DTypeError
from argosy_phi_ops.primitives.checks import INTEGER, check_axes, check_dtype, check_same_dtype, format_shape, require
from argosy_phi_ops.primitives.cost import Cost, cost_of_moving, elements
from argosy_phi_ops.primitives.declaration import Shape, primitive
from argosy_pir.dims import Dim, SymExpr
from argosy_pir.types import TensorType

SCATTER_KINDS = ("set", "add", "mul", "max", "min")


def _gather(name: str, x: TensorType, indices: TensorType, axes: Shape, batch: int) -> TensorType:
    check_dtype(name, indices, INTEGER, "indices")
    check_axes(name, axes, len(x.shape))
    require(all(axis >= batch for axis in axes), f"prim.{name}: axes {tuple(axes)} overlap the {batch} batch axes")
    require(
        len(indices.shape) > batch and indices.shape[-1] == len(axes) and indices.shape[:batch] == x.shape[:batch],
        f"prim.{name}: indices {indices} must be [{batch} batch axes of x {x}, ..., {len(axes)}]",
    )
    rest = [n for i, n in enumerate(x.shape) if i >= batch and i not in axes]
    return TensorType((*indices.shape[:-1], *rest), x.dtype)


def _terms(x: TensorType, indices: TensorType, axes: Shape, batch: int) -> tuple[list[Axis], list[Axis], list[Axis]]:
    operand: list[Axis] = [(f"x{i}",) for i in range(len(x.shape))]
    index: list[Axis] = [operand[i] if i < batch else (f"i{i}",) for i in range(len(indices.shape))]
    rest = [t for i, t in enumerate(operand) if i >= batch and i not in axes]
    return operand, index, index[:-1] + rest


@primitive("indexing")
def gather(x: TensorType, indices: TensorType, *, axes: Shape, batch: int = 0) -> TensorType:
    """Slices of ``x`` at ``indices`` [batch..., I..., len(axes)], giving [batch..., I..., remaining axes of x].

    The first ``batch`` axes of both run together; an index outside its axis is clamped to it.
    """
    return _gather("gather", x, indices, axes, batch)


@gather.axes
def _(x: TensorType, indices: TensorType, *, axes: Shape, batch: int = 0) -> AxisNotation:
    operand, index, result = _terms(x, indices, axes, batch)
    mixing = frozenset({f"x{axis}" for axis in axes} | {index[-1][0]})
    return AxisNotation([operand, index], [result], mixing)


@gather.costs
def _(made: Sequence[TensorType], x: TensorType, indices: TensorType, **_: object) -> Cost:
    return cost_of_moving((*made, indices), made, elements(made[0].shape))  # it reads what it gives


@primitive("indexing")
def scatter(
    x: TensorType, indices: TensorType, updates: TensorType, *, axes: Shape, batch: int = 0, kind: str = "set"
) -> TensorType:
    """``x`` with ``updates`` (shaped as ``gather`` would give) combined in at ``indices``.

    ``kind`` is set (the last one wins), add, mul, max or min; updates whose index is outside ``x`` are dropped.
    """
    check_same_dtype("scatter", (x, updates))
    require(kind in SCATTER_KINDS, f"prim.scatter: kind {kind!r}, expected one of {', '.join(SCATTER_KINDS)}")
    expected = _gather("scatter", x, indices, axes, batch)
    require(
        updates.shape == expected.shape,
        f"prim.scatter: updates {updates}, expected shape {format_shape(expected.shape)}",
    )
    return x


@scatter.axes
def _(
    x: TensorType, indices: TensorType, updates: TensorType, *, axes: Shape, batch: int = 0, kind: str = "set"
) -> AxisNotation:
    operand, index, update = _terms(x, indices, axes, batch)
    mixing = frozenset({f"x{axis}" for axis in axes} | {index[-1][0]})
    return AxisNotation([operand, index, update], [operand], mixing, "sum" if kind == "add" else "")


@primitive("indexing", effect=True)
def check_index(
    indices: TensorType, *, operator: str, low: Dim, size: Dim, besides: Dim | None = None
) -> tuple[TensorType, ...]:
    """An error where one of ``indices`` is less than ``low`` or not less than ``size``, and not ``besides``.

    ``operator`` is what users called, for whom the other primitives clamp or drop what is out of range. There is no
    result.
    """
    check_dtype("check_index", indices, INTEGER, "indices")
    numbers = (low, size) if besides is None else (low, size, besides)
    require(all(type(n) in (int, SymExpr) for n in numbers), f"prim.check_index: bounds {numbers}, expected sizes")
    return ()


@check_index.axes
def _(indices: TensorType, **_: object) -> AxisNotation:
    return AxisNotation([[(f"i{i}",) for i in range(len(indices.shape))]], [])


@primitive("indexing")
def dynamic_slice(x: TensorType, *starts: TensorType, sizes: Shape) -> TensorType:
    """The block of ``sizes`` of ``x`` that begins at the 0-D integers ``starts``, moved inside where it would reach
    out.
    """
    _check_starts("dynamic_slice", x, starts)
    require(len(sizes) == len(x.shape), f"prim.dynamic_slice: sizes {format_shape(sizes)} do not fit {x}")
    return TensorType(tuple(sizes), x.dtype)


@dynamic_slice.costs
def _(made: Sequence[TensorType], x: TensorType, *starts: TensorType, sizes: Shape) -> Cost:
    return cost_of_moving((*made, *starts), made, elements(sizes))


@dynamic_slice.axes
def _(x: TensorType, *starts: TensorType, sizes: Shape) -> AxisNotation:
    term: list[Axis] = [(f"d{i}",) for i in range(len(x.shape))]
    moved = frozenset(f"d{i}" for i, (n, m) in enumerate(zip(x.shape, sizes, strict=True)) if n != m)
    return AxisNotation([term, *([()] * len(starts))], [term], moved)


@primitive("indexing")
def dynamic_update_slice(x: TensorType, update: TensorType, *starts: TensorType) -> TensorType:
    """``x`` with the block that begins at ``starts`` replaced by ``update``, moved inside where it would reach out."""
    check_same_dtype("dynamic_update_slice", (x, update))
    _check_starts("dynamic_update_slice", x, starts)
    require(len(update.shape) == len(x.shape), f"prim.dynamic_update_slice: update {update} and x {x} differ in rank")
    return x


def _check_starts(name: str, x: TensorType, starts: tuple[TensorType, ...]) -> None:
    require(len(starts) == len(x.shape), f"prim.{name}: {len(starts)} starts for the {len(x.shape)} axes of {x}")
    for start in starts:
        require(
            start.shape == () and start.dtype in INTEGER,
            f"prim.{name}: start {start} must be a 0-D integer",
            DTypeError,
        )


@primitive("indexing")
def sort(
    *xs: TensorType, axis: int, keys: int = 1, descending: bool = False, stable: bool = True
) -> tuple[TensorType, ...]:
    """Sort tensors of equal shape together along ``axis`` by the first ``keys`` of them; NaN counts as the largest."""
    require(0 < keys <= len(xs), f"prim.sort: {keys} keys of {len(xs)} operands")
    check_axes("sort", (axis,), len(xs[0].shape))
    require(all(x.shape == xs[0].shape for x in xs), f"prim.sort: shapes differ: {', '.join(map(str, xs))}")
    return xs


@sort.axes
def _(*xs: TensorType, axis: int, **_: object) -> AxisNotation:
    term = [(f"d{i}",) for i in range(len(xs[0].shape))]
    return AxisNotation([term] * len(xs), [term] * len(xs), frozenset({f"d{axis}"}))


@sort.costs
def _(made: Sequence[TensorType], *xs: TensorType, axis: int, **_: object) -> Cost:
    compared = elements(xs[0].shape) * log2(max(2.0, elements(xs[0].shape[axis : axis + 1])))
    return cost_of_moving(xs, made, compared)
