"""The best boxes of every class: what detectors give in the end."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argosy.vision.image import host
from argosy.vision.ops.proposals import suppress
from argosy_tensorcore.tensor import Tensor

__all__ = ["multiclass_nms3"]


def multiclass_nms3(
    bboxes: Tensor,
    scores: Tensor,
    rois_num: Tensor | None = None,
    score_threshold: float = 0.0,
    nms_top_k: int = -1,
    keep_top_k: int = -1,
    nms_threshold: float = 0.3,
    normalized: bool = True,
    nms_eta: float = 1.0,
    background_label: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Non-maximum suppression class by class: Paddle's operator under PaddleDetection's ``MultiClassNMS``.

    bboxes: ``[N, M, 4]``; scores: ``[N, C, M]``; or, with ``rois_num`` ``[N]`` int32 regions of each picture, boxes
    ``[R, C, 4]`` that differ by class and scores ``[R, C]``. Of each class but ``background_label`` the ``nms_top_k``
    best boxes above ``score_threshold`` take part; a better one that overlaps by more than ``nms_threshold`` (which
    ``nms_eta`` below 1 shrinks after each box kept, while it is above 0.5) removes a box; of each picture the
    ``keep_top_k`` best stay (-1: all, of both). Without ``normalized``, sizes count both end pixels. Gives rows (class,
    score, box) ``[K, 6]`` by picture and class, within a class the best first (with ``rois_num`` in the order of the
    boxes, as Paddle's kernel gives them), their numbers ``[K, 1]`` int32 among all N * M (or R * C) boxes, and
    how many belong to each picture ``[N]`` int32. Raises ValueError for other shapes.
    """
    options = score_threshold, nms_top_k, nms_threshold, nms_eta, 0.0 if normalized else 1.0
    rows, numbers, counts = [], [], []
    for boxes, chances, places in _pictures(bboxes, scores, rois_num):
        found: list[tuple[int, int]] = []
        for label in range(len(chances)):
            if label != background_label:
                found += [(label, int(at)) for at in _suppress_class(boxes[label], chances[label], *options)]
        if -1 < keep_top_k < len(found):
            best = sorted(found, key=lambda one: -chances[one])[:keep_top_k]
            found = sorted(best, key=lambda one: one[0])
        if rois_num is not None:
            found.sort()
        rows += [[label, chances[label, at], *boxes[label, at]] for label, at in found]
        numbers += [[places[one]] for one in found]
        counts.append(len(found))
    kept = np.array(rows, host(bboxes).dtype).reshape(-1, 6)
    index = np.array(numbers, np.int32).reshape(-1, 1)
    return Tensor(kept), Tensor(index), Tensor(np.array(counts, np.int32))


def _pictures(
    bboxes: Tensor, scores: Tensor, rois_num: Tensor | None
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Of each picture the boxes ``[C, M, 4]``, their scores ``[C, M]`` and their numbers among all ``[C, M]``."""
    boxes, chances = host(bboxes), host(scores)
    by_class = boxes.shape[:2] if rois_num is not None else (*boxes.shape[:1], *scores.shape[1:2], *boxes.shape[1:2])
    if boxes.ndim != 3 or boxes.shape[2] != 4 or chances.shape != by_class:
        wanted = "[N, M, 4] and [N, C, M]" if rois_num is None else "[R, C, 4] and [R, C]"
        raise ValueError(f"multiclass_nms3: boxes and scores must be {wanted}, got {bboxes.shape} and {scores.shape}")
    if rois_num is None:
        count = boxes.shape[1]
        for image, (of_image, of_classes) in enumerate(zip(boxes, chances, strict=True)):
            places = np.arange(image * count, (image + 1) * count)
            classes = len(of_classes)
            yield np.broadcast_to(of_image, (classes, count, 4)), of_classes, np.broadcast_to(places, (classes, count))
        return
    places = np.arange(chances.size).reshape(chances.shape)
    ends = np.cumsum(host(rois_num))
    for low, high in zip([0, *ends[:-1]], ends, strict=True):
        yield boxes[low:high].swapaxes(0, 1), chances[low:high].T, places[low:high].T


def _suppress_class(
    boxes: np.ndarray, scores: np.ndarray, least: float, top: int, threshold: float, eta: float, more: float
) -> np.ndarray:
    """The numbers of the boxes of one class that stay, the best first."""
    order = np.flatnonzero(scores > least)
    order = order[np.argsort(-scores[order], kind="stable")]
    order = order[:top] if top > -1 else order
    return order[suppress(boxes[order], threshold, eta, more)]
