"""Attention of language models: grouped heads with rotary positions, windows, soft caps and sinks; latent attention.

Shapes: B batch, T positions, H heads, K width of a head, D width of the model.
"""

from __future__ import annotations

from typing import Any

import argosy as paddle
from argosy import nn
from argosy.models.configuration import AttentionConfig, LatentAttentionConfig, NormConfig, RotaryConfig
from argosy.models.norm import make_norm
from argosy.models.rotary_embedding import rotate, rotation_tables
from argosy.nn import functional as F
from argosy.nn.layer import Layer

__all__ = ["Attention", "LatentAttention", "Positions"]


_HIDDEN = -6e4
"""What is added to scores of padding: finite, in float16 too, so that padding that sees nothing else is no NaN, nor is
its gradient."""


def _hide(seen: Any) -> Any:
    """0 where a token is seen, else the least that is added to scores."""
    zero = paddle.zeros([], "float32")
    return paddle.where(seen.astype("bool"), zero, paddle.full([], _HIDDEN, "float32"))


class Positions:
    """What the attentions of one pass share: the tables of rotary positions, made once each, and the padding."""

    def __init__(self, length: Any, padding_BS: Any = None) -> None:
        """``length``: tokens of each row; ``padding_BS`` [B, S] bool: False where a token is none."""
        self.length = length
        self.mask = None if padding_BS is None else _hide(padding_BS).unsqueeze([1, 2])
        self._tables: dict[Any, tuple[Any, Any]] = {}

    def mask_both_ways(self, window: int | None) -> Any:
        """What is added to scores of tokens that see those on both sides, fewer than ``window`` away; None for
        nothing."""
        if window is None:
            return self.mask
        places = paddle.arange(self.length)
        near_TS = (places.unsqueeze(1) - places.unsqueeze(0)).abs() < window
        mask = _hide(near_TS).unsqueeze([0, 1])
        return mask if self.mask is None else mask + self.mask

    def tables(self, config: RotaryConfig) -> tuple[Any, Any]:
        """Cosines and sines [T, pairs]."""
        key = (config, *sorted((name, str(value)) for name, value in config.parameters.items()))
        if key not in self._tables:
            self._tables[key] = rotation_tables(config, self.length)
        return self._tables[key]


class Attention(Layer):
    """Self-attention with rotary positions, causal unless the configuration says otherwise. x_BTD -> [B, T, D]."""

    def __init__(self, width: int, config: AttentionConfig, norm: NormConfig) -> None:
        super().__init__()
        self.config = config
        queries, keys = config.heads * config.head_width, config.key_heads * config.head_width
        bias = None if config.bias else False
        self.q_proj = nn.Linear(width, queries, bias_attr=bias)
        self.k_proj = nn.Linear(width, keys, bias_attr=bias)
        self.v_proj = nn.Linear(width, keys, bias_attr=bias)
        self.o_proj = nn.Linear(queries, width, bias_attr=None if config.output_bias else False)
        if config.norm != "none":
            whole = config.norm == "all"
            self.q_norm = make_norm(queries if whole else config.head_width, norm)
            self.k_norm = make_norm(keys if whole else config.head_width, norm)
        if config.sinks:
            self.sinks = self.create_parameter([config.heads], is_bias=True)

    def forward(self, x_BTD: Any, positions: Positions) -> Any:
        """Every position attends to itself and those before it that its window holds, or to those on both sides."""
        config = self.config
        q_BTHK = self._heads(self.q_proj(x_BTD), config.heads, "q_norm")
        k_BTGK = self._heads(self.k_proj(x_BTD), config.key_heads, "k_norm")
        v_BTGK = self.v_proj(x_BTD).reshape([0, 0, config.key_heads, config.head_width])
        if config.rotary is not None:
            tables, interleaved = positions.tables(config.rotary), config.rotary.interleaved
            q_BTHK, k_BTGK = rotate(q_BTHK, tables, interleaved), rotate(k_BTGK, tables, interleaved)
        mask, window = positions.mask, config.window
        if not config.causal:
            mask, window = positions.mask_both_ways(window), None
        mixed_BTHK = F.scaled_dot_product_attention(
            q_BTHK, k_BTGK, v_BTGK, mask, config.dropout, config.causal, self.training, scale=config.scale,
            window=window, softcap=config.softcap, sinks=self.sinks if config.sinks else None,
        )  # fmt: skip
        return self.o_proj(mixed_BTHK.reshape([0, 0, config.heads * config.head_width]))

    def _heads(self, x_BTF: Any, heads: int, norm: str) -> Any:
        """Channels as heads, normalised before (all of them) or after (each head) they are told apart."""
        if self.config.norm == "all":
            x_BTF = getattr(self, norm)(x_BTF)
        x_BTHK = x_BTF.reshape([0, 0, heads, self.config.head_width])
        return getattr(self, norm)(x_BTHK) if self.config.norm == "head" else x_BTHK


class LatentAttention(Layer):
    """Multi-head latent attention (DeepSeek-AI, 2024): a token keeps its latent channels and one rotated key, of which
    each head makes its own keys and values. x_BTD -> [B, T, D]."""

    def __init__(self, width: int, config: LatentAttentionConfig, norm: NormConfig) -> None:
        super().__init__()
        self.config = config
        bias = None if config.bias else False
        head = config.plain_width + config.rotary.width
        if config.query_latent_width is None:
            self.q_proj = nn.Linear(width, config.heads * head, bias_attr=False)
        else:
            self.q_a_proj = nn.Linear(width, config.query_latent_width, bias_attr=bias)
            self.q_a_layernorm = make_norm(config.query_latent_width, norm)
            self.q_b_proj = nn.Linear(config.query_latent_width, config.heads * head, bias_attr=False)
        self.kv_a_proj_with_mqa = nn.Linear(width, config.latent_width + config.rotary.width, bias_attr=bias)
        self.kv_a_layernorm = make_norm(config.latent_width, norm)
        made = config.plain_width + config.value_width
        self.kv_b_proj = nn.Linear(config.latent_width, config.heads * made, bias_attr=False)
        self.o_proj = nn.Linear(config.heads * config.value_width, width, bias_attr=bias)

    def forward(self, x_BTD: Any, positions: Positions) -> Any:
        """Every position attends to itself and those before it."""
        config = self.config
        tables, interleaved = positions.tables(config.rotary), config.rotary.interleaved
        q_BTHK = self._queries(x_BTD).reshape([0, 0, config.heads, config.plain_width + config.rotary.width])
        q_plain, q_turned = paddle.split(q_BTHK, [config.plain_width, config.rotary.width], axis=-1)
        latent_BTL, k_turned = paddle.split(
            self.kv_a_proj_with_mqa(x_BTD), [config.latent_width, config.rotary.width], axis=-1
        )
        made = self.kv_b_proj(self.kv_a_layernorm(latent_BTL))
        made = made.reshape([0, 0, config.heads, config.plain_width + config.value_width])
        k_plain, v_BTHV = paddle.split(made, [config.plain_width, config.value_width], axis=-1)
        k_turned = rotate(k_turned.unsqueeze(2), tables, interleaved).expand([-1, -1, config.heads, -1])
        mixed_BTHV = F.scaled_dot_product_attention(
            paddle.concat([q_plain, rotate(q_turned, tables, interleaved)], axis=-1),
            paddle.concat([k_plain, k_turned], axis=-1),
            v_BTHV, positions.mask, config.dropout, True, self.training, scale=config.scale,
        )  # fmt: skip
        return self.o_proj(mixed_BTHV.reshape([0, 0, config.heads * config.value_width]))

    def _queries(self, x_BTD: Any) -> Any:
        if self.config.query_latent_width is None:
            return self.q_proj(x_BTD)
        return self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x_BTD)))
