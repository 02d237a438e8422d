"""Work on programs without the cyclic garbage collector.

A program is a graph of a great many objects that refer to each other. Making and rewriting one allocates more of them,
each time the collector comes by it walks all that there are, and what it finds is next to nothing: that made a third of
the time to compile a deep model, and more than linear in its depth.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

__all__ = ["uncollected"]

_lock = Lock()
_blocks = 0
_enabled = False


@contextmanager
def uncollected() -> Iterator[None]:
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


def _forget() -> None:
    """In a forked child none of the blocks of other threads will ever end."""
    global _blocks, _lock
    _lock = Lock()
    if _blocks and _enabled:
        gc.enable()
    _blocks = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
