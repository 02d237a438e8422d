"""``ProgBarLogger``: figures and speed in Paddle's format."""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

import numpy as np

from argosy.hapi.callbacks import Callback, Logs

__all__ = ["ProgBarLogger"]

_WIDTH = 30
_NOTE = "The loss value printed in the log is the current step, and the metric is the average value of previous steps."


class ProgBarLogger(Callback):
    """Prints figures every ``log_freq`` steps: verbose 0 nothing, 1 a bar that is drawn over, 2 a line each time."""

    def __init__(self, log_freq: int = 1, verbose: int = 2) -> None:
        super().__init__()
        self.log_freq, self.verbose = max(1, log_freq), verbose
        self._steps: int | None = None
        self._samples = 0
        self._shown: Any = None
        self._began = 0.0

    def on_train_begin(self, logs: Logs = None) -> None:
        """Say what the figures are."""
        self._write(_NOTE + "\n")

    def on_epoch_begin(self, epoch: int | None = None, logs: Logs = None) -> None:
        """``Epoch 1/2``."""
        self._write(f"Epoch {(epoch or 0) + 1}/{self.params.get('epochs')}\n")
        self._start(self.params.get("steps"))

    def on_train_batch_end(self, step: int, logs: Logs = None) -> None:
        """The figures so far, when it is time."""
        self._log(step, logs, "train")

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """The figures of the epoch, unless they have just been shown."""
        self._finish(logs)

    def on_eval_begin(self, logs: Logs = None) -> None:
        """``Eval begin...``."""
        self._write("Eval begin...\n")
        self._start((logs or {}).get("steps"))

    def on_eval_batch_end(self, step: int, logs: Logs = None) -> None:
        """The figures so far, when it is time."""
        self._log(step, logs, "eval")

    def on_eval_end(self, logs: Logs = None) -> None:
        """``Eval samples: 10``."""
        self._finish(logs)
        self._write(f"Eval samples: {self._samples}\n")

    def on_predict_begin(self, logs: Logs = None) -> None:
        """``Predict begin...``."""
        self._write("Predict begin...\n")
        self._start((logs or {}).get("steps"))

    def on_predict_batch_end(self, step: int, logs: Logs = None) -> None:
        """The progress, when it is time."""
        self._log(step, logs, "predict")

    def on_predict_end(self, logs: Logs = None) -> None:
        """``Predict samples: 10``."""
        self._finish(logs)
        self._write(f"Predict samples: {self._samples}\n")

    def _start(self, steps: int | None) -> None:
        self._steps, self._samples, self._shown, self._last = steps, 0, None, 0
        self._began = perf_counter()

    def _log(self, step: int, logs: Logs, mode: str) -> None:
        self._samples += (logs or {}).get("batch_size", 0)
        self._last = step + 1
        if self._last % self.log_freq == 0:
            self._show(logs)

    def _finish(self, logs: Logs) -> None:
        if self._shown != self._last and self._last:
            self._show(logs)
        if self.verbose == 1 and self._last:
            self._write("\n")

    def _show(self, logs: Logs) -> None:
        self._shown = self._last
        seconds = (perf_counter() - self._began) / self._last
        done = f"{self._last:{len(str(self._steps))}}/{self._steps}" if self._steps else f"{self._last:3}"
        parts = [f"step {done}{self._bar()}", *_figures(logs)]
        if self.verbose == 1 and self._steps and self._last < self._steps:
            parts.append(f"ETA: {_remaining_text(int(seconds * (self._steps - self._last)))}")
        parts.append(f"{_duration(seconds)}/step")
        self._write(" - ".join(parts).ljust(70) + "\r" if self.verbose == 1 else " - ".join(parts) + "\n")

    def _bar(self) -> str:
        if self.verbose != 1 or not self._steps:
            return ""
        full = _WIDTH * self._last // self._steps
        bar = "=" * _WIDTH if full >= _WIDTH else ("=" * max(0, full - 1) + ">").ljust(_WIDTH, ".")
        return f" [{bar}]"

    def _write(self, text: str) -> None:
        if self.verbose:
            sys.stdout.write(text)
            sys.stdout.flush()


def _figures(logs: Logs) -> list[str]:
    shown = []
    for key, value in (logs or {}).items():
        if key not in ("step", "batch_size"):
            shown.append(f"{key}: " + " ".join(_number(x) for x in np.ravel(value)))
    return shown


def _number(x: Any) -> str:
    if not isinstance(x, (float, np.floating)):
        return f"{x}"
    value = float(x)
    return f"{value:.4f}" if abs(value) > 1e-3 else f"{value:.4e}"


def _remaining_text(seconds: int) -> str:
    """``12s``, ``3:05`` or ``1:02:03``."""
    minutes, hours = seconds // 60, seconds // 3600
    if seconds > 3600:
        return f"{hours}:{minutes % 60:02}:{seconds % 60:02}"
    return f"{minutes}:{seconds % 60:02}" if seconds > 60 else f"{seconds}s"


def _duration(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.0f}s"
    return f"{seconds * 1e3:.0f}ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f}us"
