"""Losses.

The pick of a label's class is a sum over ``select(index == label)``, which fuses and differentiates elementwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.declare.promotion import kind_of
from argosy_phi_ops.errors import DTypeError, ShapeError
from argosy_phi_ops.ops.common.arguments import (
    axis_of,
    broadcast_along,
    check_same_shape,
    positive_part,
    restore,
    shape_without,
    smooth_abs,
    softplus_parts,
)
from argosy_phi_ops.ops.nn.activation import largest
from argosy_phi_ops.ops.reduction import count_of
from argosy_phi_ops.primitives.checks import INTEGER
from argosy_phi_ops.reference.kernels.registry import Array, ieee
from argosy_tensorcore.tensor import Tensor


def reduce_loss(name: str, loss: Tensor, reduction: str, total_weight: Any = None) -> Tensor:
    """The mean, the sum, or the elements ("none") of a loss; the mean divides by `total_weight` if given."""
    if reduction == "none":
        return loss
    if reduction not in ("mean", "sum"):
        raise ValueError(f"{name}: reduction {reduction!r} is unknown; there are mean, sum and none")
    axes = tuple(range(loss.ndim))
    total = prim.reduce_sum(loss, axes=axes)
    if reduction == "sum":
        return total
    return prim.div(total, count_of(loss.shape, axes, loss.dtype) if total_weight is None else total_weight)


@operator(aliases={"target": "label"})
def cross_entropy(
    input: Tensor,
    label: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    soft_label: bool = False,
    axis: int = -1,
    use_softmax: bool = True,
    label_smoothing: float = 0.0,
) -> Tensor:
    """``-sum(label * log_softmax(input))`` along `axis`.

    Labels are class indices in the shape of `input` without `axis` or with size one there (the loss has the label's
    shape), or with `soft_label` probabilities in the shape of `input`, constants to differentiation as in Paddle.
    Indices equal to `ignore_index` count nothing.
    `weight` [classes] weighs classes; the mean divides by the weights that took part (but by the number of all labels
    when there are no weights and `ignore_index` is negative, as in Paddle). Without `use_softmax` the input
    holds probabilities. `label_smoothing` gives that share of every label to all classes alike; with it labels may be
    one-hot, too.
    """
    at = axis_of("cross_entropy", axis, input.ndim)
    log_probability = _log_softmax(input, at) if use_softmax else prim.log(input)
    one_hot = label_smoothing and label.shape == input.shape and kind_of(label.dtype) == 2
    if soft_label or one_hot:
        return _soft_cross_entropy(log_probability, label, weight, reduction, at, label_smoothing)
    everyone = weight is None and ignore_index < 0
    return _hard_cross_entropy(log_probability, label, weight, ignore_index, reduction, at, label_smoothing, everyone)


@cross_entropy.check_bounds
def _(
    input: Array, label: Array, ignore_index: int, soft_label: bool, axis: int, **_: Any
) -> Iterator[tuple[Any, ...]]:
    if not soft_label:
        yield label, 0, input.shape[axis], ignore_index


@cross_entropy.specialize
def _(types: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """The mean over class indices along the last axis, none of them weighed or smoothed."""
    if len(types) != 2 or types[0].dtype.name not in ("float32", "float64") or types[1].dtype.kind not in "iu":
        return None
    ordinary = attributes["reduction"] == "mean" and attributes["use_softmax"] and not attributes["soft_label"]
    last = attributes["axis"] in (-1, types[0].ndim - 1) and not attributes["label_smoothing"]
    if not (ordinary and last and types[1].shape == types[0].shape[:-1] and prod(types[0].shape)):
        return None
    classes, count, ignored = types[0].shape[-1], prod(types[1].shape), attributes["ignore_index"]
    return lambda x, label: _mean_cross_entropy(x.reshape(-1, classes), label.reshape(-1), count, ignored)


@ieee
def _mean_cross_entropy(x: Array, label: Array, count: int, ignored: int) -> Array:
    """Of rows [count, classes]; a label outside the classes picks nothing, as in the decomposition."""
    shifted = x - x.max(axis=1, keepdims=True)
    valid = label != ignored
    if valid.all() and label.min() >= 0 and label.max() < x.shape[1]:
        picked = shifted[np.arange(count), label]
        taken = np.log(np.exp(shifted).sum(axis=1)) - picked
        return np.asarray(taken.sum() / x.dtype.type(count))
    inside = valid & (label >= 0) & (label < x.shape[1])
    picked = shifted[np.arange(count), np.where(inside, label, 0)]
    taken = np.where(inside, np.log(np.exp(shifted).sum(axis=1)) - picked, 0)
    total = count if ignored < 0 else max(int(np.count_nonzero(valid)), 1)
    return np.asarray(taken.sum() / x.dtype.type(total), x.dtype)


def _log_softmax(x: Tensor, axis: int) -> Tensor:
    shifted = prim.sub(x, largest(x, (axis,)))
    total = prim.log(prim.reduce_sum(prim.exp(shifted), axes=(axis,)))
    return prim.sub(shifted, restore(total, x.shape, (axis,)))


def _soft_cross_entropy(
    log_probability: Tensor, label: Tensor, weight: Tensor | None, reduction: str, axis: int, smoothing: float
) -> Tensor:
    label = prim.stop_gradient(label)
    if label.shape != log_probability.shape:
        raise ShapeError(f"cross_entropy: soft labels {label.type} differ in shape from input {log_probability.type}")
    if smoothing:  # in the labels' own precision, as Paddle
        classes = count_of(label.shape, (axis,), label.dtype)
        label = prim.add(prim.mul(label, 1 - smoothing), prim.div(prim.constant(smoothing, label.dtype), classes))
    label = label if label.dtype == log_probability.dtype else prim.cast(label, dtype=log_probability.dtype)
    loss = prim.neg(prim.reduce_sum(prim.mul(label, log_probability), axes=(axis,)))
    total = None
    if weight is not None:
        given = prim.reduce_sum(prim.mul(label, broadcast_along(weight, label.shape, axis)), axes=(axis,))
        loss = prim.mul(loss, given)
        total = prim.reduce_sum(given, axes=tuple(range(given.ndim)))
    if reduction == "none":
        return prim.reshape(loss, shape=_one_at(label.shape, axis))
    return reduce_loss("cross_entropy", loss, reduction, total)


def _one_at(shape: Any, axis: int) -> tuple[Any, ...]:
    return tuple(1 if i == axis else n for i, n in enumerate(shape))


def _hard_cross_entropy(
    log_probability: Tensor,
    label: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    axis: int,
    smoothing: float,
    everyone: bool = False,
) -> Tensor:
    index = class_indices("cross_entropy", log_probability, label, axis)
    valid = prim.ne(index, ignore_index)
    loss = prim.neg(_smoothed_pick(log_probability, index, axis, smoothing))
    share = prim.cast(valid, dtype=log_probability.dtype)
    if weight is not None:
        weights = broadcast_along(weight, log_probability.shape, axis)
        share = prim.mul(share, _smoothed_pick(weights, index, axis, smoothing))
    loss = prim.select(valid, prim.mul(loss, share), 0.0)
    if reduction == "none":  # Paddle keeps the label's shape, but for smoothed labels
        return prim.reshape(loss, shape=_one_at(log_probability.shape, axis) if smoothing else label.shape)
    if everyone:
        return reduce_loss("cross_entropy", loss, reduction)
    total = prim.reduce_sum(share, axes=tuple(range(share.ndim)))
    total = prim.select(prim.eq(total, 0.0), 1.0, total)  # nothing took part: the mean is 0, not NaN
    return reduce_loss("cross_entropy", loss, reduction, total)


def _smoothed_pick(x: Tensor, index: Tensor, axis: int, smoothing: float) -> Tensor:
    """The element of `x` at `index` along `axis`, mixed with the mean of all by `smoothing`."""
    picked = pick(x, index, axis)
    if not smoothing:
        return picked
    mean = prim.div(prim.reduce_sum(x, axes=(axis,)), count_of(x.shape, (axis,), x.dtype))
    return prim.add(prim.mul(picked, 1 - smoothing), prim.mul(mean, smoothing))


def class_indices(name: str, input: Tensor, label: Tensor, axis: int) -> Tensor:
    """Labels in the shape of `input` without `axis`. Raises for others, and for labels that are not integers."""
    shape = shape_without(input.shape, (axis,))
    if label.dtype not in INTEGER:
        raise DTypeError(f"{name}: labels are class indices (integers), got {label.type}")
    if label.shape != shape and label.shape != _one_at(input.shape, axis):
        raise ShapeError(f"{name}: label {label.type} does not fit input {input.type} along axis {axis}")
    return label if label.shape == shape else prim.reshape(label, shape=shape)


def pick(x: Tensor, index: Tensor, axis: int) -> Tensor:
    """The element of `x` that `index` tells along `axis`; 0 for indices outside."""
    position = prim.iota(shape=x.shape, axis=axis, dtype=index.dtype)
    chosen = prim.eq(position, restore(index, x.shape, (axis,)))
    return prim.reduce_sum(prim.select(chosen, x, 0.0), axes=(axis,))


@cross_entropy.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    logits, label, weight = rng.standard_normal((4, 3)), np.array([0, 2, 1, 2]), rng.uniform(0.5, 2, 3)
    soft = rng.uniform(0.1, 1, (4, 3))
    yield Sample(logits, label)
    yield Sample(logits.astype(np.float32), label[:, None].astype(np.int32), reduction="none")
    yield Sample(logits, label, weight, ignore_index=2)
    yield Sample(logits, label, weight, label_smoothing=0.1)
    yield Sample(logits, label, ignore_index=2, reduction="none", label_smoothing=0.1)
    yield Sample(logits, soft, weight, soft_label=True)
    yield Sample(logits, soft, soft_label=True, reduction="none", label_smoothing=0.2)
    yield Sample(soft, label, use_softmax=False, reduction="sum")
    yield Sample(rng.standard_normal((2, 3, 5)), rng.integers(0, 3, (2, 5)), axis=1)


@operator()
def softmax_with_cross_entropy(
    logits: Tensor,
    label: Tensor,
    soft_label: bool = False,
    ignore_index: int = -100,
    numeric_stable_mode: bool = True,
    return_softmax: bool = False,
    axis: int = -1,
) -> Tensor | tuple[Tensor, Tensor]:
    """:func:`cross_entropy` of each sample, with size one at `axis`; with `return_softmax` the probabilities, too.

    These are constants to differentiation. It is always computed without overflow, whatever `numeric_stable_mode`.
    """
    loss = cross_entropy(logits, label, None, ignore_index, "none", soft_label, axis)
    if not return_softmax:
        return loss
    at = axis_of("softmax_with_cross_entropy", axis, logits.ndim)
    return loss, prim.stop_gradient(prim.exp(_log_softmax(logits, at)))


@softmax_with_cross_entropy.check_bounds
def _(
    logits: Array, label: Array, ignore_index: int, soft_label: bool, axis: int, **_: Any
) -> Iterator[tuple[Any, ...]]:
    if not soft_label:
        yield label, 0, logits.shape[axis], ignore_index


@softmax_with_cross_entropy.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((4, 3)), np.array([[0], [2], [1], [2]]))
    yield Sample(rng.standard_normal((4, 3)), rng.random((4, 3)), soft_label=True)


@operator()
def nll_loss(
    input: Tensor, label: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
) -> Tensor:
    """Minus the log-probability `input` [N, classes, ...] of the class `label` [N, ...]; see :func:`cross_entropy`.

    `weight` is a constant to differentiation, as in Paddle."""
    weight = None if weight is None else prim.stop_gradient(weight)
    return _hard_cross_entropy(input, label, weight, ignore_index, reduction, 1, 0.0)


@nll_loss.check_bounds
def _(input: Array, label: Array, ignore_index: int, **_: Any) -> Iterator[tuple[Any, ...]]:
    yield label, 0, input.shape[1], ignore_index


@nll_loss.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((4, 3)), np.array([0, 2, 1, 2]))
    yield Sample(rng.standard_normal((2, 3, 5)), rng.integers(0, 3, (2, 5)), rng.random(3), 2, "sum")


def _difference(name: str, input: Tensor, label: Tensor) -> Tensor:
    if input.shape != label.shape:
        prim.broadcast_shapes([input.shape, label.shape])  # names both shapes if they do not fit
    return prim.sub(input, label)


def regressions(rng: np.random.Generator) -> Iterator[Sample]:
    """All three reductions."""
    for reduction in ("mean", "sum", "none"):
        yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((2, 3)), reduction=reduction)


@operator(promote="binary", samples=regressions)
def mse_loss(input: Tensor, label: Tensor, reduction: str = "mean") -> Tensor:
    """The squared difference."""
    difference = _difference("mse_loss", input, label)
    return reduce_loss("mse_loss", prim.mul(difference, difference), reduction)


@operator(promote="binary")
def square_error_cost(input: Tensor, label: Tensor) -> Tensor:
    """The squared difference of each element."""
    difference = _difference("square_error_cost", input, label)
    return prim.mul(difference, difference)


@square_error_cost.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((2, 3)))


@operator(promote="binary", samples=regressions)
def l1_loss(input: Tensor, label: Tensor, reduction: str = "mean") -> Tensor:
    """The absolute difference."""
    return reduce_loss("l1_loss", prim.abs(_difference("l1_loss", input, label)), reduction)


@operator(promote="binary")
def smooth_l1_loss(
    input: Tensor, label: Tensor, reduction: str = "mean", delta: float = 1.0, is_huber: bool = True
) -> Tensor:
    """Quadratic up to `delta`, linear beyond (Huber, 1964); divided by `delta` unless `is_huber`."""
    check_same_shape("smooth_l1_loss", input=input, label=label)
    size = smooth_abs(prim.sub(input, label))
    quadratic = prim.mul(prim.mul(size, size), 0.5)
    linear = prim.mul(prim.sub(size, delta / 2), delta)
    loss = prim.select(prim.lt(size, delta), quadratic, linear)
    return reduce_loss("smooth_l1_loss", loss if is_huber else prim.div(loss, delta), reduction)


@smooth_l1_loss.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield from regressions(rng)
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((2, 3)), delta=0.5, is_huber=False)


@operator()
def kl_div(input: Tensor, label: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """``label * (log(label) - input)`` with log-probabilities `input`; "batchmean" divides by the batch size only.

    `label` is a constant to differentiation, as in Paddle.
    """
    check_same_shape("kl_div", input=input, label=label)
    label = prim.stop_gradient(label)
    if log_target:
        loss = prim.mul(prim.exp(label), prim.sub(label, input))
    else:
        positive = prim.gt(label, 0.0)
        safe = prim.select(positive, label, 1.0)
        loss = prim.select(positive, prim.mul(safe, prim.sub(prim.log(safe), input)), 0.0)
    if reduction == "batchmean":
        return reduce_loss("kl_div", loss, "mean", count_of(loss.shape, (0,), loss.dtype))
    return reduce_loss("kl_div", loss, reduction)


@kl_div.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    for reduction in ("mean", "batchmean", "none"):
        yield Sample(-rng.random((2, 3)), rng.random((2, 3)), reduction)
    yield Sample(-rng.random((2, 3)), -rng.random((2, 3)), log_target=True)
    yield Sample(-rng.random(2), np.array([0.0, 1.0]))


@operator()
def binary_cross_entropy(input: Tensor, label: Tensor, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """``-(label log(input) + (1 - label) log(1 - input))`` of probabilities; the logarithms count as at least -100.

    The derivative is ``(input - label) / max(input (1 - input), 1e-12)``, Paddle's at probabilities 0 and 1, too;
    `label` is a constant to differentiation, as in Paddle.
    """
    check_same_shape("binary_cross_entropy", input=input, label=label)
    label = prim.stop_gradient(label)
    given = prim.stop_gradient(input)
    edge = prim.le(prim.mul(given, prim.sub(1.0, given)), 1e-12)
    inner = prim.select(edge, given, input)
    logs = [_bounded_log(p) for p in (inner, prim.sub(1.0, inner))]
    loss = prim.neg(prim.add(prim.mul(label, logs[0]), prim.mul(prim.sub(1.0, label), logs[1])))
    slope = prim.mul(prim.sub(given, label), 1e12)
    loss = prim.add(loss, prim.select(edge, prim.mul(prim.sub(input, given), slope), 0.0))  # adds nothing but slope
    return reduce_loss("binary_cross_entropy", loss if weight is None else prim.mul(loss, weight), reduction)


def _bounded_log(p: Tensor) -> Tensor:
    """``log(p)``, at least -100: a constant at zero, where the derivative would make NaN out of infinity."""
    positive = prim.gt(p, 0.0)
    return prim.select(positive, prim.maximum(prim.log(prim.select(positive, p, 1.0)), -100.0), -100.0)


@binary_cross_entropy.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.uniform(0.1, 0.9, (2, 3)), rng.random((2, 3)))
    yield Sample(np.array([0.0, 1.0]), np.array([0.0, 0.5]), rng.random(2), "none")


@operator()
def binary_cross_entropy_with_logits(
    logit: Tensor,
    label: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Binary cross-entropy of ``sigmoid(logit)``, without overflow; `pos_weight` weighs positive labels.

    `label` is a constant to differentiation, as in Paddle.
    """
    check_same_shape("binary_cross_entropy_with_logits", logit=logit, label=label)
    label = prim.stop_gradient(label)
    if pos_weight is None:
        above, tail = softplus_parts(logit)
        loss = prim.add(prim.sub(above, prim.mul(logit, label)), tail)
    else:
        factor = prim.add(prim.mul(prim.sub(pos_weight, 1.0), label), 1.0)
        negative = prim.add(*softplus_parts(prim.neg(logit)))
        loss = prim.add(prim.mul(prim.sub(1.0, label), logit), prim.mul(factor, negative))
    return reduce_loss(
        "binary_cross_entropy_with_logits", loss if weight is None else prim.mul(loss, weight), reduction
    )


@binary_cross_entropy_with_logits.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    logit, label = rng.standard_normal((2, 3)) * 5, rng.random((2, 3))
    yield Sample(logit, label)
    yield Sample(logit, label, rng.random(3), "none", rng.random(3))


@operator()
def margin_ranking_loss(
    input: Tensor, other: Tensor, label: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """``max(0, -label * (input - other) + margin)`` with labels 1 and -1."""
    loss = prim.add(prim.mul(prim.neg(label), prim.sub(input, other)), margin)
    return reduce_loss("margin_ranking_loss", positive_part(loss), reduction)


@margin_ranking_loss.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(*(rng.standard_normal(4) for _ in range(2)), np.array([1.0, -1.0, 1.0, -1.0]), 0.3)


@operator()
def hinge_embedding_loss(input: Tensor, label: Tensor, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """`input` where the label is 1, ``max(0, margin - input)`` where it is -1."""
    apart = positive_part(prim.sub(margin, input))
    loss = prim.add(prim.select(prim.eq(label, 1), input, 0.0), prim.select(prim.eq(label, -1), apart, 0.0))
    return reduce_loss("hinge_embedding_loss", loss, reduction)


@hinge_embedding_loss.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal(4), np.array([1, -1, 1, -1]))


@operator()
def soft_margin_loss(input: Tensor, label: Tensor, reduction: str = "mean") -> Tensor:
    """``log(1 + exp(-label * input))`` with labels 1 and -1."""
    check_same_shape("soft_margin_loss", input=input, label=label)
    x = prim.neg(prim.mul(prim.cast(label, dtype=input.dtype), input))
    return reduce_loss("soft_margin_loss", prim.add(*softplus_parts(x)), reduction)


@soft_margin_loss.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal(4), np.array([1, -1, 1, -1]))


@operator()
def label_smooth(label: Tensor, prior_dist: Tensor | None = None, epsilon: float = 0.1) -> Tensor:
    """``(1 - epsilon) * label`` plus `epsilon` times the prior, by default uniform over the last axis.

    The prior is a constant to differentiation, as in Paddle.
    """
    kept = prim.mul(label, 1 - epsilon)
    if prior_dist is not None:
        return prim.add(kept, prim.mul(prim.stop_gradient(prior_dist), epsilon))
    share = prim.div(prim.constant(epsilon, label.dtype), count_of(label.shape, (label.ndim - 1,), label.dtype))
    return prim.add(kept, share)


@label_smooth.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.random((2, 4)))
    yield Sample(rng.random((2, 4)), rng.random((1, 4)), 0.2)
