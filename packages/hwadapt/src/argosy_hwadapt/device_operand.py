"""An operand of a communicator that takes device buffers: elements in row-major order in a device's memory."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from argosy_hwadapt.device import Device
    from argosy_hwadapt.memory import Buffer


class DeviceOperand:
    """``shape`` elements of ``dtype`` in ``buffer``, from the byte ``offset`` on; keeps the buffer alive.

    Its contents are what the work submitted to the device's current stream leaves there.
    """

    __slots__ = ("buffer", "dtype", "itemsize", "nbytes", "offset", "shape", "size")

    def __init__(self, buffer: Buffer, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self.buffer, self.offset, self.dtype, self.shape = buffer, offset, dtype, shape
        self.size, self.itemsize = prod(shape), dtype.itemsize
        self.nbytes = self.size * self.itemsize

    def __repr__(self) -> str:
        return f"DeviceOperand({self.dtype}{list(self.shape)} on {self.device})"

    @property
    def device(self) -> Device:
        """Where it is."""
        return self.buffer.device

    def reshape(self, *shape: int) -> DeviceOperand:
        """The same elements in another shape, in which -1 stands for what is left."""
        known = prod(n for n in shape if n >= 0)
        whole = tuple(n if n >= 0 else self.size // max(known, 1) for n in shape)
        if prod(whole) != self.size:
            raise ValueError(f"{self!r} has {self.size} elements and cannot have shape {list(shape)}")
        return DeviceOperand(self.buffer, self.offset, self.dtype, whole)

    def clear(self) -> None:
        """Set all elements to zero."""
        self.device.memset(self.buffer, 0, self.offset, self.nbytes)
