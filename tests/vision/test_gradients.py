"""Features of regions and deformable convolutions have the gradients that finite differences give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import argosy


def slope(f: Callable[[Any], Any], x: np.ndarray, direction: np.ndarray) -> tuple[float, float]:
    """The derivative along ``direction`` by the tape, and by central differences."""
    leaf = argosy.to_tensor(x, stop_gradient=False)
    f(leaf).sum().backward()
    step = 1e-4
    high, low = (float(f(argosy.to_tensor(x + s * step * direction)).sum()) for s in (1, -1))
    return float((leaf.grad.numpy() * direction).sum()), (high - low) / (2 * step)


@pytest.mark.parametrize("name", ["roi_align", "roi_pool", "psroi_pool"])
def test_features_of_regions(name: str) -> None:
    rng = np.random.default_rng(1)
    boxes = argosy.to_tensor(np.array([[0.0, 1, 7, 9], [2, 2, 5, 8], [1, 0, 9, 6]], np.float32))
    counts = argosy.to_tensor(np.array([1, 2], np.int32))
    weight = argosy.to_tensor(rng.random((3, 1, 2, 2)))
    x = rng.permutation(2 * 4 * 100).reshape(2, 4, 10, 10) / 50.0
    pool = getattr(argosy.vision.ops, name)
    got, expected = slope(lambda t: pool(t, boxes, counts, 2) * weight, x, rng.random(x.shape))
    assert got == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("which", ["x", "offset", "mask", "weight"])
def test_deformable_convolution(which: str) -> None:
    rng = np.random.default_rng(2)
    values = {
        "x": rng.random((1, 4, 6, 7)),
        "offset": rng.random((1, 18, 6, 7)) * 0.8 + 0.1,
        "mask": rng.random((1, 9, 6, 7)),
        "weight": rng.random((2, 4, 3, 3)),
    }

    def convolved(t: Any) -> Any:
        given = {k: t if k == which else argosy.to_tensor(v) for k, v in values.items()}
        made = argosy.vision.ops.deform_conv2d(
            given["x"], given["offset"], given["weight"], padding=1, mask=given["mask"]
        )
        return made * made

    got, expected = slope(convolved, values[which], rng.random(values[which].shape))
    assert got == pytest.approx(expected, rel=1e-5)


def test_the_loss_of_yolo_where_two_true_boxes_share_a_cell() -> None:
    """Both count: the wheel's gradient holds that of the last one only."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((1, 2 * 6, 3, 3))
    boxes = argosy.to_tensor(np.array([[[0.5, 0.5, 0.3, 0.2], [0.55, 0.6, 0.25, 0.2], [0.0, 0.0, 0.0, 0.0]]]))
    labels = argosy.to_tensor(np.zeros((1, 3), np.int64))

    def loss(t: Any) -> Any:
        return argosy.vision.ops.yolo_loss(t, boxes, labels, [3, 2, 8, 8], [0, 1], 1, 0.9, 4)

    got, expected = slope(loss, x, rng.random(x.shape))
    assert got == pytest.approx(expected, rel=1e-6)
