"""The CPU's device runtime: handles are addresses, a launch returns when it has finished."""

from collections.abc import Mapping, Sequence
from typing import Any

from argosy_hwadapt.contract import ABI, HOST, DeviceInfo, Stream
from argosy_hwadapt.cpu import features
from argosy_hwadapt.cpu.arena import Arena
from argosy_hwadapt.cpu.c_bindings import address_of, copy_bytes, view
from argosy_hwadapt.cpu.kernels import FORMS, NativeKernel, build_native, load_native
from argosy_hwadapt.kernel import Argument

_DTYPES = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float8_e4m3fn float8_e5m2 "
    "float32 float64 complex64 complex128".split()
)


class CpuRuntime:
    """The nine required methods for the processor this process runs on, and two of the optional ones."""

    abi = ABI

    def __init__(self) -> None:
        self._arena: Arena | None = None

    def devices(self) -> list[DeviceInfo]:
        """Return the one CPU."""
        return [
            DeviceInfo(
                name=features.cpu_name(),
                arch=features.cpu_arch(),
                memory_bytes=features.memory_bytes(),
                dtypes=_DTYPES,
                max_block=1 << 30,
                shared_bytes=0,
                kernel_forms=FORMS,
                flags=frozenset({HOST}),
                cores=features.physical_cores(),
            )
        ]

    def open(self, index: int) -> Arena:
        """Return the process's arena."""
        if self._arena is None:
            self._arena = Arena(features.memory_bytes())
        return self._arena

    def alloc(self, ctx: Arena, nbytes: int) -> int:
        """Return the address of fresh memory."""
        return ctx.allocate(nbytes)

    def free(self, ctx: Arena, handle: int) -> None:
        """Give memory back."""
        ctx.free(handle)

    def copy(
        self, ctx: Arena, dst: Any, dst_off: int, src: Any, src_off: int, nbytes: int, stream: Stream = None
    ) -> None:
        """Copy at once."""
        copy_bytes(self.address(ctx, dst) + dst_off, self.address(ctx, src) + src_off, nbytes)

    def synchronize(self, ctx: Arena, stream: Stream = None) -> None:
        """Return at once: every launch has finished when it returns."""

    def build(self, ctx: Arena, form: str, source: bytes, options: Mapping[str, str]) -> bytes:
        """Tag the native code with its form."""
        return build_native(form, source)

    def load(self, ctx: Arena, blob: bytes, entry: str) -> NativeKernel:
        """Load a shared object, or take an address."""
        return load_native(blob, entry)

    def launch(
        self,
        ctx: Arena,
        kernel: NativeKernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Sequence[Argument],
        shared: int = 0,
        stream: Stream = None,
    ) -> None:
        """Run the kernel in this thread, with the GIL released."""
        kernel.run(grid, block, args)

    def host_view(self, ctx: Arena, handle: Any, offset: int, nbytes: int, keep: object) -> memoryview:
        """Return the memory itself; read-only where an adopted array is."""
        if isinstance(handle, int):
            return view(handle + offset, nbytes, keep)
        return _bytes_of(handle)[offset : offset + nbytes]

    def mem_info(self, ctx: Arena) -> tuple[int, int]:
        """Return (free, total) bytes, by the system's account."""
        return features.available_memory(), features.memory_bytes()

    def address(self, ctx: Arena, handle: Any) -> int:
        """Return the address behind a handle: itself, an adopted array's, or 0 for an empty buffer."""
        if isinstance(handle, int):
            return handle
        return 0 if handle is None else address_of(handle)


def _bytes_of(memory: Any) -> memoryview:
    """View a C-contiguous array or buffer as bytes; bfloat16 arrays have no buffer format of their own."""
    if hasattr(memory, "__array_interface__"):
        return memoryview(memory.reshape(-1).view("u1"))
    return memoryview(memory).cast("B")


def create(host_abi: tuple[int, int]) -> CpuRuntime:
    """Make the runtime (the factory that the registry calls)."""
    return CpuRuntime()
