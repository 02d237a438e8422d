"""Mixtral (Jiang et al., 2024): a mixture of experts in each block."""

from __future__ import annotations

from argosy.models.configuration import ConfigFile, DecoderConfig, ExpertsConfig
from argosy.models.families.common import activation, attention, decoder

NAMES = (
    (r"\.mlp\.experts\.(\d+)\.gate_proj\.", r".block_sparse_moe.experts.\1.w1."),
    (r"\.mlp\.experts\.(\d+)\.down_proj\.", r".block_sparse_moe.experts.\1.w2."),
    (r"\.mlp\.experts\.(\d+)\.up_proj\.", r".block_sparse_moe.experts.\1.w3."),
    (r"\.mlp\.gate\.", ".block_sparse_moe.gate."),
)


def configure(config: ConfigFile) -> DecoderConfig:
    """The decoder of a ``mixtral`` configuration."""
    experts = ExpertsConfig(
        experts=config.integer("num_local_experts"),
        chosen=config.integer("num_experts_per_tok"),
        width=config.integer("intermediate_size"),
        activation=activation(config),
    )
    attentions = attention(config, window=config.integer_or_none("sliding_window"))
    return decoder(config, attentions, [experts] * config.integer("num_hidden_layers"))
