"""Work of a device that falls back to the CPU, because nothing makes code for it there: announced, refused, counted.

``ARGOSY_FALLBACK`` says what happens: ``warn`` (once for each operator, device and reason), ``error``, or
``silent-counted``. Loss of a device, want of memory and wrong answers are errors, never reasons to fall back.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from typing import NamedTuple

from argosy_hwadapt.errors import UnsupportedOperation
from argosy_phi_ops.settings import FALLBACK
from argosy_phi_ops.user_line import warn_user

__all__ = ["Fallback", "clear_fallbacks", "fallbacks", "listeners", "note_fallback"]


class Fallback(NamedTuple):
    """Calls of ``operator`` on ``device`` that ran on the CPU for ``reason``, and the bytes moved for them."""

    operator: str
    device: str
    reason: str
    calls: int
    nbytes: int


listeners: list[Callable[[str, str, str, int], None]] = []
"""Told of each call that falls back: operator, device, reason and bytes."""
_counts: dict[tuple[str, str, str], list[int]] = {}


def note_fallback(operator: str, device: object, reason: str, nbytes: int) -> None:
    """Count a call that is about to run on the CPU, moving ``nbytes``. Mode ``error``: UnsupportedOperation."""
    mode = FALLBACK.read()
    if mode == "error":
        raise UnsupportedOperation(f"{operator} has no code for {device} ({reason}), and ARGOSY_FALLBACK is 'error'")
    key = operator, str(device), reason
    for listener in listeners:
        listener(*key, nbytes)
    if not _counts:
        atexit.register(_print_summary)
    count = _counts.get(key)
    if count is None:
        count = _counts[key] = [0, 0]
        if mode == "warn":
            warn_user(
                f"{operator} runs on the cpu, not on {device}: {reason}. {nbytes} bytes are moved for each such call; "
                "ARGOSY_FALLBACK=silent-counted says so no more, ARGOSY_FALLBACK=error forbids it",
                RuntimeWarning,
            )
    count[0] += 1
    count[1] += nbytes


def fallbacks() -> list[Fallback]:
    """What has fallen back in this process."""
    return [Fallback(*key, *count) for key, count in _counts.items()]


def clear_fallbacks() -> None:
    """Forget the counts, so that warnings are given again."""
    _counts.clear()


def _print_summary() -> None:
    calls, nbytes = (sum(count[i] for count in _counts.values()) for i in (0, 1))
    if calls and FALLBACK.read() == "warn":
        names = ", ".join(sorted({operator for operator, _, _ in _counts}))
        print(f"argosy: {calls} calls fell back to the cpu and moved {nbytes} bytes: {names}", file=sys.stderr)  # noqa: T201
