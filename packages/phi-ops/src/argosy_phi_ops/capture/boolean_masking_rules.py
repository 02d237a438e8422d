"""Operators on what masks select, while capturing: those that need not know how many elements there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from argosy_phi_ops.capture.boolean_masking import (
    apply_operator,
    detach_selection,
    expand_mask,
    is_plain,
    mask_values,
    same_mask,
)
from argosy_phi_ops.declare.operator import Operator, get_operator
from argosy_tensorcore.tensor import Tensor

if TYPE_CHECKING:
    from argosy_phi_ops.capture.tracer import Tracer

__all__ = ["apply_to_selections"]

Attributes = dict[str, Any]

_ELEMENTWISE = frozenset(
    {"cast", "astype", "assign", "clone", "where", "clip", "scale", "masked_fill", "square_error_cost"}
)
"""Operators without axes in their declarations that are elementwise, too, with broadcasting."""
_LOSSES = frozenset(
    {"mse_loss", "l1_loss", "smooth_l1_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div"}
)
"""Losses that are elementwise before they are reduced."""
_NEUTRAL: dict[str, Any] = {
    "sum": 0, "nansum": 0, "prod": 1, "any": False, "all": True, "count_nonzero": 0, "vector_norm": 0,
    "logsumexp": float("-inf"), "max": float("-inf"), "amax": float("-inf"), "min": float("inf"), "amin": float("inf"),
}  # fmt: skip
"""What changes a reduction's result nothing."""


def apply_to_selections(tracer: Tracer, op: Operator, operands: Sequence[Any], attributes: Attributes) -> Any:
    """The result of ``op`` where some operands are selections; NotImplemented where it takes their size."""
    rule = _rule(op)
    operands = [x if is_plain(x) else detach_selection(tracer, x) for x in operands]
    masks = [x.payload.mask for x in operands if not is_plain(x)]
    if rule is None or not all(same_mask(masks[0], other) for other in masks[1:]):
        return NotImplemented
    return rule(tracer, op, operands, attributes, masks[0])


def _rule(op: Operator) -> Callable[..., Any] | None:
    if op.name in _ELEMENTWISE or (op.axes and set(op.axes) <= set("., ->")):
        return _elementwise
    if op.name in _LOSSES:
        return _loss
    return _reduction if op.name in _NEUTRAL else _RULES.get(op.name)


def _whole_tensor(x: Any) -> Any:
    return x if is_plain(x) else x.payload.whole


def _rank(x: Tensor, mask: Tensor) -> int:
    """The number of axes behind that of a selection."""
    return int(x.payload.whole.ndim - mask.ndim)


def _elementwise(tracer: Tracer, op: Operator, operands: list[Any], attributes: Attributes, mask: Tensor) -> Any:
    ranks = {_rank(x, mask) for x in operands if not is_plain(x)}
    others = [x.ndim for x in operands if is_plain(x) and type(x) is Tensor]
    if len(ranks) > 1 or any(n > min(ranks) for n in others):
        return NotImplemented
    rank = mask.ndim + min(ranks)
    spared = [mask_values(tracer, mask, x, rank=rank) if _wants(x) else _whole_tensor(x) for x in operands]
    made = tracer.record_operator(op, spared, attributes)
    return tracer.select(made, mask) if type(made) is Tensor else NotImplemented


def _wants(x: Any) -> bool:
    """Whether ``x``, not selected, broadcasts and wants gradients: none of them from where the mask does not hold."""
    return type(x) is Tensor and is_plain(x) and not x.stop_gradient


def _axes(axis: Any, rank: int, mask: Tensor) -> tuple[bool, tuple[int, ...]] | None:
    """Whether the selected axis is among ``axis`` of a selection of ``rank`` axes, and those of the whole."""
    given = range(rank) if axis is None else [axis] if isinstance(axis, int) else list(axis) or range(rank)
    chosen = sorted({a % rank if -rank <= a < rank else rank for a in given})
    if rank in chosen:
        return None  # the operator itself says what is wrong with them
    behind = tuple([a - 1 + mask.ndim for a in chosen if a])
    return (True, (*range(mask.ndim), *behind)) if chosen[0] == 0 else (False, behind)


def _reduction(tracer: Tracer, op: Operator, operands: list[Any], attributes: Attributes, mask: Tensor) -> Any:
    x = operands[0]
    neutral = _NEUTRAL[op.name]
    if op.name == "vector_norm" and attributes["p"] < 0:
        return NotImplemented
    if isinstance(neutral, float) and x.payload.dtype.kind in "iu":
        limits = np.iinfo(x.payload.dtype.numpy)
        neutral = int(limits.min if neutral < 0 else limits.max)
    if isinstance(neutral, float) and x.payload.dtype.kind in "bc":
        return NotImplemented
    return _reduce(tracer, op, x, neutral, attributes, mask)


def _reduce(tracer: Tracer, op: Operator, x: Tensor, neutral: Any, attributes: Attributes, mask: Tensor) -> Any:
    found = _axes(attributes["axis"], 1 + _rank(x, mask), mask)
    if found is None:
        return NotImplemented
    over, axes = found
    if not over:
        made = tracer.record_operator(op, [x.payload.whole], {**attributes, "axis": axes})
        return tracer.select(made, mask)
    filled = mask_values(tracer, mask, x.payload.whole, neutral)
    made = tracer.record_operator(op, [filled], {**attributes, "axis": axes})
    if not attributes["keepdim"]:
        return made
    return apply_operator(tracer, "reshape", made, [1, *made.payload.shape[mask.ndim :]])


def _mean(tracer: Tracer, op: Operator, operands: list[Any], attributes: Attributes, mask: Tensor) -> Any:
    x, dtype = operands[0], attributes["dtype"]
    if x.payload.dtype.kind not in "fc" or dtype not in (None, x.payload.dtype.name):
        return NotImplemented
    found = _axes(attributes["axis"], 1 + _rank(x, mask), mask)
    if found is None or not found[0]:
        return NotImplemented if found is None else _reduce(tracer, op, x, 0, attributes, mask)
    wanted = {"axis": attributes["axis"], "dtype": None, "keepdim": attributes["keepdim"]}
    total = _reduce(tracer, get_operator("sum"), x, 0, wanted, mask)
    return apply_operator(tracer, "divide", total, _count(tracer, x, found[1], mask))


def _count(tracer: Tracer, x: Tensor, axes: Sequence[int], mask: Tensor) -> Tensor:
    """How many elements a reduction over ``axes`` of the whole takes, in the dtype of ``x``."""
    count = apply_operator(tracer, "cast", apply_operator(tracer, "sum", mask), x.payload.dtype.name)
    behind = [x.payload.whole.shape[a] for a in axes if a >= mask.ndim]
    return apply_operator(tracer, "multiply", count, int(np.prod(behind))) if behind else count  # type: ignore[no-any-return]


def _variance(tracer: Tracer, op: Operator, operands: list[Any], attributes: Attributes, mask: Tensor) -> Any:
    x = operands[0]
    found = _axes(attributes["axis"], 1 + _rank(x, mask), mask)
    if x.payload.dtype.kind != "f" or found is None or not found[0] or attributes["keepdim"]:
        return NotImplemented
    unbiased = attributes["unbiased"]
    correction = float(attributes.get("correction", 1) if unbiased is None else unbiased)
    whole = mask_values(tracer, mask, x.payload.whole, 0)
    count = _count(tracer, x, found[1], mask)
    mean = apply_operator(tracer, "divide", apply_operator(tracer, "sum", whole, found[1], None, True), count)
    distance = mask_values(tracer, mask, apply_operator(tracer, "subtract", whole, mean), 0)
    total = apply_operator(tracer, "sum", apply_operator(tracer, "square", distance), found[1])
    degrees = apply_operator(tracer, "clip", apply_operator(tracer, "subtract", count, correction), 0.0)
    made = apply_operator(tracer, "divide", total, degrees)
    return apply_operator(tracer, "sqrt", made) if op.name == "std" else made


def _loss(tracer: Tracer, op: Operator, operands: list[Any], attributes: Attributes, mask: Tensor) -> Any:
    reduction = attributes["reduction"]
    if reduction not in ("mean", "sum", "none"):
        return NotImplemented
    each = _elementwise(tracer, op, operands, {**attributes, "reduction": "none"}, mask)
    return each if each is NotImplemented else _of_each(tracer, each, reduction, mask)


def _of_each(tracer: Tracer, each: Tensor, reduction: str, mask: Tensor) -> Any:
    if reduction == "none":
        return each
    operands, attributes = get_operator(reduction).signature.bind((each,), {})
    return apply_to_selections(tracer, get_operator(reduction), operands, attributes)


def _classes(tracer: Tracer, op: Operator, operands: list[Any], attributes: Attributes, mask: Tensor) -> Any:
    """Losses of classes: elsewhere the label is the one to be ignored."""
    given, label, *weight = operands
    if is_plain(given) or is_plain(label) or not _rank(given, mask) or attributes.get("soft_label"):
        return NotImplemented
    axis, rank = attributes.get("axis", 1), given.payload.ndim
    if label.payload.dtype.kind not in "iu" or axis % rank != rank - 1 or any(not is_plain(w) for w in weight):
        return NotImplemented
    if op.name == "nll_loss" and mask.ndim > 1:
        return NotImplemented
    ignored, reduction = attributes["ignore_index"], attributes["reduction"]
    labels = mask_values(tracer, mask, label.payload.whole, ignored)
    scores = mask_values(tracer, mask, given.payload.whole)
    everyone = op.name == "cross_entropy" and not weight and ignored < 0
    options = dict(attributes)
    if "axis" in options:
        options["axis"] = -1
    if reduction == "none" or (reduction == "mean" and everyone):
        options["reduction"] = "none"
        each = tracer.select(tracer.record_operator(op, [scores, labels, *weight], options), mask)
        return _of_each(tracer, each, reduction, mask)
    return tracer.record_operator(op, [scores, labels, *weight], options)


def _rows(tracer: Tracer, op: Operator, operands: list[Any], attributes: Attributes, mask: Tensor) -> Any:
    """Products of selected rows with matrices: neither value nor gradient comes from the others."""
    x, *others = operands
    if is_plain(x) or any(not is_plain(y) or y.ndim > 2 for y in others) or not _rank(x, mask):
        return NotImplemented
    if attributes.get("transpose_x"):
        return NotImplemented
    made = tracer.record_operator(op, [mask_values(tracer, mask, x.payload.whole), *others], attributes)
    return tracer.select(mask_values(tracer, mask, made), mask)


def _within_rows(tracer: Tracer, op: Operator, operands: list[Any], attributes: Attributes, mask: Tensor) -> Any:
    """Operators along an axis behind the selected one."""
    x, axis = operands[0], attributes["axis"]
    rank = x.payload.ndim
    if not isinstance(axis, int) or not 0 < (axis % rank if -rank <= axis < rank else 0):
        return NotImplemented
    made = tracer.record_operator(op, [x.payload.whole], {**attributes, "axis": axis % rank - 1 + mask.ndim})
    return tracer.select(made, mask)


def _flatten(tracer: Tracer, op: Operator, operands: list[Any], attributes: Attributes, mask: Tensor) -> Any:
    """All elements in order: a mask of rows becomes one of elements."""
    x = operands[0]
    if op.name == "reshape":
        if tuple(attributes["shape"]) != (-1,):
            return NotImplemented
    elif attributes["start_axis"] != 0 or attributes["stop_axis"] not in (-1, x.payload.ndim - 1):
        return NotImplemented
    whole = x.payload.whole
    behind = tuple(whole.shape[mask.ndim :])
    if all(isinstance(n, int) and n == 1 for n in behind):
        return tracer.select(
            apply_operator(tracer, "reshape", whole, list(mask.payload.shape)) if behind else whole, mask
        )
    return tracer.select(
        whole, apply_operator(tracer, "expand", expand_mask(tracer, mask, whole.ndim), list(whole.shape))
    )


def _gather(tracer: Tracer, op: Operator, operands: list[Any], attributes: Attributes, mask: Tensor) -> Any:
    """What selected indices take from a tensor."""
    x, index = operands
    if not is_plain(x) or attributes.get("axis") not in (None, 0):
        return NotImplemented
    count = _rank(index, mask)
    if count != (1 if op.name == "gather_nd" else 0):
        return NotImplemented
    at = mask_values(tracer, mask, index.payload.whole, 0)
    if op.name == "gather_nd":
        made = apply_operator(tracer, "gather_nd", x, at)
    else:
        made = apply_operator(tracer, "gather_nd", x, apply_operator(tracer, "unsqueeze", at, -1))
    return tracer.select(mask_values(tracer, mask, made), mask)


def _index(tracer: Tracer, op: Operator, operands: list[Any], attributes: Attributes, mask: Tensor) -> Any:
    """``x[i]`` with selected positions ``i``, and ``x[:, ...]`` of a selection."""
    x, *indices = operands
    key = attributes["key"]
    if not is_plain(x):
        if indices or key[0] != ("slice", None, None, None):
            return NotImplemented
        whole = tracer.record_operator(op, [x.payload.whole], {**attributes, "key": (key[0],) * mask.ndim + key[1:]})
        return tracer.select(whole, mask)
    if any(entry != ("tensor",) for entry in key) or any(is_plain(i) or _rank(i, mask) for i in indices):
        return NotImplemented
    at = [mask_values(tracer, mask, i.payload.whole, 0) for i in indices]
    made = apply_operator(tracer, "gather_nd", x, apply_operator(tracer, "stack", at, -1))
    return tracer.select(mask_values(tracer, mask, made), mask)


def _scatter(tracer: Tracer, op: Operator, operands: list[Any], attributes: Attributes, mask: Tensor) -> Any:
    """Sums at selected indices: elsewhere nothing is added."""
    *into, index, updates = operands
    if is_plain(index) or is_plain(updates) or any(not is_plain(x) for x in into) or _rank(index, mask) != 1:
        return NotImplemented
    terms = mask_values(tracer, mask, updates.payload.whole, 0)
    return tracer.record_operator(op, [*into, mask_values(tracer, mask, index.payload.whole, 0), terms], attributes)


def _number(tracer: Tracer, op: Operator, operands: list[Any], attributes: Attributes, mask: Tensor) -> Any:
    whole = operands[0].payload.whole
    count = apply_operator(tracer, "sum", mask)
    behind = tuple(whole.shape[mask.ndim :])
    return apply_operator(tracer, "multiply", count, int(np.prod(behind))) if behind else count


def _norm(tracer: Tracer, op: Operator, operands: list[Any], attributes: Attributes, mask: Tensor) -> Any:
    p, axis = attributes["p"], attributes["axis"]
    p = 2.0 if p in (None, "fro") else p
    if attributes["dtype"] is not None or isinstance(p, str) or not (axis is None or isinstance(axis, int)):
        return NotImplemented
    options = {"p": float(p), "axis": axis, "keepdim": attributes["keepdim"]}
    return _reduction(tracer, get_operator("vector_norm"), operands, options, mask)


def _squeeze(tracer: Tracer, op: Operator, operands: list[Any], attributes: Attributes, mask: Tensor) -> Any:
    axis = attributes["axis"]
    if not isinstance(axis, int):
        axis = axis[0] if isinstance(axis, (list, tuple)) and len(axis) == 1 else 0
    return _within_rows(tracer, op, operands, {"axis": axis}, mask)


_RULES: dict[str, Callable[..., Any]] = {
    "mean": _mean, "var": _variance, "std": _variance, "cross_entropy": _classes, "nll_loss": _classes,
    "matmul": _rows, "linear": _rows, "softmax": _within_rows, "log_softmax": _within_rows, "flatten": _flatten,
    "reshape": _flatten, "gather_nd": _gather, "gather": _gather, "index_select": _gather, "getitem": _index,
    "squeeze": _squeeze, "scatter_nd": _scatter, "scatter_nd_add": _scatter, "numel": _number, "norm": _norm,
}  # fmt: skip
