"""A line on a terminal about what takes longer than two seconds: what it is, and for how long it has run.

Only where the standard error stream is a terminal; nothing is started anywhere else.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TextIO

__all__ = ["announce_wait"]

PATIENCE = 2.0
"""Seconds before the line appears."""
_PERIOD = 0.5
_SIGNS = "|/-\\"


@contextmanager
def announce_wait(what: str, stream: TextIO | None = None) -> Iterator[None]:
    """A block that is announced on ``stream`` (the standard error stream) once it has run for two seconds."""
    shown = sys.stderr if stream is None else stream
    if shown is None or not shown.isatty():
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_announce, args=(what, shown, done), daemon=True, name="argosy waiting")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _announce(what: str, stream: TextIO, done: threading.Event) -> None:
    began, turn, width = monotonic(), 0, 0
    pause = PATIENCE
    while not done.wait(pause):
        text = f"{_SIGNS[turn % len(_SIGNS)]} {what}: {monotonic() - began:.0f} s"
        stream.write("\r" + text.ljust(width))
        stream.flush()
        pause, turn, width = _PERIOD, turn + 1, len(text)
    if width:
        stream.write("\r" + " " * width + "\r")
        stream.flush()
