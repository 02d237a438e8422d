"""A host call whose tensors are on a device: operands are copied to the host, results back.

The memory of the host is pinned, so that the device copies it at full speed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

from argosy_cinn.host import Array, HostCall
from argosy_cinn.shapes import sizes
from argosy_hwadapt import Buffer, Device
from argosy_phi_ops.eager.staging import pinned
from argosy_phi_ops.reference.kernels.registry import numpy_dtype
from argosy_pir.values import Value

__all__ = ["Address", "Communicators", "Locate", "call_staged"]

#: Memory of a device from a byte on.
Address = tuple[Buffer, int]
Locate = Callable[[Value], Address]
Communicators = Mapping[tuple[int, ...], Any]


def call_staged(
    device: Device, call: HostCall, locate: Locate, tokens: dict[Value, Any], communicators: Communicators
) -> list[int]:
    """Run ``call``; ``tokens`` carries what is no tensor. Returns the bytes of each operand and result that it used."""
    arrays: dict[Value, Array] = {}
    with ExitStack() as held:

        def memory(value: Value) -> Array:
            if value not in arrays:
                array = arrays[value] = _pinned_array(held, device, value)
                if array.size and value not in call.op.results:
                    buffer, offset = locate(value)
                    device.copy(_bytes(array), buffer, array.nbytes, 0, offset)
                    device.synchronize()
            return arrays[value]

        call.run(memory, tokens, communicators)
        for result in call.op.results:
            made = arrays.get(result)
            if made is not None and made.size:
                buffer, offset = locate(result)
                device.copy(buffer, _bytes(made), made.nbytes, offset)
        device.synchronize()  # pinned memory goes away
    return [array.nbytes for array in arrays.values()]


def _pinned_array(held: ExitStack, device: Device, value: Value) -> Array:
    dtype, shape = numpy_dtype(value.dtype), sizes(value)
    size = int(np.prod(shape, dtype=np.int64))
    block = held.enter_context(pinned(device, size * dtype.itemsize))
    return np.frombuffer(block, dtype, size).reshape(shape)


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)
