"""Paddle's operators under ``nn`` that stand otherwise than here: resizing, padding, volumes, pools with places."""

from __future__ import annotations

from typing import Any

import argosy.nn.functional as F
from argosy.jit.paddle_format.operators import RULES, as_list, as_number, as_operand, rule
from argosy.nn.spectrum import largest_singular_value

__all__: list[str] = []


@rule("bilinear_interp", "nearest_interp", "bicubic_interp", "linear_interp", "trilinear_interp")
def _interpolate(x: list[Any], a: dict[str, Any]) -> Any:
    """Sizes come as a tensor, as tensors of one number each, or as attributes; scales as a tensor or attribute."""
    mode, layout, rank = a["interp_method"], a["data_format"], x[0].ndim - 2
    out = [a["out_d"], a["out_h"], a["out_w"]][3 - rank :]
    size = as_list(x[1]) if x[1] is not None else [as_number(n) for n in x[2]] if x[2] is not None else None
    scale = as_list(x[3]) if x[3] is not None else a["scale"] or None
    if size is None and all(n > 0 for n in out):
        size, scale = out, None
    options = {"align_corners": a["align_corners"], "align_mode": a["align_mode"], "data_format": layout}
    return F.interpolate(x[0], size, None if size is not None else scale, mode, **options)


@rule("pad3d")
def _pad3d(x: list[Any], a: dict[str, Any]) -> Any:
    return F.pad(x[0], as_list(x[1]), a["mode"], a["pad_value"], a["data_format"])


@rule("pad")
def _pad(x: list[Any], a: dict[str, Any]) -> Any:
    return F.pad(as_operand(x[0]), a["paddings"], "constant", as_number(x[1]), pad_from_left_axis=True)


def _volumes(layout: str) -> str:
    """The layout of volumes: operators on them may say that of pictures."""
    return {"NCHW": "NCDHW", "NHWC": "NDHWC"}.get(layout, layout)


def _padding_of(a: dict[str, Any]) -> Any:
    return a["padding_algorithm"] if a["padding_algorithm"] in ("SAME", "VALID") else a["paddings"]


@rule("conv3d")
def _conv3d(x: list[Any], a: dict[str, Any]) -> Any:
    return F.conv3d(
        x[0], x[1], None, a["strides"], _padding_of(a), a["dilations"], a["groups"], _volumes(a["data_format"])
    )


@rule("conv3d_transpose")
def _conv3d_transpose(x: list[Any], a: dict[str, Any]) -> Any:
    return F.conv3d_transpose(
        x[0], x[1], None, a["strides"], _padding_of(a), a["output_padding"] or 0, a["groups"], a["dilations"],
        a["output_size"] or None, _volumes(a["data_format"]),
    )  # fmt: skip


@rule("pool3d")
def _pool3d(x: list[Any], a: dict[str, Any]) -> Any:
    size, layout = a["kernel_size"], _volumes(a["data_format"])
    if a["adaptive"] or a["global_pooling"]:
        size = [1, 1, 1] if a["global_pooling"] else size
        return (
            F.adaptive_max_pool3d(x[0], size)
            if a["pooling_type"] == "max"
            else F.adaptive_avg_pool3d(x[0], size, layout)
        )
    if a["pooling_type"] == "max":
        return F.max_pool3d(x[0], size, a["strides"], _padding_of(a), a["ceil_mode"], False, layout)
    return F.avg_pool3d(x[0], size, a["strides"], _padding_of(a), a["ceil_mode"], a["exclusive"], None, layout)


@rule("max_pool2d_with_index", "max_pool3d_with_index")
def _max_pool_with_index(x: list[Any], a: dict[str, Any]) -> Any:
    size, flat = a["kernel_size"], x[0].ndim == 4
    size = [1] * len(size) if a["global_pooling"] else size
    if a["adaptive"] or a["global_pooling"]:
        return list((F.adaptive_max_pool2d if flat else F.adaptive_max_pool3d)(x[0], size, True))
    pool = F.max_pool2d if flat else F.max_pool3d
    return list(pool(x[0], size, a["strides"], a["paddings"], return_mask=True, ceil_mode=a["ceil_mode"]))


@rule("instance_norm")
def _instance_norm(x: list[Any], a: dict[str, Any]) -> Any:
    return [F.instance_norm(x[0], weight=x[1], bias=x[2], eps=a["epsilon"]), None, None]


RULES["pixel_shuffle"] = lambda x, a: F.pixel_shuffle(x[0], a["upscale_factor"], a["data_format"])
RULES["pixel_unshuffle"] = lambda x, a: F.pixel_unshuffle(x[0], a["downscale_factor"], a["data_format"])
RULES["channel_shuffle"] = lambda x, a: F.channel_shuffle(x[0], a["groups"], a["data_format"])
RULES["temporal_shift"] = lambda x, a: F.temporal_shift(
    x[0], a["seg_num"], a["shift_ratio"], data_format=a["data_format"]
)
RULES["unfold"] = lambda x, a: F.unfold(x[0], a["kernel_sizes"], a["strides"], a["paddings"], a["dilations"])
RULES["fold"] = lambda x, a: F.fold(
    x[0], a["output_sizes"], a["kernel_sizes"], a["strides"], a["paddings"], a["dilations"]
)
RULES["affine_grid"] = lambda x, a: F.affine_grid(x[0], as_list(x[1]), a["align_corners"])
RULES["grid_sample"] = lambda x, a: F.grid_sample(x[0], x[1], a["mode"], a["padding_mode"], a["align_corners"])


# losses


@rule("cross_entropy_with_softmax")
def _cross_entropy(x: list[Any], a: dict[str, Any]) -> Any:
    options = {"soft_label": a["soft_label"], "axis": a["axis"], "use_softmax": a["use_softmax"]}
    loss = F.cross_entropy(x[0], x[1], ignore_index=a["ignore_index"], reduction="none", **options)
    kept = list(x[0].shape)
    kept[a["axis"]] = 1
    return [F.softmax(x[0], a["axis"]) if a["use_softmax"] else x[0], loss.reshape(kept)]


@rule("nll_loss")
def _nll_loss(x: list[Any], a: dict[str, Any]) -> Any:
    return [F.nll_loss(x[0], x[1], x[2], a["ignore_index"], a["reduction"]), None]


@rule("huber_loss")
def _huber_loss(x: list[Any], a: dict[str, Any]) -> Any:
    gap = x[1] - x[0]
    size, delta = gap.abs(), a["delta"]
    return [
        (size <= delta).astype(size.dtype) * (gap * gap * 0.5)
        + (size > delta).astype(size.dtype) * (delta * (size - 0.5 * delta)),
        gap,
    ]


RULES["bce_loss"] = lambda x, a: F.binary_cross_entropy(x[0], x[1], reduction="none")
RULES["kldiv_loss"] = lambda x, a: F.kl_div(x[0], x[1], a["reduction"], a["log_target"])


@rule("sigmoid_cross_entropy_with_logits")
def _sigmoid_cross_entropy(x: list[Any], a: dict[str, Any]) -> Any:
    if a["normalize"] or a["ignore_index"] != -100:
        raise NotImplementedError("sigmoid_cross_entropy_with_logits with normalize or ignore_index is not read yet")
    return F.binary_cross_entropy_with_logits(x[0], x[1], reduction="none", pos_weight=x[2])


@rule("rrelu")
def _rrelu(x: list[Any], a: dict[str, Any]) -> Any:
    return [F.rrelu(as_operand(x[0]), a["lower"], a["upper"], not a["is_test"]), None]


@rule("lp_pool2d")
def _lp_pool2d(x: list[Any], a: dict[str, Any]) -> Any:
    if a["global_pooling"] or a["adaptive"]:
        raise NotImplementedError("lp_pool2d over everything within a Paddle program is not read yet")
    sizes = a["kernel_size"], a["strides"], _padding_of(a), a["ceil_mode"]
    return F.lp_pool2d(as_operand(x[0]), a["norm_type"], *sizes, data_format=a["data_format"])


@rule("spectral_norm")
def _spectral_norm(x: list[Any], a: dict[str, Any]) -> Any:
    weight, u, v = x
    return weight / largest_singular_value(weight, u.clone(), v.clone(), a["dim"], a["power_iters"], a["eps"])
