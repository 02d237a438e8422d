"""A device that exists only as host memory behind fake handles and a thread that works off a queue.

It behaves like an accelerator where that matters: nothing is visible to the host, work is asynchronous, errors appear
at the next synchronisation, and a fork makes it useless. It can be told to fail, so that the handling of every fault is
tested without the hardware that has it. It builds the CPU's kernel forms.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue
from typing import Any

from argosy_hwadapt.contract import ABI, NO_FORK, DeviceInfo, Stream
from argosy_hwadapt.cpu.arena import Arena
from argosy_hwadapt.cpu.c_bindings import address_of, copy_bytes
from argosy_hwadapt.cpu.kernels import FORMS, NativeKernel, build_native, load_native
from argosy_hwadapt.errors import DeviceError, DeviceLost, DeviceOutOfMemory
from argosy_hwadapt.kernel import Argument, Pointer

#: Without bfloat16 and float8, so that what lacks a dtype is tested, too.
_DTYPES = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
)
_MAX_BLOCK = 1024
_SHARED_BYTES = 48 << 10


class VirtualContext:
    """One virtual device: its memory, its queue and the fault it waits for."""

    def __init__(self, memory_bytes: int, die_at_launch: int, hang_at_launch: int) -> None:
        self._limit, self._die_at, self._hang_at = memory_bytes, die_at_launch, hang_at_launch
        self._arena = Arena(1 << 62)
        self._memory: dict[int, tuple[int, int]] = {}  # handle -> address, size
        self._used = self._handles = self._launches = 0
        self._lock = threading.Lock()
        self._lost: DeviceLost | None = None
        self._error: DeviceError | None = None
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._never = threading.Event()
        threading.Thread(target=self._run, name="argosy-virtual", daemon=True).start()

    def alloc(self, nbytes: int) -> int:
        """Return a handle, which is no address. Frees in the queue are waited for before memory is called short."""
        self._check_alive()
        if self._used + nbytes > self._limit:
            self.synchronize()
        with self._lock:
            if self._used + nbytes > self._limit:
                free = self._limit - self._used
                raise DeviceOutOfMemory(f"virtual: {nbytes} bytes asked, {free} free", nbytes, free, self._limit)
            self._handles += 1
            self._memory[self._handles] = self._arena.allocate(nbytes), nbytes
            self._used += nbytes
            return self._handles

    def free(self, handle: int) -> None:
        """Queue giving memory back."""
        self._submit(lambda: self._free(handle))

    def copy(self, dst: Any, dst_off: int, src: Any, src_off: int, nbytes: int) -> None:
        """Queue a copy; the closure keeps host buffers alive."""
        self._submit(lambda: copy_bytes(self.address(dst, dst_off, nbytes), self.address(src, src_off, nbytes), nbytes))

    def launch(self, kernel: NativeKernel, extents: tuple[Any, Any], args: Sequence[Argument]) -> None:
        """Queue a kernel."""
        self._submit(lambda: self._execute(kernel, extents, args))

    def synchronize(self) -> None:
        """Wait for the queue and raise what went wrong in it."""
        reached = threading.Event()
        self._work.put(reached.set)
        reached.wait()
        self._check_alive()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self) -> None:
        while True:
            self._work.get()()

    def _submit(self, work: Callable[[], None]) -> None:
        self._check_alive()
        self._work.put(lambda: self._run_guarded(work))

    def _run_guarded(self, work: Callable[[], None]) -> None:
        """Do one piece of work; keep the first error for the next synchronisation, drop work after a loss."""
        if self._lost is not None:
            return
        try:
            work()
        except DeviceLost as lost:
            self._lost = lost
            self._memory.clear()
        except DeviceError as error:
            self._error = self._error or error

    def _execute(self, kernel: NativeKernel, extents: tuple[Any, Any], args: Sequence[Argument]) -> None:
        self._launches += 1
        if self._launches == self._die_at:
            raise DeviceLost(f"virtual: the device died in launch {self._launches} ({kernel})")
        if self._launches == self._hang_at:
            self._never.wait()
        kernel.run(*extents, [Pointer(self.address(*a, 0)) if isinstance(a, Pointer) else a for a in args])

    def _free(self, handle: int) -> None:
        with self._lock:
            if handle not in self._memory:
                raise DeviceError(f"virtual: handle {handle} is freed but was not allocated")
            address, nbytes = self._memory.pop(handle)
            self._used -= nbytes
            self._arena.free(address)

    def address(self, side: Any, offset: int, nbytes: int) -> int:
        """Return the address of a range of a handle or host buffer. Raises DeviceError outside the allocation."""
        if side is None:
            return 0
        if not isinstance(side, int):
            return address_of(side) + offset
        if side not in self._memory:
            raise DeviceError(f"virtual: handle {side} is not allocated")
        address, size = self._memory[side]
        if offset < 0 or offset + nbytes > size:
            raise DeviceError(f"virtual: illegal access to bytes {offset} to {offset + nbytes} of {size}")
        return address + offset

    def _check_alive(self) -> None:
        if self._lost is not None:
            raise self._lost


class VirtualRuntime:
    """The nine required methods over :class:`VirtualContext`; the arguments size the devices and inject faults.

    ``die_at_launch`` and ``hang_at_launch`` count each device's launches from 1; 0 means never.
    """

    def __init__(
        self,
        memory_bytes: int = 1 << 30,
        count: int = 2,
        die_at_launch: int = 0,
        hang_at_launch: int = 0,
        abi: tuple[int, int] = ABI,
    ) -> None:
        self.abi = abi
        self._memory_bytes, self._count = memory_bytes, count
        self._faults = die_at_launch, hang_at_launch
        self._contexts: dict[int, VirtualContext] = {}

    @staticmethod
    def faulty(**faults: int) -> VirtualRuntime:
        """Make a runtime with injected faults (asked for by the conformance kit)."""
        return VirtualRuntime(**faults)  # type: ignore[arg-type]

    def devices(self) -> list[DeviceInfo]:
        """List the devices; nothing runs yet."""
        info = DeviceInfo(
            name="virtual device",
            arch="virtual",
            memory_bytes=self._memory_bytes,
            dtypes=_DTYPES,
            simt_width=32,
            max_block=_MAX_BLOCK,
            shared_bytes=_SHARED_BYTES,
            kernel_forms=FORMS,
            flags=frozenset({NO_FORK}),
        )
        return [info] * self._count

    def open(self, index: int) -> VirtualContext:
        """Start a device's thread at the first call."""
        if index not in self._contexts:
            self._contexts[index] = VirtualContext(self._memory_bytes, *self._faults)
        return self._contexts[index]

    def alloc(self, ctx: VirtualContext, nbytes: int) -> int:
        """Return a fake handle."""
        return ctx.alloc(nbytes)

    def free(self, ctx: VirtualContext, handle: int) -> None:
        """Free after the work in the queue."""
        ctx.free(handle)

    def copy(
        self,
        ctx: VirtualContext,
        dst: Any,
        dst_off: int,
        src: Any,
        src_off: int,
        nbytes: int,
        stream: Stream = None,
    ) -> None:
        """Queue a copy."""
        ctx.copy(dst, dst_off, src, src_off, nbytes)

    def synchronize(self, ctx: VirtualContext, stream: Stream = None) -> None:
        """Wait for the queue."""
        ctx.synchronize()

    def build(self, ctx: VirtualContext, form: str, source: bytes, options: Mapping[str, str]) -> bytes:
        """Build as the CPU does."""
        return build_native(form, source)

    def load(self, ctx: VirtualContext, blob: bytes, entry: str) -> NativeKernel:
        """Load as the CPU does."""
        return load_native(blob, entry)

    def launch(
        self,
        ctx: VirtualContext,
        kernel: NativeKernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Sequence[Argument],
        shared: int = 0,
        stream: Stream = None,
    ) -> None:
        """Queue a kernel."""
        ctx.launch(kernel, (grid, block), args)


def create(host_abi: tuple[int, int]) -> VirtualRuntime:
    """Make the runtime of two healthy devices (the factory that the registry calls)."""
    return VirtualRuntime()
