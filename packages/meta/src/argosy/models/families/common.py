"""What the ``config.json`` of many families have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy.models.configuration import (
    AttentionConfig,
    BlockConfig,
    ConfigFile,
    DecoderConfig,
    ExpertsConfig,
    FeedForwardConfig,
    LatentAttentionConfig,
    NormConfig,
)
from argosy.models.feedforward import ACTIVATIONS
from argosy.models.rotary_embedding import read_rotary

__all__ = [
    "activation",
    "attention",
    "classes_of",
    "classifier_dropout",
    "decoder",
    "feedforward",
    "is_sliding",
    "positions_of",
]


def positions_of(config: ConfigFile) -> int:
    """The longest sequence of the model."""
    return config.integer("max_position_embeddings", default=2048)


def activation(config: ConfigFile, *keys: str, default: str = "silu") -> str:
    """The activation's name. Raises ConfigurationError for one that is not known."""
    keys = keys or ("hidden_act",)
    name = config.text(*keys, default=default)
    if name not in ACTIVATIONS:
        raise config.error(keys[0], f"one of {', '.join(ACTIVATIONS)}", name)
    return name


def classes_of(config: ConfigFile) -> int:
    """How many classes a head scores."""
    return len(config.table("id2label").values) or 2


def classifier_dropout(config: ConfigFile) -> float:
    """The probability of dropout before a head that scores tokens."""
    keys = ("classifier_dropout", "hidden_dropout", "hidden_dropout_prob")
    return config.number(next((key for key in keys if config.optional(key) is not None), keys[0]), default=0.1)


def attention(
    config: ConfigFile, *, kind: str | None = None, interleaved: bool = False, **others: Any
) -> AttentionConfig:
    """Grouped attention with rotary positions; ``kind`` names a layer's kind where each has rotations of its own, and
    ``others`` are further choices of :class:`AttentionConfig`."""
    heads, width = config.integer("num_attention_heads"), config.integer("hidden_size")
    key_heads = config.integer("num_key_value_heads", default=heads)
    if heads % key_heads:
        raise config.error("num_key_value_heads", f"a divisor of num_attention_heads ({heads})", key_heads)
    if "head_dim" not in config and width % heads:
        raise config.error("num_attention_heads", f"a divisor of hidden_size ({width})", heads)
    head_width = config.integer("head_dim", default=width // heads)
    rotary = read_rotary(config, head_width, positions_of(config), interleaved, kind)
    dropout = config.number("attention_dropout", default=0.0)
    return AttentionConfig(heads, key_heads, head_width, **{"rotary": rotary, "dropout": dropout, **others})


def feedforward(config: ConfigFile, width: int | None = None, bias: bool = False) -> FeedForwardConfig:
    """A gated perceptron of ``intermediate_size``, or another width."""
    return FeedForwardConfig(width or config.integer("intermediate_size"), activation(config), bias)


def is_sliding(config: ConfigFile, layer: int, layers: int, default: Callable[[int], bool]) -> bool:
    """Whether a layer's attention has a window: by ``layer_types``, else by the family's rule."""
    kinds = config.texts("layer_types", layers)
    if kinds is None:
        return default(layer)
    if kinds[layer] not in ("sliding_attention", "full_attention"):
        raise config.error("layer_types", "sliding_attention or full_attention for each layer", kinds[layer])
    return kinds[layer] == "sliding_attention"


def decoder(
    config: ConfigFile,
    attentions: AttentionConfig | LatentAttentionConfig | list[AttentionConfig],
    feedforwards: FeedForwardConfig | list[FeedForwardConfig | ExpertsConfig] | list[ExpertsConfig],
    **others: Any,
) -> DecoderConfig:
    """A decoder of ``num_hidden_layers`` blocks, alike or each its own; ``others`` are further choices of
    :class:`DecoderConfig`."""
    layers = config.integer("num_hidden_layers")
    first = attentions if isinstance(attentions, list) else [attentions] * layers
    second = feedforwards if isinstance(feedforwards, list) else [feedforwards] * layers
    given = {
        "norm": NormConfig(epsilon=config.number("rms_norm_eps", default=1e-6)),
        "tied": config.flag("tie_word_embeddings", default=False),
        **others,
    }
    return DecoderConfig(
        vocabulary=config.integer("vocab_size"),
        width=config.integer("hidden_size"),
        positions=_longest(config, first[0]),
        blocks=tuple(BlockConfig(*pair) for pair in zip(first, second, strict=True)),
        **given,
    )


def _longest(config: ConfigFile, of: AttentionConfig | LatentAttentionConfig) -> int:
    """The longest sequence: a dynamic scaling is for longer ones than the model's positions."""
    rotary, positions = of.rotary, positions_of(config)
    return round(positions * rotary.parameters["factor"]) if rotary and rotary.scaling == "dynamic" else positions
