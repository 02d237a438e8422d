"""A line on a terminal about what takes longer than two seconds: what it is, how far it is, for how long it has run.

Only where the standard error stream is a terminal; nothing is started anywhere else. Blocks within blocks share a line.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic
from typing import TextIO, TypeVar

__all__ = ["announce_wait", "count_steps"]

PATIENCE = 2.0
"""Seconds before the line appears."""
_PERIOD = 0.5
_SIGNS = "|/-\\"
Item = TypeVar("Item")


@dataclass(eq=False)
class _Wait:
    """An announced block, and the one that it is within."""

    what: str
    within: _Wait | None = None
    steps: str = ""

    def text(self) -> str:
        own = f"{self.what}: {self.steps}" if self.steps else self.what
        return own if self.within is None else f"{self.within.text()}: {own}"


class _Line:
    """What a terminal shows: the innermost block."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.wait: _Wait | None = None


_line: ContextVar[_Line | None] = ContextVar("line", default=None)


@contextmanager
def announce_wait(what: str, stream: TextIO | None = None) -> Iterator[None]:
    """A block that is announced on ``stream`` (the standard error stream) once it has run for two seconds."""
    shown = sys.stderr if stream is None else stream
    if shown is None or not shown.isatty():
        yield
        return
    line = _line.get()
    if line is None or line.stream is not shown:
        with _shown_line(shown) as line, _within(line, what):
            yield
    else:
        with _within(line, what):
            yield


def count_steps(items: Iterable[Item], unit: str, total: int | None = None) -> Iterator[Item]:
    """``items`` one by one. The line of the block that is announced around says how many of them are done, of ``total``
    (what the length says, unless given)."""
    line = _line.get()
    wait = None if line is None else line.wait
    count = total if total is not None or not isinstance(items, Sized) else len(items)
    for done, item in enumerate(items):
        if wait is not None:
            wait.steps = f"{done} {unit}" if count is None else f"{done} of {count} {unit}"
        yield item
    if wait is not None:
        wait.steps = ""


@contextmanager
def _within(line: _Line, what: str) -> Iterator[None]:
    outer = line.wait
    line.wait = _Wait(what, outer)
    try:
        yield
    finally:
        line.wait = outer


@contextmanager
def _shown_line(stream: TextIO) -> Iterator[_Line]:
    line, done = _Line(stream), threading.Event()
    thread = threading.Thread(target=_announce, args=(line, done), daemon=True, name="argosy waiting")
    thread.start()
    token = _line.set(line)
    try:
        yield line
    finally:
        _line.reset(token)
        done.set()
        thread.join()


def _announce(line: _Line, done: threading.Event) -> None:
    began, turn, width, stream = monotonic(), 0, 0, line.stream
    pause = PATIENCE
    while not done.wait(pause):
        if (wait := line.wait) is None:
            continue
        text = f"{_SIGNS[turn % len(_SIGNS)]} {wait.text()}: {monotonic() - began:.0f} s"
        stream.write("\r" + text.ljust(width))
        stream.flush()
        pause, turn, width = _PERIOD, turn + 1, len(text)
    if width:
        stream.write("\r" + " " * width + "\r")
        stream.flush()
