"""Things made on first use and once in a process, whichever thread comes first.

Each has a lock of its own, so that nobody waits for what he does not need. What is made may need other such things, and
may need LLVM, but never itself, so that no two threads wait for each other. Whatever calls LLVM holds `LLVM`, asks for
nothing else meanwhile, and makes what it needs of LLVM itself (`call_once_in_llvm`) under the same lock. All of the
locks are re-entrant.

A process forks while no other thread is in LLVM: the child would wait forever for a thread that it does not have. What
another thread was making of other things, the child makes again. Modules that another thread imports are waited for;
what began to be imported since, the child imports again.
"""

from __future__ import annotations

import _frozen_importlib
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, Generic, TypeVar
from weakref import WeakSet

T = TypeVar("T")


class CallOnce(Generic[T]):
    """A function without arguments that runs once; later calls return the same result. ``cache_clear()`` forgets it.

    ``lock``: what is held while it runs, for what may run under that lock; its own by default.
    """

    def __init__(self, make: Callable[[], T], lock: threading.RLock | None = None) -> None:
        self.__wrapped__ = make
        self._made: list[T] = []
        self._lock = lock or threading.RLock()
        if lock is None:
            _alone.add(self)
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

    def renew_lock(self) -> None:
        """Forget who makes it: in a child process nobody does."""
        self._lock = threading.RLock()


_alone: WeakSet[CallOnce[Any]] = WeakSet()  # those with locks of their own


def call_once(make: Callable[[], T]) -> CallOnce[T]:
    """Decorator for a function without arguments that must run once, even when several threads call it first."""
    return CallOnce(make)


def call_once_in_llvm(make: Callable[[], T]) -> CallOnce[T]:
    """`call_once` for what is made of LLVM, and needed by those who hold `LLVM`."""
    return CallOnce(make, LLVM)


def held_at_fork(lock: Any) -> Any:
    """The lock, which the thread that forks a process takes first, so that the child finds it free. No thread may take
    another such lock, or wait for anything, while it holds this one."""
    held: list[bool] = []  # empty where a module that a fork waits for brought the lock: it was not taken then

    def hold() -> None:
        lock.acquire()
        held.append(True)

    def release() -> None:
        if held:
            held.pop()
            lock.release()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=hold, after_in_parent=release, after_in_child=release)
    return lock


def _renew_locks() -> None:
    for thing in _alone:
        thing.renew_lock()


def _finish_imports() -> None:
    """Wait for the modules that other threads import: parts of the compiler are imported by whoever compiles first."""
    for name in _half_imported():
        with suppress(Exception):  # it is an error there
            import_module(name)


def _half_imported() -> list[str]:
    found = list(sys.modules.items())
    return [name for name, module in found if getattr(getattr(module, "__spec__", None), "_initializing", False)]


def _forget_imports() -> None:
    """In the child, forget what threads that it does not have were importing: CPython gives their locks to nobody, so
    that the child would wait for them for ever."""
    locks = getattr(_frozen_importlib, "_module_locks", {})
    mine = {name for name, lock in list(locks.items()) if getattr(lock(), "owner", None) == threading.get_ident()}
    for name in _half_imported():
        if name not in mine:
            del sys.modules[name]
    for name in set(locks) - mine:
        del locks[name]


#: Held while LLVM works (which it does on one thread at a time anyway).
LLVM = held_at_fork(threading.RLock())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_finish_imports, after_in_child=_renew_locks)
    os.register_at_fork(after_in_child=_forget_imports)

__all__ = ["LLVM", "CallOnce", "call_once", "call_once_in_llvm", "held_at_fork"]
