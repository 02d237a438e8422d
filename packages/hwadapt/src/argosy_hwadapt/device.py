"""An opened device, as the layers above hold it: the runtime's methods with memory, checks and defaults."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from argosy_hwadapt.capture import WRAPPERS, Operands
from argosy_hwadapt.contract import NO_FORK, Context, DeviceInfo, DeviceRuntime, Kernel, Stream
from argosy_hwadapt.errors import DeviceError, DeviceLost, LaunchError, UnsupportedOperation
from argosy_hwadapt.kernel import TRANSIENT_FORMS, Pointer, Scalar
from argosy_hwadapt.memory import Buffer, CachingAllocator, MemoryStats, PooledBuffer
from argosy_hwadapt.watchdog import HOST_METHODS, DeadlineExceeded, call_with_deadline

if TYPE_CHECKING:
    from argosy_hwadapt.blob_cache import BlobCache
    from argosy_hwadapt.contract import TraceEvent

#: What may stand on either side of a copy: device memory, or an object with the buffer protocol.
Copyable = Any
#: An argument of a launch: device memory, device memory from a byte offset on, or a value.
LaunchArgument = Buffer | tuple[Buffer, int] | Scalar
#: Methods that put work into a device's queue: what a graph captures and a profile times.
SUBMISSIONS = frozenset({"copy", "memset", "launch", "peer_copy", "run_op", "run_graph"})


class Device:
    """One opened device. Get it from :func:`argosy_hwadapt.device`.

    Every call into the plug-in passes :meth:`call`, which finds the default of an optional method,
    remembers the death of the device, gives up a plug-in that does not answer and names it when it raises
    something that is not a DeviceError.
    """

    __slots__ = (
        "__weakref__",
        "_failure",
        "_methods",
        "_pending",
        "allocator",
        "context",
        "current_stream",
        "index",
        "info",
        "name",
        "observer",
        "operands",
        "runtime",
        "trace",
        "watchdog",
    )

    #: Whether its memory is this process's own.
    is_host = False

    def __init__(self, name: str, index: int, info: DeviceInfo, runtime: DeviceRuntime) -> None:
        self.name, self.index, self.info, self.runtime = name, index, info, runtime
        self._failure: DeviceError | None = None
        self._methods: dict[str, Callable[..., Any]] = {}
        self._pending: dict[int, tuple[object, Callable[[], None]]] = {}
        #: Sees submissions while a graph is captured or a profile taken, in place of the plug-in.
        self.observer: Callable[..., Any] | None = None
        #: What the graph that is being captured reads and writes; None while none is.
        self.operands: Operands | None = None
        #: Finished profile events of the default profiler.
        self.trace: list[TraceEvent] = []
        #: Seconds after which a call that may wait for the device gives it up as hung; None waits for ever.
        #: Each such call then runs in a thread of its own, which costs some ten microseconds.
        self.watchdog: float | None = None
        #: Where work goes that is given no stream; None is the device's own. Memory is used again in its order.
        self.current_stream: Stream = None
        self.context: Context = None
        self.allocator = CachingAllocator(self)
        self.context = runtime.open(index)
        if NO_FORK in info.flags:
            _OPENED_NO_FORK.add(self)

    def __repr__(self) -> str:
        return f"{self.name}:{self.index}"

    # Calling the plug-in.

    def call(self, method: str, *args: Any) -> Any:
        """Call a required or optional method of the contract on this device's context.

        While a graph is captured or a profile taken, submissions go to its observer. Raises DeviceLost when the plug-in
        does not answer within :attr:`watchdog` seconds.
        """
        if self.observer is not None and method in SUBMISSIONS:
            return self.observer(self, method, args)
        return self.perform(method, *args)

    def perform(self, method: str, *args: Any) -> Any:
        """Call a method as :meth:`call` does, past any observer (for defaults and observers themselves)."""
        if self._failure is not None:
            raise type(self._failure)(f"{self} cannot be used any more: {self._failure}") from self._failure
        function = self._methods.get(method) or self._resolve(method)
        try:
            if self.watchdog is None:
                return function(*args)
            return self._call_within(self.watchdog, method, function, args)
        except DeviceLost as lost:
            self._failure = self._failure or lost
            raise
        except (DeviceError, MemoryError):
            raise
        except Exception as cause:
            raise DeviceError(f"plug-in {self.name!r} raised {type(cause).__name__} in {method}: {cause}") from cause

    def _call_within(self, seconds: float, method: str, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Call a method with a deadline. Defaults have none: each call that they make has its own."""
        if method in HOST_METHODS or not self.offers(method):
            return function(*args)
        try:
            return call_with_deadline(partial(function, *args), seconds)
        except DeadlineExceeded:
            raise DeviceLost(f"{self} did not answer within {seconds:g} s ({method})") from None

    def offers(self, method: str) -> bool:
        """Say whether the runtime itself has this optional method (otherwise its default is used)."""
        return getattr(self.runtime, method, None) is not None

    def _resolve(self, method: str) -> Callable[..., Any]:
        receiver, function = self.context, getattr(self.runtime, method, None)
        if function is None:
            receiver, function = self, _default(method)
        elif method == "peer_copy":
            receiver, function = self, partial(_copy_from_peer, function)
        if function is None:
            raise DeviceError(f"plug-in {self.name!r} lacks the method {method!r} of the device contract")
        bound: Callable[..., Any] = partial(function, receiver)
        if method in WRAPPERS:
            bound = partial(WRAPPERS[method], self, bound)
        self._methods[method] = bound
        return bound

    def retain(self, *operands: object) -> None:
        """Keep what submitted work reads or writes alive as long as the graph that is being captured, if any."""
        if self.operands is not None:
            self.operands.update((id(operand), operand) for operand in operands)

    # Memory.

    def allocate(self, nbytes: int) -> Buffer:
        """Return a buffer of ``nbytes`` bytes of arbitrary contents; 0 gives a buffer without a handle."""
        return self.allocator.allocate(nbytes)

    def adopt(self, array: Any) -> Buffer:
        """Share the memory of a C-contiguous host buffer and keep it alive (host devices only)."""
        raise UnsupportedOperation(f"{self} cannot adopt host memory: allocate a buffer there and copy")

    def host_view(self, buffer: Buffer, offset: int = 0, nbytes: int | None = None) -> memoryview | None:
        """Return the bytes as a memoryview that keeps the buffer alive, or None where the host
        cannot see them.
        """
        nbytes = buffer.nbytes - offset if nbytes is None else nbytes
        _check_range("host_view", buffer.nbytes, offset, nbytes)
        if nbytes == 0:
            return memoryview(bytearray())
        view: memoryview | None = self.call("host_view", buffer.handle, offset, nbytes, buffer)
        return view

    def address(self, buffer: Buffer) -> int:
        """Return the address of a buffer's first byte (host devices only; 0 for an empty buffer)."""
        raise UnsupportedOperation(f"{self} has no host addresses: pass the buffer and an offset to its kernels")

    def copy(
        self,
        dst: Copyable,
        src: Copyable,
        nbytes: int | None = None,
        dst_offset: int = 0,
        src_offset: int = 0,
        stream: Stream = None,
    ) -> None:
        """Copy bytes between buffers of this device and host buffers, in order with launches on the stream.

        ``nbytes`` defaults to what remains of ``src``. A copy into host memory may be read after
        :meth:`synchronize`. A source buffer of another device is copied device to device. Raises ValueError
        for a range outside its side.
        """
        nbytes = _size(src) - src_offset if nbytes is None else nbytes
        _check_range("copy, source", _size(src), src_offset, nbytes)
        _check_range("copy, destination", _size(dst), dst_offset, nbytes)
        if nbytes == 0:
            return
        stream = self.current_stream if stream is None else stream
        self.retain(dst, src)
        _note_use((dst, src), stream)
        if isinstance(src, Buffer) and src.device is not self:
            self.call("peer_copy", _side(self, dst), dst_offset, src.device, src.handle, src_offset, nbytes)
        else:
            self.call("copy", _side(self, dst), dst_offset, _side(self, src), src_offset, nbytes, stream)

    def memset(self, buffer: Buffer, value: int = 0, offset: int = 0, nbytes: int | None = None) -> None:
        """Set every byte of a range to ``value``."""
        nbytes = buffer.nbytes - offset if nbytes is None else nbytes
        _check_range("memset", buffer.nbytes, offset, nbytes)
        if nbytes:
            self.retain(buffer)
            _note_use((buffer,), self.current_stream)
            self.call("memset", buffer.handle, offset, value, nbytes, self.current_stream)

    def order_streams(self, stream: Stream, others: Iterable[Stream]) -> None:
        """Let later work of ``stream`` wait for what was given to others."""
        for other in others:
            self.call("stream_wait_event", stream, self.call("event_record", other))

    def mem_info(self) -> tuple[int, int]:
        """Return (free, total) bytes of the device."""
        free, total = self.call("mem_info")
        return free, total

    def memory_stats(self) -> MemoryStats:
        """Return what the caching allocator holds: allocated, reserved and peak bytes."""
        return self.allocator.stats()

    # Work.

    def synchronize(self, stream: Stream = None) -> None:
        """Wait for the submitted work; errors of that work are raised here."""
        self.call("synchronize", stream)
        if self._pending and stream is None:
            checks = [check for _, check in self._pending.values()]
            self._pending.clear()
            for check in checks:
                check()

    def at_synchronize(self, owner: object, check: Callable[[], None]) -> None:
        """Keep ``owner``, whose work has been submitted, alive until the next :meth:`synchronize` of all streams, which
        then calls ``check``, once for each owner: what looks at that work's results, and may raise."""
        self._pending[id(owner)] = owner, check

    def build(
        self,
        form: str,
        source: bytes,
        options: Mapping[str, str] | None = None,
        cache: BlobCache | None = None,
    ) -> bytes:
        """Build a kernel source of one of ``info.kernel_forms``; a cache saves the work in later processes.

        Raises UnsupportedOperation for another form and KernelBuildError, with the log, for a bad source.
        """
        if form not in self.info.kernel_forms:
            forms = ", ".join(self.info.kernel_forms) or "none"
            raise UnsupportedOperation(f"{self} does not build kernels of form {form!r}; it takes: {forms}")
        if cache is None or form in TRANSIENT_FORMS:
            blob: bytes = self.call("build", form, source, options or {})
            return blob
        settings = [f"{name}={value}" for name, value in sorted((options or {}).items())]
        key = cache.key([self.name, self.info.arch, str(self.runtime.abi), form, source, *settings])
        return cache.get_or_make(key, lambda: self.build(form, source, options))

    def load(self, blob: bytes, entry: str) -> Kernel:
        """Make the kernel ``entry`` of a built blob ready for launching."""
        return self.call("load", blob, entry)

    def launch(
        self,
        kernel: Kernel,
        grid: Sequence[int],
        block: Sequence[int] = (1,),
        args: Sequence[LaunchArgument] = (),
        shared: int = 0,
        stream: Stream = None,
    ) -> None:
        """Queue a kernel over one to three extents; arguments are Buffer, (Buffer, byte offset) or Scalar.

        Raises LaunchError before anything reaches the device when the shape does not fit ``info``.
        """
        grid3, block3 = _extents("grid", grid), _extents("block", block)
        threads = block3[0] * block3[1] * block3[2]
        if threads > self.info.max_block:
            raise LaunchError(f"{self}: block {block3} has {threads} work-items; at most {self.info.max_block} fit")
        if shared > self.info.shared_bytes:
            raise LaunchError(f"{self}: {shared} bytes of shared memory asked; a block has {self.info.shared_bytes}")
        arguments = [self._argument(a) for a in args]
        stream = self.current_stream if stream is None else stream
        self.retain(kernel, *args)
        _note_use([a[0] if type(a) is tuple else a for a in args], stream)
        self.call("launch", kernel, grid3, block3, arguments, shared, stream)

    def _argument(self, argument: LaunchArgument) -> Pointer | Scalar:
        if isinstance(argument, Scalar):
            return argument
        buffer, offset = argument if isinstance(argument, tuple) else (argument, 0)
        if not isinstance(buffer, Buffer):
            raise LaunchError(f"{self}: a kernel argument is a Buffer, (Buffer, offset) or Scalar, not {argument!r}")
        if buffer.device is not self:
            raise LaunchError(f"{self}: a kernel argument lives on {buffer.device}; copy it here first")
        return Pointer(buffer.handle, offset)


_OPENED_NO_FORK: WeakSet[Device] = WeakSet()


def _forbid_after_fork() -> None:
    """Make devices fail clearly in a forked child, where their drivers would hang."""
    for opened in _OPENED_NO_FORK:
        opened._failure = DeviceError(f"{opened} was opened before a fork; open it in the child only")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forbid_after_fork)


class HostDevice(Device):
    """A device whose memory is this process's own, so that host arrays can be shared instead of copied."""

    __slots__ = ()
    is_host = True

    def adopt(self, array: Any) -> Buffer:
        """Share the memory of a C-contiguous host buffer and keep it alive."""
        return Buffer(self, array.nbytes, array)

    def address(self, buffer: Buffer) -> int:
        """Return the address of a buffer's first byte (0 for an empty buffer)."""
        handle = buffer.handle
        return handle if type(handle) is int else self.perform("address", handle)


def _copy_from_peer(method: Any, device: Device, dst: Any, dst_off: int, source: Device, *rest: Any) -> None:
    """Copy by the plug-in's own method where it has the source, too, and through the host otherwise."""
    if source.runtime is device.runtime:
        method(device.context, dst, dst_off, source.context, *rest)
    else:
        _default("peer_copy")(device, dst, dst_off, source, *rest)


def _default(method: str) -> Any:
    """Return the framework's default of an optional method, or None if the method is not an optional one."""
    from argosy_hwadapt.optional import DEFAULTS  # 1 ms, and a program on the CPU rarely needs one

    return DEFAULTS.get(method)


def _note_use(operands: Iterable[Any], stream: Stream) -> None:
    """Remember which memory of other streams is used."""
    for operand in operands:
        if type(operand) is PooledBuffer:
            operand.note_use(stream)


def _size(side: Copyable) -> int:
    nbytes = getattr(side, "nbytes", None)  # arrays of dtypes outside the buffer protocol have it, too
    return len(side) if nbytes is None else int(nbytes)


def _side(device: Device, side: Copyable) -> Any:
    if not isinstance(side, Buffer):
        return side
    if side.device is not device:
        raise ValueError(f"copy on {device}: the destination lives on {side.device}; call copy on that device")
    return side.handle


def _check_range(what: str, size: int, offset: int, nbytes: int) -> None:
    if offset < 0 or nbytes < 0 or offset + nbytes > size:
        raise ValueError(f"{what}: bytes {offset} to {offset + nbytes} are outside a buffer of {size} bytes")


def _extents(what: str, given: Sequence[int]) -> tuple[int, int, int]:
    if not 1 <= len(given) <= 3 or any(n < 1 for n in given):
        raise LaunchError(f"{what} needs one to three extents of at least 1, got {tuple(given)}")
    x, y, z = (*given, 1, 1)[:3]
    return x, y, z
