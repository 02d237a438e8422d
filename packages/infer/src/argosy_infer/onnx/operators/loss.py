"""Losses."""

from __future__ import annotations

from typing import Any

from argosy_infer.onnx.registry import onnx_operator
from argosy_infer.onnx.tensors import phi, prim, shape_of


@onnx_operator("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(
    x: Any, target: Any, weight: Any = None, *, ignore_index: int | None = None, reduction: str = "mean"
) -> Any:
    """``-x[n, target]`` of x [N, C, ...], weighted by class; nothing of targets that are ignored."""
    whole = prim.cast(target, dtype="int64")
    counted = None if ignore_index is None else prim.ne(whole, ignore_index)
    if counted is not None:
        whole = prim.select(counted, whole, phi.zeros_like(whole))
    picked = phi.squeeze(phi.take_along_axis(x, phi.unsqueeze(whole, 1), 1, False), 1)
    weights = phi.ones_like(picked) if weight is None else _by_class(weight, whole)
    if counted is not None:
        weights = prim.select(counted, weights, phi.zeros_like(weights))
    losses = prim.mul(prim.neg(picked), weights)
    axes = tuple(range(len(shape_of(losses))))
    if reduction == "none":
        return losses
    total = prim.reduce_sum(losses, axes=axes)
    return total if reduction == "sum" else prim.div(total, prim.reduce_sum(weights, axes=axes))


def _by_class(weight: Any, target: Any) -> Any:
    return phi.reshape(phi.index_select(weight, phi.reshape(target, [-1]), 0), list(shape_of(target)))


@onnx_operator("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(
    x: Any, target: Any, weight: Any = None, *, ignore_index: int | None = None, reduction: str = "mean"
) -> Any:
    """The loss of log softmax over axis 1, which is the second result."""
    logs = phi.log_softmax(x, 1)
    return negative_log_likelihood_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction), logs
