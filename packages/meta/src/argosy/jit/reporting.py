"""Where captures broke and why: what ``jit.report()`` shows."""

from __future__ import annotations

import sys
import weakref
from typing import Any

__all__ = ["Break", "clear_report", "levels", "note", "report", "set_code_level", "set_verbosity", "show"]

_breaks: list[Break] = []
_KEPT = 1000


class Break:
    """One place where a captured function went on as Python: ``file``, ``line``, the ``function`` and ``reason``."""

    __slots__ = ("_captured", "count", "file", "function", "line", "reason")

    def __init__(self, file: str, line: int, function: str, reason: str) -> None:
        self.file, self.line, self.function, self.reason = file, line, function, reason
        self.count = 1
        self._captured: weakref.WeakSet[Any] = weakref.WeakSet()

    def of(self, captured: Any) -> None:
        """Say in which captured function that was."""
        self._captured.add(captured)

    @property
    def parts(self) -> int:
        """How many programs there are now of parts of the functions that broke here, before and after the place."""
        return sum(len(function.parts_compiled) for function in self._captured)

    def __repr__(self) -> str:
        times = f" ({self.count} times)" if self.count > 1 else ""
        parts = self.parts
        around = f"; {parts} program{'s' * (parts > 1)} of the parts around it" if parts else ""
        return f"{self.file}:{self.line} in {self.function}: {self.reason}{times}{around}"


def note(location: Any, reason: str) -> Break:
    """Remember that a capture broke at ``location``."""
    file, line, function = location.file, location.line, location.function
    if levels.verbosity:
        show(f"argosy: graph break at {file}:{line} in {function}: {reason}")
    for known in _breaks:
        if (known.file, known.line, known.reason) == (file, line, reason):
            known.count += 1
            return known
    _breaks.append(Break(file, line, function, reason))
    del _breaks[:-_KEPT]
    return _breaks[-1]


def report() -> list[Break]:
    """The graph breaks so far in this process, oldest first: where each happened and what Python needed."""
    return list(_breaks)


def clear_report() -> None:
    """Forget them."""
    _breaks.clear()


class _Levels:
    """What is shown of captures, see :func:`set_verbosity` and :func:`set_code_level`."""

    __slots__ = ("code", "verbosity")

    def __init__(self) -> None:
        self.code = False
        self.verbosity = 0


levels = _Levels()


def set_verbosity(level: int = 0, also_to_stdout: bool = False) -> None:
    """From level 1 on, say on stderr (also on stdout, if so) where a graph breaks, when it does."""
    if type(level) is not int or level < 0:
        raise ValueError(f"set_verbosity() takes a level from 0 on, not {level!r}")
    levels.verbosity = level
    _also_stdout[:] = [also_to_stdout]


def set_code_level(level: int = 100, also_to_stdout: bool = False) -> None:
    """Show each function's rewritten code on stderr when it is captured; level 0 stops that."""
    if type(level) is not int or level < 0:
        raise ValueError(f"set_code_level() takes a level from 0 on, not {level!r}")
    levels.code = level > 0
    _also_stdout[:] = [also_to_stdout]


_also_stdout = [False]


def show(text: str) -> None:
    """Print for the user who asked for it."""
    sys.stderr.write(text + "\n")
    if _also_stdout[0]:
        sys.stdout.write(text + "\n")
