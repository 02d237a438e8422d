"""Worker threads for native code. hwadapt owns the threads; whoever compiles kernels hands in the loop they
run.

The threads are Python threads that call a native function with the GIL released, which costs nothing while
they are inside it and leaves signals, debuggers and interpreter exit to Python.
"""

import atexit
import os
import threading
import weakref
from collections.abc import Callable, Sequence

from argosy_hwadapt.cpu.c_bindings import ffi, function
from argosy_hwadapt.errors import DeviceError

_LIVE: "weakref.WeakSet[WorkerThreads]" = weakref.WeakSet()
_JOIN_SECONDS = 2.0


class WorkerThreads:
    """``count`` daemon threads that each run one native ``void entry(void *argument)`` until it returns.

    A loop that waits for work must be told to end: ``request_stop`` is called for that (it would set a flag
    that the loop polls) by :meth:`stop`, at interpreter exit and when this object is collected. In a forked
    child the threads are started again with the same arguments.
    """

    def __init__(self, count: int) -> None:
        if count < 0:
            raise ValueError(f"WorkerThreads: count must not be negative, got {count}")
        self.count = count
        self._threads: list[threading.Thread] = []
        self._entry = 0
        self._arguments: tuple[int, ...] = ()
        self._request_stop: Callable[[], None] | None = None
        _LIVE.add(self)

    @property
    def is_running(self) -> bool:
        """Whether any thread is still inside the native function."""
        return any(thread.is_alive() for thread in self._threads)

    def start(
        self,
        entry_address: int,
        argument_addresses: Sequence[int],
        request_stop: Callable[[], None] | None = None,
    ) -> None:
        """Run ``entry(argument_addresses[i])`` on thread i. The memory behind the addresses must outlive
        the threads.

        Raises DeviceError when the threads are running already, ValueError for a wrong number of arguments.
        """
        if self.is_running:
            raise DeviceError("WorkerThreads are running already; stop them first")
        if len(argument_addresses) != self.count:
            raise ValueError(f"WorkerThreads: {self.count} threads need as many arguments, got {argument_addresses}")
        if not entry_address:
            raise ValueError("WorkerThreads: the entry address is null")
        self._entry, self._arguments = entry_address, tuple(argument_addresses)
        self._request_stop = request_stop
        self._start_threads()

    def stop(self, timeout: float = _JOIN_SECONDS) -> bool:
        """Ask the loop to end and wait for the threads; return whether all have ended within
        ``timeout`` seconds.
        """
        if self._request_stop is not None and self.is_running:
            self._request_stop()
        for thread in self._threads:
            thread.join(timeout)
        stopped = not self.is_running
        if stopped:
            self._threads = []
        return stopped

    def _start_threads(self) -> None:
        entry = function(self._entry, "void(*)(void *)")
        self._threads = [
            threading.Thread(target=entry, args=(ffi.cast("void *", argument),), name=f"argosy-worker-{i}", daemon=True)
            for i, argument in enumerate(self._arguments)
        ]
        for thread in self._threads:
            thread.start()

    def _restart_after_fork(self) -> None:
        if self._threads:
            self._start_threads()


def _stop_all() -> None:
    for workers in list(_LIVE):
        workers.stop()


def _restart_all() -> None:
    for workers in list(_LIVE):
        workers._restart_after_fork()


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restart_all)
