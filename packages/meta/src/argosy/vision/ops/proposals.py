"""Boxes that a network proposes: decoded, cleared of small ones and of those that others cover.

What remains depends on values: these functions work on the host and hold no gradients.
"""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

import math
from typing import Any

import numpy as np

from argosy.argument_checks import validate_call
from argosy.vision.image import host
from argosy_tensorcore.tensor import Tensor

__all__ = ["generate_proposals", "matrix_nms", "suppress"]

_MOST_GROWTH = math.log(1000.0 / 16.0)  # a size is multiplied by 62.5 at most, as everywhere since Detectron


def _overlaps(box: np.ndarray, others: np.ndarray, more: float) -> np.ndarray:
    """Intersection over union of ``box`` [4] and each of ``others`` [n, 4]; sizes count ``more`` at their ends."""

    def area(b: np.ndarray) -> np.ndarray:
        sides = b[..., 2:] - b[..., :2]
        return np.where((sides < 0).any(-1), 0, (sides + more).prod(-1))

    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    apart = (high < low).any(-1)
    common = np.where(apart, 0, (high - low + more).prod(-1))
    union = area(box) + area(others) - common
    return np.where(common > 0, common / np.where(union > 0, union, 1), 0)


@validate_call
def matrix_nms(
    bboxes: Tensor,
    scores: Tensor,
    score_threshold: float,
    post_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    use_gaussian: bool = False,
    gaussian_sigma: float = 2.0,
    background_label: int = 0,
    normalized: bool = True,
    return_index: bool = False,
    return_rois_num: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Boxes with scores that fall with the overlap with better ones, all at once (Wang et al., 2020, SOLOv2).

    bboxes: ``[N, M, 4]``; scores: ``[N, C, M]``. Of each class but ``background_label`` the ``nms_top_k`` boxes above
    ``score_threshold`` take part, and stay where the fallen score is above ``post_threshold``; of each picture at most
    ``keep_top_k`` (-1: all, of both). Gives rows (class, score, box) ``[R, 6]``, how many belong to each picture
    ``[N]`` int32 (or None), and their numbers ``[R, 1]`` int32 among all N * M boxes (or None).
    """
    if bboxes.ndim != 3 or bboxes.shape[2] != 4 or scores.ndim != 3 or scores.shape[::2] != bboxes.shape[:2]:
        raise ValueError(f"matrix_nms: boxes [N, M, 4] and scores [N, C, M], got {bboxes.shape} and {scores.shape}")
    boxes, chances = host(bboxes), host(scores)
    sigma, more = gaussian_sigma if use_gaussian else None, 0.0 if normalized else 1.0
    limits = score_threshold, post_threshold, nms_top_k, sigma, more
    rows, numbers, counts = [], [], []
    for image, (of_image, by_class) in enumerate(zip(boxes, chances, strict=True)):
        classes = [(label, one) for label, one in enumerate(by_class) if label != background_label]
        found = [(label, *one) for label, of_class in classes for one in _decay(of_image, of_class, *limits)]
        found.sort(key=lambda one: -one[2])
        found = found[:keep_top_k] if keep_top_k > -1 else found
        rows += [[label, score, *of_image[at]] for label, at, score in found]
        numbers += [[at + image * boxes.shape[1]] for _, at, _ in found]
        counts.append(len(found))
    kept = Tensor(np.array(rows, boxes.dtype).reshape(-1, 6))
    index = Tensor(np.array(numbers, np.int32).reshape(-1, 1)) if return_index else None
    return kept, Tensor(np.array(counts, np.int32)) if return_rois_num else None, index


def _decay(
    boxes: np.ndarray, scores: np.ndarray, threshold: float, after: float, top: int, sigma: float | None, more: float
) -> list[tuple[int, Any]]:
    """(number, fallen score) of the boxes of one class that remain."""
    order = np.flatnonzero(scores > threshold)
    order = order[np.argsort(-scores[order], kind="stable")]
    order = order[:top] if top > -1 else order
    overlaps = np.zeros((len(order), len(order)), boxes.dtype)
    for i, at in enumerate(order):
        overlaps[i, :i] = _overlaps(boxes[at], boxes[order[:i]], more)
    most = overlaps.max(1, initial=0)  # of each box with those before it
    if sigma is None:
        with np.errstate(divide="ignore", invalid="ignore"):
            decay = (1 - overlaps) / (1 - most)
    else:
        decay = np.exp((most**2 - overlaps**2) * sigma)
    decay[np.triu_indices(len(order))] = 1
    fallen = scores[order] * decay.min(1, initial=1)
    return [(int(at), score) for at, score in zip(order, fallen, strict=True) if score > after]


@validate_call
def generate_proposals(
    scores: Tensor,
    bbox_deltas: Tensor,
    img_size: Tensor,
    anchors: Tensor,
    variances: Tensor,
    pre_nms_top_n: int = 6000,
    post_nms_top_n: int = 1000,
    nms_thresh: float = 0.5,
    min_size: float = 0.1,
    eta: float = 1.0,
    pixel_offset: bool = False,
    return_rois_num: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Regions of interest of a region proposal network (Ren et al., 2015).

    Gives boxes ``[R, 4]``, their scores ``[R, 1]`` and how many belong to each picture (int32, or None).
    scores: ``[N, A, H, W]``; bbox_deltas: ``[N, 4 * A, H, W]``; img_size: ``[N, 2]`` (height, width); anchors and
    variances: ``[H, W, A, 4]``. Of the ``pre_nms_top_n`` best boxes those of sides of ``min_size`` or more (and 1)
    go to non-maximum suppression with ``nms_thresh``, which falls by ``eta`` with each box kept while above 1/2;
    ``post_nms_top_n`` remain. A picture without any has one box of zeros. pixel_offset: sizes count both end pixels.
    """
    n = scores.shape[0]
    chances = host(scores).transpose(0, 2, 3, 1).reshape(n, -1)
    deltas = host(bbox_deltas).reshape(n, -1, 4, *scores.shape[2:]).transpose(0, 3, 4, 1, 2).reshape(n, -1, 4)
    priors, spreads, sizes = host(anchors).reshape(-1, 4), host(variances).reshape(-1, 4), host(img_size)
    if not chances.shape[1] == deltas.shape[1] == len(priors) == len(spreads):
        counts = [chances.shape[1], deltas.shape[1], len(priors), len(spreads)]
        raise ValueError(f"generate_proposals: scores, deltas, anchors and variances of as many boxes, got {counts}")
    more = 1.0 if pixel_offset else 0.0
    boxes, kept_scores, counts = [], [], []
    for image in range(n):
        order = np.argsort(-chances[image], kind="stable")
        order = order[:pre_nms_top_n] if 0 < pre_nms_top_n < len(order) else order
        made = _decode(priors[order], deltas[image][order], spreads[order], more)
        made = np.clip(made, 0, np.tile(sizes[image][::-1] - more, 2)).astype(priors.dtype)
        large = _large_boxes(made, max(min_size, 1.0), sizes[image], pixel_offset)
        made, best = made[large], chances[image][order][large]
        keep = suppress(made, nms_thresh, eta, more)
        keep = keep[:post_nms_top_n] if post_nms_top_n > 0 else keep
        boxes.append(made[keep] if len(large) else np.zeros((1, 4), made.dtype))
        kept_scores.append(best[keep] if len(large) else np.zeros(1, best.dtype))
        counts.append(len(boxes[-1]))
    rois_num = Tensor(np.array(counts, np.int32)) if return_rois_num else None
    return Tensor(np.concatenate(boxes)), Tensor(np.concatenate(kept_scores)[:, None]), rois_num


def _decode(priors: np.ndarray, deltas: np.ndarray, spreads: np.ndarray, more: float) -> np.ndarray:
    size = priors[:, 2:] - priors[:, :2] + more
    centre = priors[:, :2] + size / 2 + spreads[:, :2] * deltas[:, :2] * size
    half = np.exp(np.minimum(spreads[:, 2:] * deltas[:, 2:], _MOST_GROWTH)) * size / 2
    return np.concatenate([centre - half, centre + half - more], 1)


def _large_boxes(boxes: np.ndarray, least: float, size: np.ndarray, pixel_offset: bool) -> np.ndarray:
    sides = boxes[:, 2:] - boxes[:, :2] + (1.0 if pixel_offset else 0.0)
    fit = (sides >= least).all(1)
    if pixel_offset:
        fit &= (boxes[:, :2] + sides / 2 <= size[::-1]).all(1)
    return np.flatnonzero(fit)


def suppress(boxes: np.ndarray, threshold: float, eta: float, more: float) -> np.ndarray:
    """Which of the boxes, the best first, none of those kept before covers."""
    if threshold <= 0:
        return np.arange(len(boxes))
    kept: list[int] = []
    for at, box in enumerate(boxes):
        if not kept or (_overlaps(box, boxes[kept], more) <= threshold).all():
            kept.append(at)
            threshold *= eta if eta < 1 and threshold > 0.5 else 1
    return np.array(kept, np.int64)
