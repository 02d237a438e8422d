"""The nine methods for OpenCL: one in-order queue for each device, kernels from OpenCL C.

An argument that is device memory becomes two of the kernel, ``__global char *`` and a ``long`` offset in bytes: buffers
are no pointers, and parts of them begin at few places.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from argosy_hwadapt.contract import ABI, NO_FORK, DeviceInfo, Stream
from argosy_hwadapt.cpu.c_bindings import address_of
from argosy_hwadapt.errors import DeviceNotFound, KernelBuildError, UnsupportedOperation
from argosy_hwadapt.kernel import Argument, Pointer
from argosy_hwadapt.opencl.library import check, create_object, ffi, library, query

OPENCL_C = "opencl-c"
#: Division and square roots are rounded as IEEE 754 asks; products are not joined to sums.
OPTIONS = b"-cl-fp32-correctly-rounded-divide-sqrt"
_NAME, _DRIVER, _VERSION, _EXTENSIONS = 0x102B, 0x102D, 0x102F, 0x1030
_UNITS, _GROUP, _MEMORY, _LOCAL = 0x1002, 0x1004, 0x101F, 0x1023
_ALL_DEVICES, _BUILD_LOG, _BINARY_SIZES, _BINARIES = 0xFFFFFFFF, 0x1183, 0x1165, 0x1166
_MOST_BLOBS = 256
_HANDLE_BYTES = ffi.sizeof("handle")


class OpenClContext:
    """One opened device: context and queue, and what enqueued copies read and write on the host."""

    def __init__(self, device: Any) -> None:
        self.cl, self.device = library(), device
        one = ffi.new("handle[1]", [device])
        self.context = create_object("clCreateContext", self.cl.clCreateContext, ffi.NULL, 1, one, ffi.NULL, ffi.NULL)
        self.queue = create_object("clCreateCommandQueue", self.cl.clCreateCommandQueue, self.context, device, 0)
        self.lock = threading.RLock()  # arguments belong to kernels until they are launched
        self.held: list[Any] = []
        self.blobs: dict[bytes, bytes] = {}
        self.programs: dict[bytes, Any] = {}

    def build(self, program: Any) -> Any:
        """The program, built for the device. Raises KernelBuildError with the log."""
        one = ffi.new("handle[1]", [self.device])
        if self.cl.clBuildProgram(program, 1, one, OPTIONS, ffi.NULL, ffi.NULL):
            log = query(self.cl.clGetProgramBuildInfo, program, self.device, _BUILD_LOG)
            raise KernelBuildError("opencl: " + log.rstrip(b"\0").decode(errors="replace").strip())
        return program


class OpenClKernel:
    """A kernel of a built program, by name."""

    def __init__(self, handle: Any, program: Any, entry: str) -> None:
        self.handle, self._program, self.entry = ffi.gc(handle, library().clReleaseKernel), program, entry

    def __repr__(self) -> str:
        return self.entry


class OpenClRuntime:
    """The nine required methods."""

    abi = ABI

    def __init__(self) -> None:
        self._contexts: dict[int, OpenClContext] = {}

    @cached_property
    def _handles(self) -> list[Any]:
        """All devices of all platforms, in the library's order."""
        cl, count = library(), ffi.new("uint32_t *")
        if cl.clGetPlatformIDs(0, ffi.NULL, count) or not count[0]:
            raise DeviceNotFound("opencl: the library offers no platform")
        platforms, found = ffi.new("handle[]", count[0]), []
        check(cl.clGetPlatformIDs(count[0], platforms, ffi.NULL), "clGetPlatformIDs")
        for platform in platforms:
            if cl.clGetDeviceIDs(platform, _ALL_DEVICES, 0, ffi.NULL, count) == 0:
                devices = ffi.new("handle[]", count[0])
                check(cl.clGetDeviceIDs(platform, _ALL_DEVICES, count[0], devices, ffi.NULL), "clGetDeviceIDs")
                found += list(devices)
        return found

    def devices(self) -> list[DeviceInfo]:
        """Describe what the library lists."""
        return [self._info(handle) for handle in self._handles]

    def _info(self, device: Any) -> DeviceInfo:
        def text(key: int) -> str:
            return query(library().clGetDeviceInfo, device, key).rstrip(b"\0").decode()

        def number(key: int) -> int:
            return int.from_bytes(query(library().clGetDeviceInfo, device, key), "little")

        dtypes = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32".split()
        dtypes += ["float64"] if "cl_khr_fp64" in text(_EXTENSIONS) else []
        return DeviceInfo(
            name=text(_NAME), arch=f"{text(_VERSION)} {text(_DRIVER)}", memory_bytes=number(_MEMORY),
            dtypes=frozenset(dtypes), max_block=number(_GROUP), shared_bytes=number(_LOCAL), kernel_forms=(OPENCL_C,),
            flags=frozenset({NO_FORK}), cores=number(_UNITS),
        )  # fmt: skip

    def open(self, index: int) -> OpenClContext:
        """Make context and queue at the first call."""
        if index not in self._contexts:
            self._contexts[index] = OpenClContext(self._handles[index])
        return self._contexts[index]

    def alloc(self, ctx: OpenClContext, nbytes: int) -> Any:
        """Make a buffer."""
        return create_object(f"a buffer of {nbytes} bytes", ctx.cl.clCreateBuffer, ctx.context, 1, nbytes, ffi.NULL)

    def free(self, ctx: OpenClContext, handle: Any) -> None:
        """Release a buffer; the queue's commands keep it meanwhile."""
        check(ctx.cl.clReleaseMemObject(handle), "clReleaseMemObject")

    def copy(
        self, ctx: OpenClContext, dst: Any, dst_off: int, src: Any, src_off: int, nbytes: int, stream: Stream = None
    ) -> None:
        """Enqueue a copy between buffers, or with the host."""
        cl, there, here = ctx.cl, isinstance(dst, ffi.CData), isinstance(src, ffi.CData)
        with ctx.lock:
            if there and here:
                self._copy_within(ctx, dst, dst_off, src, src_off, nbytes)
            elif there:
                host = ffi.cast("void *", address_of(src) + src_off)
                check(cl.clEnqueueWriteBuffer(ctx.queue, dst, 0, dst_off, nbytes, host, 0, ffi.NULL, ffi.NULL), "write")
                ctx.held.append(src)
            elif here:
                host = ffi.cast("void *", address_of(dst) + dst_off)
                check(cl.clEnqueueReadBuffer(ctx.queue, src, 0, src_off, nbytes, host, 0, ffi.NULL, ffi.NULL), "read")
                ctx.held.append(dst)
            else:
                ffi.memmove(ffi.cast("void *", address_of(dst) + dst_off),
                            ffi.cast("void *", address_of(src) + src_off), nbytes)  # fmt: skip

    def _copy_within(self, ctx: OpenClContext, dst: Any, dst_off: int, src: Any, src_off: int, nbytes: int) -> None:
        """Between buffers; where both are one and the ranges overlap, by way of another."""

        def enqueue(dst: Any, dst_off: int, src: Any, src_off: int) -> None:
            check(
                ctx.cl.clEnqueueCopyBuffer(ctx.queue, src, dst, src_off, dst_off, nbytes, 0, ffi.NULL, ffi.NULL), "copy"
            )

        if dst != src or abs(dst_off - src_off) >= nbytes:
            enqueue(dst, dst_off, src, src_off)
        elif dst_off != src_off:
            between = self.alloc(ctx, nbytes)
            enqueue(between, 0, src, src_off)
            enqueue(dst, dst_off, between, 0)
            self.free(ctx, between)

    def synchronize(self, ctx: OpenClContext, stream: Stream = None) -> None:
        """Wait for the queue."""
        check(ctx.cl.clFinish(ctx.queue), "clFinish")
        ctx.held.clear()

    def build(self, ctx: OpenClContext, form: str, source: bytes, options: Mapping[str, str]) -> bytes:
        """Compile OpenCL C to what the driver keeps. Its bytes differ from time to time, so a source is built once."""
        if form != OPENCL_C:
            raise UnsupportedOperation(f"opencl: kernel form {form!r} is not {OPENCL_C}")
        if source not in ctx.blobs:
            while len(ctx.blobs) >= _MOST_BLOBS:
                ctx.blobs.pop(next(iter(ctx.blobs)))
            ctx.blobs[source] = self._build(ctx, source)
        return ctx.blobs[source]

    def _build(self, ctx: OpenClContext, source: bytes) -> bytes:
        text, cl = ffi.from_buffer(source), ctx.cl
        texts, lengths = ffi.new("char *[1]", [text]), ffi.new("size_t[1]", [len(source)])
        program = create_object(
            "clCreateProgramWithSource", cl.clCreateProgramWithSource, ctx.context, 1, texts, lengths
        )
        try:
            ctx.build(program)
            size = int.from_bytes(query(cl.clGetProgramInfo, program, _BINARY_SIZES), "little")
            memory = ffi.new("uint8_t[]", size)
            binaries = ffi.new("uint8_t *[1]", [memory])
            check(cl.clGetProgramInfo(program, _BINARIES, _HANDLE_BYTES, binaries, ffi.NULL), "clGetProgramInfo")
            return bytes(ffi.buffer(memory, size))
        finally:
            cl.clReleaseProgram(program)

    def load(self, ctx: OpenClContext, blob: bytes, entry: str) -> OpenClKernel:
        """Make a kernel of a built program. Raises KernelBuildError for bytes or a name that are none."""
        if blob not in ctx.programs:
            while len(ctx.programs) >= _MOST_BLOBS:
                ctx.programs.pop(next(iter(ctx.programs)))
            ctx.programs[blob] = self._program(ctx, blob)
        program, status = ctx.programs[blob], ffi.new("status *")
        handle = ctx.cl.clCreateKernel(program, entry.encode(), status)
        if status[0]:
            raise KernelBuildError(f"opencl: the program has no kernel {entry!r} (status {status[0]})")
        return OpenClKernel(handle, program, entry)

    def _program(self, ctx: OpenClContext, blob: bytes) -> Any:
        """The program of built bytes, for all of its kernels."""
        cl, memory = ctx.cl, ffi.from_buffer("uint8_t[]", blob)
        one, status = ffi.new("handle[1]", [ctx.device]), ffi.new("status *")
        lengths, binaries = ffi.new("size_t[1]", [len(blob)]), ffi.new("uint8_t *[1]", [memory])
        program = cl.clCreateProgramWithBinary(ctx.context, 1, one, lengths, binaries, ffi.NULL, status)
        if status[0]:
            raise KernelBuildError(f"opencl: {len(blob)} bytes are no built program (status {status[0]})")
        return ctx.build(ffi.gc(program, cl.clReleaseProgram))

    def launch(
        self,
        ctx: OpenClContext,
        kernel: OpenClKernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Sequence[Argument],
        shared: int = 0,
        stream: Stream = None,
    ) -> None:
        """Set the arguments and enqueue."""
        cl, place = ctx.cl, 0
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
            sizes, local = (
                ffi.new("size_t[3]", [g * b for g, b in zip(grid, block, strict=True)]),
                ffi.new("size_t[3]", block),
            )
            queue = ctx.queue
            check(
                cl.clEnqueueNDRangeKernel(queue, kernel.handle, 3, ffi.NULL, sizes, local, 0, ffi.NULL, ffi.NULL),
                f"launch of {kernel}",
            )
            check(cl.clFlush(queue), "clFlush")


def create(host_abi: tuple[int, int]) -> OpenClRuntime:
    """Make the runtime (the factory that the registry calls). Raises DeviceNotFound without a library."""
    library()
    return OpenClRuntime()
