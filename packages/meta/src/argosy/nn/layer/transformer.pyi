"""Written by ``python -m argosy.api.stubs``."""

from argosy.nn.attention import MultiHeadAttention as MultiHeadAttention
from argosy.nn.transformer import Transformer as Transformer
from argosy.nn.transformer import TransformerDecoder as TransformerDecoder
from argosy.nn.transformer import TransformerDecoderLayer as TransformerDecoderLayer
from argosy.nn.transformer import TransformerEncoder as TransformerEncoder
from argosy.nn.transformer import TransformerEncoderLayer as TransformerEncoderLayer
from argosy.nn.attention import additive_mask as _own__convert_attention_mask
from argosy.nn.transformer import _convert_param_attr_to_list as _convert_param_attr_to_list
_convert_attention_mask = _own__convert_attention_mask
