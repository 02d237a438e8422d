"""The area under the ROC or the precision-recall curve, from histograms of scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy.metric.metric import Metric, as_array

__all__ = ["Auc"]


class Auc(Metric):
    """The area under the curve "ROC" or "PR" (precision over recall): scores fall into ``num_thresholds + 1`` bins, and
    the curve is integrated over them by the trapezoidal rule. (The wheel gives the area under "ROC" for either name.)
    """

    def __init__(self, curve: str = "ROC", num_thresholds: int = 4095, name: str = "auc") -> None:
        if curve not in ("ROC", "PR"):
            raise ValueError(f"Auc(): argument 'curve' should be 'ROC' or 'PR', got {curve!r}")
        if num_thresholds < 1:
            raise ValueError(f"Auc: num_thresholds must be positive, got {num_thresholds!r}")
        self._curve, self._bins = curve, num_thresholds
        self._name = name
        self.reset()

    def update(self, preds: Any, labels: Any) -> None:
        """Add probabilities [N, 2] (the second is that of yes) or [N], and labels [N] or [N, 1] (0 or 1)."""
        scores, wanted = as_array(preds, "Auc"), as_array(labels, "Auc").reshape(-1)
        scores = scores[:, 1] if scores.ndim == 2 and scores.shape[1] == 2 else scores.reshape(-1)
        if scores.shape != wanted.shape:
            raise ValueError(f"Auc.update(): {scores.size} predictions and {wanted.size} labels")
        if scores.size and not (scores.min() >= 0 and scores.max() <= 1):
            raise ValueError("Auc.update(): predictions must be probabilities between 0 and 1")
        bins = (scores * self._bins).astype(np.int64)
        self._positive += np.bincount(bins[wanted != 0], minlength=self._bins + 1)
        self._negative += np.bincount(bins[wanted == 0], minlength=self._bins + 1)

    @staticmethod
    def trapezoid_area(x1: float, x2: float, y1: float, y2: float) -> float:
        """The area under a line from (x1, y1) to (x2, y2)."""
        return abs(x1 - x2) * (y1 + y2) / 2.0

    def reset(self) -> None:
        """Forget all batches."""
        self._positive = np.zeros(self._bins + 1, np.int64)
        self._negative = np.zeros(self._bins + 1, np.int64)

    def accumulate(self) -> float:
        """The area; 0 while one of the two classes has not been seen."""
        above = np.concatenate([[0], np.cumsum(self._positive[::-1])]).astype(np.float64)
        below = np.concatenate([[0], np.cumsum(self._negative[::-1])]).astype(np.float64)
        if not above[-1] or not below[-1]:
            return 0.0
        if self._curve == "PR":
            recall, precision = above / above[-1], above / np.maximum(above + below, 1)
            precision[above + below == 0] = 1.0  # nothing is called positive: nothing wrongly
            return float(((precision[1:] + precision[:-1]) / 2 * np.diff(recall)).sum())
        area = ((above[1:] + above[:-1]) / 2 * np.diff(below)).sum()
        return float(area / (above[-1] * below[-1]))

    def name(self) -> str:
        """The metric's name."""
        return self._name
