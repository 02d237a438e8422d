"""Derivatives of indexing: what gather reads, scatter adds up, and the other way round."""

from __future__ import annotations

from typing import Any

from argosy_autograd.algebra import Value, conj, plus, where, zeros, zeros_like
from argosy_autograd.axis_gather import add_along, take_along
from argosy_autograd.registry import jvp, vjp
from argosy_phi_ops import prim
from argosy_pir.values import OpResult

Axes = tuple[int, ...]


@vjp("gather")
def _(g: Value, y: Value, x: Value, indices: Value, *, axes: Axes, batch: int) -> tuple[Value, None]:
    inside = _clamp(indices, x, axes)  # gather clamps what scatter would drop
    return prim.scatter(zeros_like(x), inside, g, axes=axes, batch=batch, kind="add"), None


@jvp("gather")
def _(y: Value, x: Value, indices: Value, dx: Value, _: None, *, axes: Axes, batch: int) -> Value:
    return prim.gather(dx, indices, axes=axes, batch=batch)


def _limits(indices: Value, x: Value, axes: Axes) -> Value:
    """The last valid index for each component of ``indices``."""
    lasts = [prim.dim_size(dim=x.shape[axis] - 1, dtype=indices.dtype) for axis in axes]
    if len(lasts) == 1:
        return prim.broadcast_to(lasts[0], indices.shape)
    return prim.broadcast_to(prim.concat(*[prim.reshape(v, shape=(1,)) for v in lasts], axis=0), indices.shape)


def _clamp(indices: Value, x: Value, axes: Axes) -> Value:
    if not axes:
        return indices
    return prim.minimum(prim.maximum(indices, 0), _limits(indices, x, axes))


def _in_bounds(indices: Value, x: Value, axes: Axes, shape: tuple[Any, ...]) -> Value:
    """Whether each update hits ``x``, repeated to the shape of the updates."""
    within = prim.logical_and(prim.ge(indices, 0), prim.le(indices, _limits(indices, x, axes)))
    each = prim.reduce_and(within, axes=(indices.ndim - 1,))
    return prim.broadcast(each, shape=shape, axes=tuple(range(each.ndim)))


@vjp("scatter")
def _(
    g: Value, y: Value, x: Value, indices: Value, updates: Value, *, axes: Axes, batch: int, kind: str
) -> tuple[Value, None, Value]:
    at: dict[str, Any] = {"axes": axes, "batch": batch}
    inside = _in_bounds(indices, x, axes, updates.shape)
    if kind == "add":
        return g, None, where(inside, prim.gather(g, indices, **at), 0)
    if kind == "set":
        g_x = prim.scatter(g, indices, zeros_like(updates), kind="set", **at)
        stayed = prim.logical_and(inside, _wins(x, indices, updates, at))
        return g_x, None, where(stayed, prim.gather(g, indices, **at), 0)
    if kind == "mul":
        return _scatter_product(g, y, x, indices, updates, inside, at)
    chosen_x, chosen_u, ties = _scatter_choice(y, x, indices, updates, inside, at)
    share = g / ties
    return where(chosen_x, share, 0), None, where(chosen_u, prim.gather(share, indices, **at), 0)


@jvp("scatter")
def _(
    y: Value,
    x: Value,
    indices: Value,
    updates: Value,
    dx: Value | None,
    _: None,
    du: Value | None,
    *,
    axes: Axes,
    batch: int,
    kind: str,
) -> Value | None:
    at: dict[str, Any] = {"axes": axes, "batch": batch}
    if kind in ("set", "add"):
        dx, du = (zeros_like(v) if d is None else d for v, d in ((x, dx), (updates, du)))
        return prim.scatter(dx, indices, du, kind=kind, **at)
    inside = _in_bounds(indices, x, axes, updates.shape)
    if kind == "mul":
        by_x = None if dx is None else prim.scatter(dx, indices, updates, kind="mul", **at)
        by_u = None if du is None else _add(du * _other_factors(y, x, indices, updates, at), x, indices, at)
        return plus(by_x, by_u)
    chosen_x, chosen_u, ties = _scatter_choice(y, x, indices, updates, inside, at)
    by_x = None if dx is None else where(chosen_x, dx, 0)
    by_u = None if du is None else _add(where(chosen_u, du, 0), x, indices, at)
    total = plus(by_x, by_u)
    return None if total is None else total / ties


def _add(values: Value, x: Value, indices: Value, at: dict[str, Any]) -> Value:
    return prim.scatter(zeros_like(x), indices, values, kind="add", **at)


def _wins(x: Value, indices: Value, updates: Value, at: dict[str, Any]) -> Value:
    """Of updates to the same place, the last one stays: write their numbers there and read them back."""
    size: Any = 1
    for n in updates.shape:
        size = size * n
    number = prim.reshape(prim.iota(shape=(size,), axis=0, dtype="int64"), shape=updates.shape)
    left = prim.scatter(zeros(x.shape, "int64"), indices, number, kind="set", **at)
    return prim.eq(prim.gather(left, indices, **at), number)


def _other_factors(y: Value, x: Value, indices: Value, updates: Value, at: dict[str, Any]) -> Value:
    """For each update the product of everything else at its place.

    A factor of zero that is not the only update of its place is not told apart from one that is.
    """
    nothing = prim.eq(updates, 0)
    others = prim.gather(y, indices, **at) / where(nothing, 1, updates)
    return where(nothing, prim.gather(x, indices, **at), others)


def _scatter_product(
    g: Value, y: Value, x: Value, indices: Value, updates: Value, inside: Value, at: dict[str, Any]
) -> tuple[Value, None, Value]:
    g_u = prim.gather(g, indices, **at) * conj(_other_factors(y, x, indices, updates, at))
    return prim.scatter(g, indices, conj(updates), kind="mul", **at), None, where(inside, g_u, 0)


def _scatter_choice(
    y: Value, x: Value, indices: Value, updates: Value, inside: Value, at: dict[str, Any]
) -> tuple[Value, Value, Value]:
    """Which elements of x and which updates equal the extremum at their place, and how many share each place."""
    chosen_x = prim.eq(x, y)
    chosen_u = prim.logical_and(inside, prim.eq(updates, prim.gather(y, indices, **at)))
    counts = prim.cast(chosen_x, dtype=x.dtype)
    ties = prim.scatter(counts, indices, prim.cast(chosen_u, dtype=x.dtype), kind="add", **at)
    return chosen_x, chosen_u, ties


@vjp("dynamic_slice")
def _(g: Value, y: Value, x: Value, *starts: Value, sizes: tuple[Any, ...]) -> tuple[Value | None, ...]:
    return (prim.dynamic_update_slice(zeros_like(x), g, *starts), *([None] * len(starts)))


@jvp("dynamic_slice")
def _(y: Value, x: Value, *rest: Value, sizes: tuple[Any, ...]) -> Value:
    starts, dx = rest[: x.ndim], rest[x.ndim]
    return prim.dynamic_slice(dx, *starts, sizes=sizes)


@vjp("dynamic_update_slice")
def _(g: Value, y: Value, x: Value, update: Value, *starts: Value) -> tuple[Value | None, ...]:
    g_x = prim.dynamic_update_slice(g, zeros_like(update), *starts)
    return (g_x, prim.dynamic_slice(g, *starts, sizes=update.shape), *([None] * len(starts)))


@jvp("dynamic_update_slice")
def _(y: Value, x: Value, update: Value, *rest: Value | None) -> Value:
    starts, dx, du = rest[: x.ndim], rest[x.ndim], rest[x.ndim + 1]
    return prim.dynamic_update_slice(
        zeros_like(x) if dx is None else dx, zeros_like(update) if du is None else du, *starts
    )


# Sorting


def _order(xs: tuple[Value, ...], results: tuple[Value, ...], axis: int, attributes: dict[str, Any]) -> Value:
    """Where each sorted element came from. Sorting the index along costs nothing where the program does so
    already."""
    for x, result in zip(xs, results, strict=True):
        if isinstance(x, OpResult) and x.op.name == "prim.iota" and x.op.attributes["axis"] == axis:
            return result
    index = prim.iota(shape=xs[0].shape, axis=axis, dtype="int64")
    return prim.sort(*xs, index, axis=axis, **attributes)[-1]


def _as_tuple(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)


@vjp("sort")
def _(g: Any, ys: Any, *xs: Value, axis: int, **attributes: Any) -> tuple[Value | None, ...]:
    order = _order(xs, _as_tuple(ys), axis, attributes)
    return tuple(None if one is None else add_along(one, order, axis) for one in _as_tuple(g))


@jvp("sort")
def _(ys: Any, *xs: Any, axis: int, **attributes: Any) -> Any:
    count = len(xs) // 2
    order = _order(xs[:count], _as_tuple(ys), axis, attributes)
    tangents = tuple(None if dx is None else take_along(dx, order, axis) for dx in xs[count:])
    return tangents if count > 1 else tangents[0]
