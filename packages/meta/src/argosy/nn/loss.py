"""Losses as layers."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from argosy.nn import functional as F
from argosy.nn.layer import Layer
from argosy_tensorcore.tensor import Tensor

__all__ = ["BCEWithLogitsLoss", "CrossEntropyLoss", "L1Loss", "MSELoss", "NLLLoss"]


class CrossEntropyLoss(Layer):
    """Softmax cross entropy of ``input`` [..., classes, ...] (logits along ``axis``) and ``label``.

    Labels are class indices (``ignore_index`` counts for nothing) or, with ``soft_label``, distributions.
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        soft_label: bool = False,
        axis: int = -1,
        use_softmax: bool = True,
        label_smoothing: float = 0.0,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.weight, self.ignore_index, self.reduction = weight, ignore_index, reduction
        self.soft_label, self.axis, self.use_softmax = soft_label, axis, use_softmax
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        """The loss: 0-D, or of the label's shape with ``reduction="none"``."""
        return F.cross_entropy(
            input,
            label,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            soft_label=self.soft_label,
            axis=self.axis,
            use_softmax=self.use_softmax,
            label_smoothing=self.label_smoothing,
        )


class MSELoss(Layer):
    """Mean (or sum, or none) of ``(input - label)^2``."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        """The loss."""
        return F.mse_loss(input, label, self.reduction)


class L1Loss(Layer):
    """Mean (or sum, or none) of ``|input - label|``."""

    def __init__(self, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        """The loss."""
        return F.l1_loss(input, label, self.reduction)


class NLLLoss(Layer):
    """Negative log likelihood of ``label`` under log probabilities ``input``."""

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.weight, self.ignore_index, self.reduction = weight, ignore_index, reduction

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        """The loss."""
        return F.nll_loss(input, label, self.weight, self.ignore_index, self.reduction)


class BCEWithLogitsLoss(Layer):
    """Binary cross entropy of logits ``logit`` and labels in [0, 1]."""

    def __init__(
        self,
        weight: Tensor | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.weight, self.reduction, self.pos_weight = weight, reduction, pos_weight

    def forward(self, logit: Tensor, label: Tensor) -> Tensor:
        """The loss."""
        return F.binary_cross_entropy_with_logits(logit, label, self.weight, self.reduction, self.pos_weight)


def __getattr__(name: str) -> Any:
    """The losses that have modules of their own: ``paddle.nn.loss`` has all of them."""
    if not name.endswith("Loss"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("argosy.nn"), name)
