"""The loss of YOLO v3 (Redmon and Farhadi, 2018)."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy.argument_checks import validate_call
from argosy.nn import functional as F
from argosy.vision.image import beside
from argosy_autograd.modes import no_grad
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["yolo_loss"]

_LEAST = 1e-6  # boxes of smaller sides are padding


@validate_call
def yolo_loss(
    x: Tensor,
    gt_box: Tensor,
    gt_label: Tensor,
    anchors: Sequence[int],
    anchor_mask: Sequence[int],
    class_num: int,
    ignore_thresh: float,
    downsample_ratio: int,
    gt_score: Tensor | None = None,
    use_label_smooth: bool = True,
    name: str | None = None,
    scale_x_y: float = 1.0,
) -> Tensor:
    """The loss ``[N]`` of predictions ``x`` ``[N, S * (5 + class_num), H, W]`` of the S anchors in ``anchor_mask``.

    gt_box: ``[N, B, 4]``, centres and sizes in parts of the picture (sizes of 0 are padding); gt_label: ``[N, B]``;
    gt_score: their weights ``[N, B]``; anchors: pairs (width, height) in pixels, of which a picture has
    ``downsample_ratio * H``.
    Each true box belongs to the anchor of the most similar shape: there its place, size and class count, and elsewhere
    confidence does, unless a prediction overlaps a true box by more than ``ignore_thresh``. use_label_smooth: classes
    are told from others by less than 1, by ``1 / max(class_num, 40)`` at each end. The boxes are constants to
    differentiation, as in Paddle.
    """
    gt_box = gt_box.detach()
    n, channels, rows, columns = x.shape
    count = len(anchor_mask)
    if len(anchors) % 2 or channels != count * (5 + class_num):
        raise ValueError(f"yolo_loss: {channels} channels do not fit {count} anchors and {class_num} classes")
    dtype, size = x.dtype.name, downsample_ratio * rows
    cells: Any = x.reshape([n, count, 5 + class_num, rows, columns]).transpose([0, 1, 3, 4, 2])
    sides = beside(x, (np.array(anchors, np.float64).reshape(-1, 2) / size).astype(x.dtype.numpy))
    weight: Any = gt_score if gt_score is not None else get_operator("ones_like")(gt_label, dtype)
    with no_grad():
        valid = (gt_box[..., 2:] > _LEAST).all(-1)
        owner, place = _owners(gt_box, valid, sides, anchor_mask, rows, columns)
        weight = weight * (owner >= 0).cast(dtype)
        ignored = _best_overlap(cells, gt_box, valid, sides, anchor_mask, scale_x_y) > ignore_thresh
        objects = _objects(weight, place, (n, count * rows * columns)).reshape([n, count, rows, columns])
    picked = get_operator("take_along_axis")(cells.reshape([n, -1, 5 + class_num]), place.unsqueeze(-1), 1)
    parts = _locate(picked, gt_box, sides, owner, anchor_mask, (rows, columns))
    parts = parts * (2.0 - gt_box[..., 2] * gt_box[..., 3])  # small boxes count more
    parts = (parts + _classify(picked[..., 5:], gt_label, class_num, use_label_smooth)) * weight
    seen = objects > 1e-5
    confidence = cells[..., 4]
    missed = get_operator("where")(seen | ignored, 0.0, _cross_entropy(confidence, 0.0))
    return parts.sum(-1) + (_cross_entropy(confidence, 1.0) * objects + missed).sum([1, 2, 3])


def _cross_entropy(logit: Any, label: Any) -> Any:
    return F.softplus(logit) - label * logit


def _shape_overlap(a: Any, b: Any) -> Any:
    """Intersection over union of boxes [..., 2] with one centre."""
    low = get_operator("minimum")(a, b)
    common = low[..., 0] * low[..., 1]
    return common / (a[..., 0] * a[..., 1] + b[..., 0] * b[..., 1] - common)


def _owners(boxes: Any, valid: Any, sides: Any, mask: Sequence[int], rows: int, columns: int) -> tuple[Any, Any]:
    """For each true box the number of its anchor among ``mask`` (-1: none), and the cell of predictions it lies in."""
    fits = _shape_overlap(boxes[..., 2:].unsqueeze(2), sides)
    table = np.full(sides.shape[0], -1)
    table[list(mask)] = np.arange(len(mask))
    where = get_operator("where")
    fitting = get_operator("gather")(beside(boxes, table), fits.argmax(-1).flatten())
    owner = where(valid, fitting.reshape(valid.shape), -1)
    across, down = (boxes[..., 0] * columns).cast("int64"), (boxes[..., 1] * rows).cast("int64")
    cell = (where(owner < 0, 0, owner) * rows + down) * columns + across
    return owner, where(owner < 0, 0, cell)


def _best_overlap(cells: Any, boxes: Any, valid: Any, sides: Any, mask: Sequence[int], scale: float) -> Any:
    """The largest intersection over union of each prediction [N, S, H, W] with a true box."""
    rows, columns = cells.shape[2:4]
    grid = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), -1).astype(cells.dtype.numpy)
    centre = (cells[..., :2].sigmoid() * scale - 0.5 * (scale - 1.0) + beside(cells, grid)) / rows
    chosen = get_operator("gather")(sides, beside(cells, np.array(mask))).reshape([1, -1, 1, 1, 2])
    half = cells[..., 2:4].exp() * chosen / 2
    shaped = [boxes.shape[0], 1, 1, 1, boxes.shape[1], 4]
    true = boxes.reshape(shaped)
    low = get_operator("maximum")((centre - half).unsqueeze(4), true[..., :2] - true[..., 2:] / 2)
    high = get_operator("minimum")((centre + half).unsqueeze(4), true[..., :2] + true[..., 2:] / 2)
    inner = get_operator("clip")(high - low, 0.0)
    common = inner[..., 0] * inner[..., 1]
    own = (4 * half[..., 0] * half[..., 1]).unsqueeze(4)
    overlap = common / (own + true[..., 2] * true[..., 3] - common)
    return get_operator("where")(valid.reshape(shaped[:-1]), overlap, 0.0).max(-1)


def _objects(weight: Any, place: Any, shape: tuple[int, int]) -> Any:
    """The weight of the true box in each cell, 0 where there is none; of several the last."""
    later = beside(place, np.triu(np.ones((place.shape[1],) * 2, bool), 1))
    again = (place.unsqueeze(2) == place.unsqueeze(1)) & (weight > 0).unsqueeze(1) & later
    last = get_operator("where")(again.any(-1), 0.0, weight)
    zeros = get_operator("zeros")(list(shape), weight.dtype.name).to(weight.place)
    return get_operator("put_along_axis")(zeros, place, last, 1, "add")


def _locate(picked: Any, boxes: Any, sides: Any, owner: Any, mask: Sequence[int], grid: tuple[int, int]) -> Any:
    """The loss of place and size of each true box."""
    rows, columns = grid
    where = get_operator("where")
    x, y = boxes[..., 0] * rows, boxes[..., 1] * rows  # the picture is square, as in Paddle
    losses = _cross_entropy(picked[..., 0], x - (boxes[..., 0] * columns).floor())
    losses = losses + _cross_entropy(picked[..., 1], y - (boxes[..., 1] * rows).floor())
    number = get_operator("gather")(beside(owner, np.array(mask)), where(owner < 0, 0, owner).flatten())
    side = get_operator("gather")(sides, number).reshape([*owner.shape, 2])
    wanted = where((owner >= 0).unsqueeze(-1), boxes[..., 2:] / side, 1.0).log()
    return losses + (picked[..., 2:4] - wanted).abs().sum(-1)


def _classify(logits: Any, labels: Any, class_num: int, smooth: bool) -> Any:
    margin = min(1.0 / class_num, 1.0 / 40) if smooth else 0.0
    target = F.one_hot(labels, class_num).cast(logits.dtype.name) * (1.0 - 2 * margin) + margin
    return _cross_entropy(logits, target).sum(-1)
