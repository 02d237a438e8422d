"""The functions behind layers: operators of the operator library by their names (``linear``, ``softmax``, ...)."""

from argosy.faces import face, fetch, operator_function

_COMPOSED = {
    "sampled_classes": ("class_center_sample",),
    "adaptive_softmax": ("adaptive_log_softmax_with_loss",),
    "sequence_losses": ("ctc_loss", "hsigmoid_loss", "margin_cross_entropy", "rnnt_loss"),
    "unpooling": (
        "fractional_max_pool2d", "fractional_max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d",
    ),
    "compositions": (
        "alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout", "gumbel_softmax",
        "maxout", "rrelu", "silu",
    ),
    "loss_functions": (
        "cosine_embedding_loss", "dice_loss", "gaussian_nll_loss", "log_loss", "multi_label_margin_loss",
        "multi_label_soft_margin_loss", "multi_margin_loss", "npair_loss", "poisson_nll_loss",
        "sigmoid_focal_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss",
    ),
    "geometry_functions": (
        "fold", "local_response_norm", "lp_pool1d", "lp_pool2d", "temporal_shift", "unfold", "upsample",
        "zeropad2d",
    ),
}  # fmt: skip
_TABLE = {
    "batch_norm": "argosy.nn.statistics:batch_norm",
    "dropout": "argosy.nn.regularization:dropout",
    "embedding": "argosy.nn.lookup:embedding",
}
_TABLE |= {
    "flash_attention": "argosy.nn.functional.flash_attention",
    **{
        name: f"argosy.nn.functional.flash_attention:{name}"
        for name in (
            "flash_attention_v3_varlen",
            "flash_attn_qkvpacked",
            "flash_attn_varlen_qkvpacked",
            "scaled_dot_product_attention",
        )
    },
    **{name: f"argosy.nn.functional.masked_attention:{name}" for name in ("flashmask_attention", "sparse_attention")},
    **{name: f"argosy.nn.functional.experts:{name}" for name in ("moe_permute", "moe_unpermute")},
}
_TABLE |= {name: f"argosy.nn.{module}:{name}" for module, names in _COMPOSED.items() for name in names}

_ALSO = (
    "affine_grid", "gather_tree", "grid_sample", "interpolate", "logsigmoid", "one_hot", "pad", "pairwise_distance",
    "sequence_mask", "sigmoid", "tanh", "tanh_",
)  # fmt: skip
"""Operators that Paddle lists here as well."""


def _operators() -> list[str]:
    listed: list[str] = fetch("argosy_phi_ops.listing:layer_functions", "dir(argosy.nn.functional)")()
    return [*listed, *_ALSO]


__getattr__, __dir__ = face(__name__, _TABLE, globals(), operator_function, _operators)
