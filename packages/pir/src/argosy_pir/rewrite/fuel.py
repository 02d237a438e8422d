"""Counting what is done, and stopping after so many steps.

Every single transformation asks :func:`spend` first. Under :func:`observed` the steps are counted by name,
and with
``fuel`` only the first so many happen: bisecting over that number finds the one step that breaks a program.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


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


def spend(step: str) -> bool:
    """Whether the transformation ``step`` may happen now; counts it if so."""
    session = _current.get()
    if session is None:
        return True
    if session.fuel is not None:
        if session.fuel <= 0:
            return False
        session.fuel -= 1
    session.statistics[step] = session.statistics.get(step, 0) + 1
    session.last = step
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
