"""The device contract, version 1: what a plug-in writes.

A plug-in is one object with nine methods (:class:`DeviceRuntime`) and one entry point of group
``argosy.devices`` whose name is the device type and whose object is a factory ``factory(host_abi) ->
DeviceRuntime``. Whatever else a chip can do (streams, its own operator library, graphs, collectives,
profiling) is optional; :mod:`argosy_hwadapt.optional` lists those methods and the defaults that stand in
for them.

Contexts, handles, kernels, streams and events are opaque to the framework. Sizes and offsets are bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

#: Version of this contract. Another major version is refused; another minor one is accepted, because
#: methods that are missing are defaulted and methods that are unknown are never asked for.
ABI = (1, 0)

#: Device flags. ``HOST``: handles are addresses that this process can read. ``NO_FORK``: unusable in a
#: forked child. ``SUB_GROUPS``: ``simt_width`` work-items that follow each other read each other's registers, by the
#: instruction of the form that its kernels have (OpenCL C: ``sub_group_shuffle``). ``MATRIX_TILES``: they multiply
#: matrices together; a printer without an instruction for it prints its definition by local memory.
HOST, NO_FORK, SUB_GROUPS, MATRIX_TILES = "host", "no-fork", "sub-groups", "matrix-tiles"

Context = Any
Handle = Any
Kernel = Any
Stream = Any
Event = Any


class DeviceInfo(NamedTuple):
    """What a device is, known without starting it."""

    name: str  #: as the vendor prints it
    arch: str  #: what a compiler targets: ``"x86_64"``, ``"sm_90"``
    memory_bytes: int
    dtypes: frozenset[str] = frozenset()  #: names of the dtypes its kernels can compute with
    simt_width: int = 1  #: lanes that run in lock step (warp, wavefront); 1 for a CPU
    max_block: int = 1  #: most work-items of one block
    shared_bytes: int = 0  #: most shared memory of one block
    kernel_forms: tuple[str, ...] = ()  #: forms that ``build`` takes, best first
    flags: frozenset[str] = frozenset()
    cores: int = 1  #: physical cores or multiprocessors


class TraceEvent(NamedTuple):
    """One device activity. ``coarse`` times include the host's waiting, because the device keeps no
    clock for us.
    """

    name: str
    start_ns: int
    end_ns: int
    coarse: bool


class DeviceRuntime(Protocol):
    """The nine methods that every plug-in has. They raise the classes of :mod:`argosy_hwadapt.errors`."""

    abi: tuple[int, int]

    def devices(self) -> Sequence[DeviceInfo]:
        """List the devices of this machine. Must not start the runtime, so that a later fork stays safe."""

    def open(self, index: int) -> Context:
        """Start device ``index``; a second call returns the same context."""

    def alloc(self, ctx: Context, nbytes: int) -> Handle:
        """Reserve ``nbytes > 0`` bytes, 256-byte aligned; contents are arbitrary. Raises
        DeviceOutOfMemory.
        """

    def free(self, ctx: Context, handle: Handle) -> None:
        """Give memory back once the work already submitted has finished with it."""

    def copy(
        self, ctx: Context, dst: Any, dst_off: int, src: Any, src_off: int, nbytes: int, stream: Stream = None
    ) -> None:
        """Copy bytes; either side is a handle or a host buffer (an object with the buffer protocol).

        In order with launches on the same stream. May return early, and then keeps host buffers alive until
        done; a copy into a host buffer may be read after ``synchronize``. Ranges may overlap.
        """

    def synchronize(self, ctx: Context, stream: Stream = None) -> None:
        """Wait for submitted work (of all streams when ``None``); errors of that work are raised here."""

    def build(self, ctx: Context, form: str, source: bytes, options: Mapping[str, str]) -> bytes:
        """Turn source of a kernel form into a blob: deterministic, and valid in another process of
        this device.
        """

    def load(self, ctx: Context, blob: bytes, entry: str) -> Kernel:
        """Make the kernel named ``entry`` of a built blob ready for launching."""

    def launch(
        self,
        ctx: Context,
        kernel: Kernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Sequence[Any],
        shared: int = 0,
        stream: Stream = None,
    ) -> None:
        """Queue a kernel over ``grid`` blocks; ``args`` are :class:`~argosy_hwadapt.kernel.Pointer`
        and ``Scalar``.
        """
