"""The threads that run the native worker loop: hwadapt's, which owns threads."""

from __future__ import annotations

try:
    from argosy_hwadapt.cpu.workers import WorkerThreads
except ImportError:
    import ctypes
    import threading
    from collections.abc import Sequence

    class WorkerThreads:  # type: ignore[no-redef]
        """Python threads inside a native loop; the interpreter lock is released while they run."""

        def __init__(self, count: int) -> None:
            self.count = count
            self._running: list[threading.Thread] = []

        def start(self, entry_address: int, argument_addresses: Sequence[int]) -> None:
            """Run ``void entry(void *argument)`` on one thread per argument."""
            entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(entry_address)
            for argument in argument_addresses:
                thread = threading.Thread(target=entry, args=(argument,), daemon=True, name="argosy-worker")
                thread.start()
                self._running.append(thread)

        def stop(self) -> None:
            """Wait for the loops to end (their owner has told them to)."""
            for thread in self._running:
                thread.join()
            self._running.clear()


__all__ = ["WorkerThreads"]
