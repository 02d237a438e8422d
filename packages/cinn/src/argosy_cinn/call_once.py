"""Things made on first use and once in a process, whichever thread comes first.

Each has a lock of its own, so that nobody waits for what he does not need. What is made may need other such things, and
may need LLVM, but never itself, so that no two threads wait for each other. Whatever calls LLVM holds `LLVM`, asks for
nothing else meanwhile, and makes what it needs of LLVM itself (`call_once_in_llvm`) under the same lock. All of the
locks are re-entrant.

A process forks while no other thread is in LLVM: the child would wait forever for a thread that it does not have. What
another thread was making of other things, the child makes again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from argosy_hwadapt.fork import renew_in_child
from argosy_pir.fork import hold_at_fork

T = TypeVar("T")


class CallOnce(Generic[T]):
    """A function without arguments that runs once; later calls return the same result. ``cache_clear()`` forgets it.

    ``lock``: what is held while it runs, for what may run under that lock; its own by default.
    """

    def __init__(self, make: Callable[[], T], lock: threading.RLock | None = None) -> None:
        self.__wrapped__ = make
        self._made: list[T] = []
        self._lock = lock or renew_in_child(threading.RLock())
        self.__name__, self.__doc__ = make.__name__, make.__doc__

    def __call__(self) -> T:
        made = self._made
        if made:
            return made[0]
        with self._lock:
            if not self._made:
                self._made = [self.__wrapped__()]
            return self._made[0]

    def cache_clear(self) -> None:
        """Forget the result: the next call makes another."""
        self._made = []


def call_once(make: Callable[[], T]) -> CallOnce[T]:
    """Decorator for a function without arguments that must run once, even when several threads call it first."""
    return CallOnce(make)


def call_once_in_llvm(make: Callable[[], T]) -> CallOnce[T]:
    """`call_once` for what is made of LLVM, and needed by those who hold `LLVM`."""
    return CallOnce(make, LLVM)


#: Held while LLVM works (which it does on one thread at a time anyway).
LLVM = hold_at_fork(threading.RLock())

__all__ = ["LLVM", "CallOnce", "call_once", "call_once_in_llvm"]
