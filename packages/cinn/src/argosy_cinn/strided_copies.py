"""Copies of strided memory of devices in row-major order, by programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from argosy_hwadapt import Device
from argosy_phi_ops import prim
from argosy_phi_ops.bounded_cache import BoundedCache
from argosy_phi_ops.compiler import get_compiler
from argosy_phi_ops.context import emit_at
from argosy_pir.builder import Builder
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import Value
from argosy_tensorcore.shape import extent
from argosy_tensorcore.storage import StridedArray

_copies: BoundedCache = BoundedCache(1024)
"""What copies, by device, dtype, shape, strides and elements between the first and the last."""


def copy_contiguous(payload: StridedArray) -> StridedArray:
    """A copy of a device's payload in row-major order, on that device."""
    low, high = extent(payload.shape, payload.strides)
    key = payload.device, payload.dtype.name, payload.shape, payload.strides
    copy: Callable[[Sequence[StridedArray]], list[StridedArray]] | None = _copies.get(key)
    if copy is None:
        copy = _copies[key] = _compile(payload, high - low, -low)
    span = StridedArray.over_storage(payload.storage, payload.dtype, (high - low,), None, payload.offset + low)
    return copy([span])[0]


def _compile(payload: StridedArray, count: int, first: int) -> Callable[[Sequence[StridedArray]], list[StridedArray]]:
    device: Device = payload.device
    program = Program("strided_copy")
    span = program.add_input(TensorType((count,), payload.dtype.name))
    with emit_at(Builder.at_end(program.block)):
        program.set_outputs([_gather(span, payload.shape, payload.strides, first)])
    return get_compiler().compile(program, device).bind(())


def _gather(span: Value, shape: tuple[int, ...], strides: Sequence[int], first: int) -> Value:
    place = prim.broadcast_to(prim.constant(first, "int64"), shape)
    for axis, stride in enumerate(strides):
        along = prim.iota(shape=shape, axis=axis, dtype="int64")
        place = prim.add(place, prim.mul(along, prim.broadcast_to(prim.constant(stride, "int64"), shape)))
    made: Value = prim.gather(span, prim.reshape(place, shape=(*shape, 1)), axes=(0,))
    return made


__all__ = ["copy_contiguous"]
