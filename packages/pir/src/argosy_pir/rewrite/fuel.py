"""Counting what is done, and stopping after so many steps.

Every single transformation asks :func:`spend` first. Under :func:`observe` the steps are counted by name,
and with
``fuel`` only the first so many happen: bisecting over that number finds the one step that breaks a program.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any


class Session:
    """What happens under a limit: ``statistics`` maps names of steps to counts, ``spent`` is how many there were;
    ``fuel`` is what is left, None without end.

    Steps named in ``without`` do not happen: by their whole name, or by what is before its first dot. Those in
    ``always`` happen whatever the fuel is and take none: what comes later cannot do without them. ``last`` names the
    last step that was allowed; ``notes`` are remarks of passes on what they chose and why.
    """

    __slots__ = ("_always", "_without", "fuel", "last", "notes", "spent", "statistics")

    def __init__(self, fuel: int | None = None, without: Iterable[str] = (), always: Iterable[str] = ()) -> None:
        self.fuel = fuel
        self._without = frozenset(without)
        self._always = frozenset(always)
        self.statistics: dict[str, int] = {}
        self.spent = 0
        self.last: str | None = None
        self.notes: list[str] = []

    def allows(self, step: str) -> bool:
        """Whether a step of this name may happen now."""
        if step in self._always:
            return True
        if self._without and (step in self._without or step.partition(".")[0] in self._without):
            return False
        return self.fuel is None or self.fuel > 0

    def take(self, step: str, where: Any = None) -> bool:
        """Whether a step may happen now; counts it if so. ``where``: the operation or values that it is about."""
        if not self.allows(step):
            return False
        self.statistics[step] = self.statistics.get(step, 0) + 1
        if step not in self._always:
            self.spent += 1
            if self.fuel is not None:
                self.fuel -= 1
                self.last = step if where is None else f"{step} of {_describe(where)}"
            else:
                self.last = step
        return True


def _describe(where: Any) -> str:
    if isinstance(where, (tuple, list)):
        return " with ".join(map(_describe, where))
    op = getattr(where, "op", where)  # of a result
    location = getattr(op, "location", None)
    return str(op) if location is None else f"{op.name} at {location}"


_current: ContextVar[Session | None] = ContextVar("argosy_pir_session", default=None)


def current_session() -> Session | None:
    """The session that counts what happens now, if any."""
    return _current.get()


def may_happen(step: str) -> bool:
    """Whether the transformation ``step`` may happen now; :func:`spend` counts it when it has."""
    session = _current.get()
    return session is None or session.allows(step)


def spend(step: str, where: Any = None) -> bool:
    """Whether the transformation ``step`` (of the operation or values ``where``) may happen now; counts it if so."""
    session = _current.get()
    return session is None or session.take(step, where)


def note(text: str) -> None:
    """Leave a remark for whoever looks at what the passes did (:attr:`Session.notes`)."""
    session = _current.get()
    if session is not None:
        session.notes.append(text)


@contextmanager
def observe(session: Session | None = None, fuel: int | None = None) -> Iterator[Session]:
    """Count steps in ``session`` (or a new one with ``fuel``) while the body runs, in this thread or task."""
    session = session or Session(fuel)
    token = _current.set(session)
    try:
        yield session
    finally:
        _current.reset(token)
