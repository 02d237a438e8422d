"""Top-k accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy.argument_checks import validate_call
from argosy.framework.creation import to_tensor
from argosy.metric.metric import Metric, as_array
from argosy_autograd.modes import no_grad
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_phi_ops.eager.dispatch import write
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

    @validate_call
    def compute(self, pred: Tensor, label: Tensor, *args: Any) -> Tensor:
        """[N, ..., maxk] float32: 1 where the class at that rank is the label.

        pred: scores [N, ..., classes]; label: indices [N, ...] or [N, ..., 1], or one-hot [N, ..., classes].
        """
        return _hits(pred, label, self.maxk)

    @validate_call
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


@validate_call
def accuracy(
    input: Any, label: Any, k: int = 1, correct: Any = None, total: Any = None, name: str | None = None
) -> Tensor:
    """The share of rows of ``input`` (scores [N, classes]) whose ``label`` ([N, 1]) is among the ``k`` likeliest: a 0-D
    float32 tensor. ``correct`` and ``total``, tensors of one integer, get the numbers of both. Of equal scores the
    first counts as likelier; a NaN is the likeliest.
    """
    hits = _hits(input, label, k)
    found, rows = op("sum")(hits), op("sum")(op("full_like")(hits[..., 0], 1.0))
    for told, value in ((correct, found), (total, rows)):
        if told is not None:
            write(told, op("reshape")(value, told.shape).astype(told.dtype))
    share: Tensor = found / op("clip")(rows, 1.0)
    return share


def _hits(pred: Any, label: Any, k: int) -> Tensor:
    """[N, ..., k] float32: operators throughout, so that a captured step takes them."""
    scores, wanted = (x if isinstance(x, Tensor) else to_tensor(as_array(x, "Accuracy")) for x in (pred, label))
    if k > scores.shape[-1]:
        raise ValueError(f"accuracy among the first {k} of {scores.shape[-1]} classes: k is too large")
    if wanted.ndim == scores.ndim and wanted.shape[-1] == scores.shape[-1] > 1:
        wanted = op("argmax")(wanted, -1)
    elif wanted.ndim == scores.ndim and wanted.shape[-1] == 1:
        wanted = op("squeeze")(wanted, -1)
    if wanted.shape != scores.shape[:-1]:
        raise ValueError(f"accuracy: labels {list(wanted.shape)} do not fit predictions {list(scores.shape)}")
    with no_grad():
        ranked = op("topk")(scores, k, -1)[1]
    equal: Tensor = op("equal")(ranked, op("unsqueeze")(wanted, -1).astype(ranked.dtype)).astype("float32")
    return equal
