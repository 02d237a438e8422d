"""Comparisons of symbolic sizes, observed: where code decides for all sizes at once."""

from __future__ import annotations

from _thread import get_ident
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

observers: dict[int, Callable[[], None]] = {}
"""By thread; empty where nobody observes."""


@contextmanager
def observe_comparisons(observer: Callable[[], None]) -> Iterator[None]:
    """Call ``observer`` wherever this thread compares an expression, by ``==``, with another one or an integer that may
    be the same number, or looks for it in a table: there code decides for all sizes what it would decide otherwise
    for some. Comparisons by ``<`` are TypeErrors always."""
    thread = get_ident()
    before = observers.get(thread)
    observers[thread] = observer
    try:
        yield
    finally:
        if before is None:
            del observers[thread]
        else:
            observers[thread] = before


def tell_observer() -> None:
    """Call the observer of this thread, if it has one."""
    observer = observers.get(get_ident())
    if observer is not None:
        observer()
