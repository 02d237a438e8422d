"""Buffers, and the caching allocator on top of a runtime's ``alloc`` and ``free``."""

from __future__ import annotations

import gc
from contextlib import suppress
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

from argosy_hwadapt.errors import DeviceError, DeviceOutOfMemory
from argosy_hwadapt.fork import renew_in_child

if TYPE_CHECKING:
    from argosy_hwadapt.device import Device

#: Smallest block and granularity of small sizes; also the alignment that the contract promises.
GRANULE = 256


class MemoryStats(NamedTuple):
    """Bytes of one device: in live buffers, held from the runtime, and the most ever of both."""

    allocated: int
    reserved: int
    peak: int
    peak_reserved: int


class Buffer:
    """A range of device memory. ``handle`` is the runtime's handle, or the host object whose memory is
    shared.

    This base class owns nothing but the reference to ``handle``: one is made for every eager result on a
    host device, so it has no finaliser, no lock and no bookkeeping.
    """

    __slots__ = ("__weakref__", "device", "handle", "nbytes")

    def __init__(self, device: Device, nbytes: int, handle: Any) -> None:
        self.device = device
        self.nbytes = nbytes
        self.handle = handle

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.device}, {self.nbytes} bytes)"


class PooledBuffer(Buffer):
    """A buffer whose block goes back to the caching allocator when the last reference to it is gone."""

    __slots__ = ("allocator", "block_bytes", "other_streams", "stream")

    def __init__(
        self, device: Device, nbytes: int, handle: Any, allocator: CachingAllocator, block_bytes: int, stream: Any
    ) -> None:
        self.device = device
        self.nbytes = nbytes
        self.handle = handle
        self.allocator = allocator
        self.block_bytes = block_bytes
        self.stream = stream
        self.other_streams: set[Any] | None = None

    def note_use(self, stream: Any) -> None:
        """Remember that work on ``stream`` reads or writes it."""
        if stream != self.stream:
            self.other_streams = {*(self.other_streams or ()), stream}

    def __del__(self) -> None:
        if self.other_streams:
            with suppress(DeviceError):  # of a device that is lost nothing is used again
                self.device.order_streams(self.stream, self.other_streams)
        self.allocator.release(self.handle, self.block_bytes, self.stream)


def size_class(nbytes: int) -> int:
    """Round a size up so that blocks are reused: multiples of 256 to 2 KiB, then eight steps per doubling.

    The waste is at most one eighth.
    """
    if nbytes <= 8 * GRANULE:
        return (nbytes + GRANULE - 1) & -GRANULE
    step = 1 << ((nbytes - 1).bit_length() - 4)
    return (nbytes + step - 1) & -step


class CachingAllocator:
    """Keeps freed blocks by size class, so that a training step asks the runtime for memory only once.

    Reuse needs no waiting: work on one stream is in order, so the next user of a block runs after the last
    one. A block is used again on the stream that it was allocated on, after what other streams did with it.
    A buffer may be collected at any bytecode, also inside a method of this class, so the lock must be
    re-entrant and every critical section leaves consistent counters at each point where collection can
    strike.
    """

    def __init__(self, device: Device, limit: int | None = None) -> None:
        self.device = device
        #: Most bytes to hold from the runtime; ``None`` leaves it to the runtime.
        self.limit = limit
        self._lock = renew_in_child(RLock())
        self._free: dict[Any, list[Any]] = {}  # by size class, those of streams of their own by both
        self._live: dict[int, int] = {}
        self._allocated = self._reserved = self._peak = self._peak_reserved = 0

    def allocate(self, nbytes: int) -> Buffer:
        """Return a buffer of ``nbytes``; 0 gives a buffer without a handle. Raises DeviceOutOfMemory."""
        if nbytes <= 0:
            return self._empty_buffer(nbytes)
        block = size_class(nbytes)
        stream = self.device.current_stream
        with self._lock:
            cached = self._free.get(block if stream is None else (block, stream))
            handle = cached.pop() if cached else self._reserve(block, nbytes)
            self._live[block] = self._live.get(block, 0) + 1
            self._allocated += block
            if self._allocated > self._peak:
                self._peak = self._allocated
        return PooledBuffer(self.device, nbytes, handle, self, block, stream)

    def release(self, handle: Any, block: int, stream: Any = None) -> None:
        """Take a block back into the cache (called by the buffer's finaliser)."""
        with self._lock:
            self._free.setdefault(block if stream is None else (block, stream), []).append(handle)
            self._live[block] -= 1
            self._allocated -= block

    def release_cached(self) -> int:
        """Give all cached blocks back to the runtime and return how many bytes that was."""
        with self._lock:
            before = self._reserved
            for key, handles in self._free.items():
                block = key if isinstance(key, int) else key[0]
                while handles:
                    self.device.call("free", handles.pop())
                    self._reserved -= block
            return before - self._reserved

    def stats(self) -> MemoryStats:
        """Return the present counters."""
        return MemoryStats(self._allocated, self._reserved, self._peak, self._peak_reserved)

    def reset_peaks(self, allocated: bool = True, reserved: bool = True) -> None:
        """Let the largest figures count from now."""
        with self._lock:
            self._peak = self._allocated if allocated else self._peak
            self._peak_reserved = self._reserved if reserved else self._peak_reserved

    def _empty_buffer(self, nbytes: int) -> Buffer:
        if nbytes < 0:
            raise ValueError(f"allocate on {self.device}: nbytes must not be negative, got {nbytes}")
        return Buffer(self.device, 0, None)

    def _reserve(self, block: int, nbytes: int) -> Any:
        try:
            return self._ask(block)
        except MemoryError:
            self.release_cached()
            gc.collect()
            self.release_cached()
        try:
            return self._ask(block)
        except MemoryError as cause:
            raise self._out_of_memory(nbytes) from cause

    def _ask(self, block: int) -> Any:
        if self.limit is not None and self._reserved + block > self.limit:
            raise DeviceOutOfMemory(f"{self.device}: the allocator's limit of {self.limit} bytes is reached", block)
        handle = self.device.call("alloc", block)
        self._reserved += block
        self._peak_reserved = max(self._peak_reserved, self._reserved)
        return handle

    def _out_of_memory(self, nbytes: int) -> DeviceOutOfMemory:
        free, total = self.device.mem_info()
        return DeviceOutOfMemory(
            f"{self.device} is out of memory: {_human(nbytes)} were requested, {_human(free)} of "
            f"{_human(total)} are free, {_human(self._allocated)} are in live buffers. "
            f"Largest holders: {self._holders()}",
            requested=nbytes,
            free=free,
            total=total,
        )

    def _holders(self, count: int = 5) -> str:
        live = sorted(((size * n, n, size) for size, n in self._live.items() if n), reverse=True)
        return ", ".join(f"{n} x {_human(size)}" for _, n, size in live[:count]) or "none"


def _human(nbytes: int) -> str:
    """Print a size with a binary unit, as in ``1.5 GiB``."""
    value, units = float(nbytes), ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:.4g} {units[0]}"
