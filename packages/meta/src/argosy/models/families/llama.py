"""Llama (Touvron et al., 2023) and Mistral (Jiang et al., 2023), whose attention has a window."""

from __future__ import annotations

from argosy.models.configuration import ConfigFile, DecoderConfig
from argosy.models.families.common import attention, decoder, feedforward


def configure(config: ConfigFile) -> DecoderConfig:
    """The decoder of a ``llama`` or ``mistral`` configuration."""
    bias = config.flag("attention_bias", default=False)
    window = config.integer_or_none("sliding_window") if config.text("model_type") == "mistral" else None
    attentions = attention(config, bias=bias, output_bias=bias, window=window)
    return decoder(config, attentions, feedforward(config, bias=config.flag("mlp_bias", default=False)))
