"""Processes that end with the one that started them, however that ended."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

__all__ = ["die_with"]

_PR_SET_PDEATHSIG = 1


def die_with(parent: int, signal: int) -> Callable[[], None]:
    """What a child calls first, to get ``signal`` from the kernel when its parent dies (Linux; elsewhere nothing).

    It does nothing but system calls, so that it may run between fork and exec.
    """
    if sys.platform != "linux":
        return lambda: None
    import ctypes

    prctl = ctypes.CDLL(None).prctl

    def call() -> None:
        prctl(_PR_SET_PDEATHSIG, signal)
        if os.getppid() != parent:  # it died before that
            os._exit(1)

    return call
