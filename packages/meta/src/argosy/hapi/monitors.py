"""Callbacks that change the rate when a figure stops improving, and that write figures where others show them."""

from __future__ import annotations

import warnings
from importlib import import_module
from numbers import Number
from typing import Any

import numpy as np

from argosy.hapi.callbacks import Callback, Logs
from argosy.hapi.summaries import SummaryWriter
from argosy_phi_ops.context import context

__all__ = ["ReduceLROnPlateau", "TensorBoard", "VisualDL", "WandbCallback"]


class ReduceLROnPlateau(Callback):
    """Multiplies the learning rate by ``factor`` when the figure ``monitor`` of evaluations has not improved by
    ``min_delta`` for ``patience`` of them; then waits ``cooldown`` evaluations. The rate stays above ``min_lr``.

    mode: ``min``, ``max``, or ``auto`` (max for accuracies).
    """

    def __init__(
        self,
        monitor: str = "loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 1,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0,
    ) -> None:
        super().__init__()
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: factor must be below 1, got {factor}")
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"ReduceLROnPlateau(mode={mode!r}): expected 'auto', 'min' or 'max'")
        self.monitor, self.factor, self.patience, self.verbose = monitor, factor, patience, verbose
        self.min_delta, self.cooldown, self.min_lr = min_delta, cooldown, min_lr
        self._sign = 1.0 if mode == "max" or (mode == "auto" and "acc" in monitor) else -1.0
        self.on_train_begin()

    def on_train_begin(self, logs: Logs = None) -> None:
        """Begin anew."""
        self.wait = self.cooldown_counter = self.epoch = 0
        self.best = -self._sign * float("inf")

    def in_cooldown(self) -> bool:
        """Whether the rate has just been reduced."""
        return self.cooldown_counter > 0

    def on_eval_end(self, logs: Logs = None) -> None:
        """Compare with the best so far, and reduce the rate when it is time."""
        if logs is None or self.monitor not in logs:
            shown = sorted(logs or ())
            warnings.warn(f"ReduceLROnPlateau: the evaluation gives no {self.monitor!r}: {shown}", stacklevel=2)
            return
        value = float(np.ravel(logs[self.monitor])[0])
        if self.in_cooldown():
            self.cooldown_counter -= 1
            self.wait = 0
        if self._sign * (value - self.best) > self.min_delta:
            self.best, self.wait = value, 0
        elif not self.in_cooldown():
            self.wait += 1
            if self.wait >= self.patience:
                self._reduce()
        self.epoch += 1

    def _reduce(self) -> None:
        optimizer = self.model._optimizer
        if getattr(optimizer, "_scheduler", None) is not None:
            warnings.warn("ReduceLROnPlateau: the optimizer's rate is a schedule's; it is left alone", stacklevel=3)
            return
        old = optimizer.get_lr()
        if old <= self.min_lr:
            return
        optimizer.set_lr(max(old * self.factor, self.min_lr))
        self.cooldown_counter, self.wait = self.cooldown, 0
        if self.verbose:
            shown = f"Epoch {self.epoch + 1}: ReduceLROnPlateau reducing learning rate to {optimizer.get_lr()}."
            print(shown)  # noqa: T201  (what the user asked for)


class _Writer(Callback):
    """What both writers share: figures of batches by step, figures of evaluations by epoch, on the first rank alone."""

    epoch = 0
    train_step = 0

    def on_train_begin(self, logs: Logs = None) -> None:
        """Begin to count."""
        self.train_step = 0

    def on_epoch_begin(self, epoch: int | None = None, logs: Logs = None) -> None:
        """Note the epoch."""
        self.epoch = epoch or 0

    def on_eval_begin(self, logs: Logs = None) -> None:
        """Nothing to do before an evaluation."""

    def on_train_batch_end(self, step: int, logs: Logs = None) -> None:
        """Write the batch's figures."""
        self.train_step += 1
        self._write_all("train", self.train_step, logs)

    def on_eval_end(self, logs: Logs = None) -> None:
        """Write the evaluation's figures."""
        self._write_all("eval", self.epoch, logs)

    def _write_all(self, phase: str, step: int, logs: Logs) -> None:
        if context().rank:
            return
        wanted = self.params.get("metrics") or ["loss"]
        for name in wanted:
            value = (logs or {}).get(name)
            value = value[0] if isinstance(value, (list, tuple)) and value else value
            if isinstance(value, (Number, np.generic)):
                self._write(f"{phase}/{name}", step, float(value))  # type: ignore[arg-type]

    def _write(self, tag: str, step: int, value: float) -> None:
        raise NotImplementedError


def _library(name: str, callback: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ImportError(f"{callback} needs {name}, which is not installed: python -m pip install {name}") from error


class VisualDL(_Writer):
    """Writes figures into ``log_dir`` for the program visualdl. Raises ImportError on use where it is not installed."""

    def __init__(self, log_dir: str) -> None:
        super().__init__()
        self.log_dir = log_dir
        self._writer: Any = None

    def _write(self, tag: str, step: int, value: float) -> None:
        if self._writer is None:
            self._writer = _library("visualdl", "VisualDL").LogWriter(self.log_dir)
        self._writer.add_scalar(tag=tag, step=step, value=value)

    def on_train_end(self, logs: Logs = None) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class TensorBoard(_Writer):
    """Writes figures, and with ``histograms`` the parameters after every epoch, into ``log_dir`` for TensorBoard.
    Raises ImportError on use where tensorboard is not installed."""

    def __init__(self, log_dir: str, histograms: bool = False) -> None:
        super().__init__()
        self.log_dir, self.histograms = log_dir, histograms
        self._writer: SummaryWriter | None = None

    @property
    def writer(self) -> SummaryWriter:
        """The open file."""
        if self._writer is None:
            self._writer = SummaryWriter(self.log_dir)
        return self._writer

    def _write(self, tag: str, step: int, value: float) -> None:
        self.writer.add_scalar(tag, value, step)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Write how the parameters are spread."""
        if self.histograms and not context().rank:
            for name, parameter in self.model.network.named_parameters():
                self.writer.add_histogram(f"parameters/{name}", parameter.detach(), epoch)

    def on_train_end(self, logs: Logs = None) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class WandbCallback(_Writer):
    """Sends figures to a run of Weights & Biases. Raises ImportError when made where wandb is not installed."""

    def __init__(
        self,
        project: str | None = None,
        entity: str | None = None,
        name: str | None = None,
        dir: str | None = None,
        mode: str | None = None,
        job_type: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self._wandb = _library("wandb", "WandbCallback")
        given = {"project": project, "entity": entity, "name": name, "dir": dir, "mode": mode, "job_type": job_type}
        self._arguments = {**{k: v for k, v in given.items() if v is not None}, **kwargs}
        self._run: Any = None

    @property
    def run(self) -> Any:
        """The run: that of this process if there is one, else a new one."""
        if self._run is None:
            self._run = self._wandb.run or self._wandb.init(**self._arguments)
        return self._run

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:  # type: ignore[override]
        """Note the epoch."""
        super().on_epoch_begin(epoch, logs)

    def _write(self, tag: str, step: int, value: float) -> None:
        self.run.log({tag: value, "step" if tag.startswith("train") else "epoch": step})

    def on_train_end(self, logs: Logs = None) -> None:
        """Finish the run."""
        if self._run is not None:
            self._run.finish()
            self._run = None
