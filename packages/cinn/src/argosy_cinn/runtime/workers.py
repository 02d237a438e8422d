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
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from argosy_cinn.call_once import call_once
from argosy_cinn.printers.instructions import Instructions
from argosy_cinn.printers.types import I64, PTR, VOID, Index, Value
from argosy_cinn.runtime.cache import cache_key, default_cache
from argosy_cinn.runtime.jit import compile_object
from argosy_cinn.runtime.linking import link
from argosy_cinn.runtime.region import CONTEXT_BYTES, runtime_text
from argosy_cinn.target import Target
from argosy_hwadapt.cpu.features import physical_cores
from argosy_hwadapt.cpu.workers import WorkerThreads
from argosy_hwadapt.fork import renew_in_child
from argosy_phi_ops.settings import NUM_THREADS

_SPIN = 20_000
_BUSY = 448
_CALLED = ("argosy_parallel", "argosy_scratch", "argosy_threads")
_LIBRARY = {"__truncsfbf2": "argosy_bfloat"}
"""What LLVM takes for granted that a library has, and who is it here."""
_EXPORTS = (*_CALLED, *_LIBRARY.values(), "argosy_worker", "argosy_wake", "argosy_hold")


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
        raw = ctypes.create_string_buffer(CONTEXT_BYTES + 64)
        self._memory = raw
        self._context = (ctypes.addressof(raw) + 63) & ~63
        self._key = _thread_key()
        self.library = link(_runtime_object(), _EXPORTS, symbols={"context": self._context})
        self._lock = renew_in_child(threading.Lock())
        self._threads: WorkerThreads | None = None
        self.threads = 1
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._before_fork, after_in_parent=self._release, after_in_child=self._after_fork
            )

    def resize(self, threads: int) -> None:
        """Use so many threads, the caller included; waits until no region is running."""
        if threads < 1:
            raise ValueError(f"a program runs on at least one thread, not {threads}")
        with self._lock:
            if threads == self.threads:
                return
            with self._no_region():
                self._stop()
                self.threads = threads
                self._reset()
                self._start()

    def stop(self) -> None:
        """Stop the workers; later regions run on the caller alone."""
        with self._lock, self._no_region():
            self._stop()
            self.threads = 1
            self._reset()

    @contextmanager
    def _no_region(self) -> Iterator[None]:
        """No region is open within the block: those that are finish first, later ones run on their callers alone."""
        self._hold()
        try:
            yield
        finally:
            self._release()

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

    def _hold(self) -> None:
        ctypes.CFUNCTYPE(None)(self.library.address("argosy_hold"))()

    def _before_fork(self) -> None:
        """Let no region be open while the process is copied: its threads would be missing in the child."""
        self._hold()

    def _release(self) -> None:
        self._word(ctypes.c_int32, _BUSY).value = 0

    def _after_fork(self) -> None:
        """hwadapt starts a child's worker threads again; none of them sleeps yet."""
        self._word(ctypes.c_int32, 256).value = 0
        self._release()

    def _reset(self) -> None:
        """Set the context to its beginning, but for the word that says whether a region is open."""
        ctypes.memset(self._context, 0, _BUSY)
        self._word(ctypes.c_int64, 384).value = _SPIN
        self._word(ctypes.c_int64, 392).value = self.threads
        self._word(ctypes.c_int32, 512).value = self._key

    def _word(self, type: Any, offset: int) -> Any:
        return type.from_address(self._context + offset)


@call_once
def workers() -> Workers:
    """The process's workers, started on first use with `default_threads`."""
    made = Workers()
    made.resize(default_threads())
    return made


def default_threads() -> int:
    """``ARGOSY_NUM_THREADS``, or the number of physical cores this process may use."""
    return NUM_THREADS.read() or physical_cores()


def set_threads(threads: int) -> None:
    """Run parallel regions on so many threads, the caller included."""
    workers().resize(threads)


def runtime_symbols() -> Mapping[str, int]:
    """Addresses of the functions that generated code calls."""
    library = workers().library
    own = {name: name for name in _CALLED}
    return {name: library.address(export) for name, export in (own | _LIBRARY).items()}


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


@call_once
def _runtime_object() -> bytes:
    target = Target.host()
    text = runtime_text(target)
    key = cache_key(text, target.key)
    code = default_cache().get(key)
    if code is None:
        code = compile_object(text, target)
        default_cache().put(key, code)
    return code
