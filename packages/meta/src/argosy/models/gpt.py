"""A decoder-only transformer (Radford et al., 2019): learned positions, pre-norm blocks, GELU.

Shapes: B batch, T positions, H heads, K width of a head, D = H * K width of the model, V vocabulary.
"""

from __future__ import annotations

import math
from typing import Any

import argosy as paddle
from argosy import nn
from argosy.argument_repr import ArgumentRepr
from argosy.models.attention import Positions
from argosy.models.feedforward import ACTIVATIONS
from argosy.nn import functional as F
from argosy.nn.layer import Layer

__all__ = ["GPT", "Attention", "Block", "GPTConfig"]


class GPTConfig(ArgumentRepr):
    """Sizes of a GPT: vocabulary, longest sequence, width, layers, heads, dropout probability.

    ``tied``: the head is the table of tokens. ``epsilon`` of the norms. ``hidden``: the perceptrons' width, four times
    ``width`` by default. ``activation`` of these by its name. Scores of attention are multiplied with ``scale`` (None:
    1 / sqrt of a head's width), and divided by the layer's number, from 1, where ``scaled_by_layer``.
    """

    def __init__(
        self,
        vocabulary: int = 256,
        positions: int = 128,
        width: int = 192,
        layers: int = 4,
        heads: int = 6,
        dropout: float = 0.0,
        tied: bool = False,
        epsilon: float = 1e-5,
        hidden: int | None = None,
        activation: str = "gelu_new",
        scale: float | None = None,
        scaled_by_layer: bool = False,
    ) -> None:
        if width % heads:
            raise ValueError(f"GPTConfig: width {width} is not a multiple of heads {heads}")
        self.vocabulary, self.positions, self.width = vocabulary, positions, width
        self.layers, self.heads, self.dropout = layers, heads, dropout
        self.tied, self.epsilon, self.hidden = tied, epsilon, hidden or 4 * width
        self.activation, self.scale, self.scaled_by_layer = activation, scale, scaled_by_layer


def _normal_initializer(std: float) -> Any:
    return nn.initializer.Normal(0.0, std)


class Attention(Layer):
    """Causal self-attention. x_BTD -> [B, T, D]."""

    def __init__(self, config: GPTConfig, layer: int = 0) -> None:
        super().__init__()
        self.heads, self.head_width = config.heads, config.width // config.heads
        self.scale = config.scale
        if config.scaled_by_layer:
            self.scale = (self.head_width**-0.5 if config.scale is None else config.scale) / (layer + 1)
        self.inward = nn.Linear(config.width, 3 * config.width, weight_attr=_normal_initializer(0.02))
        residual = 0.02 / math.sqrt(2 * config.layers)
        self.outward = nn.Linear(config.width, config.width, weight_attr=_normal_initializer(residual))

    def forward(self, x_BTD: Any, mask: Any = None) -> Any:
        """Every position attends to itself and those before it, or those that ``mask`` shows."""
        qkv_BT3HK = self.inward(x_BTD).reshape([0, 0, 3, self.heads, self.head_width])
        q_BTHK, k_BTHK, v_BTHK = qkv_BT3HK.unbind(2)
        mixed_BTHK = F.scaled_dot_product_attention(q_BTHK, k_BTHK, v_BTHK, mask, is_causal=True, scale=self.scale)
        return self.outward(mixed_BTHK.reshape([0, 0, self.heads * self.head_width]))


class Block(Layer):
    """Attention and a two-layer perceptron, each behind a LayerNorm and around a residual connection."""

    def __init__(self, config: GPTConfig, layer: int = 0) -> None:
        super().__init__()
        residual = 0.02 / math.sqrt(2 * config.layers)
        self.activation = config.activation
        self.norm1 = nn.LayerNorm(config.width, epsilon=config.epsilon)
        self.attention = Attention(config, layer)
        self.norm2 = nn.LayerNorm(config.width, epsilon=config.epsilon)
        self.wide = nn.Linear(config.width, config.hidden, weight_attr=_normal_initializer(0.02))
        self.narrow = nn.Linear(config.hidden, config.width, weight_attr=_normal_initializer(residual))
        self.dropout = nn.Dropout(config.dropout) if config.dropout else nn.Identity()

    def forward(self, x_BTD: Any, *mask: Any) -> Any:
        """The block's output, of the input's shape; a mask, where there is one, is the attention's."""
        x_BTD = x_BTD + self.dropout(self.attention(self.norm1(x_BTD), *mask))
        hidden = ACTIVATIONS[self.activation](self.wide(self.norm2(x_BTD)))
        return x_BTD + self.dropout(self.narrow(hidden))


class GPT(Layer):
    """Logits of the next token at every position: ids_BT (int64) -> [B, T, V]."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocabulary, config.width, weight_attr=_normal_initializer(0.02))
        self.positions = nn.Embedding(config.positions, config.width, weight_attr=_normal_initializer(0.02))
        self.blocks = nn.LayerList([Block(config, layer) for layer in range(config.layers)])
        self.norm = nn.LayerNorm(config.width, epsilon=config.epsilon)
        if not config.tied:
            self.head = nn.Linear(
                config.width, config.vocabulary, weight_attr=_normal_initializer(0.02), bias_attr=False
            )

    def forward(self, ids_BT: Any, padding_BT: Any = None) -> Any:
        """The logits; ``padding_BT`` is False where a token is none. Raises ValueError for sequences longer than the
        model has positions."""
        x_BTD = self.hidden(ids_BT, padding_BT)
        return paddle.matmul(x_BTD, self.tokens.weight, transpose_y=True) if self.config.tied else self.head(x_BTD)

    def hidden(self, ids_BT: Any, padding_BT: Any = None) -> Any:
        """The normalised states [B, T, D] that logits are made of."""
        length = ids_BT.shape[1]
        if isinstance(length, int) and length > self.config.positions:
            raise ValueError(f"GPT: a sequence of {length} tokens is longer than the {self.config.positions} positions")
        x_BTD = self.tokens(ids_BT) + self.positions(paddle.arange(length, dtype="int64"))
        mask = () if padding_BT is None else (Positions(length, padding_BT).mask,)
        for block in self.blocks:
            x_BTD = block(x_BTD, *mask)
        return self.norm(x_BTD)

    def loss(self, ids_BT: Any, next_BT: Any) -> Any:
        """Mean cross entropy (nats per token) of the next tokens."""
        logits_BTV = self(ids_BT)
        return F.cross_entropy(logits_BTV.reshape([-1, self.config.vocabulary]), next_BT.reshape([-1]))
