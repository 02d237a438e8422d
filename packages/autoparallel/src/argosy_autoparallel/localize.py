"""From an operation on global tensors to that on one rank's parts: attributes, and what depends on position."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from argosy_autoparallel.distributed_sort import sort_parts
from argosy_autoparallel.placement import Shard
from argosy_autoparallel.resharding.emitter import Emitter, block, neutral_term, shape_of
from argosy_autoparallel.resharding.halo_exchange import exchange
from argosy_autoparallel.spmd.windows import Window, parts_of, reads_of, window_of
from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops import prim
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir import Operation, TensorType, Value
from argosy_tensorcore.dtype import as_dtype

__all__ = ["LocalOperation", "emit_local"]


class LocalOperation(NamedTuple):
    """An operation about to be emitted: its global form, its local operands and all layouts."""

    emitter: Emitter
    op: Operation
    operands: Sequence[Value]
    operand_layouts: Sequence[Layout]
    result_layouts: Sequence[Layout]

    @property
    def attributes(self) -> dict[str, Any]:
        """The primitive's own attributes."""
        names = PRIMITIVES[self.op.kind].attributes
        return {name: value for name, value in self.op.attributes.items() if name in names}

    def result_shape(self, number: int = 0) -> tuple[int, ...]:
        """The local shape that a result must have."""
        shape = shape_of(self.op.results[number])
        return self.result_layouts[number].local_slice(shape, self.emitter.rank).shape

    def operand_offset(self, number: int, axis: int) -> int:
        """Where the local part of an operand starts along ``axis``."""
        shape = shape_of(self.op.operands[number])
        offset: int = self.operand_layouts[number].local_slice(shape, self.emitter.rank).offset[axis]
        return offset

    def result_offset(self, number: int = 0) -> tuple[int, ...]:
        """Where the local part of a result starts."""
        return self.result_layouts[number].local_slice(shape_of(self.op.results[number]), self.emitter.rank).offset


Emission = Callable[[LocalOperation], "list[Value]"]
_EMISSIONS: dict[str, Emission] = {}


def _emission(*names: str) -> Callable[[Emission], Emission]:
    def register(function: Emission) -> Emission:
        _EMISSIONS.update(dict.fromkeys(names, function))
        return function

    return register


def emit_local(local: LocalOperation) -> list[Value]:
    """Emit the local operation; its results have the shapes that the layouts say."""
    name = local.op.kind
    results = _EMISSIONS.get(name, _localize_by_default)(local)
    for number, value in enumerate(results):
        expected = TensorType(local.result_shape(number), local.op.results[number].dtype)
        if value.type != expected:
            raise RuntimeError(f"partition: local '{local.op.name}' gives {value.type}, its layout asks for {expected}")
    return results


def _create(local: LocalOperation, attributes: dict[str, Any], operands: Sequence[Value] | None = None) -> list[Value]:
    name = local.op.kind
    given = local.operands if operands is None else operands
    types = PRIMITIVES[name].infer([x.type for x in given], attributes)
    made = local.emitter.builder.create(
        local.op.name, given, attributes, result_types=types, location=local.op.location
    )
    made.annotations = local.op.annotations
    return list(made.results)


def _localize_by_default(local: LocalOperation) -> list[Value]:
    return _create(local, local.attributes)


@_emission("broadcast", "reshape")
def _(local: LocalOperation) -> list[Value]:
    return _create(local, {**local.attributes, "shape": local.result_shape()})


@_emission("rng_bits")
def _(local: LocalOperation) -> list[Value]:
    shape, attributes = local.result_shape(), local.attributes
    whole = tuple(local.op.result.shape)
    if shape == whole:
        return _create(local, attributes)
    base = attributes.get("start") or (0,) * len(whole)
    start = tuple(o + b for o, b in zip(local.result_offset(), base, strict=True))
    return _create(local, {**attributes, "shape": shape, "start": start, "whole": attributes.get("whole") or whole})


@_emission("iota")
def _(local: LocalOperation) -> list[Value]:
    attributes, shape = local.attributes, local.result_shape()
    made = _create(local, {**attributes, "shape": shape})
    offset = local.result_offset()[attributes["axis"]]
    if offset:
        made[0] = prim.add(made[0], prim.constant(offset, made[0].dtype, shape))
    return made


@_emission("slice", "pad", "conv")
def _(local: LocalOperation) -> list[Value]:
    """Windows along split axes read what is brought here from other ranks."""
    attributes, operands, layout = local.attributes, list(local.operands), local.operand_layouts[0]
    plain = []
    for dim, placement in enumerate(layout.placements):
        if isinstance(placement, Shard):
            window, after = _window(local, placement.dim), local.result_layouts[0].placements[dim]
            if window is None:
                plain.append(placement.dim)
            elif max(placement.split_factor, getattr(after, "split_factor", 1)) > 1:
                attributes = _of_blocks(local, attributes, placement)
            else:
                x, found = _read_windows(local, operands[0], window, dim, placement.dim)
                if x is None:
                    return [_without_elements(local)]
                operands[0] = x
                attributes = _with_window(local.op.kind, attributes, placement.dim, x, found)
    if local.op.kind == "slice":
        at = [
            n if i in plain else h for i, (n, h) in enumerate(zip(operands[0].shape, attributes["limit"], strict=True))
        ]
        attributes = {**attributes, "limit": tuple(at)}
    elif local.op.kind == "conv" and attributes.get("groups", 1) > 1:
        attributes = {**attributes, "groups": operands[0].shape[1] // operands[1].shape[1]}
    return _create(local, attributes, operands)


def _window(local: LocalOperation, axis: int) -> Window | None:
    op = local.op
    weight = op.operand(1).shape if op.kind == "conv" else ()
    return window_of(op.kind, op.attributes, op.operand(0).shape, axis, weight)


def _read_windows(
    local: LocalOperation, x: Value, window: Window, dim: int, axis: int
) -> tuple[Value | None, tuple[int, int]]:
    """The elements along ``axis`` that this rank's windows read, None where they read none; how many positions lie
    before and behind them."""
    group, me = local.emitter.line(local.operand_layouts[0].mesh, dim)
    count, dilation = shape_of(local.op.results[0])[axis], None
    if local.op.kind == "conv" and local.operand_layouts[1].sharding_dims(axis):
        dilation = local.op.attributes["rhs_dilation"][axis - 2]
        own = parts_of(local.operand_layouts[1].placements[dim], shape_of(local.op.operand(1))[axis], len(group))
    else:
        own = parts_of(local.result_layouts[0].placements[dim], count, len(group))
    reads = reads_of(window, own, count, dilation)
    wanted = [window.elements(*each) for each in reads]
    parts = parts_of(local.operand_layouts[0].placements[dim], window.size, len(group))
    held = [(start, start + length) for start, length in parts]
    made = exchange(local.emitter, x, group, axis, held, wanted)
    (first, end), (start, stop) = reads[me], wanted[me]
    return made, (window.spread * start - first, end - window.spread * (stop - 1) - 1)


def _with_window(kind: str, attributes: dict[str, Any], axis: int, x: Value, around: tuple[int, int]) -> dict[str, Any]:
    """The attributes for the elements that ``x`` has along ``axis``, with positions around them that are not there."""
    low, high = around
    if kind == "conv":
        return {**attributes, "padding": _replace_at(attributes["padding"], axis - 2, (low, high))}
    if kind == "pad":
        return {
            **attributes,
            "low": _replace_at(attributes["low"], axis, low),
            "high": _replace_at(attributes["high"], axis, high),
        }
    start, limit = _replace_at(attributes["start"], axis, 0), _replace_at(attributes["limit"], axis, x.shape[axis])
    return {**attributes, "start": start, "limit": limit}


def _of_blocks(local: LocalOperation, attributes: dict[str, Any], placement: Shard) -> dict[str, Any]:
    """The attributes of a slice or pad of whole blocks, of which each rank has its share."""
    axis = placement.dim
    whole, mine = (x.shape[axis] // placement.split_factor for x in (local.op.operand(0), local.operands[0]))
    made = dict(attributes)
    for name in {"start", "limit", "low", "high"} & attributes.keys():
        made[name] = _replace_at(attributes[name], axis, attributes[name][axis] // whole * mine)
    return made


def _replace_at(values: Sequence[Any], at: int, value: Any) -> tuple[Any, ...]:
    return (*values[:at], value, *values[at + 1 :])


def _without_elements(local: LocalOperation) -> Value:
    """The result of windows that read nothing."""
    made: Value
    if local.op.kind == "pad":
        made = prim.broadcast(local.operands[1], shape=local.result_shape(), axes=())
    else:
        made = prim.constant(0, local.op.result.dtype, local.result_shape())
    return made


@_emission("cumulative")
def _(local: LocalOperation) -> list[Value]:
    """What comes before (in ``reverse`` behind) this rank's part along a split axis is joined to it by its total."""
    attributes, layout = local.attributes, local.operand_layouts[0]
    axis, kind, reverse = (attributes[name] for name in ("axis", "kind", "reverse"))
    dims = layout.sharding_dims(axis)
    (made,) = _create(local, attributes)
    if not dims:
        return [made]
    group, me = local.emitter.line(layout.mesh, dims[0])
    length = shape_of(made)[axis]
    shape = tuple(1 if i == axis else n for i, n in enumerate(made.shape))
    if length:
        total = block(made, axis, 0 if reverse else length - 1, 1)
    else:
        total = prim.constant(_neutral(kind, made.dtype), made.dtype, shape)
    totals = local.emitter.communicate("all_gather", total, group=group, size=len(group), axis=axis)
    start, count = (me + 1, len(group) - me - 1) if reverse else (0, me)
    if not count:
        return [made]
    assert totals is not None
    running = prim.cumulative(block(totals, axis, start, count), axis=axis, kind=kind, reverse=reverse)
    last = prim.reshape(block(running, axis, 0 if reverse else count - 1, 1), shape=(*shape[:axis], *shape[axis + 1 :]))
    others = tuple(i for i in range(len(shape)) if i != axis)
    return [_JOINED[kind](prim.broadcast(last, shape=tuple(made.shape), axes=others), made)]


@_emission("sort")
def _(local: LocalOperation) -> list[Value]:
    """Ranks merge their parts of a split axis."""
    attributes, layout = local.attributes, local.operand_layouts[0]
    dims = layout.sharding_dims(attributes["axis"])
    if not dims:
        return _create(local, attributes)
    group, _ = local.emitter.line(layout.mesh, dims[0])
    axis = attributes["axis"]
    size = shape_of(local.op.operand(0))[axis]
    keys, descending = attributes.get("keys", 1), attributes.get("descending", False)
    return sort_parts(local.emitter, local.operands, group, axis, size, keys, descending)


def _add_exponentials(a: Value, b: Value) -> Value:
    """``log(exp(a) + exp(b))``, of infinities, too."""
    larger = prim.maximum(a, b)
    distance = prim.abs(prim.sub(a, b))
    equal = prim.add(larger, prim.constant(math.log(2), a.dtype, shape_of(a)))
    made: Value = prim.select(prim.eq(a, b), equal, prim.add(larger, prim.log1p(prim.exp(prim.neg(distance)))))
    return made


_JOINED: dict[str, Callable[[Value, Value], Value]] = {
    "sum": prim.add, "prod": prim.mul, "max": prim.maximum, "min": prim.minimum, "logsumexp": _add_exponentials,
}  # fmt: skip


def _neutral(kind: str, dtype: str) -> Any:
    """What does not change a running ``kind``."""
    if kind in ("sum", "prod"):
        return neutral_term(dtype) if kind == "sum" else 1
    sign = 1 if kind == "min" else -1
    if as_dtype(dtype).kind == "f":
        return sign * float("inf")
    limits = np.iinfo(as_dtype(dtype).numpy)
    return int(limits.min if kind == "max" else limits.max)


@_emission("dynamic_slice")
def _(local: LocalOperation) -> list[Value]:
    return _create(local, {**local.attributes, "sizes": local.result_shape()})


@_emission("gather")
def _(local: LocalOperation) -> list[Value]:
    attributes = local.attributes
    axes = attributes["axes"]
    layout = local.operand_layouts[0]
    if not any(layout.sharding_dims(axis) for axis in axes):
        return _create(local, attributes)
    axis = axes[0]
    table, indices = local.operands
    size, mine = local.op.operand(0).shape[axis], table.shape[axis]
    wide = prim.cast(indices, dtype="int64")
    wide = prim.minimum(prim.maximum(wide, 0), size - 1)  # gather clamps to the whole axis
    wide = prim.sub(wide, local.operand_offset(0, axis))
    result_shape = local.result_shape()
    if not mine:
        return [prim.constant(neutral_term(table.dtype), table.dtype, result_shape)]
    (found,) = _create(local, attributes, (table, wide))
    held = prim.logical_and(prim.ge(wide, 0), prim.lt(wide, mine))
    held = prim.reshape(held, shape=held.shape[:-1])
    mask = prim.broadcast(held, shape=result_shape, axes=tuple(range(len(held.shape))))
    return [prim.select(mask, found, prim.constant(neutral_term(table.dtype), table.dtype, result_shape))]


@_emission("scatter")
def _(local: LocalOperation) -> list[Value]:
    attributes = local.attributes
    axes = attributes["axes"]
    if not any(local.operand_layouts[0].sharding_dims(axis) for axis in axes):
        return _create(local, attributes)
    x, indices, updates = local.operands
    wide = prim.sub(prim.cast(indices, dtype="int64"), local.operand_offset(0, axes[0]))
    return _create(local, attributes, (x, wide, updates))  # an index outside the local part is dropped
