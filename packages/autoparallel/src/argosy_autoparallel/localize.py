"""From an operation on global tensors to that on one rank's parts: attributes, and what depends on position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from argosy_autoparallel.resharding.emitter import Emitter, neutral_term, static_shape
from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops import prim
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir import Operation, TensorType, Value

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
        shape = static_shape(self.op.results[number])
        return self.result_layouts[number].local_slice(shape, self.emitter.rank).shape

    def operand_offset(self, number: int, axis: int) -> int:
        """Where the local part of an operand starts along ``axis``."""
        shape = static_shape(self.op.operands[number])
        return self.operand_layouts[number].local_slice(shape, self.emitter.rank).offset[axis]

    def result_offset(self, number: int = 0) -> tuple[int, ...]:
        """Where the local part of a result starts."""
        return self.result_layouts[number].local_slice(static_shape(self.op.results[number]), self.emitter.rank).offset


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


@_emission("slice")
def _(local: LocalOperation) -> list[Value]:
    attributes = local.attributes
    layout = local.operand_layouts[0]
    split = [bool(layout.sharding_dims(i)) for i in range(len(local.operands[0].shape))]
    limit = [n if s else h for n, s, h in zip(local.operands[0].shape, split, attributes["limit"], strict=True)]
    return _create(local, {**attributes, "limit": tuple(limit)})


@_emission("dynamic_slice")
def _(local: LocalOperation) -> list[Value]:
    return _create(local, {**local.attributes, "sizes": local.result_shape()})


@_emission("conv")
def _(local: LocalOperation) -> list[Value]:
    attributes = local.attributes
    x, w = local.operands
    groups = attributes.get("groups", 1)
    if groups > 1:
        groups = x.shape[1] // w.shape[1]
    return _create(local, {**attributes, "groups": groups})


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
