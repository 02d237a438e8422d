"""ERNIE 4.5 (Baidu, 2025) and its mixture of experts."""

from __future__ import annotations

from argosy.models.configuration import ConfigFile, DecoderConfig, ExpertsConfig, FeedForwardConfig
from argosy.models.families.common import activation, attention, decoder, feedforward

NAMES = ((r"\.mlp\.gate\.e_score_correction_bias", ".mlp.moe_statics.e_score_correction_bias"),)


def configure(config: ConfigFile) -> DecoderConfig:
    """The decoder of an ``ernie4_5`` or ``ernie4_5_moe`` configuration."""
    bias, layers = config.flag("use_bias", default=False), config.integer("num_hidden_layers")
    attentions = attention(config, interleaved=True, bias=bias, output_bias=bias, dropout=0.0)
    if config.text("model_type") == "ernie4_5":
        tied = config.flag("tie_word_embeddings", default=True)
        return decoder(config, attentions, feedforward(config, bias=bias), tied=tied)
    tied = config.flag("tie_word_embeddings", default=True)
    return decoder(
        config, attentions, [_mixture(config, i, layers, bias) for i in range(layers)], tied=tied, head_bias=bias
    )


def _mixture(config: ConfigFile, layer: int, layers: int, bias: bool) -> FeedForwardConfig | ExpertsConfig:
    last = config.integer("moe_layer_end_index", default=-1, least=-1)
    first, interval = (
        config.integer("moe_layer_start_index", default=1, least=0),
        config.integer("moe_layer_interval", default=1),
    )
    if (layer + 1) % interval or not first <= layer <= (layers - 1 if last < 0 else last):
        return feedforward(config, bias=bias)
    width = config.integer("moe_intermediate_size")
    return ExpertsConfig(
        experts=config.integer("moe_num_experts", "num_experts"),
        chosen=config.integer("moe_k", "num_experts_per_tok"),
        width=width,
        activation=activation(config),
        least_sum=config.number("moe_norm_min", default=1e-12),
        correction=True,
        shared_width=width * config.integer("moe_num_shared_experts", default=0, least=0),
    )
