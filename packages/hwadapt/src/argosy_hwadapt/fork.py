"""Locks that a forked child finds free, whichever thread of its parent held them."""

from __future__ import annotations

import os
from typing import Any
from weakref import WeakSet

__all__ = ["renew_in_child"]

_locks: WeakSet[Any] = WeakSet()


def renew_in_child(lock: Any) -> Any:
    """The lock, which is made anew in a forked child: for what is never half changed where another thread may stop."""
    _locks.add(lock)
    return lock


def _renew() -> None:
    for lock in _locks:
        lock._at_fork_reinit()  # as the standard library renews its own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
