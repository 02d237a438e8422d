"""Processes that fork while other threads work: the child has their locks and half-made modules, but not the threads.

Before the fork, the modules that other threads import are waited for, then the locks of `hold_at_fork` are taken: a
child finds them free, and nothing half changed. What began to be imported since, the child imports again.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # without loading typing
if TYPE_CHECKING:
    from typing import Any

__all__ = ["hold_at_fork"]

_locks: list[Any] = []
_taken: list[Any] = []


def hold_at_fork(lock: Any) -> Any:
    """The lock, which the thread that forks a process takes first, so that the child finds it free.

    Whoever holds it may take others, and import modules.
    """
    _locks.append(lock)
    return lock


def _acquire_locks() -> None:
    from contextlib import suppress
    from importlib import import_module

    for name in _modules_being_imported():
        with suppress(Exception):  # it is an error there
            import_module(name)
    wanted = _locks[:]
    while wanted:  # until it has all; it waits for one at a time and holds none meanwhile
        wanted[0].acquire()
        _taken.append(wanted[0])
        for lock in wanted[1:]:
            if not lock.acquire(blocking=False):
                _release_locks()
                wanted.remove(lock)
                wanted.insert(0, lock)
                break
            _taken.append(lock)
        else:
            return


def _release_locks() -> None:
    while _taken:  # a lock that a module brought meanwhile is not among them
        _taken.pop().release()


def _after_in_child() -> None:
    """Forget what threads that the child does not have were importing, too: CPython gives their locks to nobody, so
    that the child would wait for them for ever."""
    import _frozen_importlib
    from _thread import get_ident

    _release_locks()
    locks = getattr(_frozen_importlib, "_module_locks", {})
    mine = {name for name, lock in locks.copy().items() if getattr(lock(), "owner", None) == get_ident()}
    for name in _modules_being_imported():
        if name not in mine:
            del sys.modules[name]
    for name in set(locks) - mine:
        del locks[name]


def _modules_being_imported() -> list[str]:
    found = sys.modules.copy()  # in one step: other threads import meanwhile
    return [
        name for name, module in found.items() if getattr(getattr(module, "__spec__", None), "_initializing", False)
    ]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_acquire_locks, after_in_parent=_release_locks, after_in_child=_after_in_child)
