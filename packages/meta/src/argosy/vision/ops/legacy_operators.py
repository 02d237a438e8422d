"""Operators as older libraries call them past Paddle's functions: tensors, then names and values of attributes in turn,
``matrix_nms(boxes, scores, "nms_top_k", 100, ...)``.

PaddleDetection's ``ppdet.modeling.ops`` is written so.
"""

from __future__ import annotations

from typing import Any

from argosy.vision import ops
from argosy.vision.ops.suppression import multiclass_nms3 as _multiclass_nms3
from argosy_autograd.modes import no_grad
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.dtype import finfo

__all__ = [
    "argsort", "box_coder", "distribute_fpn_proposals", "fake_channel_wise_quantize_dequantize_abs_max",
    "generate_proposals_v2", "matrix_nms", "multiclass_nms3",
]  # fmt: skip


def _split(given: tuple[Any, ...]) -> tuple[list[Any], dict[str, Any]]:
    """Operands before the first attribute's name, and the attributes."""
    first = next((at for at, one in enumerate(given) if isinstance(one, str)), len(given))
    if (len(given) - first) % 2:
        raise TypeError(f"attributes come as names and values in turn, got {given[first:]!r:.200}")
    return list(given[:first]), dict(zip(given[first::2], given[first + 1 :: 2], strict=True))


def argsort(*given: Any) -> tuple[Any, Any]:
    """The sorted values, and where they stood; attributes ``axis``, ``descending``, ``stable``."""
    (x,), attributes = _split(given)
    order = get_operator("argsort")(x, **attributes)
    return get_operator("take_along_axis")(x, order, attributes.get("axis", -1)), order


def multiclass_nms3(*given: Any) -> tuple[Any, Any, Any]:
    """Boxes, scores, the number of regions of each picture or None: see ``vision.ops.suppression.multiclass_nms3``."""
    operands, attributes = _split(given)
    return _multiclass_nms3(*operands, **attributes)


def matrix_nms(*given: Any) -> tuple[Any, Any, Any]:
    """Boxes and scores: rows, their numbers, how many belong to each picture; see ``vision.ops.matrix_nms``."""
    operands, attributes = _split(given)
    rows, counts, numbers = ops.matrix_nms(*operands, **{**attributes, "return_index": True})
    return rows, numbers, counts


def box_coder(*given: Any) -> Any:
    """Priors, their variances (or None, and the attribute ``variance``), targets; see ``vision.ops.box_coder``.

    Returns a tensor, as that does.
    """
    (priors, variances, targets), attributes = _split(given)
    numbers = attributes.pop("variance", None)
    return ops.box_coder(priors, numbers if variances is None else variances, targets, **attributes)


def distribute_fpn_proposals(*given: Any) -> tuple[Any, Any, Any]:
    """Regions, how many of each picture, the number of levels twice; see ``vision.ops.distribute_fpn_proposals``."""
    (regions, counts, *_), attributes = _split(given)
    return ops.distribute_fpn_proposals(regions, **attributes, rois_num=counts)


def generate_proposals_v2(*given: Any) -> tuple[Any, Any, Any]:
    """Scores, deltas, sizes, anchors, variances; see ``vision.ops.generate_proposals``."""
    operands, attributes = _split(given)
    renamed = {name.replace("topN", "top_n"): value for name, value in attributes.items()}
    return ops.generate_proposals(*operands, **{**renamed, "return_rois_num": True})


def fake_channel_wise_quantize_dequantize_abs_max(*given: Any) -> tuple[Any, Any]:
    """A tensor rounded to integers of ``bit_length`` bits and back, and what the largest of them stands for in each
    channel, of axis ``quant_axis``: the largest magnitude. Gradients pass as they come.

    Of operands the tensor, one that the result is written to or None, and one that the magnitudes are written to.
    """
    operands, attributes = _split(given)
    x, scale = operands[0], operands[-1] if len(operands) == 3 else None
    axis, levels = attributes.get("quant_axis", 0), 2 ** (attributes.get("bit_length", 8) - 1) - 1
    others = [at for at in range(x.ndim) if at != axis % x.ndim]
    with no_grad():
        found = x.abs().amax(others, keepdim=True)
        safe = found.clip(min=float(finfo(x.dtype).tiny))
        rounded = (x / safe * levels).round() * safe / levels
        flat = found.flatten()
        if scale is not None:
            scale.set_value(flat)
    return x + (rounded - x).detach(), flat if scale is None else scale
