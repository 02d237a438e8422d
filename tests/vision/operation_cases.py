"""Transforms and operators of detection on fixed pictures: the same calls in any framework with Paddle's names."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Made = dict[str, np.ndarray]


def picture(height: int = 21, width: int = 30, channels: int = 3) -> np.ndarray:
    """Smooth colours and a little noise, uint8."""
    y, x = np.mgrid[:height, :width] / 5.0
    planes = [np.sin(x + k) + np.cos(y * (k + 1)) for k in range(channels)]
    noise = np.random.default_rng(3).random((height, width, channels))
    return np.clip(np.stack(planes, -1) * 55 + 110 + 30 * noise, 0, 255).astype(np.uint8)


def _pictures(T: Any) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    for mode in ("nearest", "bilinear", "bicubic"):
        yield f"resize-{mode}", lambda img, m=mode: T.resize(img, (13, 17), m)
        yield f"resize-up-{mode}", lambda img, m=mode: T.resize(img, 40, m)
    yield "resize-short", lambda img: T.Resize(10)(img)
    yield "pad", lambda img: T.pad(img, (1, 2, 3, 4), (7, 6, 5))
    yield "pad-2", lambda img: T.Pad([2, 1], (1, 2, 3))(img)
    for mode in ("edge", "reflect", "symmetric"):
        yield f"pad-{mode}", lambda img, m=mode: T.pad(img, 3, padding_mode=m)
    yield "crop", lambda img: T.crop(img, 2, 3, 11, 9)
    yield "center_crop", lambda img: T.CenterCrop((10, 8))(img)
    yield "hflip", T.hflip
    yield "vflip", T.vflip
    for mode in ("nearest", "bilinear"):
        yield (
            f"affine-{mode}",
            lambda img, m=mode: T.affine(img, 30, [2, -3], 0.9, [5, 10], interpolation=m),
        )
        yield f"rotate-{mode}", lambda img, m=mode: T.rotate(img, 25, interpolation=m)
        yield f"perspective-{mode}", lambda img, m=mode: T.perspective(img, _FROM, _TO, interpolation=m)
    yield "affine-fill", lambda img: T.affine(img, 30, [2, -3], 0.9, [5, 10], fill=(1, 2, 3))
    yield "perspective-fill", lambda img: T.perspective(img, _FROM, _TO, fill=(1, 2, 3))
    yield "pad-number", lambda img: T.pad(img, 1, 5)
    yield "rotate-expand", lambda img: T.rotate(img, 40, expand=True)
    yield "rotate-center", lambda img: T.rotate(img, 40, center=(3, 4), fill=9)
    yield "brightness", lambda img: T.adjust_brightness(img, 1.4)
    yield "contrast", lambda img: T.adjust_contrast(img, 0.6)
    yield "hue", lambda img: T.adjust_hue(img, 0.2)
    yield "hue-down", lambda img: T.adjust_hue(img, -0.3)
    yield "gray", lambda img: T.to_grayscale(img)
    yield "gray-3", lambda img: T.Grayscale(3)(img)
    yield "to_tensor", lambda img: T.to_tensor(img)
    yield "to_tensor-hwc", lambda img: T.ToTensor("HWC")(img)
    yield "normalize", lambda img: T.normalize(img, [120.0, 110, 100], [50.0, 60, 70], "HWC")
    yield "transpose", lambda img: T.Transpose()(img)
    yield "compose", lambda img: T.Compose([T.Resize((20, 20)), T.ToTensor(), T.Normalize(0.5, 0.25)])(img)


_FROM = [[0, 0], [29, 0], [29, 20], [0, 20]]
_TO = [[2, 3], [27, 1], [25, 18], [4, 19]]


def _tensors(paddle: Any, T: Any) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Those that the wheel does to tensors."""
    yield "crop", lambda x: T.crop(x, 2, 3, 11, 9)
    yield "center_crop", lambda x: T.center_crop(x, (10, 8))
    yield "hflip", T.hflip
    yield "vflip", T.vflip
    yield "pad", lambda x: T.pad(x, (1, 2, 3, 4), 0.5)
    yield "resize", lambda x: T.resize(x, (13, 17), "bilinear")
    yield "resize-nearest", lambda x: T.resize(x, (13, 17), "nearest")
    yield "brightness", lambda x: T.adjust_brightness(x, 1.4)
    yield "contrast", lambda x: T.adjust_contrast(x, 0.6)
    yield "hue", lambda x: T.adjust_hue(x, 0.2)
    yield "gray", lambda x: T.to_grayscale(x, 3)
    yield "normalize", lambda x: T.normalize(x, [0.5, 0.4, 0.3], [0.5, 0.6, 0.7])
    yield "erase", lambda x: T.erase(x, 2, 3, 4, 5, paddle.to_tensor([[[0.25]]]))


def _boxes(rng: Any, count: int, height: float, width: float) -> np.ndarray:
    a, b = rng.random((count, 2)), rng.random((count, 2))
    low, high = np.minimum(a, b), np.maximum(a, b) + 0.05
    return (np.concatenate([low, high], 1) * [width, height, width, height]).astype(np.float32)


def _regions(paddle: Any, ops: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    rng = np.random.default_rng(5)
    t = paddle.to_tensor
    x, boxes = t(rng.random((2, 12, 14, 17), np.float32)), t(_boxes(rng, 5, 28, 34))
    counts = t(np.array([2, 3], np.int32))
    yield "roi_align", lambda: ops.roi_align(x, boxes, counts, 3, 0.5)
    yield "roi_align-2", lambda: ops.roi_align(x, boxes, counts, (2, 4), 0.5, sampling_ratio=2, aligned=False)
    yield "roi_pool", lambda: ops.roi_pool(x, boxes, counts, (3, 2), 0.5)
    yield "psroi_pool", lambda: ops.psroi_pool(x, boxes, counts, 2, 0.5)
    offset = t((rng.random((2, 2 * 2 * 9, 7, 9)) * 3 - 1.5).astype(np.float32))
    mask = t(rng.random((2, 2 * 9, 7, 9), np.float32))
    weight, bias = t(rng.random((8, 6, 3, 3), np.float32)), t(rng.random(8, np.float32))
    yield "deform_conv2d", lambda: ops.deform_conv2d(x, offset, weight, bias, 2, (1, 1), 1, 2, 2, mask)
    yield "deform_conv2d-v1", lambda: ops.deform_conv2d(x, offset, weight, None, 2, 1, 1, 2, 2)
    many, scores = t(_boxes(rng, 40, 20, 20)), t(rng.random(40, np.float32))
    kinds = t(rng.integers(0, 3, 40))
    yield "nms", lambda: ops.nms(many, 0.3)
    yield "nms-scores", lambda: ops.nms(many, 0.3, scores)
    yield "nms-kinds", lambda: ops.nms(many, 0.2, scores, kinds, [0, 1, 2], 10)
    priors, spread = t(_boxes(rng, 6, 10, 10)), t((rng.random((6, 4)) + 0.5).astype(np.float32))
    targets = t(_boxes(rng, 4, 10, 10))
    coded = t((rng.random((4, 6, 4)) * 0.5).astype(np.float32))
    turned = t((rng.random((6, 4, 4)) * 0.5).astype(np.float32))
    yield "encode", lambda: ops.box_coder(priors, spread, targets)
    yield "encode-pixels", lambda: ops.box_coder(priors, [0.1, 0.1, 0.2, 0.2], targets, box_normalized=False)
    yield "decode", lambda: ops.box_coder(priors, spread, coded, "decode_center_size")
    yield "decode-1", lambda: ops.box_coder(priors, spread, turned, "decode_center_size", False, 1)
    image = t(np.zeros((1, 3, 40, 60), np.float32))
    low = t(np.zeros((1, 3, 4, 6), np.float32))
    yield "prior_box", lambda: ops.prior_box(low, image, [2.0, 4.0], [5.0, 10.0], [1.0, 2.0], flip=True, clip=True)
    yield (
        "prior_box-order",
        lambda: ops.prior_box(low, image, [4.0], [9.0], [2.0], steps=[8.0, 9.0], min_max_aspect_ratios_order=True),
    )
    out = t(((rng.random((2, 14, 4, 5)) - 0.5) * 3).astype(np.float32))
    sizes = t(np.array([[60, 50], [80, 90]], np.int32))
    yield "yolo_box", lambda: ops.yolo_box(out, sizes, [10, 13, 16, 30], 2, 0.4, 8)
    yield "yolo_box-free", lambda: ops.yolo_box(out, sizes, [10, 13, 16, 30], 2, 0.3, 8, False, scale_x_y=1.2)
    aware = t(((rng.random((2, 16, 4, 5)) - 0.5) * 3).astype(np.float32))
    yield (
        "yolo_box-aware",
        lambda: ops.yolo_box(aware, sizes, [10, 13, 16, 30], 2, 0.3, 8, iou_aware=True, iou_aware_factor=0.4),
    )
    wide = t(_boxes(rng, 12, 700, 900))
    yield (
        "fpn",
        lambda: ops.distribute_fpn_proposals(wide, 2, 5, 4, 224, rois_num=t(np.array([5, 7], np.int32))),
    )
    yield from _proposals(paddle, ops, rng)


def _proposals(paddle: Any, ops: Any, rng: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    t = paddle.to_tensor
    boxes = t(np.stack([_boxes(rng, 12, 8, 8), _boxes(rng, 12, 8, 8)]))
    scores = t(rng.random((2, 3, 12), np.float32))
    for name, settings in (
        ("", {}), ("-gaussian", {"use_gaussian": True}), ("-pixels", {"normalized": False}),
        ("-all", {"background_label": -1, "return_index": True}), ("-uncounted", {"return_rois_num": False}),
    ):  # fmt: skip
        yield f"matrix_nms{name}", lambda s=settings: ops.matrix_nms(boxes, scores, 0.3, 0.1, 8, 10, **s)
    yield "matrix_nms-none", lambda: ops.matrix_nms(boxes, scores, 2.0, 0.1, -1, -1, return_index=True)
    chances, deltas = t(rng.random((2, 3, 4, 5), np.float32)), t(rng.random((2, 12, 4, 5), np.float32) - 0.5)
    sizes, spread = t(np.array([[20.0, 24.0], [18.0, 20.0]], np.float32)), t(np.full((4, 5, 3, 4), 0.5, np.float32))
    anchors = t(_boxes(rng, 60, 20, 20).reshape(4, 5, 3, 4))
    for name, settings in (
        ("", {}), ("-pixels", {"pixel_offset": True}), ("-adaptive", {"eta": 0.8, "nms_thresh": 0.7}),
        ("-few", {"pre_nms_top_n": 20, "post_nms_top_n": 5}), ("-none", {"min_size": 400.0}),
        ("-kept", {"nms_thresh": 0.0, "min_size": 4.0}),
    ):  # fmt: skip
        yield (
            f"generate_proposals{name}",
            lambda s=settings: ops.generate_proposals(
                chances, deltas, sizes, anchors, spread, return_rois_num=True, **s
            ),
        )
    yield from _yolo_losses(paddle, ops, rng)


def _yolo_losses(paddle: Any, ops: Any, rng: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    t = paddle.to_tensor
    out = ((rng.random((2, 14, 4, 4)) - 0.5) * 4).astype(np.float32)
    corners = np.stack([rng.permutation(16)[:5] for _ in range(2)])
    centres = (np.stack([corners % 4, corners // 4], -1) + rng.random((2, 5, 2))) / 4  # no two in one cell
    true = np.concatenate([centres, rng.random((2, 5, 2)) * 0.4 + 0.02], -1).astype(np.float32)
    true[0, 3] = 0
    labels, weights = t(rng.integers(0, 2, (2, 5)).astype(np.int32)), t(rng.random((2, 5), np.float32))

    def loss(**settings: Any) -> Any:
        x = t(out)
        x.stop_gradient = False
        settings = {"ignore_thresh": 0.3, "downsample_ratio": 8, **settings}
        found = ops.yolo_loss(x, t(true), labels, [10, 13, 16, 30, 33, 23], [0, 2], 2, **settings)
        (found * t(np.array([1.0, 2.0], np.float32))).sum().backward()
        return found.detach(), x.grad

    for name, settings in (
        ("", {}), ("-plain", {"use_label_smooth": False}), ("-weighted", {"gt_score": weights}),
        ("-scaled", {"scale_x_y": 1.2}), ("-strict", {"ignore_thresh": 0.1}),
    ):  # fmt: skip
        yield f"yolo_loss{name}", lambda s=settings: loss(**s)


def _flat(found: Any) -> list[np.ndarray]:
    if found is None:
        return []
    if isinstance(found, (list, tuple)):
        return [a for part in found for a in _flat(part)]
    return [np.asarray(found.numpy() if hasattr(found, "numpy") else found)]


def answers(paddle: Any) -> Made:
    """What each case gives, or the class of its error."""
    from PIL import Image

    T, ops = paddle.vision.transforms, paddle.vision.ops
    floating = paddle.to_tensor((picture() / 255.0).astype(np.float32).transpose(2, 0, 1))
    cases: list[tuple[str, Callable[[], Any]]] = []
    cases += [(f"picture.{name}", lambda f=f: f(Image.fromarray(picture()))) for name, f in _pictures(T)]
    cases += [(f"tensor.{name}", lambda f=f: f(floating)) for name, f in _tensors(paddle, T)]
    cases += [(f"ops.{name}", f) for name, f in _regions(paddle, ops)]
    made: Made = {}
    for name, case in cases:
        random.seed(0)
        try:
            found = _flat(case())
        except Exception as error:  # noqa: BLE001  (an answer, too)
            made[name] = np.array(f"{type(error).__name__}: {error}"[:200])
            continue
        for i, array in enumerate(found):
            made[f"{name}.{i}"] = array
    return made
