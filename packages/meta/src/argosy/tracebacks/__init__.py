"""Tracebacks without the frames inside of argosy: what users see is their own lines, and last the one that went wrong.

``fold_tracebacks(error)`` leaves the frames out while an error is shown: by Python's hooks (:func:`install` puts itself
before those that are there), by IPython, and by pytest (``pytest_plugin``). Frames of users' code always stay, as do
those of libraries that they call. Nothing happens before something has failed; ``ARGOSY_TRACEBACK=full`` shows
everything.
"""

from __future__ import annotations

import linecache
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from argosy.settings import TRACEBACK

__all__ = ["fold_tracebacks", "install"]

_OWN = frozenset({
    "argosy", "argosy_autograd", "argosy_autoparallel", "argosy_cinn", "argosy_hwadapt", "argosy_infer",
    "argosy_phi_ops", "argosy_pir", "argosy_tensorcore",
})  # fmt: skip
_CALLED = frozenset({"concurrent", "contextlib", "functools", "importlib", "llvmlite", "ml_dtypes", "numpy"})
"""Libraries whose frames are argosy's where argosy has called them."""


class _FoldedTracebacks:
    """What was taken off an error and its causes, so that it can be put back."""

    def __init__(self) -> None:
        self.count = 0
        self._tracebacks: list[tuple[BaseException, TracebackType | None]] = []
        self._chains: list[tuple[BaseException, BaseException | None, BaseException | None, bool]] = []

    def fold(self, error: BaseException, seen: set[int]) -> bool:
        """Leave frames out of ``error`` and of what it is chained to; whether any frame is left."""
        seen.add(id(error))
        kept = self._drop_own_frames(error)
        for chained in (error.__cause__, error.__context__):
            if chained is not None and id(chained) not in seen and not self.fold(chained, seen):
                self._unchain(error, chained)
        return kept

    def _drop_own_frames(self, error: BaseException) -> bool:
        entries = list(_entries(error.__traceback__))
        kept = [entry for entry, is_own in zip(entries, _own_entries(entries), strict=True) if not is_own]
        if len(kept) < len(entries):
            self.count += len(entries) - len(kept)
            self._tracebacks.append((error, error.__traceback__))
            error.__traceback__ = _link(kept)
        return bool(kept) or not entries

    def _unchain(self, error: BaseException, chained: BaseException) -> None:
        """Leave out an error that was raised and caught inside of argosy."""
        self._chains.append((error, error.__cause__, error.__context__, error.__suppress_context__))
        if error.__cause__ is chained:
            error.__cause__ = None
        if error.__context__ is chained:
            error.__context__ = None

    def undo(self) -> None:
        """Put everything back."""
        for error, traceback in self._tracebacks:
            error.__traceback__ = traceback
        for error, cause, context, suppressed in reversed(self._chains):
            error.__cause__, error.__context__, error.__suppress_context__ = cause, context, suppressed


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _own_entries(entries: list[TracebackType]) -> list[bool]:
    """For each entry, from the outside in, whether it is inside of argosy."""
    found, inside = [], False
    for entry in entries:
        package = str(entry.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        inside = package in _OWN or (inside and package in _CALLED)
        found.append(inside)
    return found


def _link(entries: list[TracebackType]) -> TracebackType | None:
    linked = None
    for entry in reversed(entries):
        linked = TracebackType(linked, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return linked


def _notes(error: BaseException, count: int) -> list[str]:
    """How many frames are left out, and the user's line, unless the error is of users' code or names it already."""
    notes = [f"[{count} frames inside of argosy are left out: ARGOSY_TRACEBACK=full shows them]"]
    entry = list(_entries(error.__traceback__))[-1]
    file, line = entry.tb_frame.f_code.co_filename, entry.tb_lineno
    place = f"{Path(file).name}:{line}"
    if place in str(error):
        return notes
    source = linecache.getline(file, line, entry.tb_frame.f_globals).strip()
    return [*notes, f"{place}: {source}" if source else place]


@contextmanager
def fold_tracebacks(error: BaseException | None) -> Iterator[None]:
    """A block within which ``error`` has no frames of argosy's, and ends with the user's line."""
    folding = _FoldedTracebacks()
    if error is None or TRACEBACK.read() == "full":
        yield
        return
    before, had_notes = list(getattr(error, "__notes__", ())), hasattr(error, "__notes__")
    try:
        if folding.fold(error, set()) and folding.count and error.__traceback__ is not None:
            for note in _notes(error, folding.count):
                error.add_note(note)
        else:
            folding.undo()  # nothing of the user's would be left
        yield
    finally:
        folding.undo()
        if had_notes:
            error.__notes__ = before
        elif hasattr(error, "__notes__"):
            del error.__notes__


def install() -> None:
    """Fold what Python's hooks show, of threads too, and what IPython shows where it runs; once a process."""
    if _installed:
        return
    _installed.append(True)
    _wrap_hooks()
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((Exception,), _show_in_shell)


_installed: list[bool] = []


def _wrap_hooks() -> None:
    outer, outer_of_threads = sys.excepthook, threading.excepthook

    def show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> Any:
        with fold_tracebacks(error):
            return outer(kind, error, error.__traceback__)

    def show_of_thread(args: threading.ExceptHookArgs) -> Any:
        error = args.exc_value
        if error is None:
            return outer_of_threads(args)
        with fold_tracebacks(error):
            given = (args.exc_type, error, error.__traceback__, args.thread)
            return outer_of_threads(threading.ExceptHookArgs(given))

    sys.excepthook, threading.excepthook = show, show_of_thread


def _show_in_shell(
    shell: Any, kind: type[BaseException], error: BaseException, traceback: TracebackType, tb_offset: int | None = None
) -> None:
    with fold_tracebacks(error):
        shell.showtraceback((kind, error, error.__traceback__), tb_offset=tb_offset)
