"""GLM-4.5 (GLM Team, 2025): DeepSeek's mixture of experts behind grouped attention."""

from __future__ import annotations

from argosy.models.configuration import ConfigFile, DecoderConfig
from argosy.models.families.common import attention, decoder
from argosy.models.families.deepseek import mixture


def configure(config: ConfigFile) -> DecoderConfig:
    """The decoder of a ``glm4_moe`` configuration."""
    norm = "head" if config.flag("use_qk_norm", default=False) else "none"
    attentions = attention(config, bias=config.flag("attention_bias", default=False), norm=norm)
    layers = config.integer("num_hidden_layers")
    return decoder(config, attentions, [mixture(config, i, corrected=True) for i in range(layers)])
