"""The memory of intermediate values, shared by all programs of a device.

An arena that is too small is let go, so that what is held is what the largest program needs, times the calls that run
at once.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from argosy_cinn.shapes import sizes
from argosy_hwadapt import Device
from argosy_phi_ops.reference.kernels.registry import numpy_dtype
from argosy_pir.values import Value


class Arena:
    """The memory of intermediate values during one call."""

    def __init__(self, device: Device, nbytes: int) -> None:
        self.nbytes = nbytes
        self.buffer = device.allocate(nbytes + 256) if nbytes else None
        self.address = device.address(self.buffer) if self.buffer is not None else 0
        visible = device.host_view(self.buffer) if self.buffer is not None else None
        self._bytes = np.frombuffer(b"" if visible is None else visible, np.uint8)

    def view(self, value: Value, offset: int) -> np.ndarray[Any, Any]:
        """The array of a value in the arena, which the host sees."""
        dtype, shape = numpy_dtype(value.dtype), sizes(value)
        found: np.ndarray[Any, Any] = self._bytes[offset : offset + prod(shape) * dtype.itemsize].view(dtype)
        return found.reshape(shape)


_free: dict[Device, list[Arena]] = {}


def free_arenas(device: Device) -> list[Arena]:
    """The arenas that no call is using: where one is put back."""
    return _free.setdefault(device, [])


def take_arena(free: list[Arena], device: Device, nbytes: int) -> Arena:
    """An arena of at least so many bytes, one of ``free`` or a new one. Raises MemoryError."""
    try:
        arena = free.pop()
    except IndexError:
        return Arena(device, nbytes)
    return arena if arena.nbytes >= nbytes else Arena(device, nbytes)


__all__ = ["Arena", "free_arenas", "take_arena"]
