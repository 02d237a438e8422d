"""A schedule that watches a metric."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy.argument_checks import validate_call
from argosy.optimizer.lr.scheduler import LRScheduler
from argosy_tensorcore.tensor import Tensor

__all__ = ["ReduceOnPlateau"]


def _number(metrics: Any) -> float:
    if isinstance(metrics, (Tensor, np.ndarray)):
        if metrics.size != 1:
            raise ValueError(
                f"argument 'metrics' should hold one number, got shape {list(metrics.shape)}: take its mean"
            )
        return float(metrics.item())
    if not isinstance(metrics, (int, float, np.number)):
        raise TypeError(f"argument 'metrics' must be a number, or a tensor or array of one, got {metrics!r:.60}")
    return float(metrics)


class ReduceOnPlateau(LRScheduler):
    """Multiply the rate by ``factor`` when ``step(metric)`` saw no improvement for more than ``patience`` epochs."""

    def __init__(
        self,
        learning_rate: float,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0,
        epsilon: float = 1e-8,
        verbose: bool = False,
    ) -> None:
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"ReduceOnPlateau: mode is min or max, threshold_mode rel or abs; got {mode}, {threshold_mode}"
            )
        if factor >= 1.0:
            raise ValueError(f"ReduceOnPlateau: factor must be below 1, got {factor}")
        self.mode, self.factor, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.min_lr, self.epsilon = cooldown, min_lr, epsilon
        self.cooldown_counter = 0
        self.num_bad_epochs = 0
        self.best: float | None = None
        super().__init__(learning_rate, -1, verbose)

    def get_lr(self) -> float:
        """The current rate."""
        return self.last_lr

    def state_keys(self) -> None:
        """The counters, too."""
        self.keys = ["cooldown_counter", "best", "num_bad_epochs", "last_epoch", "last_lr"]

    def _begin(self) -> None:
        self.last_epoch += 1

    @validate_call
    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take note of the metric of one epoch: a number, or a tensor or array of one element.

        Raises TypeError for anything else, ValueError for more elements.
        """
        value = _number(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            return
        if self.best is None or self._is_better(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.num_bad_epochs > self.patience:
            self._reduce()

    def _reduce(self) -> None:
        self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        lower = max(self.last_lr * self.factor, self.min_lr)
        if self.last_lr - lower > self.epsilon:
            self._become(lower)

    def _is_better(self, value: float, best: float) -> bool:
        margin = best * self.threshold if self.threshold_mode == "rel" else self.threshold
        return value < best - margin if self.mode == "min" else value > best + margin
