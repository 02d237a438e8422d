"""Things made on first use and once in a process, whichever thread comes first.

All of them share one lock, `STARTING`, which compiling and linking take, too: what is made may need other such things,
and links code, in any order, so that with two locks two threads could each hold what the other waits for. The lock is
re-entrant. A process forks while nobody holds it: a child would wait forever for a thread that it does not have.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

#: Held while a thing is made for the first time, and while LLVM works (which it does on one thread at a time anyway).
STARTING = threading.RLock()


class Once(Generic[T]):
    """A function without arguments that runs once; later calls return the same result. ``cache_clear()`` forgets it."""

    def __init__(self, make: Callable[[], T]) -> None:
        self.__wrapped__ = make
        self._made: list[T] = []
        self.__name__, self.__doc__ = make.__name__, make.__doc__

    def __call__(self) -> T:
        made = self._made
        if made:
            return made[0]
        with STARTING:
            if not self._made:
                self._made = [self.__wrapped__()]
            return self._made[0]

    def cache_clear(self) -> None:
        """Forget the result: the next call makes another."""
        self._made = []


def once(make: Callable[[], T]) -> Once[T]:
    """Decorator for a function without arguments that must run once, even when several threads call it first."""
    return Once(make)


def _release(*_: Any) -> None:
    STARTING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=STARTING.acquire, after_in_parent=_release, after_in_child=_release)

__all__ = ["STARTING", "Once", "once"]
