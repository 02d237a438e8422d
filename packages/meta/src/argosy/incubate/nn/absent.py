"""What Paddle's ``incubate.nn`` has and this one does not, each by its name."""

from typing import Any

from argosy.absent import absent_names

__all__ = ["FUNCTIONS", "FusedMultiTransformer"]

_FLOAT8 = "it needs matrix units for float8"
_SERVING = "argosy_infer serves with a paged cache of its own"
_ROUTES = "experts are called by moe_permute and moe_unpermute of nn.functional"
FUNCTIONS = {
    **dict.fromkeys(
        (
            "fp8_gemm_blockwise", "fp8_quant_blockwise", "fused_act_dequant", "fused_stack_transpose_quant",
            "fused_transpose_split_quant", "fused_transpose_wlch_split_quant", "fused_swiglu_weighted_bwd",
            "fused_weighted_swiglu_act_quant",
        ),
        _FLOAT8,
    ),
    **dict.fromkeys(
        ("fused_multi_transformer", "masked_multihead_attention", "blha_get_max_len", "block_multihead_attention"),
        _SERVING,
    ),
    **dict.fromkeys(
        (
            "moe_combine", "expand_modality_expert_id", "cal_aux_loss", "build_src_rank_and_local_expert_id",
            "int_bincount", "moe_gate_dispatch", "moe_gate_dispatch_permute",
            "moe_gate_dispatch_partial_nosoftmaxtopk", "moe_gate_dispatch_and_quant",
        ),
        _ROUTES,
    ),
    "batched_gemm": "matmul multiplies stacks of matrices",
    "fused_partial_rope": "fused_rotary_position_embedding turns slices",
    "fused_gate_attention": "fused_multi_head_attention attends",
    "cudnn_flash_attention": "fused_dot_product_attention attends",
    "embedding_grad_add_to_": "gradients of embeddings are added by backward()",
    "cross_entropy_with_softmax_bwd_w_downcast": "it is a step of a backward pass that autograd makes itself",
}  # fmt: skip
"""Why each function is not there."""


__getattr__ = absent_names(__name__, "incubate.nn.functional", FUNCTIONS)


class FusedMultiTransformer:
    """A stack of decoder layers with a cache of keys and values. Raises NotImplementedError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"incubate.nn.FusedMultiTransformer is not implemented: {_SERVING}")
