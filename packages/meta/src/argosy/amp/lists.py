"""Which operators run in half precision and which must not.

White: contractions, whose sums are kept in float32 and whose cost is memory and multiplications. Black: functions that
leave the range or the precision of half precision types (exponentials, powers, logarithms, long sums, norms, losses).
All others take what their operands are. The lists are Paddle's, by the names that operators have here.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from argosy_phi_ops.declare.operator import find_operator

__all__ = ["BLACK", "WHITE", "black_list", "checked_names", "white_list"]

WHITE = frozenset(
    {
        "matmul", "mm", "bmm", "mv", "linear", "einsum", "addmm", "baddbmm", "bilinear", "tensordot",
        "conv1d", "conv2d", "conv3d", "conv1d_transpose", "conv2d_transpose", "conv3d_transpose",
        "scaled_dot_product_attention", "attention_with_dropout", "paged_attention",
    }
)  # fmt: skip

BLACK = frozenset(
    {
        "tan", "acos", "asin", "sinh", "cosh", "atanh", "tanhshrink", "erfinv", "exp", "expm1", "log", "log10", "log2",
        "log1p", "reciprocal", "rsqrt", "pow", "square", "sum", "mean", "prod", "cumprod", "cumsum", "logsumexp",
        "logcumsumexp", "nansum", "nanmean", "std", "var", "dist", "cdist", "norm", "vector_norm", "matrix_norm",
        "cosine_similarity", "normalize", "group_norm", "layer_norm", "rms_norm", "instance_norm",
        "softmax", "log_softmax", "softplus", "log_sigmoid", "logit", "kl_div", "cross_entropy",
        "softmax_with_cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
        "l1_loss", "mse_loss", "smooth_l1_loss", "square_error_cost", "hinge_embedding_loss", "margin_ranking_loss",
        "soft_margin_loss", "interpolate",
    }
)  # fmt: skip


def white_list() -> dict[str, dict[str, set[str]]]:
    """The names of white operators by dtype and level, as Paddle arranges them."""
    return _arrange(WHITE)


def black_list() -> dict[str, dict[str, set[str]]]:
    """The names of black operators by dtype and level, as Paddle arranges them."""
    return _arrange(BLACK)


def _arrange(names: frozenset[str]) -> dict[str, dict[str, set[str]]]:
    return {dtype: {level: set(names) for level in ("O1", "O2")} for dtype in ("float16", "bfloat16")}


_OLDER: dict[str, tuple[str, ...]] = {
    "arg_max": ("argmax",), "arg_min": ("argmin",), "depthwise_conv2d": ("conv2d",),
    "depthwise_conv2d_transpose": ("conv2d_transpose",), "elementwise_add": ("add",), "elementwise_div": ("divide",),
    "elementwise_floordiv": ("floor_divide",), "elementwise_max": ("maximum",), "elementwise_min": ("minimum",),
    "elementwise_mod": ("remainder",), "elementwise_mul": ("multiply",), "elementwise_pow": ("pow",),
    "elementwise_sub": ("subtract",), "expand_v2": ("expand",), "expand_as_v2": ("expand_as",),
    "fill_any_like": ("full_like",), "fill_constant": ("full",), "flatten_contiguous_range": ("flatten",),
    "lookup_table": ("embedding",), "lookup_table_v2": ("embedding",), "matmul_v2": ("matmul", "linear"),
    "mul": ("matmul", "linear"), "one_hot_v2": ("one_hot",), "pad2d": ("pad",), "pad3d": ("pad",),
    "pool2d": ("avg_pool2d", "max_pool2d", "adaptive_avg_pool2d", "adaptive_max_pool2d"),
    "pool3d": ("avg_pool3d", "max_pool3d", "adaptive_avg_pool3d", "adaptive_max_pool3d"),
    "reduce_all": ("all",), "reduce_any": ("any",), "reduce_max": ("max",), "reduce_mean": ("mean",),
    "reduce_min": ("min",), "reduce_prod": ("prod",), "reduce_sum": ("sum",), "reshape2": ("reshape",),
    "squeeze2": ("squeeze",), "sync_batch_norm": ("batch_norm",), "top_k": ("topk",), "top_k_v2": ("topk",),
    "transpose2": ("transpose",), "unsqueeze2": ("unsqueeze",),
    **{f"{kind}_interp{v}": ("interpolate",) for kind in ("bicubic", "bilinear", "linear", "nearest", "trilinear")
       for v in ("", "_v2")},
}  # fmt: skip
"""What the names are called here that Paddle's kernels have had since before version 2, by which lists name them."""


def checked_names(argument: str, names: Iterable[str] | None) -> frozenset[str]:
    """The names of the operators here, for those of Paddle's kernels, too. A name of none is left out, with a warning:
    Paddle takes any.

    Raises TypeError for a single string, and for what holds no strings.
    """
    if names is None:
        return frozenset()
    if isinstance(names, str):
        raise TypeError(f"{argument} takes a set of operator names, not the string {names!r}")
    if not hasattr(type(names), "__iter__"):
        raise TypeError(f"{argument} takes a set of operator names, got {names!r:.80}")
    given = frozenset(names)
    if not all(isinstance(name, str) for name in given):
        raise TypeError(f"{argument} takes a set of operator names, got {names!r:.80}")
    found = frozenset(each for name in given for each in _OLDER.get(name, (name,)))
    unknown = sorted(name for name in found if find_operator(name) is None)
    if unknown:
        warnings.warn(f"{argument} names no operators and leaves them out: {unknown}", stacklevel=6)
    return found - frozenset(unknown)
