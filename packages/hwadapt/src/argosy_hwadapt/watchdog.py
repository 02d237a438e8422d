"""Ending a wait for a device that never answers."""

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Methods that work on the host alone (compilers, questions) or wait for other ranks: a watchdog leaves them alone.
HOST_METHODS = frozenset(
    {"devices", "open", "build", "load", "ops", "supports", "compile_graph", "host_view", "communicator"}
)


class DeadlineExceeded(Exception):
    """A call did not end in time."""


def call_with_deadline(function: Callable[[], T], seconds: float) -> T:
    """Call a function in a thread of its own and return, or raise, what it does. Raises DeadlineExceeded.

    A driver call cannot be interrupted, so after the deadline its daemon thread is left behind.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:  # noqa: BLE001 - handed to the caller below
            errors.append(error)

    thread = threading.Thread(target=run, name="argosy-watchdog", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise DeadlineExceeded
    return results[0]
