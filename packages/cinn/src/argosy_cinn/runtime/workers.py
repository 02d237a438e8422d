"""Parallel regions: persistent worker threads that run chunks of a kernel, and scratch memory for each
thread.

Generated code sees three functions (emit calls with `parallel_for`, `scratch` and `thread_count`):

- ``void argosy_parallel(ptr kernel, ptr argument, i64 chunks)`` runs ``kernel(argument, chunk, chunks)`` for
every chunk,
  on all workers and the caller, and returns when all are done. It runs inline when there is one thread or one
  chunk, when another thread is inside a region, or inside a region itself.
- ``ptr argosy_scratch(i64 bytes)`` is this thread's scratch memory, 64-byte aligned, on huge pages where the
  system has them. One slab per thread, valid until the next call on that thread: a chunk asks once and
  divides it.
- ``i64 argosy_threads()``: how many threads a region may use.

Chunks are claimed dynamically: one 64-bit word holds epoch, chunk count and the next chunk, and a
compare-and-swap takes one. A worker that wakes late finds the epoch gone and never delays a region; a busy
neighbour on the machine delays one chunk. Which thread runs a chunk is not determined, so a kernel's chunks
must be independent and its grid must not depend on the thread count where arithmetic order does: then a
program gives the same bits for any number of threads. Between regions workers spin for a moment, then sleep
on a futex. hwadapt owns the threads; the loop they run is here.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
from collections.abc import Mapping
from functools import cache
from typing import Any

from argosy_cinn.printers.instructions import Instructions
from argosy_cinn.printers.types import I64, PTR, VOID, Index, Value
from argosy_cinn.target import Target
from argosy_hwadapt.cpu.features import physical_cores
from argosy_hwadapt.cpu.workers import WorkerThreads

#: A region's chunk count must be below this (it shares a word with the epoch); larger regions run on the
#: caller alone.
MAX_CHUNKS = 1 << 20
_CONTEXT_BYTES = 576
_SPIN = 20_000
_CALLED = ("argosy_parallel", "argosy_scratch", "argosy_threads")
_EXPORTS = (*_CALLED, "argosy_worker", "argosy_wake", "argosy_hold")


def parallel_for(b: Instructions, kernel: str, argument: Value, chunks: Index) -> None:
    """Emit a parallel region: ``kernel(ptr argument, i64 chunk, i64 chunks)`` for chunks 0..chunks-1.

    ``kernel`` is a function of this module; it may leave out the last parameter.
    """
    b.call("argosy_parallel", VOID, Value(PTR, f"@{kernel}"), argument, b.index(chunks))


def scratch(b: Instructions, size_bytes: Index) -> Value:
    """Emit a request for this thread's scratch memory (valid until its next request)."""
    return b.call("argosy_scratch", PTR, b.index(size_bytes))


def thread_count(b: Instructions) -> Value:
    """Emit a question for the number of threads: grids may follow it where chunking changes no arithmetic."""
    return b.call("argosy_threads", I64)


class Workers:
    """The process's worker threads. ``threads`` counts the caller: 1 means no worker."""

    def __init__(self) -> None:
        from argosy_cinn.runtime.jit import link

        raw = ctypes.create_string_buffer(_CONTEXT_BYTES + 64)
        self._memory = raw
        self._context = (ctypes.addressof(raw) + 63) & ~63
        self._key = _thread_key()
        self.library = link(_runtime_object(), _EXPORTS, symbols={"context": self._context}, runtime=False)
        self._lock = threading.Lock()
        self._threads: WorkerThreads | None = None
        self.threads = 1
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._before_fork, after_in_parent=self._release, after_in_child=self._after_fork
            )

    def resize(self, threads: int) -> None:
        """Use so many threads, the caller included. No region may be running."""
        if threads < 1:
            raise ValueError(f"a program runs on at least one thread, not {threads}")
        with self._lock:
            if threads == self.threads:
                return
            self._stop()
            self.threads = threads
            self._reset()
            self._start()

    def stop(self) -> None:
        """Stop the workers; later regions run on the caller alone."""
        with self._lock:
            self._stop()
            self.threads = 1
            self._reset()

    def _start(self) -> None:
        if self.threads > 1:
            count = self.threads - 1
            self._threads = WorkerThreads(count)
            self._threads.start(self.library.address("argosy_worker"), [self._context] * count, self._request_stop)

    def _stop(self) -> None:
        if self._threads is not None:
            self._threads.stop()
            self._threads = None

    def _request_stop(self) -> None:
        self._word(ctypes.c_int32, 320).value = 1
        ctypes.CFUNCTYPE(None)(self.library.address("argosy_wake"))()

    def _before_fork(self) -> None:
        """Let no region be open while the process is copied: its threads would be missing in the child."""
        ctypes.CFUNCTYPE(None)(self.library.address("argosy_hold"))()

    def _release(self) -> None:
        self._word(ctypes.c_int32, 448).value = 0

    def _after_fork(self) -> None:
        """hwadapt starts a child's worker threads again; none of them sleeps yet."""
        self._lock = threading.Lock()
        self._word(ctypes.c_int32, 256).value = 0
        self._release()

    def _reset(self) -> None:
        ctypes.memset(self._context, 0, _CONTEXT_BYTES)
        self._word(ctypes.c_int64, 384).value = _SPIN
        self._word(ctypes.c_int64, 392).value = self.threads
        self._word(ctypes.c_int32, 512).value = self._key

    def _word(self, type: Any, offset: int) -> Any:
        return type.from_address(self._context + offset)


@cache
def workers() -> Workers:
    """The process's workers, started on first use with `default_threads`."""
    made = Workers()
    made.resize(default_threads())
    return made


def default_threads() -> int:
    """``ARGOSY_NUM_THREADS``, or the number of physical cores this process may use."""
    chosen = os.environ.get("ARGOSY_NUM_THREADS")
    if chosen:
        if not chosen.isdecimal() or int(chosen) < 1:
            raise ValueError(f"ARGOSY_NUM_THREADS is {chosen!r}: expected a positive integer")
        return int(chosen)
    return physical_cores()


def set_threads(threads: int) -> None:
    """Run parallel regions on so many threads, the caller included."""
    workers().resize(threads)


def runtime_symbols() -> Mapping[str, int]:
    """Addresses of the functions that generated code calls."""
    library = workers().library
    return {name: library.address(name) for name in _CALLED}


def _thread_key() -> int:
    """A key of thread-specific data whose memory is freed when its thread ends."""
    if os.name != "posix":
        raise NotImplementedError(
            f"parallel regions and scratch memory need POSIX threads; not implemented on {sys.platform}"
        )
    process = ctypes.CDLL(None)
    key = ctypes.c_uint64()
    process.pthread_key_create(ctypes.byref(key), ctypes.cast(process.free, ctypes.c_void_p))
    return key.value


@cache
def _runtime_object() -> bytes:
    from argosy_cinn.runtime.cache import cache_key, default_cache
    from argosy_cinn.runtime.jit import compile_object

    target = Target.host()
    text = _runtime_text(target)
    key = cache_key(text, target.key)
    code = default_cache().get(key)
    if code is None:
        code = compile_object(text, target)
        default_cache().put(key, code)
    return code


def _runtime_text(target: Target) -> str:
    pause = "call void @llvm.x86.sse2.pause()" if target.is_x86 else "call void @llvm.aarch64.hint(i32 1)"
    declare = "declare void @llvm.x86.sse2.pause()" if target.is_x86 else "declare void @llvm.aarch64.hint(i32)"
    futex = {"x86_64": 202, "aarch64": 98}.get(platform.machine()) if sys.platform == "linux" else None
    if futex is not None:
        tail = "ptr null, ptr null, i64 0)"
        call = f"%r = call i64 (i64, ...) @syscall(i64 {futex}, ptr %epoch.p, i64"
        wait, wake = f"{call} 128, i64 %last64, {tail}", f"{call} 129, i64 2147483647, {tail}"
    else:  # no futex: sleeping workers look again every 100 microseconds
        wait, wake = "%r = call i32 @usleep(i32 100)", "%r = add i64 0, 0"
    advise = "%adv = call i32 @madvise(ptr %new, i64 %size, i32 14)" if sys.platform == "linux" else ""
    text = _RUNTIME
    for name, code in (("PAUSE", pause), ("WAIT", wait), ("WAKE", wake), ("ADVISE", advise)):
        text = text.replace(f"${name}", code)
    return declare + text


# The context, each group on a cache line of its own:
#   0 claim word i64: epoch << 40 | chunks << 20 | next      64 epoch i32 (the futex word)   128 kernel ptr,
#   136 argument ptr
# 192 chunks done i32   256 sleepers i32   320 stop i32   384 spin i64, 392 threads i64   448 busy i32   512
# thread key i32
_RUNTIME = r"""
@context = external global [576 x i8]
declare i64 @syscall(i64, ...)
declare i32 @usleep(i32)
declare i32 @sched_yield()
declare ptr @pthread_getspecific(i32)
declare i32 @pthread_setspecific(i32, ptr)
declare i32 @posix_memalign(ptr, i64, i64)
declare i32 @madvise(ptr, i64, i32)
declare void @free(ptr)
declare void @abort()

define internal void @drain() nounwind {
entry:
  %done.p = getelementptr i8, ptr @context, i64 192
  %kernel.p = getelementptr i8, ptr @context, i64 128
  %argument.p = getelementptr i8, ptr @context, i64 136
  br label %look
look:
  %word = load atomic i64, ptr @context acquire, align 8
  %next = and i64 %word, 1048575
  %shifted = lshr i64 %word, 20
  %chunks = and i64 %shifted, 1048575
  %some = icmp ult i64 %next, %chunks
  br i1 %some, label %claim, label %out
claim:
  %taken = add i64 %word, 1
  %swap = cmpxchg ptr @context, i64 %word, i64 %taken acq_rel monotonic
  %won = extractvalue {i64, i1} %swap, 1
  br i1 %won, label %run, label %look
run:
  ; read after the claim: the region cannot end before this chunk does
  %kernel = load ptr, ptr %kernel.p
  %argument = load ptr, ptr %argument.p
  call void %kernel(ptr %argument, i64 %next, i64 %chunks)
  %d = atomicrmw add ptr %done.p, i32 1 release
  br label %look
out:
  ret void
}

define void @argosy_worker(ptr %unused) nounwind {
entry:
  %epoch.p = getelementptr i8, ptr @context, i64 64
  %sleepers.p = getelementptr i8, ptr @context, i64 256
  %stop.p = getelementptr i8, ptr @context, i64 320
  %spin.p = getelementptr i8, ptr @context, i64 384
  br label %idle
idle:
  %last = phi i32 [0, %entry], [%seen, %work]
  %last64 = zext i32 %last to i64
  %limit = load i64, ptr %spin.p
  br label %spin
spin:
  %k = phi i64 [0, %idle], [%k1, %pause], [0, %sleep]
  %epoch = load atomic i32, ptr %epoch.p acquire, align 4
  %changed = icmp ne i32 %epoch, %last
  br i1 %changed, label %woken, label %pause
pause:
  $PAUSE
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %limit
  br i1 %more, label %spin, label %sleep
sleep:
  %s0 = atomicrmw add ptr %sleepers.p, i32 1 seq_cst
  $WAIT
  %s1 = atomicrmw sub ptr %sleepers.p, i32 1 seq_cst
  br label %spin
woken:
  %seen = load atomic i32, ptr %epoch.p seq_cst, align 4
  %stop = load atomic i32, ptr %stop.p monotonic, align 4
  %go = icmp eq i32 %stop, 0
  br i1 %go, label %work, label %out
work:
  call void @drain()
  br label %idle
out:
  ret void
}

define void @argosy_wake() nounwind {
  %epoch.p = getelementptr i8, ptr @context, i64 64
  %e = atomicrmw add ptr %epoch.p, i32 1 seq_cst
  $WAKE
  ret void
}

define void @argosy_hold() nounwind {
entry:
  %busy.p = getelementptr i8, ptr @context, i64 448
  br label %try
try:
  %was = atomicrmw xchg ptr %busy.p, i32 1 acquire
  %held = icmp eq i32 %was, 0
  br i1 %held, label %out, label %yield
yield:
  %y = call i32 @sched_yield()
  br label %try
out:
  ret void
}

define void @argosy_parallel(ptr %kernel, ptr %argument, i64 %chunks) nounwind {
entry:
  %epoch.p = getelementptr i8, ptr @context, i64 64
  %kernel.p = getelementptr i8, ptr @context, i64 128
  %argument.p = getelementptr i8, ptr @context, i64 136
  %done.p = getelementptr i8, ptr @context, i64 192
  %sleepers.p = getelementptr i8, ptr @context, i64 256
  %threads.p = getelementptr i8, ptr @context, i64 392
  %busy.p = getelementptr i8, ptr @context, i64 448
  %threads = load i64, ptr %threads.p
  %several = icmp sgt i64 %threads, 1
  %two = icmp sgt i64 %chunks, 1
  %fits = icmp slt i64 %chunks, 1048576
  %worth0 = and i1 %several, %two
  %worth = and i1 %worth0, %fits
  br i1 %worth, label %ask, label %serial
ask:
  %was = atomicrmw xchg ptr %busy.p, i32 1 acquire
  %free = icmp eq i32 %was, 0
  br i1 %free, label %open, label %serial
serial:
  %none = icmp sle i64 %chunks, 0
  br i1 %none, label %out, label %each
each:
  %i = phi i64 [0, %serial], [%i1, %each]
  call void %kernel(ptr %argument, i64 %i, i64 %chunks)
  %i1 = add i64 %i, 1
  %again = icmp slt i64 %i1, %chunks
  br i1 %again, label %each, label %out
open:
  store ptr %kernel, ptr %kernel.p
  store ptr %argument, ptr %argument.p
  store atomic i32 0, ptr %done.p monotonic, align 4
  %e0 = load i32, ptr %epoch.p
  %e1 = add i32 %e0, 1
  %e64 = zext i32 %e1 to i64
  %high = shl i64 %e64, 40
  %mid = shl i64 %chunks, 20
  %word = or i64 %high, %mid
  store atomic i64 %word, ptr @context release, align 8
  %x = atomicrmw xchg ptr %epoch.p, i32 %e1 seq_cst
  %asleep = load atomic i32, ptr %sleepers.p seq_cst, align 4
  %any = icmp ne i32 %asleep, 0
  br i1 %any, label %wake, label %help
wake:
  $WAKE
  br label %help
help:
  call void @drain()
  %all = trunc i64 %chunks to i32
  br label %wait
wait:
  %k = phi i32 [0, %help], [%k1, %pause], [%k1, %yield]
  %done = load atomic i32, ptr %done.p acquire, align 4
  %complete = icmp eq i32 %done, %all
  br i1 %complete, label %close, label %pause
pause:
  $PAUSE
  %k1 = add i32 %k, 1
  %low = and i32 %k1, 1023
  %long = icmp eq i32 %low, 0
  br i1 %long, label %yield, label %wait
yield:
  ; the thread we wait for may need this core
  %y = call i32 @sched_yield()
  br label %wait
close:
  store atomic i32 0, ptr %busy.p release, align 4
  br label %out
out:
  ret void
}

define i64 @argosy_threads() nounwind {
  %threads.p = getelementptr i8, ptr @context, i64 392
  %threads = load i64, ptr %threads.p
  ret i64 %threads
}

; A slab begins with a header of 64 bytes that holds its capacity.
define ptr @argosy_scratch(i64 %bytes) nounwind {
entry:
  %place = alloca ptr
  %key.p = getelementptr i8, ptr @context, i64 512
  %key = load i32, ptr %key.p
  %slab = call ptr @pthread_getspecific(i32 %key)
  %missing = icmp eq ptr %slab, null
  br i1 %missing, label %grow, label %check
check:
  %capacity = load i64, ptr %slab
  %enough = icmp uge i64 %capacity, %bytes
  br i1 %enough, label %have, label %grow
have:
  %body = getelementptr i8, ptr %slab, i64 64
  ret ptr %body
grow:
  call void @free(ptr %slab)
  %padded = add i64 %bytes, 2097215
  %size = and i64 %padded, -2097152
  %failed = call i32 @posix_memalign(ptr %place, i64 2097152, i64 %size)
  %bad = icmp ne i32 %failed, 0
  br i1 %bad, label %fatal, label %made
fatal:
  call void @abort()
  unreachable
made:
  %new = load ptr, ptr %place
  $ADVISE
  %usable = sub i64 %size, 64
  store i64 %usable, ptr %new
  %set = call i32 @pthread_setspecific(i32 %key, ptr %new)
  %fresh = getelementptr i8, ptr %new, i64 64
  ret ptr %fresh
}
"""
