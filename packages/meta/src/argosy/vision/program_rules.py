"""Paddle's operators of detectors: boxes, their suppression, regions of interest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import argosy as paddle
import argosy.vision.ops as ops
from argosy.jit.paddle_format.operators import as_list, as_operand, rule
from argosy.vision.ops.suppression import multiclass_nms3
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.errors import GraphBreak
from argosy_tensorcore.tensor import Tensor

__all__: list[str] = []

Run = Callable[[list[Any], dict[str, Any]], Any]


def _on_values(*names: str) -> Callable[[Run], Run]:
    """A rule that needs the values of its operands: a capture breaks there."""

    def note(function: Run) -> Run:
        def apply_on_values(x: list[Any], a: dict[str, Any]) -> Any:
            if active_tracer() is not None:
                raise GraphBreak(f"{names[0]}: what it gives, or its size, depends on data")
            return function([as_operand(t) for t in x], a)

        rule(*names)(apply_on_values)
        return function

    return note


@_on_values("nms")
def _nms(x: list[Any], a: dict[str, Any]) -> Any:
    return ops.nms(x[0], a["threshold"])


@_on_values("multiclass_nms3")
def _multiclass_nms3(x: list[Any], a: dict[str, Any]) -> Any:
    return list(multiclass_nms3(
        x[0], x[1], x[2], a["score_threshold"], a["nms_top_k"], a["keep_top_k"], a["nms_threshold"], a["normalized"],
        a["nms_eta"], a["background_label"],
    ))  # fmt: skip


@_on_values("matrix_nms")
def _matrix_nms(x: list[Any], a: dict[str, Any]) -> Any:
    rows, counts, numbers = ops.matrix_nms(
        x[0], x[1], a["score_threshold"], a["post_threshold"], a["nms_top_k"], a["keep_top_k"], a["use_gaussian"],
        a["gaussian_sigma"], a["background_label"], a["normalized"], return_index=True,
    )  # fmt: skip
    return [rows, numbers, counts]


@_on_values("generate_proposals")
def _generate_proposals(x: list[Any], a: dict[str, Any]) -> Any:
    return list(ops.generate_proposals(
        x[0], x[1], x[2], x[3], x[4], a["pre_nms_top_n"], a["post_nms_top_n"], a["nms_thresh"], a["min_size"], a["eta"],
        a["pixel_offset"], True,
    ))  # fmt: skip


@_on_values("distribute_fpn_proposals")
def _distribute_fpn_proposals(x: list[Any], a: dict[str, Any]) -> Any:
    counts = x[1] if x[1] is not None else get_operator("full")([1], x[0].shape[0], "int32")
    levels, places, parts = ops.distribute_fpn_proposals(
        x[0], a["min_level"], a["max_level"], a["refer_level"], a["refer_scale"], a["pixel_offset"], counts
    )
    return [levels, parts, places]


@_on_values("roi_align")
def _roi_align(x: list[Any], a: dict[str, Any]) -> Any:
    size = a["pooled_height"], a["pooled_width"]
    return ops.roi_align(x[0], x[1], x[2], size, a["spatial_scale"], a["sampling_ratio"], a["aligned"])


@_on_values("roi_pool")
def _roi_pool(x: list[Any], a: dict[str, Any]) -> Any:
    return [ops.roi_pool(x[0], x[1], x[2], (a["pooled_height"], a["pooled_width"]), a["spatial_scale"]), None]


@_on_values("psroi_pool")
def _psroi_pool(x: list[Any], a: dict[str, Any]) -> Any:
    return ops.psroi_pool(x[0], x[1], x[2], (a["pooled_height"], a["pooled_width"]), a["spatial_scale"])


@_on_values("prior_box")
def _prior_box(x: list[Any], a: dict[str, Any]) -> Any:
    return list(ops.prior_box(
        x[0], x[1], a["min_sizes"], a["max_sizes"] or None, a["aspect_ratios"], a["variances"], a["flip"], a["clip"],
        (a["step_w"], a["step_h"]), a["offset"], a["min_max_aspect_ratios_order"],
    ))  # fmt: skip


@_on_values("yolo_box")
def _yolo_box(x: list[Any], a: dict[str, Any]) -> Any:
    return list(ops.yolo_box(
        x[0], x[1], a["anchors"], a["class_num"], a["conf_thresh"], a["downsample_ratio"], a["clip_bbox"], None,
        a["scale_x_y"], a["iou_aware"], a["iou_aware_factor"],
    ))  # fmt: skip


@_on_values("box_coder")
def _box_coder(x: list[Any], a: dict[str, Any]) -> Any:
    spread = x[1] if type(x[1]) is Tensor else (a["variance"] or None)
    return ops.box_coder(x[0], spread, x[2], a["code_type"], a["box_normalized"], a["axis"])


@rule("deformable_conv")
def _deformable_conv(x: list[Any], a: dict[str, Any]) -> Any:
    return ops.deform_conv2d(
        x[0], x[1], x[2], None, a["strides"], a["paddings"], a["dilations"], a["deformable_groups"], a["groups"], x[3]
    )


@_on_values("bincount")
def _bincount(x: list[Any], a: dict[str, Any]) -> Any:
    return paddle.bincount(x[0], x[1], int(as_list(x[2])[0]))


@_on_values("unique")
def _unique(x: list[Any], a: dict[str, Any]) -> Any:
    axis = a["axis"][0] if a["axis"] else None
    return list(paddle.unique(x[0], True, True, True, axis, a["dtype"]))


@_on_values("nonzero")
def _nonzero(x: list[Any], a: dict[str, Any]) -> Any:
    return get_operator("nonzero")(x[0])


@_on_values("masked_select")
def _masked_select(x: list[Any], a: dict[str, Any]) -> Any:
    return get_operator("masked_select")(x[0], x[1])
