"""DeepSeek V2 and V3 (DeepSeek-AI, 2024): latent attention, shared experts, routing limited to groups of experts."""

from __future__ import annotations

from argosy.models.configuration import (
    ConfigFile,
    DecoderConfig,
    ExpertsConfig,
    FeedForwardConfig,
    LatentAttentionConfig,
    NormConfig,
)
from argosy.models.families.common import activation, decoder, feedforward, positions_of
from argosy.models.rotary_embedding import read_rotary, yarn_magnitude


def configure(config: ConfigFile) -> DecoderConfig:
    """The decoder of a ``deepseek_v2`` or ``deepseek_v3`` configuration."""
    third, layers = config.text("model_type") == "deepseek_v3", config.integer("num_hidden_layers")
    feedforwards = [mixture(config, i, third) for i in range(layers)]
    norm = NormConfig(epsilon=config.number("rms_norm_eps", default=1e-6))
    return decoder(config, _attention(config), feedforwards, norm=norm)


def _attention(config: ConfigFile) -> LatentAttentionConfig:
    plain, turned = config.integer("qk_nope_head_dim"), config.integer("qk_rope_head_dim")
    interleaved = config.flag("rope_interleave", default=True)
    rotary = read_rotary(config, turned, positions_of(config), interleaved)
    scale = (plain + turned) ** -0.5
    if rotary.parameters.get("scale_all"):
        scale *= yarn_magnitude(rotary.parameters["factor"], rotary.parameters["scale_all"]) ** 2
    return LatentAttentionConfig(
        heads=config.integer("num_attention_heads"),
        latent_width=config.integer("kv_lora_rank"),
        plain_width=plain,
        value_width=config.integer("v_head_dim"),
        rotary=rotary,
        query_latent_width=config.integer("q_lora_rank") if "q_lora_rank" in config else None,
        scale=scale,
        bias=config.flag("attention_bias", default=False),
        dropout=config.number("attention_dropout", default=0.0),
    )


def mixture(config: ConfigFile, layer: int, corrected: bool) -> FeedForwardConfig | ExpertsConfig:
    """What a layer has behind its attention: a perceptron in the first ones, then experts; ``corrected``: scored by
    sigmoids, balanced by a bias, from the groups whose best two are best (V3)."""
    if layer < config.integer("first_k_dense_replace", default=0, least=0):
        return feedforward(config)
    method = config.text("topk_method", default="noaux_tc" if corrected else "greedy")
    limited = corrected or method == "group_limited_greedy"
    width = config.integer("moe_intermediate_size")
    return ExpertsConfig(
        experts=config.integer("n_routed_experts", "num_local_experts", "num_experts"),
        chosen=config.integer("num_experts_per_tok"),
        width=width,
        activation=activation(config),
        scoring="sigmoid" if corrected else "softmax",
        normalise=config.flag("norm_topk_prob", default=True) if corrected else False,
        least_sum=1e-20 if corrected else 0.0,
        factor=config.number("routed_scaling_factor", default=1.0),
        groups=config.integer("n_group", default=1) if limited else 1,
        chosen_groups=config.integer("topk_group", default=1) if limited else 1,
        group_score="two" if corrected else "max",
        correction=corrected,
        shared_width=width * config.integer("n_shared_experts", default=0, least=0),
    )
