"""Losses as layers, beyond the five of ``loss``: for distributions, rankings, embeddings and margins."""

from __future__ import annotations

from collections.abc import Callable

from argosy.nn.settings import FunctionLayer
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "BCELoss", "CosineEmbeddingLoss", "GaussianNLLLoss", "HingeEmbeddingLoss", "KLDivLoss", "MarginRankingLoss",
    "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "PoissonNLLLoss", "SmoothL1Loss",
    "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip


class _Loss(FunctionLayer):
    """A loss function with its settings; subclasses name the function and its tensors."""

    def _loss(self, *tensors: Tensor) -> Tensor:
        return self._applied(*tensors)  # type: ignore[no-any-return]

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
