"""Boxes that a network proposes: wrong shapes are named, and a loss of them is captured."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import argosy

ops = argosy.vision.ops
ones = argosy.ones


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ops.matrix_nms(ones([2, 3, 5]), ones([2, 1, 3]), 0.1, 0.1, -1, -1), r"boxes \[N, M, 4\]"),
        (lambda: ops.matrix_nms(ones([2, 3, 4]), ones([2, 1, 5]), 0.1, 0.1, -1, -1), r"scores \[N, C, M\]"),
        (
            lambda: ops.generate_proposals(
                ones([1, 3, 2, 2]), ones([1, 12, 2, 2]), ones([1, 2]), ones([2, 2, 2, 4]), ones([2, 2, 3, 4])
            ),
            r"as many boxes, got \[12, 12, 8, 12\]",
        ),
        (
            lambda: ops.yolo_loss(
                ones([1, 13, 2, 2]), ones([1, 1, 4]), ones([1, 1], "int32"), [1, 2, 3, 4], [0, 1], 2, 0.5, 8
            ),
            "13 channels do not fit 2 anchors and 2 classes",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_named(call: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()


@pytest.mark.parametrize("count", [0, 1, 5, 64, 65, 300])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.8])
def test_boxes_remain_that_none_before_removes(count: int, threshold: float) -> None:
    """One box after the other, as the definition says; some have no area, some are equal, some are NaN."""
    rng = np.random.default_rng(count)
    low = rng.random((count, 2)) * 30
    boxes = np.concatenate([low, low + rng.random((count, 2)) * 20], 1)
    boxes[3:5] = boxes[:2]
    boxes[10:20, 2] = boxes[10:20, 0]
    boxes[40:42] = np.nan
    kept: list[int] = []
    for i in range(count):
        if not any(_overlap(boxes[k], boxes[i], threshold) for k in kept):
            kept.append(i)
    assert ops.nms(argosy.to_tensor(boxes), threshold).numpy().tolist() == kept


def _overlap(a: np.ndarray, b: np.ndarray, threshold: float) -> bool:
    sides = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0)
    common = sides[0] * sides[1]
    union = np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common
    return not common <= threshold * (1 if union <= 0 else union)


def test_the_loss_of_yolo_is_captured() -> None:
    rng = np.random.default_rng(0)
    x = argosy.to_tensor(rng.standard_normal((2, 14, 4, 4)).astype("float32"))
    boxes = argosy.to_tensor((rng.random((2, 3, 4)) * 0.4 + 0.3).astype("float32"))
    labels = argosy.to_tensor(rng.integers(0, 2, (2, 3)))

    def loss(t: argosy.Tensor) -> argosy.Tensor:
        return ops.yolo_loss(t, boxes, labels, [10, 13, 16, 30], [0, 1], 2, 0.5, 8)

    captured = argosy.jit.to_static(loss, full_graph=True)
    np.testing.assert_allclose(captured(x).numpy(), loss(x).numpy(), rtol=1e-5)
