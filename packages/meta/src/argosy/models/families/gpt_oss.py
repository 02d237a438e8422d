"""gpt-oss (OpenAI, 2025): attention with sinks, windows in every second layer, experts with clamped gates."""

from __future__ import annotations

from argosy.models.configuration import ConfigFile, DecoderConfig, ExpertsConfig
from argosy.models.families.common import attention, decoder, is_sliding

NAMES = ((r"\.mlp\.gate\.", ".mlp.router."),)
INTERLEAVED_EXPERTS = True


def configure(config: ConfigFile) -> DecoderConfig:
    """The decoder of a ``gpt_oss`` configuration."""
    layers, window = config.integer("num_hidden_layers"), config.integer("sliding_window", default=128)
    bias = config.flag("attention_bias", default=True)
    attentions = [
        attention(
            config, bias=bias, output_bias=bias, sinks=True,
            window=window if is_sliding(config, i, layers, lambda i: i % 2 == 0) else None,
        )
        for i in range(layers)
    ]  # fmt: skip
    experts = ExpertsConfig(
        experts=config.integer("num_local_experts"),
        chosen=config.integer("num_experts_per_tok", "experts_per_token"),
        width=config.integer("intermediate_size"),
        scoring="softmax-chosen",
        bias=True,
        clamped=True,
        alpha=config.number("swiglu_alpha", default=1.702),
        limit=config.number("swiglu_limit", default=7.0),
    )
    return decoder(config, attentions, [experts] * layers)
