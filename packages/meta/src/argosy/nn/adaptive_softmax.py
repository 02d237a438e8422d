"""Adaptive softmax: frequent classes in a short list, rare ones in clusters behind it (Grave et al., 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from argosy.argument_checks import TensorLike, validate_call
from argosy.nn import functional as F
from argosy.nn.layer import Layer
from argosy_tensorcore.tensor import Tensor

__all__ = ["AdaptiveLogSoftmaxWithLoss", "adaptive_log_softmax_with_loss"]


@validate_call
def adaptive_log_softmax_with_loss(
    input: TensorLike,
    label: TensorLike,
    head_weight: TensorLike,
    tail_weights: Sequence[Sequence[Any]],
    cutoffs: Sequence[int],
    head_bias: TensorLike | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The log-probability of each sample's class [N], and minus its mean.

    input [N, D] with label [N], or [D] with a 0-D label; ``cutoffs`` are the first class of each cluster and the number
    of classes, head_weight [D, cutoffs[0] + clusters], tail_weights pairs [D, d], [d, classes] of each cluster. Every
    cluster is computed for every sample, so that shapes do not depend on values. Raises ValueError for labels outside
    of the classes (when they can be seen).
    """
    if label.ndim > 1 or input.ndim != label.ndim + 1:
        raise ValueError(
            f"adaptive_log_softmax_with_loss: input [N, D] with label [N], or [D] with a 0-D label; got "
            f"{list(input.shape)} and {list(label.shape)}"
        )
    rows, labels = (input, label) if label.ndim else (input.unsqueeze(0), label.unsqueeze(0))
    limits = [int(c) for c in cutoffs]
    _check(labels, rows, limits[-1])
    labels = labels.astype("int64")
    head: Any = F.log_softmax(F.linear(rows, head_weight, head_bias), axis=1)
    total = _pick(head, labels, labels < limits[0])
    for i, (first, stop) in enumerate(pairwise(limits)):
        inside = F.logical_and(labels >= first, labels < stop)
        within = F.log_softmax(_cluster(rows, tail_weights[i]), axis=1)
        term = _pick(within, labels - first, inside) + head[:, limits[0] + i]
        total = F.where(inside, term, total)
    result = total if label.ndim else total.squeeze(0)
    return result, -total.mean()


def _check(labels: Any, rows: Any, classes: int) -> None:
    if labels.shape[0] != rows.shape[0]:
        raise ValueError(f"adaptive_log_softmax_with_loss: {labels.shape[0]} labels for {rows.shape[0]} samples")
    if labels.payload.is_traced or not labels.size:
        return
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise ValueError(
            f"adaptive_log_softmax_with_loss: labels should be from 0 to {classes - 1}, got {low} to {high}"
        )


def _cluster(rows: Any, weights: Sequence[Any]) -> Any:
    return F.matmul(F.matmul(rows, weights[0]), weights[1])


def _pick(log_probs: Any, index: Any, where: Any) -> Any:
    """log_probs [N, C] at index [N] where that holds, else at 0."""
    chosen = F.where(where, index, F.zeros_like(index))
    return F.take_along_axis(log_probs, chosen.unsqueeze(1), 1).squeeze(1)


class AdaptiveLogSoftmaxWithLoss(Layer):
    """A classifier over ``n_classes`` sorted by falling frequency, cut into clusters at ``cutoffs``.

    Cluster i works on ``in_features // div_value ** (i + 1)`` features.
    """

    head_weight: Any
    head_bias: Any

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        weight_attr: Any = None,
        bias_attr: Any = None,
        div_value: float = 4.0,
        head_bias: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        limits = [int(c) for c in cutoffs]
        if not limits or limits != sorted(set(limits)) or limits[0] < 1 or limits[-1] >= n_classes:
            raise ValueError(
                f"AdaptiveLogSoftmaxWithLoss: cutoffs are rising numbers in [1, {n_classes - 1}], got {list(cutoffs)}"
            )
        self.in_features, self.n_classes, self.div_value = in_features, n_classes, div_value
        self.cutoffs = [*limits, n_classes]
        self.shortlist_size, self.n_clusters = limits[0], len(limits)
        self.head_size, self.is_head_bias = self.shortlist_size + self.n_clusters, head_bias
        self.head_weight = self.create_parameter([in_features, self.head_size], weight_attr)
        self.head_bias = self.create_parameter([self.head_size], bias_attr, is_bias=True) if head_bias else None
        self.tail_weights: list[list[Any]] = []
        for i, (first, stop) in enumerate(pairwise(self.cutoffs)):
            width = int(in_features // div_value ** (i + 1))
            pair = [self.create_parameter(s, weight_attr) for s in ([in_features, width], [width, stop - first])]
            self.tail_weights.append(pair)
            for part, parameter in enumerate(pair):
                self.add_parameter(f"tail_{i}_{part}", parameter)

    def forward(self, input: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        """(log-probabilities [N] of the labels, the loss)."""
        weights = (self.head_weight, self.tail_weights, self.cutoffs, self.head_bias)
        return adaptive_log_softmax_with_loss(input, label, *weights)

    def log_prob(self, input: Any) -> Tensor:
        """[N, n_classes]: the log-probability of every class."""
        head: Any = F.log_softmax(F.linear(input, self.head_weight, self.head_bias), axis=1)
        parts = [head[:, : self.shortlist_size]]
        for i, weights in enumerate(self.tail_weights):
            within = F.log_softmax(_cluster(input, weights), axis=1)
            at = self.shortlist_size + i
            parts.append(within + head[:, at : at + 1])
        return F.concat(parts, axis=1)

    def predict(self, input: Tensor) -> Tensor:
        """[N]: the likeliest class of each sample."""
        return F.argmax(self.log_prob(input), axis=1)
