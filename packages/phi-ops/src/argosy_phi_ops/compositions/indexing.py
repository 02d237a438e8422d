"""Indexing: results whose size depends on values, and writing into parts of a tensor."""

# mypy: disable-error-code="no-any-return,index,operator"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy_phi_ops.declare.composition import compose
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.dispatch import write
from argosy_phi_ops.errors import OperatorError, ShapeError
from argosy_phi_ops.ops.common.arguments import axis_of
from argosy_tensorcore.shape import broadcast_shapes
from argosy_tensorcore.tensor import Tensor


def _replace_at(x: Tensor, index: Any, value: Any) -> Tensor:
    """A copy of ``x`` in which ``index`` holds ``value``."""
    copy: Tensor = get_operator("assign")(x)
    copy[index] = value
    return copy


@compose()
def slice_scatter(
    x: Tensor, value: Tensor, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int], strides: Sequence[int]
) -> Tensor:
    """``x`` with ``value`` in the place of ``strided_slice(x, axes, starts, ends, strides)``."""
    index = [slice(None)] * x.ndim
    for axis, start, end, stride in zip(axes, starts, ends, strides, strict=True):
        index[axis_of("slice_scatter", axis, x.ndim)] = slice(int(start), int(end), int(stride))
    return _replace_at(x, tuple(index), value)


@compose()
def select_scatter(x: Tensor, values: Tensor, axis: int, index: int) -> Tensor:
    """``x`` with ``values`` in the place of the slice ``index`` along ``axis``."""
    at = axis_of("select_scatter", axis, x.ndim)
    shape = [n for i, n in enumerate(x.shape) if i != at]
    if list(values.shape) != shape:
        raise ShapeError(f"select_scatter: values of shape {list(values.shape)} should have the slice's, {shape}")
    return _replace_at(x, (*[slice(None)] * at, index), values)


def _diagonal_places(name: str, x: Tensor, offset: int, axis1: int, axis2: int) -> tuple[int, int, Tensor, Tensor]:
    """The two axes, and the indices along them of the diagonal's elements."""
    first, second = axis_of(name, axis1, x.ndim), axis_of(name, axis2, x.ndim)
    if first == second:
        raise OperatorError(f"{name}: axis1 {axis1} and axis2 {axis2} are the same")
    count = max(0, min(x.shape[first] - max(-offset, 0), x.shape[second] - max(offset, 0)))
    steps = get_operator("arange")(count)
    return first, second, steps + max(-offset, 0), steps + max(offset, 0)


@compose()
def diagonal_scatter(x: Tensor, y: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """``x`` with ``y`` in the place of ``diagonal(x, offset, axis1, axis2)``."""
    first, second, rows, columns = _diagonal_places("diagonal_scatter", x, offset, axis1, axis2)
    rest = [i for i in range(x.ndim) if i not in (first, second)]
    wanted = [x.shape[i] for i in rest] + [rows.shape[0]]
    if list(y.shape) != wanted:
        raise ShapeError(f"diagonal_scatter: y of shape {list(y.shape)} should have the diagonal's, {wanted}")
    order = [first, second, *rest]
    moved = get_operator("assign")(get_operator("transpose")(x, order))
    moved[rows, columns] = get_operator("moveaxis")(y, -1, 0)
    return get_operator("transpose")(moved, [order.index(i) for i in range(x.ndim)])


@compose(inplace=True)
def fill_diagonal_tensor(x: Tensor, y: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """``x`` with ``y`` along a diagonal: :func:`diagonal_scatter` by another name."""
    return diagonal_scatter(x, y, offset, dim1, dim2)


@compose()
def fill_diagonal_(x: Tensor, value: float, offset: int = 0, wrap: bool = False) -> Tensor:
    """``x`` overwritten by ``value`` on its diagonal; with ``wrap`` the diagonal of a tall matrix starts anew."""
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise ShapeError(f"fill_diagonal_ takes a matrix, or more axes of one size; got shape {list(x.shape)}")
    step = sum(int(s) for s in _contiguous_strides(x.shape))
    last = x.size if wrap or x.ndim > 2 else min(x.size, x.shape[1] * x.shape[1])
    start = offset if offset >= 0 else -offset * x.shape[-1]
    mask = get_operator("zeros")([x.size], "bool")
    mask[start:last:step] = True
    write(x, get_operator("masked_fill")(x, get_operator("reshape")(mask, x.shape), value))
    return x


def _contiguous_strides(shape: Sequence[int]) -> list[int]:
    strides = [1]
    for n in list(shape)[:0:-1]:
        strides.insert(0, strides[0] * n)
    return strides


@compose(inplace=True)
def index_put(x: Tensor, indices: Sequence[Tensor], value: Tensor, accumulate: bool = False) -> Tensor:
    """``x`` with ``value`` at the ``indices`` of the leading axes (integers or masks, broadcast together).

    With ``accumulate`` values are added to what is there, those for one place all of them.
    """
    if not accumulate:
        return _replace_at(x, tuple(indices), value)
    places = _places(indices)
    shape = broadcast_shapes(*(tuple(i.shape) for i in places))
    spread = get_operator("broadcast_to")
    index = get_operator("stack")([spread(i.astype("int64"), shape) for i in places], -1)
    size = get_operator("full")([], 0, "int64")
    sizes = Tensor(list(x.shape)[: len(places)], "int64")
    index = get_operator("where")(index < size, index + sizes, index)
    updates = spread(value, [*shape, *x.shape[len(places) :]])
    return get_operator("scatter_nd_add")(x, index, updates)


def _places(indices: Sequence[Tensor]) -> list[Tensor]:
    """The indices with masks replaced by the positions where they hold."""
    found: list[Tensor] = []
    for index in indices:
        if index.dtype.kind == "b":
            positions = get_operator("nonzero")(index)
            found += [positions[:, i] for i in range(index.ndim)]
        else:
            found.append(index)
    return found


_REDUCTIONS = {"sum": "add", "prod": "multiply", "mean": "mean", "amax": "amax", "amin": "amin"}


@compose(inplace=True)
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """``input`` with ``src`` added at ``index`` along ``dim``."""
    return _put(input, dim, index, src, "add", True)


@compose(inplace=True)
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """``input`` with ``src`` combined in at ``index`` along ``dim``: sum, prod, mean, amax or amin."""
    if reduce not in _REDUCTIONS:
        raise OperatorError(f"scatter_reduce: reduce {reduce!r} is unknown; there are {', '.join(_REDUCTIONS)}")
    return _put(input, dim, index, src, _REDUCTIONS[reduce], include_self)


def _put(x: Tensor, dim: int, index: Tensor, src: Tensor, how: str, include_self: bool) -> Tensor:
    """Only as much of ``src`` is used as ``index`` covers."""
    if isinstance(src, Tensor) and tuple(src.shape) != tuple(index.shape):
        axes = list(range(src.ndim))
        src = get_operator("slice")(src, axes, [0] * src.ndim, list(index.shape))
    return get_operator("put_along_axis")(x, index, src, dim, how, include_self, False)


def _positions(x: Tensor) -> Tensor:
    payload = x.payload
    found = payload.tracer.positions(x) if payload.is_traced else None
    return get_operator("nonzero")(x) if found is None else found


@compose(out=True)
def nonzero(x: Tensor, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """The positions of the elements that are not zero: [count, axes], or with ``as_tuple`` one vector for each axis."""
    found: Any = _positions(x)
    return tuple(found[:, axis] for axis in range(len(x.shape))) if as_tuple else found


@compose(out=True)
def where(
    condition: Tensor, x: Tensor | float | None = None, y: Tensor | float | None = None
) -> Tensor | tuple[Tensor, ...]:
    """``x`` where ``condition`` holds, else ``y``, with broadcasting; without both, the positions where it holds.

    Raises ``ValueError`` when only one of the two is given.
    """
    if (x is None) != (y is None):
        raise ValueError("where() takes both x and y, or neither")
    if x is None:
        return nonzero(condition, as_tuple=True)
    return get_operator("where")(condition, x, y)


@compose(out=True)
def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """The elements of ``x`` where ``mask`` holds, as a vector; the two broadcast. Its size depends on the values."""
    spread = get_operator("expand")
    if mask.payload.is_traced and not mask.payload.selected:
        shape = broadcast_shapes(tuple(x.shape), tuple(mask.shape))
        whole, everywhere = (t if tuple(t.shape) == shape else spread(t, shape) for t in (x, mask))
        if (found := mask.payload.tracer.selection(whole, everywhere)) is not None:
            return found
    if x.stop_gradient:
        return get_operator("masked_select")(x, mask)
    shape = broadcast_shapes(tuple(x.shape), tuple(mask.shape))
    positions = get_operator("nonzero")(spread(mask, shape))
    return get_operator("gather_nd")(spread(x, shape), positions)


@compose()
def sequence_mask(x: Tensor, maxlen: int | None = None, dtype: object = "int64") -> Tensor:
    """For each length in ``x`` a row of ``maxlen`` (by default the greatest length) that is 1 up to there, then 0."""
    count = int(get_operator("max")(x)) if maxlen is None else maxlen
    return get_operator("sequence_mask")(x, count, dtype)


@compose()
def where_(condition: Tensor, x: Tensor | None = None, y: Tensor | float | None = None) -> Tensor:
    """``x`` overwritten by ``y`` where ``condition`` does not hold. Raises :class:`OperatorError` without ``x``."""
    if x is None or y is None:
        raise OperatorError("where_: x, which is overwritten, and y are both needed")
    write(x, get_operator("where")(condition, get_operator("assign")(x), y))
    return x


@compose()
def argwhere(input: Tensor) -> Tensor:
    """The positions of the elements that are not zero: [count, axes]."""
    return _positions(input)
