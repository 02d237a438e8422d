"""Phi 3 (Abdin et al., 2024): Llama with one matrix for queries, keys and values and one for gate and up."""

from __future__ import annotations

from argosy.models.configuration import ConfigFile, DecoderConfig
from argosy.models.families.common import attention, decoder, feedforward

STACKED = (
    (r"\.self_attn\.(q_proj|k_proj|v_proj)\.", ".self_attn.qkv_proj.", ("q_proj", "k_proj", "v_proj")),
    (r"\.mlp\.(gate_proj|up_proj)\.", ".mlp.gate_up_proj.", ("gate_proj", "up_proj")),
)


def configure(config: ConfigFile) -> DecoderConfig:
    """The decoder of a ``phi3`` configuration."""
    return decoder(config, attention(config, window=config.integer_or_none("sliding_window")), feedforward(config))
