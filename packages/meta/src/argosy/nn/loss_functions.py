"""Loss functions of ``nn.functional`` that are a few operators each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from argosy.argument_checks import TensorLike, validate_call
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.ops.common.arguments import check_same_shape
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "cosine_embedding_loss", "dice_loss", "gaussian_nll_loss", "log_loss", "multi_label_margin_loss",
    "multi_label_soft_margin_loss", "multi_margin_loss", "npair_loss", "poisson_nll_loss", "sigmoid_focal_loss",
    "triplet_margin_loss", "triplet_margin_with_distance_loss",
]  # fmt: skip


def _reduce(function: str, loss: Any, reduction: str) -> Tensor:
    if reduction == "none":
        return loss  # type: ignore[no-any-return]
    if reduction == "sum":
        return loss.sum()  # type: ignore[no-any-return]
    if reduction == "mean":
        return loss.mean()  # type: ignore[no-any-return]
    raise ValueError(f"{function}: reduction is 'mean', 'sum' or 'none', got {reduction!r}")


def _select(condition: Any, x: Any, y: Any) -> Any:
    return get_operator("where")(condition, x, y)


def _positive_part(x: Any) -> Any:
    return get_operator("relu")(x)


@validate_call
def cosine_embedding_loss(
    input1: TensorLike,
    input2: TensorLike,
    label: TensorLike,
    margin: float = 0,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """``1 - cos`` where the label is 1, ``max(0, cos - margin)`` where it is -1; inputs [N, M] or [M], label [N]."""
    if label.ndim != 1 or list(input1.shape) != list(input2.shape) or input1.ndim > 2:
        shapes = ", ".join(str(list(t.shape)) for t in (input1, input2, label))
        raise ValueError(f"cosine_embedding_loss: inputs are [N, M] or [M] alike and the label is [N], got {shapes}")
    x, y = input1, input2
    if not -1 <= margin <= 1:
        raise ValueError(f"cosine_embedding_loss: argument 'margin' should be from -1 to 1, got {margin}")
    squares = ((x * x).sum(-1) + 1e-12) * ((y * y).sum(-1) + 1e-12)
    cosine = (x * y).sum(-1) / squares.sqrt()
    zero = get_operator("zeros_like")(cosine)
    loss = _select(label == 1, 1 - cosine, zero) + _select(label == -1, _positive_part(cosine - margin), zero)
    return _reduce("cosine_embedding_loss", loss, reduction)


@validate_call
def triplet_margin_loss(
    input: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    epsilon: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """``max(|input - positive|_p - |input - negative|_p + margin, 0)`` over the last axis.

    ``swap`` takes the smaller of the distances of ``negative`` to ``input`` and to ``positive``.
    """

    def distance(x: Any, y: Any) -> Any:
        return get_operator("pairwise_distance")(x, y, p, epsilon)

    return triplet_margin_with_distance_loss(input, positive, negative, distance, margin, swap, reduction)


@validate_call
def triplet_margin_with_distance_loss(
    input: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """The triplet loss under ``distance_function`` (by default the Euclidean distance)."""
    if margin < 0:
        raise ValueError(f"triplet_margin_loss: argument 'margin' should not be negative, got {margin}")
    check_same_shape("triplet_margin_loss", input=input, positive=positive, negative=negative)
    distance: Any = distance_function or get_operator("pairwise_distance")
    near, far = distance(input, positive), distance(input, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return _reduce("triplet_margin_loss", _positive_part(near - far + margin), reduction)


@validate_call
def poisson_nll_loss(
    input: TensorLike,
    label: TensorLike,
    log_input: bool = True,
    full: bool = False,
    epsilon: float = 1e-8,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """``exp(input) - label * input`` for log rates, else ``input - label * log(input + epsilon)``.

    ``full`` adds Stirling's approximation of log(label!) for labels above 1.
    """
    if epsilon <= 0:
        raise ValueError(f"poisson_nll_loss: epsilon must be positive, got {epsilon}")
    check_same_shape("poisson_nll_loss", input=input, label=label)
    loss = input.exp() - label * input if log_input else input - label * (input + epsilon).log()
    if full:
        stirling = label * label.log() - label + 0.5 * (2 * math.pi * label).log()
        loss = loss + _select(label > 1, stirling, get_operator("zeros_like")(stirling))
    return _reduce("poisson_nll_loss", loss, reduction)


@validate_call
def gaussian_nll_loss(
    input: TensorLike,
    label: TensorLike,
    variance: TensorLike,
    full: bool = False,
    epsilon: float = 1e-6,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """``(log(v) + (input - label)^2 / v) / 2`` with ``v`` at least ``epsilon``; ``full`` adds log(2 pi) / 2.

    variance: of the input's shape, or without its last axis, or with 1 there. No gradient flows through the bound.
    """
    if variance.ndim == input.ndim - 1:
        variance = variance.unsqueeze(-1)
    if variance.ndim != input.ndim:
        raise ValueError(
            "gaussian_nll_loss: argument 'variance' should have the shape of 'input', or lack its last axis, or have 1 "
            f"there, got {list(variance.shape)} for {list(input.shape)}"
        )
    lower = (variance.detach().clip(min=epsilon)) - variance.detach()
    v = variance + lower
    loss = 0.5 * (v.log() + (input - label).square() / v)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduce("gaussian_nll_loss", loss, reduction)


@validate_call
def multi_label_soft_margin_loss(
    input: TensorLike,
    label: TensorLike,
    weight: TensorLike | None = None,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """Mean over the last axis of the binary cross entropy of logits ``input`` and labels ``label``."""
    if list(input.shape) != list(label.shape):
        raise ValueError(
            f"multi_label_soft_margin_loss: input {list(input.shape)} and label {list(label.shape)} differ in shape"
        )
    log_sigmoid = get_operator("log_sigmoid")
    loss = -(label * log_sigmoid(input) + (1 - label) * log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return _reduce("multi_label_soft_margin_loss", loss.mean(-1), reduction)


@validate_call
def multi_margin_loss(
    input: TensorLike,
    label: TensorLike,
    p: int = 1,
    margin: float = 1.0,
    weight: TensorLike | None = None,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """``sum over the classes c other than y of w_y * max(0, margin - x_y + x_c)^p / classes``; input [N, C], label
    [N].
    """
    if input.ndim != 2 or list(label.shape) != [input.shape[0]]:
        raise ValueError(f"multi_margin_loss: takes [N, C] and [N], got {list(input.shape)} and {list(label.shape)}")
    classes = input.shape[1]
    column = label.reshape([-1, 1])
    raised = _positive_part(margin - input.take_along_axis(column, axis=1) + input) ** p
    if weight is not None:
        raised = raised * weight.index_select(label).reshape([-1, 1])
    own = get_operator("one_hot")(label, classes).astype(input.dtype)
    loss = (raised * (1 - own)).sum(-1) / classes
    return _reduce("multi_margin_loss", loss, reduction)


@validate_call
def multi_label_margin_loss(
    input: TensorLike, label: TensorLike, reduction: str = "mean", name: str | None = None
) -> Tensor:
    """``sum over labels y and other classes c of max(0, 1 - (x_y - x_c)) / classes``.

    input: [N, C]; label: [N, C] of class indices, of which those before the first -1 count.
    """
    if input.ndim != 2 or list(input.shape) != list(label.shape):
        raise ValueError(
            f"multi_label_margin_loss: takes [N, C] twice, got {list(input.shape)} and {list(label.shape)}"
        )
    classes = input.shape[1]
    counts = ((label < 0).astype("int64").cumsum(1) == 0).astype(input.dtype)
    index = label.clip(min=0)
    own = (get_operator("one_hot")(index, classes).astype(input.dtype) * counts.unsqueeze(-1)).sum(1)
    other = (own == 0).astype(input.dtype)
    margins = _positive_part(1 - input.take_along_axis(index, axis=1).unsqueeze(-1) + input.unsqueeze(1))
    loss = (margins * counts.unsqueeze(-1) * other.unsqueeze(1)).sum([1, 2]) / classes
    return _reduce("multi_label_margin_loss", loss, reduction)


@validate_call
def log_loss(input: TensorLike, label: TensorLike, epsilon: float = 1e-4, name: str | None = None) -> Tensor:
    """``-label * log(input + epsilon) - (1 - label) * log(1 - input + epsilon)``, elementwise."""
    check_same_shape("log_loss", input=input, label=label)
    return -label * (input + epsilon).log() - (1 - label) * (1 - input + epsilon).log()  # type: ignore[no-any-return]


@validate_call
def dice_loss(input: TensorLike, label: TensorLike, epsilon: float = 1e-5, name: str | None = None) -> Tensor:
    """1 - Dice's coefficient of probabilities [N, ..., C] and class indices [N, ..., 1], averaged over the batch."""
    if list(label.shape[:-1]) != list(input.shape[:-1]) or label.shape[-1] != 1:
        raise ValueError(
            f"dice_loss: takes [N, ..., C] and [N, ..., 1], got {list(input.shape)} and {list(label.shape)}"
        )
    hot = get_operator("one_hot")(label.squeeze(-1), input.shape[-1]).astype(input.dtype)
    axes = list(range(1, input.ndim))
    both = (input * hot).sum(axes)
    return (1 - 2 * both / (input.sum(axes) + hot.sum(axes) + epsilon)).mean()  # type: ignore[no-any-return]


@validate_call
def npair_loss(anchor: TensorLike, positive: TensorLike, labels: TensorLike, l2_reg: float = 0.002) -> Tensor:
    """Softmax cross entropy of the similarities of anchors and positives [N, D], with L2 decay (Sohn, 2016)."""
    same = (labels.reshape([-1, 1]) == labels.reshape([1, -1])).astype(anchor.dtype)
    targets = same / same.sum(1, keepdim=True)
    decay = (anchor.square().sum(1).mean() + positive.square().sum(1).mean()) * 0.25 * l2_reg
    similarity = get_operator("log_softmax")(anchor @ positive.t())
    return decay - (targets * similarity).sum(1).mean()  # type: ignore[no-any-return]


@validate_call
def sigmoid_focal_loss(
    logit: TensorLike,
    label: TensorLike,
    normalizer: TensorLike | None = None,
    alpha: float = 0.25,
    gamma: float = 2.0,
    reduction: str = "sum",
    name: str | None = None,
) -> Tensor:
    """Binary cross entropy that well classified elements hardly count in (Lin et al., 2017), over ``normalizer``."""
    check_same_shape("sigmoid_focal_loss", logit=logit, label=label)
    cross = get_operator("binary_cross_entropy_with_logits")(logit, label, reduction="none")
    chance = get_operator("sigmoid")(logit)
    missed = chance * (1 - label) + (1 - chance) * label
    weight = alpha * label + (1 - alpha) * (1 - label)
    loss = weight * missed**gamma * cross
    if normalizer is not None:
        loss = loss / normalizer
    return _reduce("sigmoid_focal_loss", loss, reduction)
