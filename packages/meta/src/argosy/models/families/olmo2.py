"""OLMo 2 (OLMo Team, 2024): norms behind each part, and of all queries and keys together."""

from __future__ import annotations

from argosy.models.configuration import ConfigFile, DecoderConfig
from argosy.models.families.common import attention, decoder, feedforward


def configure(config: ConfigFile) -> DecoderConfig:
    """The decoder of an ``olmo2`` configuration."""
    bias = config.flag("attention_bias", default=False)
    attentions = attention(config, bias=bias, output_bias=bias, norm="all")
    return decoder(config, attentions, feedforward(config), placement="post")
