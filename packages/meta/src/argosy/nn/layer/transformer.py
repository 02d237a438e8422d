"""Paddle's module of Transformers, for code that takes layers from where Paddle defines them."""

from argosy.nn.attention import MultiHeadAttention
from argosy.nn.attention import additive_mask as _convert_attention_mask
from argosy.nn.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
    _convert_param_attr_to_list,
)

__all__ = [
    "MultiHeadAttention", "Transformer", "TransformerDecoder", "TransformerDecoderLayer",
    "TransformerEncoder", "TransformerEncoderLayer", "_convert_attention_mask",
    "_convert_param_attr_to_list",
]  # fmt: skip
