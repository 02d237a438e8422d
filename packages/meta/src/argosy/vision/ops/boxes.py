"""Boxes: which to keep, how they are coded, where they stand before anything is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy.argument_checks import validate_call
from argosy.vision.image import beside, host
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["box_coder", "distribute_fpn_proposals", "nms", "prior_box", "yolo_box"]


@validate_call
def nms(
    boxes: Tensor,
    iou_threshold: float = 0.3,
    scores: Tensor | None = None,
    category_idxs: Tensor | None = None,
    categories: Sequence[int] | None = None,
    top_k: int | None = None,
) -> Tensor:
    """Numbers int64 of the boxes that remain when each removes those after it that overlap it by more.

    boxes: ``[R, 4]`` as (x1, y1, x2, y2); scores: ``[R]``, the order (that of ``boxes`` without them);
    category_idxs: ``[R]``: only boxes of one category, of ``categories``, remove each other; top_k: at most so many.
    """
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ValueError(f"nms: boxes should be [R, 4], got {boxes.shape}")
    values = host(boxes).astype(np.float64)
    if scores is None:
        return Tensor(_suppress(values, np.arange(len(values)), iou_threshold)[:top_k])
    order = np.argsort(-host(scores), kind="stable")
    if category_idxs is None:
        return Tensor(_suppress(values, order, iou_threshold)[:top_k])
    if categories is None:
        raise ValueError("nms: category_idxs need categories")
    if top_k is not None and top_k > len(values):
        raise ValueError(f"nms: top_k {top_k} exceeds the {len(values)} boxes")
    kinds = host(category_idxs)
    remaining = [_suppress(values, order[kinds[order] == kind], iou_threshold) for kind in categories]
    together = np.concatenate([*remaining, np.zeros(0, np.int64)])
    return Tensor(together[np.argsort(-host(scores)[together], kind="stable")][:top_k])


def _suppress(boxes: np.ndarray, order: np.ndarray, threshold: float) -> np.ndarray:
    """The numbers in `order` of the boxes that none kept before removes, block after block of the order."""
    corners, alive = np.ascontiguousarray(boxes[order].T), np.ones(len(order), bool)
    block = max(16, min(_BLOCK, _PAIRS // max(len(order), 1)))
    kept = [np.zeros(0, np.int64)]
    for start in range(0, len(order), block):
        rows = start + np.flatnonzero(alive[start : start + block])
        chosen = rows[_kept_rows(_overlaps(corners[:, rows], corners[:, rows], threshold))]
        kept.append(order[chosen])
        rest = start + block + np.flatnonzero(alive[start + block :])
        if len(chosen) and len(rest):
            alive[rest] = ~_overlaps(corners[:, chosen], corners[:, rest], threshold).any(0)
    return np.concatenate(kept).astype(np.int64)


_BLOCK, _PAIRS = 64, 2**20
"""So many boxes, and at most about so many pairs, are compared at once."""


def _overlaps(first: np.ndarray, second: np.ndarray, threshold: float) -> np.ndarray:
    """Which pairs of boxes, [4, n] and [4, m], share more than `threshold` of their union: bool [n, m]."""
    areas = [(v[2] - v[0]) * (v[3] - v[1]) for v in (first, second)]
    left, low, right, high = first[:, :, None]
    width = np.minimum(right, second[2])
    width -= np.maximum(left, second[0])
    np.maximum(width, 0, out=width)
    common = np.minimum(high, second[3])
    common -= np.maximum(low, second[1])
    np.maximum(common, 0, out=common)
    common *= width
    union = np.add.outer(areas[0], areas[1])
    union -= common
    union[union <= 0] = 1
    union *= threshold
    apart: np.ndarray = common <= union  # false for NaN, which overlaps everything
    return ~apart


def _kept_rows(removes: np.ndarray) -> list[int]:
    """The rows of ``removes`` [n, n] that no kept row before removes; a set of rows is the bits of an integer."""
    packed = np.packbits(removes, axis=1, bitorder="little")
    width, content = packed.shape[1], packed.tobytes()
    gone, kept = 0, []
    for i in range(len(removes)):
        if not gone >> i & 1:
            kept.append(i)
            gone |= int.from_bytes(content[i * width : (i + 1) * width], "little")
    return kept


@validate_call
def box_coder(
    prior_box: Tensor,
    prior_box_var: Any,
    target_box: Tensor,
    code_type: str = "encode_center_size",
    box_normalized: bool = True,
    axis: int = 0,
    name: str | None = None,
) -> Tensor:
    """Boxes relative to priors, by centre and logarithm of the size, or back (Girshick et al., 2014).

    prior_box: ``[M, 4]``; prior_box_var: ``[M, 4]``, four numbers or None; target_box: ``[N, 4]`` to encode,
    ``[N, M, 4]`` to decode; box_normalized: without it, sizes count both end pixels; axis: of ``target_box``
    along which priors lie when decoding (0: the second). Gives ``[N, M, 4]``, without gradients, as in Paddle.
    """
    prior_box, target_box = prior_box.detach(), target_box.detach()
    prior_box_var = prior_box_var.detach() if isinstance(prior_box_var, Tensor) else prior_box_var
    if code_type not in ("encode_center_size", "decode_center_size"):
        raise ValueError(f"box_coder: code_type should be encode_center_size or decode_center_size, got {code_type!r}")
    if axis not in (0, 1):
        raise ValueError(f"box_coder: axis should be 0 or 1, got {axis}")
    stack = get_operator("stack")
    more = 0.0 if box_normalized else 1.0
    width, height = (prior_box[:, i + 2] - prior_box[:, i] + more for i in (0, 1))
    centre = prior_box[:, 0] + width / 2, prior_box[:, 1] + height / 2
    if prior_box_var is None:
        scales: list[Any] = [1.0] * 4
    elif isinstance(prior_box_var, Tensor):
        scales = [prior_box_var[:, i] if prior_box_var.ndim == 2 else prior_box_var[i] for i in range(4)]
    else:
        scales = list(prior_box_var)
    if code_type == "encode_center_size":
        x, y = ((target_box[:, i] + target_box[:, i + 2]) / 2 for i in (0, 1))
        w, h = (target_box[:, i + 2] - target_box[:, i] + more for i in (0, 1))
        coded = [
            (x.unsqueeze(1) - centre[0]) / width,
            (y.unsqueeze(1) - centre[1]) / height,
            (w.unsqueeze(1) / width).abs().log(),
            (h.unsqueeze(1) / height).abs().log(),
        ]
        return stack([c / s for c, s in zip(coded, scales, strict=True)], -1)
    if axis == 1:
        width, height, *both = (v.unsqueeze(1) for v in (width, height, *centre))
        centre = both[0], both[1]
        scales = [s.unsqueeze(1) if isinstance(s, Tensor) and s.ndim else s for s in scales]
    x, y, w, h = (target_box[..., i] * scales[i] for i in range(4))
    x, y, w, h = x * width + centre[0], y * height + centre[1], w.exp() * width, h.exp() * height
    return stack([x - w / 2, y - h / 2, x + w / 2 - more, y + h / 2 - more], -1)


def _numbers(given: Any) -> list[float]:
    return [float(given)] if isinstance(given, (int, float)) else [float(v) for v in given]


@validate_call
def prior_box(
    input: Tensor,
    image: Tensor,
    min_sizes: Any,
    max_sizes: Any = None,
    aspect_ratios: Any = (1.0,),
    variance: Any = (0.1, 0.1, 0.2, 0.2),
    flip: bool = False,
    clip: bool = False,
    steps: Any = (0.0, 0.0),
    offset: float = 0.5,
    min_max_aspect_ratios_order: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The boxes ``[H, W, P, 4]`` about each point of a feature map, in parts of the picture, and their variances
    (Liu et al., 2016, SSD).

    input: ``[N, C, H, W]``; image: ``[N, C, height, width]``; for each of ``min_sizes`` there is a box of each of
    ``aspect_ratios`` (with ``flip`` of their reciprocals, too) and, where there are ``max_sizes``, one of the geometric
    mean; ``steps`` are the points' distances (0: as the sizes say), the first at ``offset`` of them.
    """
    ratios = [1.0]
    for ratio in _numbers(aspect_ratios):
        if all(abs(ratio - r) >= 1e-6 for r in ratios):
            ratios += [ratio, 1 / ratio] if flip else [ratio]
    least, most = _numbers(min_sizes), [] if max_sizes is None else _numbers(max_sizes)
    if most and len(most) != len(least):
        raise ValueError(f"prior_box: {len(least)} min_sizes and {len(most)} max_sizes")
    sizes = []
    for i, small in enumerate(least):
        shaped = [(small * math.sqrt(r), small / math.sqrt(r)) for r in ratios]
        mean = [(math.sqrt(small * most[i]),) * 2] if most else []
        sizes += [shaped[0], *mean, *shaped[1:]] if min_max_aspect_ratios_order else [*shaped, *mean]
    height, width = image.shape[2:]
    rows, columns = input.shape[2:]
    across, down = _numbers(steps)
    across, down = across or width / columns, down or height / rows
    x, y = np.meshgrid((np.arange(columns) + offset) * across, (np.arange(rows) + offset) * down)
    w, h = np.array(sizes).T / 2
    x, y = x[..., None], y[..., None]
    made = np.stack([(x - w) / width, (y - h) / height, (x + w) / width, (y + h) / height], -1)
    made = made.clip(0, 1) if clip else made
    dtype = input.dtype.numpy
    spread = np.broadcast_to(np.array(_numbers(variance)), made.shape)
    return Tensor(made.astype(dtype)), Tensor(spread.astype(dtype))


@validate_call
def yolo_box(
    x: Tensor,
    img_size: Tensor,
    anchors: Sequence[int],
    class_num: int,
    conf_thresh: float,
    downsample_ratio: int,
    clip_bbox: bool = True,
    name: str | None = None,
    scale_x_y: float = 1.0,
    iou_aware: bool = False,
    iou_aware_factor: float = 0.5,
) -> tuple[Tensor, Tensor]:
    """Boxes ``[N, A*H*W, 4]`` in pixels and scores ``[N, A*H*W, class_num]`` of YOLO v3's output (Redmon, 2018).

    x: ``[N, A * (5 + class_num), H, W]``, with A numbers more for each point, first, where ``iou_aware``; img_size:
    ``[N, 2]`` (height, width); anchors: A pairs (width, height); boxes of less confidence than ``conf_thresh`` are 0.
    Neither has gradients, as in Paddle.
    """
    x = x.detach()
    count = len(anchors) // 2
    n, channels, rows, columns = x.shape
    if len(anchors) % 2 or channels != count * (5 + class_num + bool(iou_aware)):
        raise ValueError(f"yolo_box: {channels} channels do not fit {count} anchors and {class_num} classes")
    overlap = x[:, :count].sigmoid() if iou_aware else None
    cells = (x[:, count:] if iou_aware else x).reshape([n, count, 5 + class_num, rows, columns])
    grid = [beside(x, g.astype(x.dtype.numpy)) for g in np.meshgrid(np.arange(columns), np.arange(rows))]
    size = img_size.cast(x.dtype.name).reshape([n, 1, 1, 1, 2])
    sides = np.array(anchors, x.dtype.numpy).reshape(1, count, 1, 1, 2)
    bias = -0.5 * (scale_x_y - 1.0)
    cx = (cells[:, :, 0].sigmoid() * scale_x_y + bias + grid[0]) * size[..., 1] / columns
    cy = (cells[:, :, 1].sigmoid() * scale_x_y + bias + grid[1]) * size[..., 0] / rows
    w = cells[:, :, 2].exp() * beside(x, sides[..., 0]) * size[..., 1] / (downsample_ratio * columns)
    h = cells[:, :, 3].exp() * beside(x, sides[..., 1]) * size[..., 0] / (downsample_ratio * rows)
    confidence = cells[:, :, 4].sigmoid()
    if overlap is not None:
        confidence = confidence ** (1.0 - iou_aware_factor) * overlap**iou_aware_factor
    seen = (confidence >= conf_thresh).cast(x.dtype.name)
    edges = [cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2]
    if clip_bbox:
        zero = size[..., 0] * 0
        last = [size[..., 1] - 1, size[..., 0] - 1] * 2
        bound = get_operator("minimum"), get_operator("maximum")
        edges = [bound[1](e, zero) if i < 2 else bound[0](e, last[i]) for i, e in enumerate(edges)]
    boxes = get_operator("stack")([e * seen for e in edges], -1).reshape([n, -1, 4])
    scores = cells[:, :, 5:].sigmoid() * (confidence * seen).unsqueeze(2)
    return boxes, scores.transpose([0, 1, 3, 4, 2]).reshape([n, -1, class_num])


@validate_call
def distribute_fpn_proposals(
    fpn_rois: Tensor,
    min_level: int,
    max_level: int,
    refer_level: int,
    refer_scale: int,
    pixel_offset: bool = False,
    rois_num: Tensor | None = None,
    name: str | None = None,
) -> tuple[list[Tensor], Tensor, list[Tensor] | None]:
    """Boxes ``[R, 4]`` by the level of a feature pyramid that fits their size (Lin et al., 2017).

    Gives the boxes of each level, the place ``[R, 1]`` int32 where each box of the input stands among them, and, with
    ``rois_num``, how many of each level belong to each picture.
    """
    if min_level < 1 or max_level < min_level:
        raise ValueError(f"distribute_fpn_proposals: levels {min_level} to {max_level} are none")
    boxes = host(fpn_rois)
    more = 1.0 if pixel_offset else 0.0
    sides = np.maximum(boxes[:, 2:] - boxes[:, :2] + more, 0)
    scale = np.sqrt(np.prod(sides, 1, dtype=np.float64))
    levels = np.clip(np.floor(np.log2(scale / refer_scale + 1e-6)) + refer_level, min_level, max_level)
    groups = [np.flatnonzero(levels == level) for level in range(min_level, max_level + 1)]
    restore = np.argsort(np.concatenate(groups), kind="stable").astype(np.int32)
    counts = None
    if rois_num is not None:
        images = np.repeat(np.arange(rois_num.shape[0]), host(rois_num))
        counts = [Tensor(np.bincount(images[g], minlength=rois_num.shape[0]).astype(np.int32)) for g in groups]
    return [Tensor(boxes[g]) for g in groups], Tensor(restore[:, None]), counts
