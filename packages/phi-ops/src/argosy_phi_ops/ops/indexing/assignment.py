"""Assignment ``x[index] = value`` in the generality of :mod:`.subscript`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.common.subscript_keys import Key
from argosy_phi_ops.ops.indexing.overwriting import place_values
from argosy_phi_ops.ops.indexing.subscript import (
    IndexRecipe,
    addresses_of,
    count_numbers,
    numpy_index,
    sample_key,
    slice_by,
    spans,
)
from argosy_phi_ops.reference.kernels.registry import Array
from argosy_tensorcore.tensor import Tensor


@operator()
def setitem(x: Tensor, indices: Sequence[Tensor], value: Tensor, key: Key) -> Tensor:
    """`x` with `value`, broadcast and cast, at ``x[key]``; of places that are named twice one wins."""
    plan = IndexRecipe(key, x.shape)
    if value.dtype != x.dtype:
        value = prim.cast(value, dtype=x.dtype)
    if not indices:
        return _place(x, _broadcast_value(value, plan, ()), plan)
    sliced = slice_by(x, plan)
    address, shape = addresses_of(indices, plan, sliced)
    block = prim.scatter(sliced, address, _broadcast_value(value, plan, shape), axes=plan.indexed, kind="set")
    return _place(x, block, plan)


def _broadcast_value(value: Tensor, plan: IndexRecipe, indexed: tuple[Any, ...]) -> Tensor:
    """`value` broadcast to the result's shape, in the order [indexed..., remaining axes]: undoes `_arranged`."""
    shape: list[Any] = []
    order: list[tuple[str, int]] = []
    remaining = [i for i in range(len(plan.axes)) if i not in plan.indexed]
    for entry in plan.layout:
        if entry[0] == "new":
            shape.append(1)
        elif entry[0] == "indexed":
            order += [("indexed", n) for n in range(len(indexed))]
            shape += indexed
        else:
            order.append(("axis", entry[1]))
            shape.append(plan.axes[entry[1]].size)
    value = prim.broadcast_to(_without_leading_ones(value, len(shape)), tuple(shape))
    plain = tuple(n for entry, n in _pair(plan, shape, indexed) if entry[0] != "new")
    if plain != tuple(value.shape):
        value = prim.reshape(value, shape=plain)
    wanted = [("indexed", n) for n in range(len(indexed))] + [("axis", i) for i in remaining if ("axis", i) in order]
    permutation = tuple(order.index(part) for part in wanted)
    if permutation != tuple(range(len(permutation))):
        value = prim.transpose(value, permutation=permutation)
    full = (*indexed, *(plan.axes[i].size for i in remaining))
    return value if tuple(value.shape) == full else prim.reshape(value, shape=full)


def _pair(plan: IndexRecipe, shape: Sequence[Any], indexed: Sequence[Any]) -> list[tuple[tuple[Any, ...], Any]]:
    """Each axis of the result with the layout entry it comes from."""
    entries: list[tuple[Any, ...]] = []
    for entry in plan.layout:
        entries += [entry] * (len(indexed) if entry[0] == "indexed" else 1)
    return list(zip(entries, shape, strict=True))


def _without_leading_ones(value: Tensor, rank: int) -> Tensor:
    """numpy lets an assigned value have more axes, if the first ones have size one."""
    extra = value.ndim - rank
    if extra <= 0:
        return value
    if any(n != 1 for n in value.shape[:extra]):
        raise ShapeError(f"a value {value.type} cannot be assigned to a selection of {rank} axes")
    return prim.reshape(value, shape=value.shape[extra:])


def _place(x: Tensor, block: Tensor, plan: IndexRecipe) -> Tensor:
    """`x` with the slice that the plan takes replaced by `block`."""
    backwards = tuple(i for i, axis in enumerate(plan.axes) if axis.backwards)
    if backwards:
        block = prim.reverse(block, axes=backwards)
    return place_values(x, block, [axis.start for axis in plan.axes], [axis.stride for axis in plan.axes])


@setitem.check_own_bounds
def _(x: Array, indices: Sequence[Array], value: Array, key: Key) -> Iterator[tuple[Array, int, int]]:
    yield from spans(x, indices, key)


@setitem.reference
def _(x: Array, indices: Sequence[Array], value: Array, key: Key) -> Array:
    result = x.copy()
    put(result, key, indices, value)
    return result


def put(x: Array, key: Key, indices: Sequence[Array], value: Any) -> None:
    if indices:
        x, key = count_numbers(x, key)
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(())  # to one place numpy assigns no arrays with axes
    x[numpy_index(key, indices)] = value


@setitem.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((4, 5, 6))
    i, j = np.array([0, 2]), np.array([1, -2])
    cases: list[tuple[tuple[Any, ...], tuple[int, ...]]] = [
        ((1,), (5, 6)), ((slice(1, 3), 0), (6,)), ((Ellipsis, slice(None, None, -2)), (4, 5, 3)), ((), (1, 6)),
        ((None, slice(0, 2)), (1, 2, 5, 6)), ((i,), (2, 5, 6)), ((slice(None), j), (4, 1, 6)),
        ((i, slice(None), j), (2, 5)), ((0, slice(None), j), (5, 2)), ((slice(1, 4), 2, i), (3, 2)),
        ((slice(2, 2),), (1,)), ((i, -1, j), (2,)), ((1, 2, 3), (1,)), ((1, 2, 3), (1, 1)),
    ]  # fmt: skip
    for subscript, shape in cases:
        key, arrays = sample_key(subscript)
        yield Sample(x, arrays, rng.standard_normal(shape), key)
