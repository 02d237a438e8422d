"""Losses over alignments and trees of classes as layers."""

from __future__ import annotations

from typing import Any

from argosy.nn import functional as F
from argosy.nn.layer import Layer
from argosy_tensorcore.tensor import Tensor

__all__ = ["CTCLoss", "HSigmoidLoss", "RNNTLoss"]


class CTCLoss(Layer):
    """:func:`argosy.nn.functional.ctc_loss` as a layer."""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__()
        self.blank, self.reduction, self.zero_infinity = blank, reduction, zero_infinity

    def forward(
        self,
        log_probs: Tensor,
        labels: Tensor,
        input_lengths: Tensor,
        label_lengths: Tensor,
        norm_by_times: bool = False,
    ) -> Tensor:
        """The loss."""
        settings = (self.blank, self.reduction, norm_by_times, self.zero_infinity)
        return F.ctc_loss(log_probs, labels, input_lengths, label_lengths, *settings)


class RNNTLoss(Layer):
    """:func:`argosy.nn.functional.rnnt_loss` as a layer."""

    def __init__(
        self, blank: int = 0, fastemit_lambda: float = 0.001, reduction: str = "mean", name: str | None = None
    ) -> None:
        super().__init__()
        self.blank, self.fastemit_lambda, self.reduction = blank, fastemit_lambda, reduction

    def forward(self, input: Tensor, label: Tensor, input_lengths: Tensor, label_lengths: Tensor) -> Tensor:
        """The loss."""
        settings = (self.blank, self.fastemit_lambda, self.reduction)
        return F.rnnt_loss(input, label, input_lengths, label_lengths, *settings)


class HSigmoidLoss(Layer):
    """Hierarchical softmax with weight [num_classes - 1, feature_size]; ``is_custom`` trees: num_classes rows."""

    weight: Any
    bias: Any

    def __init__(
        self,
        feature_size: int,
        num_classes: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        is_custom: bool = False,
        is_sparse: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        if num_classes < 2 and not is_custom:
            raise ValueError(f"HSigmoidLoss: num_classes is at least 2, got {num_classes}")
        self._num_classes, self._is_custom = num_classes, is_custom
        rows = num_classes if is_custom else num_classes - 1
        self.weight = self.create_parameter([rows, feature_size], weight_attr)
        self.bias = self.create_parameter([rows, 1], bias_attr, is_bias=True)

    def forward(self, input: Tensor, label: Tensor, path_table: Any = None, path_code: Any = None) -> Tensor:
        """The loss of each sample [N, 1]."""
        if self._is_custom and path_table is None:
            raise ValueError("HSigmoidLoss: with is_custom the paths of the samples are needed")
        return F.hsigmoid_loss(input, label, self._num_classes, self.weight, self.bias, path_table, path_code)
