"""Losses as layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from argosy.argument_checks import TensorLike, check_choice
from argosy.nn import functional as F
from argosy.nn.adaptive_softmax import AdaptiveLogSoftmaxWithLoss
from argosy.nn.layer import Layer
from argosy.nn.settings import FunctionLayer
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "AdaptiveLogSoftmaxWithLoss", "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss",
    "CrossEntropyLoss", "GaussianNLLLoss", "HSigmoidLoss", "HingeEmbeddingLoss", "KLDivLoss",
    "L1Loss", "MSELoss", "MarginRankingLoss",
    "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "PoissonNLLLoss", "RNNTLoss",
    "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip

REDUCTIONS = ("mean", "sum", "none")


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
        check_choice("MSELoss", "reduction", reduction, REDUCTIONS)
        self.reduction = reduction

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        """The loss."""
        return F.mse_loss(input, label, self.reduction)


class L1Loss(Layer):
    """Mean (or sum, or none) of ``|input - label|``."""

    def __init__(self, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__()
        check_choice("L1Loss", "reduction", reduction, REDUCTIONS)
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
        check_choice("NLLLoss", "reduction", reduction, REDUCTIONS)
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
        check_choice("BCEWithLogitsLoss", "reduction", reduction, REDUCTIONS)
        self.weight, self.reduction, self.pos_weight = weight, reduction, pos_weight

    def forward(self, logit: Tensor, label: Tensor) -> Tensor:
        """The loss."""
        return F.binary_cross_entropy_with_logits(logit, label, self.weight, self.reduction, self.pos_weight)


class _Loss(FunctionLayer):
    """A loss function with its settings; subclasses name the function and its tensors."""

    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"reduction": REDUCTIONS}

    def _loss(self, *tensors: Tensor) -> Tensor:
        return self._apply_function(*tensors)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """The settings."""
        return ", ".join(f"{name}={value}" for name, value in self._settings.items())


class BCELoss(_Loss):
    """Binary cross entropy of probabilities ``input`` and labels in [0, 1]."""

    function = "binary_cross_entropy"

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__(weight=weight, reduction=reduction)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        """The loss: 0-D, or of its elements with ``reduction="none"``."""
        return self._loss(input, label)


class KLDivLoss(_Loss):
    """``label * (log(label) - input)``: ``input`` holds log probabilities, with ``log_target`` ``label`` too."""

    function = "kl_div"
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"reduction": (*REDUCTIONS, "batchmean")}

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction=reduction, log_target=log_target)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        """The loss: 0-D, or of its elements with ``reduction="none"``."""
        return self._loss(input, label)


class SmoothL1Loss(_Loss):
    """Half the square of differences up to ``delta``, linear beyond (Huber, 1964)."""

    function = "smooth_l1_loss"

    def __init__(
        self, reduction: str = "mean", delta: float = 1.0, is_huber: bool = True, name: str | None = None
    ) -> None:
        super().__init__(reduction=reduction, delta=delta, is_huber=is_huber)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        """The loss: 0-D, or of its elements with ``reduction="none"``."""
        return self._loss(input, label)


class MarginRankingLoss(_Loss):
    """``max(0, -label * (input - other) + margin)``."""

    function = "margin_ranking_loss"

    def __init__(self, margin: float = 0.0, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__(margin=margin, reduction=reduction)

    def forward(self, input: Tensor, other: Tensor, label: Tensor) -> Tensor:
        """The loss: 0-D, or of its elements with ``reduction="none"``."""
        return self._loss(input, other, label)


class HingeEmbeddingLoss(_Loss):
    """``input`` where the label is 1, ``max(0, margin - input)`` where it is -1."""

    function = "hinge_embedding_loss"

    def __init__(self, margin: float = 1.0, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__(margin=margin, reduction=reduction)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        """The loss: 0-D, or of its elements with ``reduction="none"``."""
        return self._loss(input, label)


class SoftMarginLoss(_Loss):
    """``log(1 + exp(-label * input))``."""

    function = "soft_margin_loss"

    def __init__(self, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__(reduction=reduction)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        """The loss: 0-D, or of its elements with ``reduction="none"``."""
        return self._loss(input, label)


class CosineEmbeddingLoss(_Loss):
    """1 - cosine where the label is 1, ``max(0, cosine - margin)`` where it is -1."""

    function = "cosine_embedding_loss"

    def __init__(self, margin: float = 0, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__(margin=margin, reduction=reduction)

    def forward(self, input1: Tensor, input2: Tensor, label: Tensor) -> Tensor:
        """The loss: 0-D, or of its elements with ``reduction="none"``."""
        return self._loss(input1, input2, label)


class TripletMarginLoss(_Loss):
    """``max(d(input, positive) - d(input, negative) + margin, 0)`` (Balntas et al., 2016)."""

    function = "triplet_margin_loss"

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        epsilon: float = 1e-6,
        swap: bool = False,
        reduction: str = "mean",
        name: str | None = None,
    ) -> None:
        super().__init__(margin=margin, p=p, epsilon=epsilon, swap=swap, reduction=reduction)

    def forward(self, input: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """The loss: 0-D, or of its elements with ``reduction="none"``."""
        return self._loss(input, positive, negative)


class TripletMarginWithDistanceLoss(_Loss):
    """The triplet loss under a distance of the user's."""

    function = "triplet_margin_with_distance_loss"

    def __init__(
        self,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
        name: str | None = None,
    ) -> None:
        super().__init__(distance_function=distance_function, margin=margin, swap=swap, reduction=reduction)

    def forward(self, input: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """The loss: 0-D, or of its elements with ``reduction="none"``."""
        return self._loss(input, positive, negative)


class PoissonNLLLoss(_Loss):
    """Negative log likelihood of counts under a Poisson distribution of (log) rate ``input``."""

    function = "poisson_nll_loss"

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        epsilon: float = 1e-8,
        reduction: str = "mean",
        name: str | None = None,
    ) -> None:
        super().__init__(log_input=log_input, full=full, epsilon=epsilon, reduction=reduction)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        """The loss: 0-D, or of its elements with ``reduction="none"``."""
        return self._loss(input, label)


class GaussianNLLLoss(_Loss):
    """Negative log likelihood of ``label`` under a normal distribution (Nix and Weigend, 1994)."""

    function = "gaussian_nll_loss"

    def __init__(
        self, full: bool = False, epsilon: float = 1e-6, reduction: str = "mean", name: str | None = None
    ) -> None:
        super().__init__(full=full, epsilon=epsilon, reduction=reduction)

    def forward(self, input: Tensor, label: Tensor, variance: Tensor) -> Tensor:
        """The loss: 0-D, or of its elements with ``reduction="none"``."""
        return self._loss(input, label, variance)


class MultiLabelSoftMarginLoss(_Loss):
    """Mean over classes of the binary cross entropy of logits ``input``."""

    function = "multi_label_soft_margin_loss"

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__(weight=weight, reduction=reduction)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        """The loss: 0-D, or of its elements with ``reduction="none"``."""
        return self._loss(input, label)


class MultiMarginLoss(_Loss):
    """Mean over the other classes of ``max(0, margin - input[label] + input)^p``."""

    function = "multi_margin_loss"

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        reduction: str = "mean",
        name: str | None = None,
    ) -> None:
        super().__init__(p=p, margin=margin, weight=weight, reduction=reduction)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        """The loss: 0-D, or of its elements with ``reduction="none"``."""
        return self._loss(input, label)


class MultiLabelMarginLoss(_Loss):
    """The margin loss of several labels for each row, ended by -1."""

    function = "multi_label_margin_loss"

    def __init__(self, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__(reduction=reduction)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        """The loss: 0-D, or of its elements with ``reduction="none"``."""
        return self._loss(input, label)


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

    def forward(
        self, input: Tensor, label: Tensor, path_table: TensorLike | None = None, path_code: TensorLike | None = None
    ) -> Tensor:
        """The loss of each sample [N, 1]."""
        if self._is_custom and path_table is None:
            raise ValueError("HSigmoidLoss: with is_custom the paths of the samples are needed")
        return F.hsigmoid_loss(input, label, self._num_classes, self.weight, self.bias, path_table, path_code)
