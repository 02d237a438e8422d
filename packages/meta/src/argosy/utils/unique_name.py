"""Names that tell variables and parameters apart: ``linear_0.w_0``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from argosy_tensorcore import naming

__all__ = ["generate", "guard", "switch"]


def generate(key: str) -> str:
    """``key`` with a number that no name of it had: ``fc_0``, ``fc_1``, ..."""
    return naming.generate(key)


def switch(new_generator: naming.UniqueNames | None = None) -> naming.UniqueNames:
    """Count by ``new_generator`` from now on, by default from 0 again; gives the counts that were in use."""
    names = naming.current_names()
    before = naming.UniqueNames(names.start)
    before.counts = names.counts
    now = naming.UniqueNames() if new_generator is None else new_generator
    names.counts, names.start = now.counts, now.start
    return before


@contextmanager
def guard(new_generator: str | bytes | None = None) -> Iterator[None]:
    """Names counted from 0 within the block, all of them after ``new_generator`` where it is a text."""
    start = new_generator.decode() if isinstance(new_generator, bytes) else new_generator or ""
    if not isinstance(start, str):
        raise TypeError(f"unique_name.guard(): new_generator must be a str or None, got {type(start).__name__}")
    before = switch(naming.UniqueNames(start))
    try:
        yield
    finally:
        switch(before)
