"""Qwen 2 and 3 (Qwen Team, 2024, 2025) and their mixtures of experts."""

from __future__ import annotations

from argosy.models.configuration import ConfigFile, DecoderConfig, ExpertsConfig, FeedForwardConfig
from argosy.models.families.common import activation, attention, decoder, feedforward, is_sliding

NAMES = ((r"\.mlp\.shared_experts\.", ".mlp.shared_expert."),)


def configure(config: ConfigFile) -> DecoderConfig:
    """The decoder of a ``qwen2``, ``qwen3``, ``qwen2_moe`` or ``qwen3_moe`` configuration."""
    third, layers = config.text("model_type").startswith("qwen3"), config.integer("num_hidden_layers")
    bias = config.flag("attention_bias", default=False) if third else config.flag("qkv_bias", default=True)
    first = config.integer("max_window_layers", default=28, least=0)
    if config.text("model_type") == "qwen3_moe":
        first = 0  # of this family windows are of all layers
    windows = config.flag("use_sliding_window", default=False)
    window = config.integer("sliding_window", default=4096) if windows else None
    attentions = [
        attention(
            config, bias=bias, output_bias=bias and third, norm="head" if third else "none",
            window=window if windows and is_sliding(config, i, layers, lambda i: i >= first) else None,
        )
        for i in range(layers)
    ]  # fmt: skip
    if not config.text("model_type").endswith("_moe"):
        return decoder(config, attentions, feedforward(config))
    return decoder(config, attentions, [_feedforward(config, i, third) for i in range(layers)])


def _feedforward(config: ConfigFile, layer: int, third: bool) -> FeedForwardConfig | ExpertsConfig:
    dense = layer in config.list_of("mlp_only_layers")
    if dense or (layer + 1) % config.integer("decoder_sparse_step", default=1):
        return feedforward(config)
    return ExpertsConfig(
        experts=config.integer("num_experts", "num_local_experts"),
        chosen=config.integer("num_experts_per_tok"),
        width=config.integer("moe_intermediate_size"),
        activation=activation(config),
        normalise=config.flag("norm_topk_prob", default=False),
        shared_width=0 if third else config.integer("shared_expert_intermediate_size"),
        shared_gate=not third,
    )
