"""Room for deep recursion: expressions are walked recursively, and a long chain of operations is a deep one."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from argosy_pir.fork import hold_at_fork

_DEEP = 20_000
_lock = hold_at_fork(threading.Lock())
_inside = 0
_before = 0


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Raise the process's limit within the block; the last thread to leave puts it back."""
    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_before, _DEEP))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                sys.setrecursionlimit(_before)


__all__ = ["deep_recursion"]
