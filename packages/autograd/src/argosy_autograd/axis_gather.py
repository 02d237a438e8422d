"""Reading and adding along one axis by per-element indices, and first-order linear recurrences along an axis."""

from __future__ import annotations

from typing import cast

from argosy_autograd.algebra import Value, argsort, zeros, zeros_like
from argosy_phi_ops import prim
from argosy_phi_ops.context import context, emit_at
from argosy_pir import Block, Builder, Region, TensorType
from argosy_pir.dims import Dim

__all__ = ["add_along", "linear_recurrence", "shift", "take_along"]


def take_along(x: Value, indices: Value, axis: int) -> Value:
    """``x[..., indices, ...]``: along ``axis`` element ``indices[i]`` for each position; shapes are equal."""
    order = _permutation(x.ndim, axis)
    moved = prim.transpose(x, permutation=order)
    taken = prim.gather(moved, _addresses(indices, order), axes=(x.ndim - 1,), batch=x.ndim - 1)
    return prim.transpose(taken, permutation=argsort(order))


def add_along(values: Value, indices: Value, axis: int, size: Dim | None = None) -> Value:
    """The transpose of :func:`take_along`: ``values`` added up at ``indices`` along ``axis``, which has ``size``
    elements then (as many as ``values`` by default)."""
    order = _permutation(values.ndim, axis)
    moved = prim.transpose(values, permutation=order)
    nothing = zeros_like(moved) if size is None else zeros((*moved.shape[:-1], size), moved.dtype)
    added = prim.scatter(
        nothing, _addresses(indices, order), moved, axes=(values.ndim - 1,), batch=values.ndim - 1, kind="add"
    )
    return prim.transpose(added, permutation=argsort(order))


def _permutation(rank: int, axis: int) -> tuple[int, ...]:
    return (*(i for i in range(rank) if i != axis), axis)


def _addresses(indices: Value, order: tuple[int, ...]) -> Value:
    moved = prim.transpose(indices, permutation=order)
    return prim.reshape(moved, shape=(*moved.shape, 1))


def shift(x: Value, axis: int, by: int, fill: float) -> Value:
    """``x`` moved by one position (``by`` = 1 towards the end, -1 towards the start) along ``axis``, ``fill``
    moving in."""
    none = (0,) * x.ndim
    low = tuple(by if i == axis else 0 for i in range(x.ndim))
    return prim.pad(x, prim.constant(fill, x.dtype), low=low, high=tuple(-n for n in low), interior=none)


def linear_recurrence(factors: Value, terms: Value, axis: int, reverse: bool = False) -> Value:
    """r with ``r_k = terms_k + factors_k r_(k-1)`` along ``axis`` (from the end when ``reverse``), r before the
    start zero."""
    order = (axis, *(i for i in range(terms.ndim) if i != axis))
    a, b = (prim.transpose(v, permutation=order) for v in (factors, terms))
    item = TensorType(b.shape[1:], b.dtype)
    body = Block([item, item, item])
    with emit_at(Builder.at_end(body)) as builder:
        factor, term, carried = cast("list[Value]", body.arguments)
        value = term + factor * carried
        builder.create("control.yield", [value, value])
    outer = context().builder
    assert outer is not None
    attributes = {"inputs": 2, "reverse": reverse}
    carry = zeros(item.shape, item.dtype)
    scan = outer.create("control.scan", [a, b, carry], attributes, regions=[Region([body])])
    return prim.transpose(scan.results[0], permutation=argsort(order))
