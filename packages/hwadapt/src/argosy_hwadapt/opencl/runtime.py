"""The nine methods for OpenCL, streams, events and profiles: in-order queues, and kernels from OpenCL C.

An argument that is device memory becomes two of the kernel, ``__global char *`` and a ``long`` offset in bytes: buffers
are no pointers, and parts of them begin at few places.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from time import perf_counter_ns
from typing import Any, NamedTuple

from argosy_hwadapt.contract import ABI, NO_FORK, SUB_GROUPS, DeviceInfo, Stream, TraceEvent
from argosy_hwadapt.cpu.c_bindings import address_of
from argosy_hwadapt.errors import KernelBuildError
from argosy_hwadapt.kernel import Argument, Pointer
from argosy_hwadapt.opencl.library import check, create_object, ffi, libraries, list_handles, query

OPENCL_C, SPIRV = FORMS = "opencl-c", "spirv"
#: What a device that takes SPIR-V says, at least.
_SPIRV_VERSION = "SPIR-V_1.3"
#: Division and square roots are rounded as IEEE 754 asks; products are not joined to sums.
OPTIONS = b"-cl-fp32-correctly-rounded-divide-sqrt"
_NAME, _DRIVER, _VERSION, _EXTENSIONS, _IL = 0x102B, 0x102D, 0x102F, 0x1030, 0x105B
_TYPE, _UNITS, _GROUP, _MEMORY, _LOCAL = 0x1000, 0x1002, 0x1004, 0x101F, 0x1023
_ALL, _CPU, _BUILD_LOG, _BINARY_SIZES, _BINARIES = 0xFFFFFFFF, 2, 0x1183, 0x1165, 0x1166
_PROFILING, _STARTED, _ENDED = 2, 0x1282, 0x1283
_MOST_BUILT = 256
_HANDLE_BYTES = ffi.sizeof("handle")


class OpenClQueue:
    """An in-order queue of a context, and what its enqueued copies read and write on the host."""

    def __init__(self, context: OpenClContext) -> None:
        create, release = context.cl.clCreateCommandQueue, context.cl.clReleaseCommandQueue
        self.context, self.held = context, list[Any]()
        self.handle = ffi.gc(create_object("a queue", create, context.handle, context.device, _PROFILING), release)

    def enqueue(self, name: str, function: Any, *arguments: Any) -> None:
        """Enqueue a command; its event is kept while somebody profiles."""
        event = ffi.new("handle *") if self.context.profiles else ffi.NULL
        check(function(self.handle, *arguments, 0, ffi.NULL, event), name)
        if event:
            self.context.profile.append((name, ffi.gc(event[0], self.context.cl.clReleaseEvent)))

    def mark(self, *after: Any) -> Any:
        """The event of a command that does nothing, after all before it and other events."""
        cl, event, waited = self.context.cl, ffi.new("handle *"), ffi.new("handle[]", after) if after else ffi.NULL
        check(cl.clEnqueueMarkerWithWaitList(self.handle, len(after), waited, event), "a marker")
        check(cl.clFlush(self.handle), "clFlush")
        return ffi.gc(event[0], cl.clReleaseEvent)

    def finish(self) -> None:
        """Wait for its commands."""
        held, self.held = self.held, []
        check(self.context.cl.clFinish(self.handle), "clFinish")
        held.clear()


class OpenClContext:
    """One opened device: its queues, the first of which takes what is given no stream, and what was built for it."""

    def __init__(self, cl: Any, device: Any) -> None:
        self.cl, self.device, self.devices = cl, device, ffi.new("handle[1]", [device])
        create = self.cl.clCreateContext
        self.handle = create_object("clCreateContext", create, ffi.NULL, 1, self.devices, ffi.NULL, ffi.NULL)
        self.queues = [OpenClQueue(self)]
        self.lock = threading.RLock()  # arguments belong to kernels until they are launched
        self.profiles, self.profile = False, list[tuple[str, Any]]()
        # A driver's bytes differ from time to time, so that a source is built once.
        self.blob, self.program = lru_cache(_MOST_BUILT)(self._blob), lru_cache(_MOST_BUILT)(self._program)

    def _build(self, program: Any) -> Any:
        """The program, built for the device. Raises KernelBuildError with the log."""
        if self.cl.clBuildProgram(program, 1, self.devices, OPTIONS, ffi.NULL, ffi.NULL):
            log = query(self.cl.clGetProgramBuildInfo, program, self.device, _BUILD_LOG)
            raise KernelBuildError("opencl: " + log.rstrip(b"\0").decode(errors="replace").strip())
        return program

    def _blob(self, form: str, source: bytes) -> bytes:
        """What the driver keeps of OpenCL C or SPIR-V."""
        cl, size, text = self.cl, len(source), ffi.from_buffer(source)
        given: tuple[Any, ...] = 1, ffi.new("char *[1]", [text]), ffi.new("size_t[1]", [size])
        create = cl.clCreateProgramWithSource
        if form == SPIRV:
            create, given = cl.clCreateProgramWithIL, (text, size)
        made = create_object("a program", create, self.handle, *given, kind=KernelBuildError)
        program = self._build(ffi.gc(made, cl.clReleaseProgram))
        memory = ffi.new("uint8_t[]", int.from_bytes(query(cl.clGetProgramInfo, program, _BINARY_SIZES), "little"))
        binaries = ffi.new("uint8_t *[1]", [memory])
        check(cl.clGetProgramInfo(program, _BINARIES, _HANDLE_BYTES, binaries, ffi.NULL), "clGetProgramInfo")
        return bytes(ffi.buffer(memory))

    def _program(self, blob: bytes) -> Any:
        """The program of built bytes, for all of its kernels."""
        lengths, binaries = ffi.new("size_t[1]", [len(blob)]), ffi.new("uint8_t *[1]", [ffi.from_buffer(blob)])
        what, create = f"a program of {len(blob)} built bytes", self.cl.clCreateProgramWithBinary
        given = self.handle, 1, self.devices, lengths, binaries, ffi.NULL
        program = create_object(what, create, *given, kind=KernelBuildError)
        return self._build(ffi.gc(program, self.cl.clReleaseProgram))


class OpenClKernel(NamedTuple):
    """A kernel of a built program, by name."""

    handle: Any
    program: Any
    entry: str


class OpenClRuntime:
    """The nine required methods, and those of streams and profiles."""

    abi = ABI

    def __init__(self) -> None:
        self._contexts: dict[int, OpenClContext] = {}

    @cached_property
    def _find_devices(self) -> list[tuple[Any, Any, DeviceInfo]]:
        """All devices of all platforms, accelerators first, in the libraries' order, with their library; each once."""
        found: list[tuple[Any, Any, DeviceInfo]] = []
        for cl in libraries():
            known = [info for *_, info in found]  # a loader may list those of a wheel again
            handles = [d for p in list_handles(cl.clGetPlatformIDs) for d in list_handles(cl.clGetDeviceIDs, p, _ALL)]
            found += [(cl, d, info) for d in handles if (info := _info(cl, d)) not in known]
        return sorted(found, key=lambda each: each[2].simt_width == 1)

    def devices(self) -> list[DeviceInfo]:
        """Describe what the libraries list."""
        return [info for _, _, info in self._find_devices]

    def open(self, index: int) -> OpenClContext:
        """Make the context at the first call."""
        if index not in self._contexts:
            self._contexts[index] = OpenClContext(*self._find_devices[index][:2])
        return self._contexts[index]

    def alloc(self, ctx: OpenClContext, nbytes: int) -> Any:
        """Make a buffer."""
        return create_object(f"a buffer of {nbytes} bytes", ctx.cl.clCreateBuffer, ctx.handle, 1, nbytes, ffi.NULL)

    def free(self, ctx: OpenClContext, handle: Any) -> None:
        """Release a buffer; commands keep it meanwhile."""
        check(ctx.cl.clReleaseMemObject(handle), "clReleaseMemObject")

    def copy(
        self, ctx: OpenClContext, dst: Any, dst_off: int, src: Any, src_off: int, nbytes: int, stream: Stream = None
    ) -> None:
        """Enqueue a copy between buffers, or with the host."""
        cl, there, here, queue = ctx.cl, isinstance(dst, ffi.CData), isinstance(src, ffi.CData), stream or ctx.queues[0]
        to = dst if there else ffi.cast("void *", address_of(dst) + dst_off)
        source = src if here else ffi.cast("void *", address_of(src) + src_off)
        if not here and not there:
            ffi.memmove(to, source, nbytes)
        elif not here:
            queue.enqueue("write", cl.clEnqueueWriteBuffer, to, 0, dst_off, nbytes, source)
            queue.held.append(src)  # afterwards: who finishes the queue meanwhile must not let go of it
        elif not there:
            queue.enqueue("read", cl.clEnqueueReadBuffer, source, 0, src_off, nbytes, to)
            queue.held.append(dst)
        elif dst != src or abs(dst_off - src_off) >= nbytes:
            queue.enqueue("copy", cl.clEnqueueCopyBuffer, src, dst, src_off, dst_off, nbytes)
        elif dst_off != src_off:  # ranges that overlap
            between = self.alloc(ctx, nbytes)
            self.copy(ctx, between, 0, src, src_off, nbytes, stream)
            self.copy(ctx, dst, dst_off, between, 0, nbytes, stream)
            self.free(ctx, between)

    def synchronize(self, ctx: OpenClContext, stream: Stream = None) -> None:
        """Wait for a queue, or for all."""
        for queue in [stream] if stream else [*ctx.queues]:
            queue.finish()

    def build(self, ctx: OpenClContext, form: str, source: bytes, options: Mapping[str, str]) -> bytes:
        """Compile OpenCL C or SPIR-V to what the driver keeps."""
        return ctx.blob(form, source)

    def load(self, ctx: OpenClContext, blob: bytes, entry: str) -> OpenClKernel:
        """Make a kernel of a built program. Raises KernelBuildError for bytes or a name that are none."""
        program, create, what = ctx.program(blob), ctx.cl.clCreateKernel, f"kernel {entry!r} of the program"
        handle = create_object(what, create, program, entry.encode(), kind=KernelBuildError)
        return OpenClKernel(ffi.gc(handle, ctx.cl.clReleaseKernel), program, entry)

    def launch(
        self, ctx: OpenClContext, kernel: OpenClKernel, grid: tuple[int, int, int], block: tuple[int, int, int],
        args: Sequence[Argument], shared: int = 0, stream: Stream = None,
    ) -> None:  # fmt: skip
        """Set the arguments and enqueue."""
        cl, place, queue = ctx.cl, 0, stream or ctx.queues[0]
        with ctx.lock:
            for argument in args:
                if isinstance(argument, Pointer):
                    handle = ffi.new("handle *", argument.handle or ffi.NULL)
                    check(cl.clSetKernelArg(kernel.handle, place, _HANDLE_BYTES, handle), "clSetKernelArg")
                    packed, place = argument.offset.to_bytes(8, "little"), place + 1
                else:
                    packed = argument.to_bytes()
                check(cl.clSetKernelArg(kernel.handle, place, len(packed), packed), "clSetKernelArg")
                place += 1
            local, sizes = ffi.new("size_t[3]", block), [g * b for g, b in zip(grid, block, strict=True)]
            command = kernel.handle, 3, ffi.NULL, ffi.new("size_t[3]", sizes), local
            queue.enqueue(f"launch {kernel.entry}", cl.clEnqueueNDRangeKernel, *command)
            check(cl.clFlush(queue.handle), "clFlush")

    def stream_create(self, ctx: OpenClContext) -> OpenClQueue:
        """Make a queue."""
        ctx.queues.append(OpenClQueue(ctx))
        return ctx.queues[-1]

    def stream_destroy(self, ctx: OpenClContext, stream: OpenClQueue) -> None:
        """Wait for a queue and forget it."""
        ctx.queues.remove(stream)
        stream.finish()

    def event_record(self, ctx: OpenClContext, stream: Stream = None) -> Any:
        """Mark what a queue has been given."""
        return (stream or ctx.queues[0]).mark()

    def stream_wait_event(self, ctx: OpenClContext, stream: Stream, event: Any) -> None:
        """Let a queue's later commands wait."""
        (stream or ctx.queues[0]).mark(event)

    def event_synchronize(self, ctx: OpenClContext, event: Any) -> None:
        """Wait for an event."""
        check(ctx.cl.clWaitForEvents(1, ffi.new("handle[1]", [event])), "clWaitForEvents")

    def event_elapsed(self, ctx: OpenClContext, start: Any, end: Any) -> float:
        """Milliseconds of the device's clock between two events that have happened."""
        return (self._time(ctx, end) - self._time(ctx, start)) / 1e6

    def _time(self, ctx: OpenClContext, event: Any, key: int = _ENDED) -> int:
        """Nanoseconds of the device's clock, when a command ended or started."""
        self.event_synchronize(ctx, event)
        return int.from_bytes(query(ctx.cl.clGetEventProfilingInfo, event, key), "little")

    def profiler_start(self, ctx: OpenClContext) -> None:
        """Keep the events of commands from now on."""
        ctx.profiles = True

    def profiler_stop(self, ctx: OpenClContext) -> None:
        """Keep none any more."""
        ctx.profiles = False

    def profiler_drain(self, ctx: OpenClContext) -> list[TraceEvent]:
        """The commands of the profile by the host's clock, which is compared with the device's now."""
        profile, ctx.profile = ctx.profile, []
        later = min(-self._time(ctx, ctx.queues[0].mark()) + perf_counter_ns() for _ in range(4))
        times = [(name, self._time(ctx, event, _STARTED), self._time(ctx, event)) for name, event in profile]
        return [TraceEvent(name, start + later, end + later, coarse=False) for name, start, end in times]


def create(host_abi: tuple[int, int]) -> OpenClRuntime:
    """Make the runtime (the factory that the registry calls). Raises DeviceNotFound without a library."""
    libraries()
    return OpenClRuntime()


def _info(cl: Any, device: Any) -> DeviceInfo:
    def text(key: int) -> str:
        return query(cl.clGetDeviceInfo, device, key).rstrip(b"\0").decode()

    def number(key: int) -> int:
        return int.from_bytes(query(cl.clGetDeviceInfo, device, key), "little")

    dtypes = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32".split()
    dtypes += ["float64"] if "cl_khr_fp64" in text(_EXTENSIONS) else []
    shuffles = {"cl_khr_subgroup_shuffle", "cl_intel_required_subgroup_size"} <= {*text(_EXTENSIONS).split()}
    flags = {NO_FORK, SUB_GROUPS} if shuffles else {NO_FORK}
    takes_spirv = text(_VERSION) >= "OpenCL 2.1" and _SPIRV_VERSION in text(_IL).split()
    forms = FORMS if takes_spirv else (OPENCL_C,)
    return DeviceInfo(
        name=text(_NAME), arch=f"{text(_VERSION)} {text(_DRIVER)}", memory_bytes=number(_MEMORY),
        dtypes=frozenset(dtypes), max_block=number(_GROUP), shared_bytes=number(_LOCAL), kernel_forms=forms,
        flags=frozenset(flags), cores=number(_UNITS), simt_width=1 if number(_TYPE) & _CPU else 32,
    )  # fmt: skip
