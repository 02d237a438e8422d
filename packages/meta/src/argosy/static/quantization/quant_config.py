"""Operators that Paddle's passes quantise, with the names of their inputs and results: tables that libraries read."""

from __future__ import annotations

__all__ = ["SUPPORT_ACT_QUANTIZATION_OP_DICT", "SUPPORT_QUANTIZATION_OP_DICT", "SUPPORT_WEIGHT_QUANTIZATION_OP_DICT"]

Names = list[list[str]]
_PRODUCTS = ("mul", "matmul", "matmul_v2")
_OF_ONE = """
    pool2d concat softmax argmax transpose gather mean reshape reshape2 transpose2 nearest_interp
    trilinear_interp squeeze relu relu6 leaky_relu tanh swish dropout sigmoid hard_swish hard_sigmoid pad2d
    pad3d flatten flatten2 unsqueeze2 flatten_contiguous_range split squeeze2 nearest_interp_v2
    bilinear_interp bilinear_interp_v2 arg_max abs assign cast clip crop cumsum expand_v2 fill_any_like gelu
    p_norm pow reduce_mean logical_not meshgrid tile reduce_sum square softplus shuffle_channel reduce_max
    scale
""".split()
_OF_TWO = """
    mul matmul matmul_v2 elementwise_add equal greater_equal greater_than less_equal less_than not_equal
    elementwise_sub elementwise_mul elementwise_pow logical_and
""".split()
_OTHERS: dict[str, Names] = {
    "slice": [["Input"], ["Out"]], "strided_slice": [["Input"], ["Out"]],
    "fill_constant_batch_size_like": [["Input"], ["Out"]], "fill_constant": [[], ["Out"]],
    "prelu": [["X", "Alpha"], ["Out"]], "where": [["Condition", "X", "Y"], ["Out"]],
    "batch_norm": [["X"], ["Y"]], "layer_norm": [["X"], ["Y"]], "instance_norm": [["X"], ["Y"]],
    "group_norm": [["X"], ["Y", "Mean", "Variance"]], "norm": [["X"], ["Norm"]],
    "gru": [["Input", "Weight"], ["Hidden"]], "lstm": [["Input", "Weight"], ["Hidden"]],
    "lookup_table": [["W", "Ids"], ["Out"]], "lookup_table_v2": [["W", "Ids"], ["Out"]],
    "box_coder": [["PriorBox"], ["OutputBox"]], "roi_align": [["X", "ROIs"], ["Out"]],
    "grid_sampler": [["X", "Grid"], ["Output"]], "stack": [["X"], ["Y"]], "top_k_v2": [["X"], ["Out", "Indices"]],
}  # fmt: skip

SUPPORT_WEIGHT_QUANTIZATION_OP_DICT: dict[str, Names] = {
    **{name: [["Input", "Filter"], ["Output"]] for name in ("conv2d", "depthwise_conv2d", "conv2d_transpose")},
    **{name: [["X", "Y"], ["Out"]] for name in _PRODUCTS},
}
SUPPORT_ACT_QUANTIZATION_OP_DICT: dict[str, Names] = {
    **{name: [["X", "Y"], ["Out"]] for name in _OF_TWO},
    **{name: [["X"], ["Out"]] for name in _OF_ONE},
    **_OTHERS,
}
SUPPORT_QUANTIZATION_OP_DICT = SUPPORT_WEIGHT_QUANTIZATION_OP_DICT | SUPPORT_ACT_QUANTIZATION_OP_DICT
