"""Work on programs without the cyclic garbage collector, and a collection that has been done for sure.

A program is a graph of a great many objects that refer to each other. Making and rewriting one allocates more of them,
each time the collector comes by it walks all that there are, and what it finds is next to nothing: that made a third of
the time to compile a deep model, and more than linear in its depth.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, get_ident
from typing import Any

__all__ = ["collect_now", "pause_collection"]

_lock = Lock()
_blocks = 0
_enabled = False

_PATIENCE = 1.0  # seconds: what another thread finalises may itself wait for this one
_PAUSE = 0.0005  # seconds


@contextmanager
def pause_collection() -> Iterator[None]:
    """No collection starts by itself within the block, on any thread; blocks may nest and overlap.

    A process that runs without the collector goes on without it. What is no part of a cycle is freed as ever.
    """
    global _blocks, _enabled
    with _lock:
        if _blocks == 0:
            _enabled = gc.isenabled()
            gc.disable()
        _blocks += 1
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if _blocks == 0 and _enabled:
                gc.enable()


def collect_now() -> bool:
    """Collect all generations; whether that was done before this returns.

    ``gc.collect()`` does nothing while another thread collects, which happens where a finaliser of that collection
    lets others run: this waits for it, up to a second.
    """
    thread, started = get_ident(), []

    def note_collection(phase: str, info: dict[str, Any]) -> None:
        if phase == "start" and get_ident() == thread:
            started.append(info)

    deadline = time.monotonic() + _PATIENCE
    gc.callbacks.append(note_collection)
    try:
        while True:
            started.clear()  # of what began by itself
            gc.collect()
            if any(info["generation"] == 2 for info in started):
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE)
    finally:
        gc.callbacks.remove(note_collection)


def _forget() -> None:
    """In a forked child none of the blocks of other threads will ever end."""
    global _blocks, _lock
    _lock = Lock()
    if _blocks and _enabled:
        gc.enable()
    _blocks = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
