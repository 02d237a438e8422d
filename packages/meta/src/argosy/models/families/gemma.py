"""Gemma 2 and 3 (Gemma Team, 2024, 2025): windows in most layers, norms on both sides, soft caps (2) or norms of
queries and keys (3)."""

from __future__ import annotations

from argosy.models.configuration import AttentionConfig, ConfigFile, DecoderConfig, FeedForwardConfig, NormConfig
from argosy.models.families.common import activation, attention, decoder, is_sliding


def configure(config: ConfigFile) -> DecoderConfig:
    """The decoder of a ``gemma2`` or ``gemma3_text`` configuration."""
    third, layers = config.text("model_type") == "gemma3_text", config.integer("num_hidden_layers")
    hidden = activation(config, "hidden_activation", "hidden_act", default="gelu_pytorch_tanh")
    return decoder(
        config,
        [_attention(config, i, layers, third) for i in range(layers)],
        FeedForwardConfig(config.integer("intermediate_size"), hidden),
        norm=NormConfig(epsilon=config.number("rms_norm_eps", default=1e-6), unit_offset=True),
        placement="sandwich",
        embedding_scale=config.integer("hidden_size") ** 0.5,
        softcap=config.number("final_logit_softcapping", default=0.0),
        tied=config.flag("tie_word_embeddings", default=True),
    )


def _attention(config: ConfigFile, layer: int, layers: int, third: bool) -> AttentionConfig:
    pattern = config.integer("sliding_window_pattern", "_sliding_window_pattern", default=6 if third else 2)
    sliding = is_sliding(config, layer, layers, lambda i: bool((i + 1) % pattern))
    bias = config.flag("attention_bias", default=False)
    given = _with_local_base(config) if third and sliding else config
    both_ways = third and config.flag("use_bidirectional_attention", default=False)
    window = config.integer("sliding_window", default=4096) if sliding else None
    return attention(
        given,
        kind="sliding_attention" if sliding else "full_attention",
        bias=bias,
        output_bias=bias,
        norm="head" if third else "none",
        scale=config.number("query_pre_attn_scalar", default=256.0) ** -0.5,
        window=window // 2 + 1 if window and both_ways else window,
        causal=not both_ways,
        softcap=0.0 if third else config.number("attn_logit_softcapping", default=0.0),
    )


def _with_local_base(config: ConfigFile) -> ConfigFile:
    """Older files name the base of the layers with windows apart, which no scaling applies to."""
    if "rope_local_base_freq" not in config:
        return config
    values = {**config.values, "rope_theta": config.number("rope_local_base_freq"), "rope_scaling": None}
    return ConfigFile(values, config.path)
