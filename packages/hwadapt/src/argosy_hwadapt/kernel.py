"""Kernel arguments: what a launch hands to the device."""

from __future__ import annotations

from struct import pack
from typing import Any, NamedTuple


class Pointer(NamedTuple):
    """A kernel argument that is device memory: the runtime's handle and an offset in bytes."""

    handle: Any
    offset: int = 0


class DeviceArray(NamedTuple):
    """An operand or result of a vendor's operator or graph: elements in row-major order in device memory, from the byte
    ``offset`` on. A handle of None has none."""

    handle: Any
    offset: int
    dtype: str
    shape: tuple[int, ...]


class Scalar(NamedTuple):
    """A kernel argument passed by value. ``code`` is a :mod:`struct` letter: ``i`` int32, ``q`` int64,
    ``f``, ``d``...
    """

    code: str
    value: int | float | bool

    def to_bytes(self) -> bytes:
        """Return the value's bytes in native order and size."""
        return pack("=" + self.code, self.value)


Argument = Pointer | Scalar

#: Forms whose blobs mean something in this process only and so are never kept on disk.
TRANSIENT_FORMS = frozenset({"address"})
