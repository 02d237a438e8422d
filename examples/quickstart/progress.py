"""A live progress bar (with rich, on a terminal), or a line now and then."""

from __future__ import annotations

import sys
import time
from typing import Any, Self


class Progress:
    """Loss, tokens per second and time left of a run of ``total`` steps that stands at ``done``."""

    def __init__(self, total: int, done: int, tokens: int) -> None:
        self.total, self.done, self.tokens = total, done, tokens
        self._pace: float | None = None
        self._compiled = False
        self._said = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if sys.stdout.isatty():
            self._start_bar()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _start_bar(self) -> None:
        try:
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar
        except ModuleNotFoundError:
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Bar(*columns)
        self._bar.start()
        self._task = self._bar.add_task("compiling", total=self.total, completed=self.done)

    def step(self, loss: float, seconds: float) -> None:
        """One step is done."""
        self.done += 1
        if not self._compiled:  # the first step includes the compilation
            self._compiled = True
            return
        self._pace = seconds if self._pace is None else 0.9 * self._pace + 0.1 * seconds
        text = f"loss {loss:.3f}  {self.tokens / self._pace:,.0f} tokens/s"
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, description=text)
        elif time.monotonic() - self._said > 10:
            self._said = time.monotonic()
            left = (self.total - self.done) * self._pace
            print(f"step {self.done}/{self.total}  {text}  {left:.0f} s left", flush=True)

    def note(self, text: str) -> None:
        """A line that stays."""
        if self._bar is not None:
            self._bar.console.print(text)
        else:
            print(text, flush=True)
