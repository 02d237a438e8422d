"""Which operators run in half precision and which must not.

White: contractions, whose sums are kept in float32 and whose cost is memory and multiplications. Black: functions that
leave the range or the precision of half precision types (exponentials, powers, logarithms, long sums, norms, losses).
All others take what their operands are. The lists are Paddle's, by the names that operators have here.
"""

from __future__ import annotations

from collections.abc import Iterable

from argosy_phi_ops.operator import find_operator

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
    return _arranged(WHITE)


def black_list() -> dict[str, dict[str, set[str]]]:
    """The names of black operators by dtype and level, as Paddle arranges them."""
    return _arranged(BLACK)


def _arranged(names: frozenset[str]) -> dict[str, dict[str, set[str]]]:
    return {dtype: {level: set(names) for level in ("O1", "O2")} for dtype in ("float16", "bfloat16")}


def checked_names(argument: str, names: Iterable[str] | None) -> frozenset[str]:
    """The names as a set. Raises TypeError for a single string, ValueError for names of no operator."""
    if names is None:
        return frozenset()
    if isinstance(names, str):
        raise TypeError(f"{argument} takes a set of operator names, not the string {names!r}")
    if not hasattr(type(names), "__iter__"):
        raise TypeError(f"{argument} takes a set of operator names, got {names!r:.80}")
    found = frozenset(names)
    unknown = sorted(name for name in found if not isinstance(name, str) or find_operator(name) is None)
    if unknown:
        raise ValueError(f"{argument} names no operators: {unknown}")
    return found
