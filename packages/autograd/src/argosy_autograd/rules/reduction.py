"""Derivatives of reductions and cumulations."""

from __future__ import annotations

from typing import Any

from argosy_autograd.algebra import Value, argsort, conj, where
from argosy_autograd.axis_gather import add_along, linear_recurrence, shift, take_along
from argosy_autograd.registry import jvp, vjp
from argosy_phi_ops import prim

Axes = tuple[int, ...]


def _broadcast_back(reduced: Value, x: Value, axes: Axes) -> Value:
    """A reduction's result repeated to the shape of its operand."""
    kept = tuple(i for i in range(x.ndim) if i not in axes)
    return prim.broadcast(reduced, shape=x.shape, axes=kept)


@vjp("reduce_sum")
def _(g: Value, y: Value, x: Value, *, axes: Axes) -> Value:
    return _broadcast_back(g, x, axes)


@jvp("reduce_sum")
def _(y: Value, x: Value, dx: Value, *, axes: Axes) -> Value:
    return prim.reduce_sum(dx, axes=axes)


@vjp("reduce_prod")
def _(g: Value, y: Value, x: Value, *, axes: Axes) -> Value:
    return _broadcast_back(g, x, axes) * conj(_other_product(x, axes))


@jvp("reduce_prod")
def _(y: Value, x: Value, dx: Value, *, axes: Axes) -> Value:
    return prim.reduce_sum(dx * _other_product(x, axes), axes=axes)


def _other_product(x: Value, axes: Axes) -> Value:
    """For each element the product of all others that are reduced with it; right where some are zero."""
    kept = tuple(i for i in range(x.ndim) if i not in axes)
    order = (*kept, *axes)
    moved = prim.transpose(x, permutation=order)
    size: Any = 1
    for axis in axes:
        size = size * x.shape[axis]
    last = len(kept)
    flat = prim.reshape(moved, shape=(*(x.shape[i] for i in kept), size))
    before = shift(prim.cumulative(flat, axis=last, kind="prod"), last, 1, 1)
    after = shift(prim.cumulative(flat, axis=last, kind="prod", reverse=True), last, -1, 1)
    return prim.transpose(prim.reshape(before * after, shape=moved.shape), permutation=argsort(order))


@vjp("reduce_max", "reduce_min")
def _(g: Value, y: Value, x: Value, *, axes: Axes) -> Value:
    chosen = prim.eq(x, _broadcast_back(y, x, axes))
    return where(chosen, _broadcast_back(g / _count(chosen, g, axes), x, axes), 0)


@jvp("reduce_max", "reduce_min")
def _(y: Value, x: Value, dx: Value, *, axes: Axes) -> Value:
    chosen = prim.eq(x, _broadcast_back(y, x, axes))
    return prim.reduce_sum(where(chosen, dx, 0), axes=axes) / _count(chosen, dx, axes)


def _count(chosen: Value, like: Value, axes: Axes) -> Value:
    """Ties share equally: how many there are."""
    return prim.reduce_sum(prim.cast(chosen, dtype=like.dtype), axes=axes)


# Cumulations. In the rules below k runs along the axis in the direction of the cumulation.


@vjp("cumulative")
def _(g: Value, y: Value, x: Value, *, axis: int, kind: str, reverse: bool) -> Value:
    if kind == "sum":
        return prim.cumulative(g, axis=axis, kind="sum", reverse=not reverse)
    if kind in ("max", "min"):
        return add_along(g, _record_positions(y, x, axis, reverse), axis)
    previous = 1 if not reverse else -1
    if kind == "prod":  # sum over k >= j of g_k y_k / x_j, without the division
        following = shift(conj(x), axis, -previous, 0)
        sums = linear_recurrence(following, g, axis, not reverse)
        return sums * shift(conj(y), axis, previous, 1)
    # logsumexp: y does not decrease, so no factor exceeds one
    decay = prim.exp(where(_at_end(y, axis, reverse), 0, y - shift(y, axis, -previous, 0)))
    return linear_recurrence(decay, g, axis, not reverse) * prim.exp(x - y)


@jvp("cumulative")
def _(y: Value, x: Value, dx: Value, *, axis: int, kind: str, reverse: bool) -> Value:
    if kind == "sum":
        return prim.cumulative(dx, axis=axis, kind="sum", reverse=reverse)
    if kind in ("max", "min"):
        return take_along(dx, _record_positions(y, x, axis, reverse), axis)
    previous = 1 if not reverse else -1
    if kind == "prod":
        return linear_recurrence(x, dx * shift(y, axis, previous, 1), axis, reverse)
    decay = prim.exp(where(_at_end(y, axis, not reverse), 0, shift(y, axis, previous, 0) - y))
    return linear_recurrence(decay, dx * prim.exp(x - y), axis, reverse)


def _record_positions(y: Value, x: Value, axis: int, reverse: bool) -> Value:
    """Where the running extremum y_k was last attained; NaN, once met, is attained by every NaN."""
    index = prim.iota(shape=x.shape, axis=axis, dtype="int64")
    met = prim.logical_or(prim.eq(x, y), prim.ne(x, x))
    if not reverse:
        return prim.cumulative(where(met, index, -1), axis=axis, kind="max")
    return prim.cumulative(where(met, index, 2**62), axis=axis, kind="min", reverse=True)


def _at_end(x: Value, axis: int, reverse: bool) -> Value:
    """Whether a position is the last along ``axis`` (the first when ``reverse``)."""
    index = prim.iota(shape=x.shape, axis=axis, dtype="int64")
    if reverse:
        return prim.eq(index, 0)
    return prim.eq(index, prim.dim_size(dim=x.shape[axis] - 1))
