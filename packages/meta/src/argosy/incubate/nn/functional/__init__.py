"""Functions that Paddle has as kernels of their own: compositions here, which the compiler fuses."""

from argosy.faces import face
from argosy.incubate.nn.absent import FUNCTIONS

_FUNCTIONS = {
    "normalization": ("fast_ln", "fast_rms_norm", "fused_layer_norm", "fused_rms_norm", "fused_rms_norm_ext"),
    "linear": ("fused_bias_act", "fused_linear", "fused_linear_activation", "fused_matmul_bias"),
    "residual": ("fused_bias_dropout_residual_layer_norm", "fused_dropout_add", "fused_feedforward"),
    "attention": (
        "fused_dot_product_attention", "fused_multi_head_attention", "variable_length_memory_efficient_attention",
    ),
    "rotary": ("fused_rotary_position_embedding",),
}  # fmt: skip
_TABLE = {
    "swiglu": "argosy.nn.functional:swiglu",
    **{name: f"{__name__}.{module}:{name}" for module, names in _FUNCTIONS.items() for name in names},
    **{name: f"argosy.incubate.nn.absent:{name}" for name in FUNCTIONS},
}

__all__ = [name for names in _FUNCTIONS.values() for name in names]
__getattr__, __dir__ = face(__name__, _TABLE, globals())
