"""Ending a wait for a device that never answers."""

import threading
from collections.abc import Callable


def call_with_deadline(function: Callable[[], None], seconds: float) -> bool:
    """Call a function in a thread of its own and return whether it ended in time; what it raised is raised here.

    A driver call cannot be interrupted, so after the deadline its daemon thread is left behind.
    """
    outcome: list[BaseException] = []

    def run() -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - handed to the caller below
            outcome.append(error)

    thread = threading.Thread(target=run, name="argosy-watchdog", daemon=True)
    thread.start()
    thread.join(seconds)
    if outcome:
        raise outcome[0]
    return not thread.is_alive()
