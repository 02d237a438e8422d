"""Operators of a vendor's own library: where a device has one of that name for these dtypes, it goes before generated
kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy_hwadapt import Device, DeviceArray
from argosy_phi_ops.eager.placement import copy_elements
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_tensorcore.storage import StridedArray

__all__ = ["VendorOperator", "device_arrays", "vendor_operator"]


class VendorOperator:
    """The operator ``name`` with ``attributes``, whose results have ``types``, by the library of ``device``."""

    __slots__ = ("attributes", "device", "name", "types")

    def __init__(self, name: str, attributes: Mapping[str, Any], types: Sequence[TensorType], device: Device) -> None:
        self.name, self.attributes, self.types, self.device = name, attributes, types, device

    def __call__(self, payloads: Sequence[StridedArray]) -> list[StridedArray]:
        """Submit it."""
        device = self.device
        results = [StridedArray.empty(t.shape, t.dtype, device) for t in self.types]  # type: ignore[arg-type]
        arrays = device_arrays([*map(_in_row_major_order, payloads), *results])
        apart = device.current_stream is not None  # the library knows no stream
        if apart:
            device.synchronize()
        device.call("run_op", self.name, arrays, self.attributes)
        if apart:
            device.synchronize()
        return results


def vendor_operator(
    name: str, program: Program, attributes: Mapping[str, Any], device: Device
) -> VendorOperator | None:
    """What computes the operator of ``program``, if the device's library has it."""
    taken = device.call("ops").get(name)
    values = (*program.inputs, *program.outputs)
    types = [v.type for v in values]
    if taken is None or not all(isinstance(t, TensorType) and t.is_static and t.dtype in taken for t in types):
        return None
    return VendorOperator(name, attributes, types[len(program.inputs) :], device)  # type: ignore[arg-type]


def device_arrays(payloads: Sequence[StridedArray]) -> list[DeviceArray]:
    """Payloads in row-major order, as a plug-in takes them; a graph that is being captured keeps their memory."""
    device = payloads[0].device if payloads else None
    if device is not None:
        device.retain(*[p.storage.buffer for p in payloads])
    return [DeviceArray(p.storage.buffer.handle, p.offset * p.dtype.itemsize, p.dtype.name, p.shape) for p in payloads]


def _in_row_major_order(payload: StridedArray) -> StridedArray:
    if payload.contiguous:
        return payload
    copy = StridedArray.empty(payload.shape, payload.dtype, payload.device)
    copy_elements(copy, payload)
    return copy
