"""Top-k accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy.checked import checked
from argosy.creation import to_tensor
from argosy.metric.metric import Metric, as_array
from argosy_tensorcore.tensor import Tensor

__all__ = ["Accuracy", "accuracy"]


class Accuracy(Metric):
    """The share of samples whose label is among the k likeliest classes, for each k of ``topk``."""

    def __init__(self, topk: int | Sequence[int] = (1,), name: str | None = None) -> None:
        self.topk = (topk,) if isinstance(topk, int) else tuple(topk)
        if not self.topk or min(self.topk) < 1:
            raise ValueError(f"Accuracy: topk must be positive, got {topk!r}")
        self.maxk = max(self.topk)
        base = name or "acc"
        self._names = [base] if self.maxk == 1 else [f"{base}_top{k}" for k in self.topk]
        self.reset()

    @checked
    def compute(self, pred: Tensor, label: Tensor, *args: Any) -> Tensor:
        """[N, ..., maxk] float32: 1 where the class at that rank is the label.

        pred: scores [N, ..., classes]; label: indices [N, ...] or [N, ..., 1], or one-hot [N, ..., classes].
        """
        return to_tensor(_hits(pred, label, self.maxk))

    @checked
    def update(self, correct: Any, *args: Any) -> Any:
        """Add a correctness matrix; returns this batch's accuracies."""
        hits = as_array(correct, "Accuracy")
        if not hits.ndim or hits.shape[-1] < self.maxk:
            raise ValueError(f"Accuracy.update(): expected a last axis of at least {self.maxk}, got {list(hits.shape)}")
        samples = int(np.prod(hits.shape[:-1]))
        shares = []
        for i, k in enumerate(self.topk):
            found = float(hits[..., :k].sum())
            self.total[i] += found
            self.count[i] += samples
            shares.append(found / samples if samples else 0.0)
        return shares[0] if len(shares) == 1 else shares

    def reset(self) -> None:
        """Forget all batches."""
        self.total = [0.0] * len(self.topk)
        self.count = [0] * len(self.topk)

    def accumulate(self) -> Any:
        """The accuracy over all batches: a float, or a list for several k."""
        shares = [total / count if count else 0.0 for total, count in zip(self.total, self.count, strict=True)]
        return shares[0] if len(shares) == 1 else shares

    def name(self) -> list[str]:
        """``["acc"]``, or ``["acc_top1", "acc_top5"]`` for several k."""
        return self._names


@checked
def accuracy(
    input: Any, label: Any, k: int = 1, correct: Any = None, total: Any = None, name: str | None = None
) -> Tensor:
    """The share of rows of ``input`` (scores [N, classes]) whose ``label`` ([N, 1]) is among the ``k`` likeliest: a 0-D
    float32 tensor.
    """
    hits = _hits(input, label, k)
    return to_tensor(np.float32(hits.sum() / max(1, int(np.prod(hits.shape[:-1])))))


def _hits(pred: Any, label: Any, k: int) -> Any:
    scores, wanted = as_array(pred, "Accuracy"), as_array(label, "Accuracy")
    if k > scores.shape[-1]:
        raise ValueError(f"accuracy among the first {k} of {scores.shape[-1]} classes: k is too large")
    if wanted.ndim == scores.ndim and wanted.shape[-1] == scores.shape[-1] > 1:
        wanted = wanted.argmax(-1)
    elif wanted.ndim == scores.ndim and wanted.shape[-1] == 1:
        wanted = wanted[..., 0]
    if wanted.shape != scores.shape[:-1]:
        raise ValueError(f"accuracy: labels {list(wanted.shape)} do not fit predictions {list(scores.shape)}")
    ranked = np.argsort(-scores.astype(np.float64), -1, kind="stable")[..., :k]
    return (ranked == wanted[..., None]).astype(np.float32)
