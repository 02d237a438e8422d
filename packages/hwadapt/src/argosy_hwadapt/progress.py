"""Operations of one process that are on their way, and the thread that moves them on while native code runs.

An operation is a generator: it yields the ranks that it waits for (none while its data moves) and returns when it is
done.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from typing import Any

Steps = Generator[set[int], None, None]

_SHORT, _LONG, _LONGER = 5e-5, 1e-3, 5e-3
"""Seconds between two looks: while data moves, and at most while others are waited for; where they need no help."""


class Operation:
    """One started operation. ``missing`` are the ranks it waits for, None when it is done; ``error`` how it failed.
    ``alone`` says that others go on whether this one does or not."""

    __slots__ = ("_steps", "alone", "error", "missing")

    def __init__(self, steps: Steps, alone: bool = False) -> None:
        self._steps, self.alone = steps, alone
        self.missing: set[int] | None = set()
        self.error: Exception | None = None

    def step(self) -> None:
        """Go as far as possible without waiting."""
        try:
            self.missing = next(self._steps)
        except StopIteration:
            self.missing = None
        except Exception as error:  # noqa: BLE001 - kept for whoever waits
            self.missing, self.error = None, error


class Progress:
    """The operations of one process, in the order they were started. ``lock`` is around every use of MPI."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._pending: list[Operation] = []
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._stopped = False

    def add(self, operation: Operation, background: bool) -> None:
        """Take up an operation; in the background it moves on while nobody waits for it."""
        with self.lock:
            self._pending.append(operation)
            self.advance()
        if background and operation.missing is not None:
            self._start_thread()

    def advance(self) -> None:
        """Move everything on."""
        with self.lock:
            for operation in self._pending:
                operation.step()
            self._pending = [operation for operation in self._pending if operation.missing is not None]

    def has_pending_data(self) -> bool:
        """Move on, and return whether data of any operation is on its way."""
        self.advance()
        return any(not operation.missing for operation in self._pending)

    def run_locked(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call ``function`` while nothing else uses MPI."""
        with self.lock:
            return function(*args)

    def stop(self) -> None:
        """End the thread: nothing moves any more unless somebody waits."""
        self._stopped = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def _start_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="argosy-progress", daemon=True)
            self._thread.start()
        self._wake.set()

    def _run(self) -> None:
        while not self._stopped:
            self._wake.wait()
            self._wake.clear()
            pause = _SHORT
            while self._pending and not self._stopped:
                moving = self.has_pending_data()
                alone = all(operation.alone for operation in self._pending)
                pause = _SHORT if moving else _LONGER if alone else min(1.3 * pause, _LONG)
                time.sleep(pause)
