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


def test_the_loss_of_yolo_is_captured() -> None:
    rng = np.random.default_rng(0)
    x = argosy.to_tensor(rng.standard_normal((2, 14, 4, 4)).astype("float32"))
    boxes = argosy.to_tensor((rng.random((2, 3, 4)) * 0.4 + 0.3).astype("float32"))
    labels = argosy.to_tensor(rng.integers(0, 2, (2, 3)))

    def loss(t: argosy.Tensor) -> argosy.Tensor:
        return ops.yolo_loss(t, boxes, labels, [10, 13, 16, 30], [0, 1], 2, 0.5, 8)

    captured = argosy.jit.to_static(loss, full_graph=True)
    np.testing.assert_allclose(captured(x).numpy(), loss(x).numpy(), rtol=1e-5)
