"""Losses of ``nn.functional`` over alignments, trees of classes and margins."""

from __future__ import annotations

from typing import Any

from argosy.argument_checks import TensorLike, validate_call
from argosy.nn import functional as F
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["ctc_loss", "hsigmoid_loss", "margin_cross_entropy", "rnnt_loss"]


def _reduce(function: str, loss: Any, reduction: str | None) -> Any:
    if reduction not in ("mean", "sum", "none", None):
        raise ValueError(f"{function}: reduction is 'mean', 'sum' or 'none', got {reduction!r}")
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


@validate_call
def ctc_loss(
    log_probs: Any,
    labels: Tensor,
    input_lengths: Tensor,
    label_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    norm_by_times: bool = False,
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification (Graves et al., 2006) of scores ``log_probs`` [T, N, C], normalised here.

    labels: [N, L] integers, the first ``label_lengths`` [N] of each count, as do the first ``input_lengths`` [N] steps.
    The mean is over losses divided by their label lengths. ``norm_by_times`` divides gradients by the number of steps;
    ``zero_infinity`` makes losses of labels that no alignment gives 0.
    """
    loss: Any = get_operator("ctc_paths")(log_probs, labels, input_lengths, label_lengths, blank)
    if norm_by_times:
        share = loss / input_lengths.astype(loss.dtype)
        loss = share + (loss - share).detach()
    if zero_infinity:
        loss = F.where(F.isinf(loss), F.zeros_like(loss), loss)
    if reduction == "mean":
        loss = loss / label_lengths.astype(loss.dtype)
    return _reduce("ctc_loss", loss, reduction)  # type: ignore[no-any-return]


@validate_call
def rnnt_loss(
    input: TensorLike,
    label: Tensor,
    input_lengths: Tensor,
    label_lengths: Tensor,
    blank: int = 0,
    fastemit_lambda: float = 0.001,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """The loss of a transducer (Graves, 2012) with log-probabilities ``input`` [N, T, L + 1, C].

    They are taken as they are, as Paddle does on the cpu: apply ``log_softmax`` before.
    label: [N, L] integers; lengths [N] say what is no padding. ``fastemit_lambda`` is the share by which gradients of
    emissions count more (Yu et al., 2021).
    """
    settings = (blank, float(fastemit_lambda))
    loss: Any = get_operator("rnnt_paths")(input, label, input_lengths, label_lengths, *settings)
    return _reduce("rnnt_loss", loss, reduction)  # type: ignore[no-any-return]


@validate_call
def hsigmoid_loss(
    input: TensorLike,
    label: TensorLike,
    num_classes: int,
    weight: TensorLike,
    bias: TensorLike | None = None,
    path_table: TensorLike | None = None,
    path_code: TensorLike | None = None,
    is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Hierarchical softmax [N, 1]: a class is a path of binary decisions in a tree (Morin and Bengio, 2005).

    input [N, D], label [N] or [N, 1], weight [num_classes - 1, D], bias [num_classes - 1, 1]. The tree is complete, or
    ``path_table`` [N, length] names the inner nodes of each sample's path (ending in -1) and ``path_code`` its turns.
    As in Paddle, a path shorter than the longest counts log 2 for each step it lacks.
    """
    if num_classes < 2:
        raise ValueError(f"hsigmoid_loss: num_classes is at least 2, got {num_classes}")
    if (path_table is None) != (path_code is None):
        raise ValueError("hsigmoid_loss: path_table and path_code come together")
    if path_table is None or path_code is None:
        path_table, path_code = _tree(label.reshape([-1]), num_classes)
    there = path_table >= 0
    index = F.where(there, path_table, F.zeros_like(path_table))
    rows = F.gather(weight, index.reshape([-1])).reshape([*index.shape, weight.shape[-1]])
    scores = (rows * input.unsqueeze(1)).sum(-1)
    if bias is not None:
        scores = scores + F.gather(bias.reshape([-1]), index.reshape([-1])).reshape(index.shape)
    scores = F.where(there, scores.clip(-40.0, 40.0), F.zeros_like(scores))
    turned: Any = F.where(there, path_code.astype(scores.dtype), F.zeros_like(scores))
    return ((1.0 + scores.exp()).log() - turned * scores).sum(-1, keepdim=True)  # type: ignore[no-any-return]


def _tree(label: Any, num_classes: int) -> tuple[Any, Any]:
    """Inner nodes and turns of the complete tree for labels [N]: [N, depth] each, -1 after the end of a path.

    Leaf ``c`` has the number c + num_classes; shifting it right walks up to the root, whose number is 1.
    """
    depth = (2 * num_classes - 1).bit_length() - 1
    number = label.astype("int64") + num_classes
    nodes, turns = [], []
    for bit in range(depth):
        above = number // 2 ** (bit + 1)
        nodes.append(above - 1)
        turns.append(number // 2**bit % 2)
    return F.stack(nodes, axis=1), F.stack(turns, axis=1)


@validate_call
def margin_cross_entropy(
    logits: Any,
    label: TensorLike,
    margin1: float = 1.0,
    margin2: float = 0.5,
    margin3: float = 0.0,
    scale: float = 64.0,
    group: Any = None,
    return_softmax: bool = False,
    reduction: str | None = "mean",
) -> Any:
    """Cross entropy of ``scale`` times cosines ``logits`` [N, C], the label's being cos(margin1 t + margin2) - margin3.

    Margins of ArcFace (Deng et al., 2019), SphereFace and CosFace. Without reduction the loss is [N, 1]. Raises
    NotImplementedError for a ``group``, whose ranks would hold parts of the classes each.
    Returns the loss, with ``return_softmax`` (loss, probabilities [N, C]).
    """
    if group:
        raise NotImplementedError("margin_cross_entropy: classes spread over a group are not implemented")
    index = label.reshape([-1]).astype("int64")
    own = F.one_hot(index, logits.shape[-1]).astype(logits.dtype)
    bound = 1.0 - 1e-7  # the derivative of arccos is infinite at 1
    angle = (logits * own).sum(-1, keepdim=True).clip(-bound, bound).acos()
    target = (angle * margin1 + margin2).cos() - margin3
    scaled = (logits * (1.0 - own) + target * own) * scale
    log_probs = F.log_softmax(scaled)
    loss = _reduce("margin_cross_entropy", -(log_probs * own).sum(-1, keepdim=True), reduction)
    return (loss, log_probs.exp()) if return_softmax else loss
