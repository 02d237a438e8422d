"""Configurations of models: what a family's ``config.json`` says, as the choices that layers are built from.

A family's file turns :class:`ConfigFile` into a :class:`DecoderConfig` (or, for encoders, an
:class:`~argosy.models.encoder.EncoderConfig`); layers know these alone and no family.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "AttentionConfig", "BlockConfig", "ConfigFile", "ConfigurationError", "DecoderConfig", "ExpertsConfig",
    "FeedForwardConfig", "LatentAttentionConfig", "NormConfig", "RotaryConfig",
]  # fmt: skip

_MISSING: Any = object()


class ConfigurationError(ValueError):
    """A ``config.json`` that is no model of this framework: the message names file, key and what was expected."""


class ConfigFile:
    """The values of a ``config.json`` by key, checked for their type when they are asked for."""

    def __init__(self, values: Mapping[str, Any], path: str = "config.json") -> None:
        self.values = dict(values)
        self.path = path

    @classmethod
    def read(cls, folder: str | os.PathLike[str], name: str = "config.json") -> ConfigFile:
        """The file ``name`` of a folder. Raises ConfigurationError where there is none or it is not a JSON object."""
        path = os.path.join(os.fspath(folder), name)
        try:
            with open(path, encoding="utf-8") as file:
                values = json.load(file)
        except (FileNotFoundError, NotADirectoryError):
            raise ConfigurationError(
                f"{path} does not exist: expected a folder as transformers saves models, or a file *.gguf; nothing is "
                "downloaded"
            ) from None
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigurationError(f"{path} is no JSON text: {error}") from None
        if not isinstance(values, dict):
            raise ConfigurationError(f"{path}: expected a JSON object, got {type(values).__name__}")
        return cls(values, path)

    def __contains__(self, key: str) -> bool:
        return self.values.get(key) is not None

    def integer(self, *keys: str, default: int = _MISSING, least: int = 1) -> int:
        """The whole number under the first of ``keys`` that is there, at least ``least``."""
        value = self._first_value(keys, default)
        if isinstance(value, bool) or not isinstance(value, int) or (value < least and value is not default):
            raise self.error(keys[0], f"a whole number, at least {least}", value)
        return value

    def number(self, *keys: str, default: float = _MISSING) -> float:
        """The number under the first of ``keys`` that is there."""
        value = self._first_value(keys, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < math.inf:
            raise self.error(keys[0], "a finite number", value)
        return float(value)

    def flag(self, *keys: str, default: bool = _MISSING) -> bool:
        """True or False under the first of ``keys`` that is there."""
        value = self._first_value(keys, default)
        if not isinstance(value, bool):
            raise self.error(keys[0], "true or false", value)
        return value

    def text(self, *keys: str, default: str = _MISSING) -> str:
        """The text under the first of ``keys`` that is there."""
        value = self._first_value(keys, default)
        if not isinstance(value, str):
            raise self.error(keys[0], "a text", value)
        return value

    def optional(self, key: str) -> Any:
        """The value under ``key``, None where there is none."""
        return self.values.get(key)

    def integer_or_none(self, key: str) -> int | None:
        """The whole number under ``key``, at least 1; None where there is none."""
        return self.integer(key) if key in self else None

    def list_of(self, key: str) -> list[Any]:
        """The list under ``key``, empty where there is none."""
        value = self.values.get(key) or []
        if not isinstance(value, list):
            raise self.error(key, "a list", value)
        return value

    def architecture(self, default: str) -> str:
        """The first of ``architectures``."""
        found = (self.list_of("architectures") or [default])[0]
        if not isinstance(found, str):
            raise self.error("architectures", "a list of texts", found)
        return found

    def table(self, key: str) -> ConfigFile:
        """The JSON object under ``key``, with none of its keys where there is none."""
        value = self.values.get(key) or {}
        if not isinstance(value, dict):
            raise self.error(key, "an object", value)
        return ConfigFile(value, f"{self.path}: {key}")

    def texts(self, key: str, length: int) -> list[str] | None:
        """The list of ``length`` texts under ``key``, None where there is none."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != length or not all(isinstance(x, str) for x in value):
            raise self.error(key, f"a list of {length} texts", value)
        return list(value)

    def numbers(self, key: str, length: int) -> tuple[float, ...]:
        """The list of ``length`` numbers under ``key``."""
        value = self.values.get(key)
        numeric = isinstance(value, list) and all(type(x) in (int, float) for x in value)
        if not numeric or len(value) != length:  # type: ignore[arg-type]
            raise self.error(key, f"a list of {length} numbers", value)
        return tuple(float(x) for x in value)  # type: ignore[union-attr]

    def error(self, key: str, expected: str, value: Any) -> ConfigurationError:
        """The error of ``key``, which has ``value`` instead of what was expected."""
        shown = "nothing" if value is None or value is _MISSING else f"{value!r:.80}"
        return ConfigurationError(f"{self.path}: {key!r} should be {expected}, got {shown}")

    def _first_value(self, keys: tuple[str, ...], default: Any) -> Any:
        for key in keys:
            value = self.values.get(key)
            if value is not None:
                return value
        if default is _MISSING:
            raise self.error(keys[0], "there", None)
        return default


@dataclass(frozen=True)
class NormConfig:
    """A normalisation over the last axis: ``rms``, ``layer`` (with mean and bias), or ``rms`` whose weight is stored
    less one (``unit_offset``)."""

    kind: Literal["rms", "layer"] = "rms"
    epsilon: float = 1e-6
    unit_offset: bool = False


@dataclass(frozen=True)
class RotaryConfig:
    """Rotary positions (Su et al., 2021): ``width`` channels of a head turn with wavelengths from 2 pi to ``base``.

    ``scaling`` is the rule for more positions than a model was trained for: ``default``, ``linear``, ``dynamic``,
    ``llama3``, ``yarn``, ``longrope``, with its numbers in ``parameters``. ``positions``: those of the model.
    ``interleaved``: pairs are neighbours instead of halves.
    """

    width: int
    base: float = 10000.0
    scaling: str = "default"
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    positions: int = 2048
    interleaved: bool = False


@dataclass(frozen=True)
class AttentionConfig:
    """Attention of ``heads`` query heads over ``key_heads`` heads of keys and values, each ``head_width`` wide.

    ``window``: how many keys a query sees, itself included. ``softcap`` c: scores are ``c * tanh(scores / c)``.
    ``sinks``: a logit for each head that takes weight and has no value. ``norm`` of queries and keys: for each ``head``
    or over ``all`` heads. ``scale`` None is 1 / sqrt(head_width). Unless ``causal``, tokens see each other both ways,
    fewer than ``window`` apart.
    """

    heads: int
    key_heads: int
    head_width: int
    rotary: RotaryConfig | None = None
    bias: bool = False
    output_bias: bool = False
    norm: Literal["none", "head", "all"] = "none"
    scale: float | None = None
    window: int | None = None
    softcap: float = 0.0
    sinks: bool = False
    dropout: float = 0.0
    causal: bool = True


@dataclass(frozen=True)
class LatentAttentionConfig:
    """Multi-head latent attention (DeepSeek-AI, 2024): keys and values come from ``latent_width`` channels a token.

    Of a head's query and key ``plain_width`` channels hold no position, and ``rotary.width`` do.
    ``query_latent_width`` None: queries come from the token directly.
    """

    heads: int
    latent_width: int
    plain_width: int
    value_width: int
    rotary: RotaryConfig
    query_latent_width: int | None = None
    scale: float | None = None
    bias: bool = False
    dropout: float = 0.0


@dataclass(frozen=True)
class FeedForwardConfig:
    """A gated perceptron: ``down(activation(gate(x)) * up(x))``, ``width`` channels within."""

    width: int
    activation: str = "silu"
    bias: bool = False


@dataclass(frozen=True)
class ExpertsConfig:
    """A mixture of ``experts`` gated perceptrons, of which each token takes ``chosen``.

    The router's ``scoring``: ``softmax`` over all experts, ``sigmoid``, or ``softmax-chosen`` (over the chosen ones).
    ``correction``: a bias that is added for the choice alone. ``groups``, ``chosen_groups``, ``group_score``: experts
    come from the best groups, by their best expert or the sum of the best two. ``normalise`` divides weights by their
    sum, which is at least ``least_sum`` (or has it added); ``factor`` multiplies them. ``shared_width``: a perceptron
    that every token takes, with a gate of its own if ``shared_gate``. ``clamped``: the perceptron of gpt-oss, with
    biases, a bound of ``limit`` and slope ``alpha``.
    """

    experts: int
    chosen: int
    width: int
    activation: str = "silu"
    scoring: Literal["softmax", "sigmoid", "softmax-chosen"] = "softmax"
    normalise: bool = True
    least_sum: float = 0.0
    factor: float = 1.0
    groups: int = 1
    chosen_groups: int = 1
    group_score: Literal["max", "two"] = "max"
    correction: bool = False
    shared_width: int = 0
    shared_gate: bool = False
    bias: bool = False
    clamped: bool = False
    alpha: float = 1.702
    limit: float = 7.0


@dataclass(frozen=True)
class BlockConfig:
    """One layer of a decoder: its attention and what follows it."""

    attention: AttentionConfig | LatentAttentionConfig
    feedforward: FeedForwardConfig | ExpertsConfig


@dataclass(frozen=True)
class DecoderConfig:
    """A decoder-only transformer.

    ``placement`` of norms: before a part (``pre``), after it (``post``) or both (``sandwich``), always within the
    residual connection. ``embedding_scale`` multiplies embeddings; ``softcap`` c makes logits ``c * tanh(logits / c)``;
    ``tied``: the head is the table of embeddings; ``predictions``: modules that predict further tokens.
    """

    vocabulary: int
    width: int
    positions: int
    blocks: tuple[BlockConfig, ...]
    norm: NormConfig = NormConfig()
    placement: Literal["pre", "post", "sandwich"] = "pre"
    embedding_scale: float = 1.0
    softcap: float = 0.0
    tied: bool = False
    head_bias: bool = False
    predictions: int = 0
