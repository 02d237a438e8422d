"""Kernels that address elements through integer tensors, and sorting."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy_phi_ops.checks.index_errors import find_outlier, index_error
from argosy_phi_ops.reference.kernels.registry import Array, ieee, kernel, widen


def _move_addressed_axes(x: Array, axes: Sequence[int], batch: int) -> Array:
    """A view of `x` with the addressed axes moved right behind the batch axes."""
    rest = [axis for axis in range(batch, x.ndim) if axis not in axes]
    return x.transpose([*range(batch), *axes, *rest])


def _batch_grid(shape: Sequence[int], batch: int) -> list[Array]:
    """Index arrays of the batch axes, shaped to broadcast against `shape` = [batch..., I...]."""
    rank = len(shape)
    return [np.arange(shape[i]).reshape([-1 if j == i else 1 for j in range(rank)]) for i in range(batch)]


@kernel("gather")
def gather(x: Array, indices: Array, *, axes: Sequence[int], batch: int = 0) -> Array:
    """Read `x` at `indices` [batch..., I..., len(axes)]: [batch..., I..., remaining axes]. Out of range
    clamps.
    """
    source = _move_addressed_axes(x, axes, batch)
    where: list[Any] = _batch_grid(indices.shape[:-1], batch)
    for k, axis in enumerate(axes):
        where.append(np.clip(indices[..., k].astype(np.int64), 0, x.shape[axis] - 1))
    return source[tuple(where)] if where else source[...]


@kernel("check_index")
def check_index(indices: Array, *, operator: str, low: int, size: int, besides: int | None = None) -> tuple[()]:
    """Raise AxisError for the first index that is out of range."""
    wrong = find_outlier(indices, low, size, besides)
    if wrong is not None:
        raise index_error(operator, wrong, low, size, besides)
    return ()


_COMBINE: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


@kernel("scatter")
@ieee
def scatter(
    x: Array, indices: Array, updates: Array, *, axes: Sequence[int], batch: int = 0, kind: str = "set"
) -> Array:
    """Combine `updates` [batch..., I..., remaining axes] into `x` at `indices` [batch..., I..., len(axes)].

    kind: set (of duplicates the last wins), add, mul, max, min. Indices out of range are dropped. Narrow
    floats accumulate in float32.
    """
    result = widen(x).copy()
    target = _move_addressed_axes(result, axes, batch)
    outer = indices.shape[:-1]
    kept = np.ones(outer, bool)
    where = [np.broadcast_to(grid, outer) for grid in _batch_grid(outer, batch)]
    for k, axis in enumerate(axes):
        index = indices[..., k].astype(np.int64)
        kept &= (index >= 0) & (index < x.shape[axis])
        where.append(index)
    address = tuple(index[kept] for index in where)
    values = widen(updates)[kept]
    if kind == "set":
        target[address] = values
    else:
        _COMBINE[kind].at(target, address, values)
    return result.astype(x.dtype, copy=False)


def _window(x: Array, sizes: Sequence[int], starts: Sequence[Array]) -> tuple[slice, ...]:
    """The window of `sizes` at `starts`, moved inside `x` as far as needed."""
    first = [min(max(int(s), 0), n - size) for s, n, size in zip(starts, x.shape, sizes, strict=True)]
    return tuple(slice(lo, lo + size) for lo, size in zip(first, sizes, strict=True))


@kernel("dynamic_slice")
def dynamic_slice(x: Array, *starts: Array, sizes: Sequence[int]) -> Array:
    """The window of `sizes` that begins at the 0-D integers `starts`, clamped to lie inside."""
    return x[_window(x, sizes, starts)]


@kernel("dynamic_update_slice")
def dynamic_update_slice(x: Array, update: Array, *starts: Array) -> Array:
    """`x` with the window at `starts` (clamped to lie inside) replaced by `update`."""
    result = x.copy()
    result[_window(x, update.shape, starts)] = update
    return result


def _order(keys: Sequence[Array], axis: int, descending: bool) -> Array:
    """The stable permutation that sorts by the first key, then the second and so on; NaN counts as
    largest.
    """
    wide = [np.flip(widen(key), axis) if descending else widen(key) for key in keys]
    if len(wide) == 1:
        order = np.argsort(wide[0], axis, kind="stable")
    else:
        order = np.lexsort(wide[::-1], axis)
    if descending:  # reversing a reversed stable order keeps equals in place
        order = wide[0].shape[axis] - 1 - np.flip(order, axis)
    return order


@kernel("sort")
def sort(
    *xs: Array, axis: int, keys: int = 1, descending: bool = False, stable: bool = True
) -> Array | tuple[Array, ...]:
    """All operands reordered along `axis` by the first `keys` of them. Always stable, asked or not."""
    order = _order(xs[:keys], axis, descending)
    sorted_xs = tuple(np.take_along_axis(x, order, axis) for x in xs)
    return sorted_xs[0] if len(xs) == 1 else sorted_xs
