"""Counting what should be rare: compilations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Count", "count_compiles", "note_compile"]

_active: list[Count] = []


class Count:
    """How many programs were compiled since counting began, and of which functions."""

    def __init__(self) -> None:
        self.names: list[str] = []

    @property
    def value(self) -> int:
        """The number of compilations."""
        return len(self.names)

    def __int__(self) -> int:
        return self.value

    def __repr__(self) -> str:
        return f"<{self.value} compilations: {self.names}>"


@contextmanager
def count_compiles() -> Iterator[Count]:
    """Count the compilations within the block: ``with count_compiles() as n: ...; assert n.value == 1``."""
    count = Count()
    _active.append(count)
    try:
        yield count
    finally:
        _active.remove(count)


def note_compile(name: str) -> None:
    """Say that a program captured from the function ``name`` was compiled."""
    for count in _active:
        count.names.append(name)
