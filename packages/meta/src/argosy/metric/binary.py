"""Precision and recall of a yes-or-no classifier whose outputs are probabilities of yes."""

from __future__ import annotations

from typing import Any

from argosy.argument_checks import validate_call
from argosy.metric.metric import Metric, as_array

__all__ = ["Precision", "Recall"]


class _Binary(Metric):
    def __init__(self, name: str) -> None:
        self._name = name
        self.reset()

    @validate_call
    def update(self, preds: Any, labels: Any) -> None:
        """Add probabilities and labels (0 or 1), both [N] or [N, 1]; yes is a probability above one half."""
        kind = type(self).__name__
        said, wanted = as_array(preds, kind).reshape(-1) > 0.5, as_array(labels, kind).reshape(-1)
        if said.shape != wanted.shape:
            raise ValueError(f"{kind}.update(): {said.size} predictions and {wanted.size} labels")
        self.tp += int((said & (wanted == 1)).sum())
        self.fp += int((said & (wanted != 1)).sum())
        self.fn += int((~said & (wanted == 1)).sum())

    def reset(self) -> None:
        """Forget all batches."""
        self.tp = self.fp = self.fn = 0

    def name(self) -> str:
        """The metric's name."""
        return self._name


class Precision(_Binary):
    """True positives among all that were called positive."""

    def __init__(self, name: str = "precision") -> None:
        super().__init__(name)

    def accumulate(self) -> float:
        """tp / (tp + fp); 0 where nothing was called positive."""
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else 0.0


class Recall(_Binary):
    """True positives among all that are positive."""

    def __init__(self, name: str = "recall") -> None:
        super().__init__(name)

    def accumulate(self) -> float:
        """tp / (tp + fn); 0 where nothing is positive."""
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else 0.0
