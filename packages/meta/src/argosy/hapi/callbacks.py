"""Callbacks of ``Model``: what happens around epochs and batches."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from argosy.argument_checks import CheckedConstructor

__all__ = ["Callback", "Callbacks", "EarlyStopping", "History", "LRScheduler", "ModelCheckpoint"]

Logs = dict[str, Any] | None


class Callback(CheckedConstructor):
    """The base: override what you need. ``self.model`` is the Model, ``self.params`` what fit was called with."""

    def __init__(self) -> None:
        self.model: Any = None
        self.params: dict[str, Any] = {}

    def set_params(self, params: dict[str, Any]) -> None:
        """Called once before training begins."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """Called once before training begins."""
        self.model = model

    def on_train_begin(self, logs: Logs = None) -> None:
        """Before the first epoch."""

    def on_train_end(self, logs: Logs = None) -> None:
        """After the last epoch."""

    def on_eval_begin(self, logs: Logs = None) -> None:
        """Before an evaluation; ``logs`` holds ``steps`` and ``metrics``."""

    def on_eval_end(self, logs: Logs = None) -> None:
        """After an evaluation; ``logs`` holds its figures."""

    def on_predict_begin(self, logs: Logs = None) -> None:
        """Before predictions."""

    def on_predict_end(self, logs: Logs = None) -> None:
        """After predictions."""

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Before an epoch, counted from 0."""

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """After an epoch; ``logs`` holds its figures."""

    def on_train_batch_begin(self, step: int, logs: Logs = None) -> None:
        """Before a batch, counted from 0."""

    def on_train_batch_end(self, step: int, logs: Logs = None) -> None:
        """After a batch; ``logs`` holds loss and metrics."""

    def on_eval_batch_begin(self, step: int, logs: Logs = None) -> None:
        """Before a batch of an evaluation."""

    def on_eval_batch_end(self, step: int, logs: Logs = None) -> None:
        """After a batch of an evaluation."""

    def on_predict_batch_begin(self, step: int, logs: Logs = None) -> None:
        """Before a batch of predictions."""

    def on_predict_batch_end(self, step: int, logs: Logs = None) -> None:
        """After a batch of predictions."""


class Callbacks:
    """Several callbacks called in order."""

    def __init__(self, callbacks: Iterable[Callback], model: Any, params: dict[str, Any]) -> None:
        self._all = list(callbacks)
        for callback in self._all:
            callback.set_model(model)
            callback.set_params(params)

    def call(self, event: str, *args: Any) -> None:
        """``on_<event>(*args)`` of each."""
        for callback in self._all:
            getattr(callback, f"on_{event}")(*args)


class History(Callback):
    """Keeps the figures of every epoch: ``history["loss"][3]``, and with evaluation ``history["eval_loss"]``."""

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[str, list[Any]] = {}

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Add the epoch's figures."""
        self._add("", logs)

    def on_eval_end(self, logs: Logs = None) -> None:
        """Add the evaluation's figures."""
        self._add("eval_", logs)

    def plot(self, names: Sequence[str] | None = None, ax: Any = None) -> Any:
        """Draw these figures, all by default, over the epochs by matplotlib, on ``ax`` if given."""
        from argosy.notebook.curves import plot_history  # and matplotlib: few programs draw

        return plot_history(self.history, names, ax)

    def __repr__(self) -> str:
        last = ", ".join(f"{name}={values[-1]!r:.40}" for name, values in self.history.items())
        epochs = max((len(values) for values in self.history.values()), default=0)
        return f"History of {epochs} epochs" + (f": {last}" if last else "")

    def _add(self, prefix: str, logs: Logs) -> None:
        for key, value in (logs or {}).items():
            if key not in ("step", "batch_size"):
                self.history.setdefault(prefix + key, []).append(value)


class ModelCheckpoint(Callback):
    """Saves the model to ``<save_dir>/<epoch>`` every ``save_freq`` epochs and to ``<save_dir>/final`` at the end."""

    def __init__(self, save_freq: int = 1, save_dir: str | None = None) -> None:
        super().__init__()
        self.save_freq = save_freq
        self.save_dir = save_dir

    def on_epoch_begin(self, epoch: int | None = None, logs: Logs = None) -> None:
        """Nothing to do before an epoch."""

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Save when it is the epoch's turn."""
        if self.save_dir is not None and epoch % self.save_freq == 0:
            self._save(str(epoch))

    def on_train_end(self, logs: Logs = None) -> None:
        """Save the final model."""
        if self.save_dir is not None:
            self._save("final")

    def _save(self, name: str) -> None:
        path = os.path.join(str(self.save_dir), name)
        print(f"save checkpoint at {os.path.abspath(path)}")  # noqa: T201 (as Paddle tells)
        self.model.save(path)


class LRScheduler(Callback):
    """Steps the optimizer's learning-rate schedule after every batch, or after every epoch."""

    def __init__(self, by_step: bool = True, by_epoch: bool = False) -> None:
        super().__init__()
        if by_step and by_epoch:
            raise ValueError("LRScheduler: by_step and by_epoch cannot both be chosen")
        self.by_step = by_step
        self.by_epoch = by_epoch

    def on_train_batch_end(self, step: int, logs: Logs = None) -> None:
        """Step with the batch."""
        if self.by_step:
            self._step()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Step with the epoch."""
        if self.by_epoch:
            self._step()

    def _step(self) -> None:
        scheduler = getattr(self.model._optimizer, "_scheduler", None)
        if scheduler is not None:
            scheduler.step()


class EarlyStopping(Callback):
    """Stops training at the ``patience``-th evaluation in a row that does not improve the figure ``monitor`` by
    ``min_delta``; with patience 0 at the first evaluation, as in Paddle.

    mode: ``min``, ``max``, or ``auto`` (max for accuracies). The best model is saved as ``<save_dir>/best_model`` when
    fit has a ``save_dir`` and ``save_best_model`` is on.
    """

    def __init__(
        self,
        monitor: str = "loss",
        mode: str = "auto",
        patience: int = 0,
        verbose: int = 1,
        min_delta: float = 0,
        baseline: float | None = None,
        save_best_model: bool = True,
    ) -> None:
        super().__init__()
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"EarlyStopping(mode={mode!r}): expected 'auto', 'min' or 'max'")
        self.monitor, self.patience, self.verbose = monitor, patience, verbose
        self.min_delta, self.baseline, self.save_best_model = abs(min_delta), baseline, save_best_model
        rising = mode == "max" or (mode == "auto" and "acc" in monitor)
        self._sign = 1.0 if rising else -1.0
        self.on_train_begin()

    def on_train_begin(self, logs: Logs = None) -> None:
        """Begin anew."""
        self.wait_epoch = self.stopped_epoch = 0
        self.best_value = -self._sign * float("inf") if self.baseline is None else self.baseline

    @property
    def _best_model_path(self) -> str | None:
        """Where the best model goes, if anywhere."""
        folder = self.params.get("save_dir")
        return os.path.join(folder, "best_model") if self.save_best_model and folder else None

    def on_eval_end(self, logs: Logs = None) -> None:
        """Compare with the best so far."""
        if logs is None or self.monitor not in logs:
            shown = sorted(logs or ())
            warnings.warn(f"EarlyStopping: the evaluation gives no {self.monitor!r}: {shown}", stacklevel=2)
            return
        value = float(np.ravel(logs[self.monitor])[0])
        if self._sign * (value - self.best_value) > self.min_delta:
            self.best_value, self.wait_epoch = value, 0
            if self._best_model_path is not None:
                self.model.save(self._best_model_path)
        else:
            self.wait_epoch += 1
        if self.wait_epoch >= self.patience:
            self.model.stop_training = True
            if self.verbose:
                self._tell()
        self.stopped_epoch += 1

    def _tell(self) -> None:
        print(f"Epoch {self.stopped_epoch + 1}: Early stopping.")  # noqa: T201 (as Paddle tells)
        if self._best_model_path is not None:
            print(f"Best checkpoint has been saved at {os.path.abspath(self._best_model_path)}")  # noqa: T201


def default_callbacks(given: Callback | Sequence[Callback] | None, progress: Callback, **more: Any) -> list[Callback]:
    """The callbacks of the user, with those that come by default unless one of their kind is among them."""
    if given is not None and not isinstance(given, (Callback, list, tuple)):
        raise TypeError(f"argument 'callbacks' must be a Callback or a sequence of Callbacks, got {given!r:.80}")
    callbacks = [] if given is None else [given] if isinstance(given, Callback) else list(given)
    for default in (progress, *more.values()):
        if not any(isinstance(callback, type(default)) for callback in callbacks):
            callbacks.insert(0, default) if default is progress else callbacks.append(default)
    return callbacks
