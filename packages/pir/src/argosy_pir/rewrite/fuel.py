"""Counting what is done, and stopping after so many steps.

Every single transformation asks :func:`spend` first. Under :func:`observed` the steps are counted by name,
and with
``fuel`` only the first so many happen: bisecting over that number finds the one step that breaks a program.
``ARGOSY_FUEL`` in the environment is the fuel of a whole process (:func:`process_fuel`), and ``ARGOSY_FUEL_LOG`` names
a file that is told the count and the last step.
"""

from __future__ import annotations

import json
import os
from _thread import allocate_lock
from contextlib import contextmanager
from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from argosy_pir.core import Operation


class Session:
    """What happened so far: ``statistics`` maps names of steps to counts; ``fuel`` is what is left, None
    without end.

    ``last`` names the last step that was allowed; ``notes`` are remarks of passes on what they chose and why.
    """

    __slots__ = ("fuel", "last", "notes", "statistics")

    def __init__(self, fuel: int | None = None) -> None:
        self.fuel = fuel
        self.statistics: dict[str, int] = {}
        self.last: str | None = None
        self.notes: list[str] = []


_current: ContextVar[Session | None] = ContextVar("argosy_pir_session", default=None)


def fuel_left() -> bool:
    """Whether another transformation may happen now."""
    session = _current.get()
    return session is None or session.fuel is None or session.fuel > 0


def spend(step: str, where: Operation | None = None) -> bool:
    """Whether the transformation ``step`` (of the operation ``where``) may happen now; counts it if so."""
    session = _current.get()
    if session is None:
        return True
    if session.fuel is not None:
        if session.fuel <= 0:
            return False
        session.fuel -= 1
    session.statistics[step] = session.statistics.get(step, 0) + 1
    session.last = step if where is None or session.fuel is None else f"{step} of {where.name} at {where.location}"
    return True


def note(text: str) -> None:
    """Leave a remark for whoever looks at what the passes did (:attr:`Session.notes`)."""
    session = _current.get()
    if session is not None:
        session.notes.append(text)


@contextmanager
def observed(session: Session | None = None, fuel: int | None = None) -> Iterator[Session]:
    """Count steps in ``session`` (or a new one with ``fuel``) while the body runs, in this thread or task."""
    session = session or Session(fuel)
    token = _current.set(session)
    try:
        yield session
    finally:
        _current.reset(token)


# The fuel of a process, for all programs and compilers together


_spent_by_process = 0
_last_of_process = ""
_settling = allocate_lock()


def process_fuel() -> int | None:
    """What ``ARGOSY_FUEL`` leaves to this process; None without end. Raises ValueError where it is no number."""
    text = os.environ.get("ARGOSY_FUEL")
    if not text:
        return None
    if not text.isdecimal():
        raise ValueError(f"ARGOSY_FUEL is {text!r}: expected how many optimisations may happen, a number")
    return max(int(text) - _spent_by_process, 0)


def settle(spent: int, last: str | None) -> None:
    """Take ``spent`` steps, of which ``last`` names the last, from the process's fuel, and write the log."""
    global _spent_by_process, _last_of_process
    with _settling:
        _spent_by_process += spent
        _last_of_process = last if spent and last else _last_of_process
        path = os.environ.get("ARGOSY_FUEL_LOG")
        if path:
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"spent": _spent_by_process, "last": _last_of_process}, file)
