"""Writing files while the program goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable

from argosy.distributed.task import Task
from argosy_phi_ops.context import context

__all__ = ["WriteTask", "finish_writing", "start_writing"]

_KEY = "argosy.distributed.writing"


class WriteTask(Task):
    """A file that is being written. The process does not end before it is."""

    __slots__ = ("_error", "_thread")

    def __init__(self, write: Callable[[], None]) -> None:
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(write,), name="argosy-checkpoint")
        self._thread.start()

    def _run(self, write: Callable[[], None]) -> None:
        try:
            write()
        except BaseException as error:  # noqa: BLE001  (raised where somebody waits)
            self._error = error

    def wait(self, timeout: object = None) -> bool:
        """Return once the file is written. Raises what writing it raised, once."""
        self._thread.join()
        error, self._error = self._error, None
        if error is not None:
            raise error
        return True

    def is_completed(self) -> bool:
        """Whether it is written, or has failed."""
        return not self._thread.is_alive()


def start_writing(write: Callable[[], None]) -> WriteTask:
    """Run ``write`` in a thread of its own, after what the rank was writing before."""
    finish_writing()
    made = context().values[_KEY] = WriteTask(write)
    return made


def finish_writing() -> None:
    """Wait for what the calling rank still writes. Raises what that raised and nobody has waited for."""
    found = context().values.pop(_KEY, None)
    if found is not None:
        found.wait()
