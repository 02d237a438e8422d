"""Written by ``python -m argosy.api.stubs``."""

from argosy.incubate.nn.linear import FusedBiasDropoutResidualLayerNorm as FusedBiasDropoutResidualLayerNorm
from argosy.incubate.nn.transformer import FusedFeedForward as FusedFeedForward
from argosy.incubate.nn.transformer import FusedMultiHeadAttention as FusedMultiHeadAttention
from argosy.incubate.nn.transformer import FusedMultiTransformer as FusedMultiTransformer
from argosy.incubate.nn.transformer import FusedTransformerEncoderLayer as FusedTransformerEncoderLayer
