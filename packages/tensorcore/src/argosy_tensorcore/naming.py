"""Unique names (``generated_tensor_0``, ``linear_0.w_0``): a source that the ambient context may replace."""

from __future__ import annotations

from collections.abc import Callable


class UniqueNames:
    """Counts per prefix: ``generate("linear")`` gives ``linear_0``, ``linear_1``, ...; all begin with ``start``."""

    __slots__ = ("counts", "start")

    def __init__(self, start: str = "") -> None:
        self.counts: dict[str, int] = {}
        self.start = start

    def generate(self, prefix: str) -> str:
        """The next name of this prefix."""
        count = self.counts.get(prefix, 0)
        self.counts[prefix] = count + 1
        return f"{self.start}{prefix}_{count}"


process_names = UniqueNames()
"""The counts of the process, which are used unless another source is installed."""


def _process_names() -> UniqueNames:
    return process_names


_source: Callable[[], UniqueNames] = _process_names


def set_name_source(current: Callable[[], UniqueNames]) -> None:
    """Install ``current``, the function that gives the counts which names come from (say, those of a rank's
    context)."""
    global _source
    _source = current


def current_names() -> UniqueNames:
    """The counts of the current context."""
    return _source()


def generate(prefix: str) -> str:
    """The next unique name of this prefix in the current context."""
    return _source().generate(prefix)
