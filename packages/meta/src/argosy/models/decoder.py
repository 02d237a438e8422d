"""Decoder-only transformers: blocks of attention and perceptron, made from a configuration, and their heads.

Shapes: B batch, T positions, D width of the model, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import argosy as paddle
from argosy import nn
from argosy.models.attention import Attention, LatentAttention, Positions
from argosy.models.configuration import BlockConfig, DecoderConfig, ExpertsConfig, LatentAttentionConfig
from argosy.models.feedforward import GatedFeedForward, MixtureOfExperts
from argosy.models.norm import make_norm
from argosy.nn import functional as F
from argosy.nn.layer import Layer

__all__ = ["Block", "CausalLM", "Decoder", "HeadlessDecoder", "PredictionModule", "TokenEmbedding"]


class Block(Layer):
    """Attention and a perceptron, each with a normalisation and a residual connection around both."""

    def __init__(self, config: DecoderConfig, block: BlockConfig) -> None:
        super().__init__()
        width, norm = config.width, config.norm
        self.placement = config.placement
        latent = isinstance(block.attention, LatentAttentionConfig)
        self.self_attn = (LatentAttention if latent else Attention)(width, block.attention, norm)  # type: ignore[arg-type]
        mixed = isinstance(block.feedforward, ExpertsConfig)
        self.mlp = (MixtureOfExperts if mixed else GatedFeedForward)(width, block.feedforward)  # type: ignore[arg-type]
        if self.placement != "post":
            self.input_layernorm = make_norm(width, norm)
        self.post_attention_layernorm = make_norm(width, norm)
        if self.placement == "sandwich":
            self.pre_feedforward_layernorm = make_norm(width, norm)
        if self.placement != "pre":
            self.post_feedforward_layernorm = make_norm(width, norm)

    def forward(self, x_BTD: Any, positions: Positions) -> Any:
        """The block's output, of the input's shape."""
        if self.placement == "pre":
            x_BTD = x_BTD + self.self_attn(self.input_layernorm(x_BTD), positions)
            return x_BTD + self.mlp(self.post_attention_layernorm(x_BTD))
        if self.placement == "post":
            x_BTD = x_BTD + self.post_attention_layernorm(self.self_attn(x_BTD, positions))
            return x_BTD + self.post_feedforward_layernorm(self.mlp(x_BTD))
        attended = self.self_attn(self.input_layernorm(x_BTD), positions)
        x_BTD = x_BTD + self.post_attention_layernorm(attended)
        return x_BTD + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x_BTD)))


class PredictionModule(Block):
    """A module that predicts one token further (DeepSeek-V3's report, section 2.2): a projection of the next token's
    embedding beside the hidden state, a block, a normalisation. Embeddings and head are the model's.

    The projection takes the embedding first, and the state is that behind the model's last normalisation, as engines
    read the published weights; the report has the other order, and does not say the latter.
    """

    def __init__(self, config: DecoderConfig, block: BlockConfig) -> None:
        super().__init__(config, block)
        self.enorm, self.hnorm = make_norm(config.width, config.norm), make_norm(config.width, config.norm)
        self.eh_proj = nn.Linear(2 * config.width, config.width, bias_attr=False)
        self.shared_head = Layer()
        self.shared_head.norm = make_norm(config.width, config.norm)

    def forward(self, x_BTD: Any, positions: Positions, hidden_BTD: Any = None) -> Any:
        """The normalised state [B, T, D] of embeddings of next tokens and hidden states of the depth before."""
        both = paddle.concat([self.enorm(x_BTD), self.hnorm(hidden_BTD)], axis=-1)
        return self.shared_head.norm(super().forward(self.eh_proj(both), positions))


class TokenEmbedding(nn.Embedding):
    """Embeddings of tokens, which a tied head multiplies with."""

    @property
    def dtype(self) -> Any:
        """That of the rows."""
        return self.weight.dtype

    def multiply(self, x_BTD: Any) -> Any:
        """The products [B, T, V] with all rows."""
        return paddle.matmul(x_BTD, self.weight, transpose_y=True)


class Decoder(Layer):
    """Embeddings, blocks and a last normalisation: ids_BT (integers) -> hidden states [B, T, D]."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = TokenEmbedding(config.vocabulary, config.width)
        self.layers = nn.LayerList([Block(config, block) for block in config.blocks])
        for _ in range(config.predictions):  # numbered on in files
            self.layers.append(PredictionModule(config, config.blocks[-1]))
        self.norm = make_norm(config.width, config.norm)

    def forward(self, ids_BT: Any, padding_BT: Any = None) -> Any:
        """The normalised hidden states; ``padding_BT`` is False where a token is none. Raises ValueError for sequences
        longer than the model has positions."""
        x_BTD, positions = self._embed(ids_BT, padding_BT)
        for block in list(self.layers)[: len(self.config.blocks)]:
            x_BTD = block(x_BTD, positions)
        return self.norm(x_BTD)

    def predict_further(self, next_BT: Any, hidden_BTD: Any, depth: int = 1) -> Any:
        """The normalised states by which module ``depth`` (from 1) predicts the token after ``next_BT``, the ids that
        follow those whose states ``hidden_BTD`` are: the decoder's, or those of the module before.

        Raises ValueError for a module that the model does not have.
        """
        if not 1 <= depth <= self.config.predictions:
            raise ValueError(f"depth should be 1 to {self.config.predictions}, the model's modules; got {depth}")
        x_BTD, positions = self._embed(next_BT)
        return self.layers[len(self.config.blocks) + depth - 1](x_BTD, positions, hidden_BTD)

    def _embed(self, ids_BT: Any, padding_BT: Any = None) -> tuple[Any, Positions]:
        length = ids_BT.shape[1]
        if isinstance(length, int) and length > self.config.positions:
            raise ValueError(
                f"a sequence of {length} tokens is longer than the model's {self.config.positions} positions"
            )
        x_BTD = self.embed_tokens(ids_BT)
        if self.config.embedding_scale != 1.0:
            x_BTD = x_BTD * paddle.full([], self.config.embedding_scale, x_BTD.dtype)
        return x_BTD, Positions(length, padding_BT)


class CausalLM(Layer):
    """Logits of the next token at every position: ids_BT (integers) -> [B, T, V]."""

    lm_head: Any

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        if not config.tied:
            self.lm_head = nn.Linear(config.width, config.vocabulary, bias_attr=None if config.head_bias else False)
        elif config.head_bias:
            self.lm_head = Layer()
            self.lm_head.bias = self.create_parameter([config.vocabulary], is_bias=True)

    def forward(self, ids_BT: Any, padding_BT: Any = None) -> Any:
        """The logits."""
        return self.head(self.model(ids_BT, padding_BT))

    def head(self, x_BTD: Any) -> Any:
        """Logits of hidden states."""
        if self.config.tied:
            logits_BTV = self.model.embed_tokens.multiply(x_BTD)
            if self.config.head_bias:
                logits_BTV = logits_BTV + self.lm_head.bias
        else:
            logits_BTV = self.lm_head(x_BTD)
        softcap = self.config.softcap
        return paddle.tanh(logits_BTV / softcap) * softcap if softcap else logits_BTV

    def loss(self, ids_BT: Any, next_BT: Any, further_weight: float = 0.0) -> Any:
        """Mean cross entropy (nats per token) of the next tokens; with ``further_weight`` that factor times the mean of
        the same of the modules that predict further tokens besides (DeepSeek-V3's report, equations 24 and 25), for
        ids of which each follows the one before."""
        states_BTD = self.model(ids_BT)
        total = self._cross_entropy(states_BTD, next_BT)
        count = self.config.predictions if further_weight else 0
        for depth in range(1, count + 1):
            states_BTD = self.model.predict_further(next_BT[:, depth - 1 : -1], states_BTD[:, :-1], depth)
            total = total + self._cross_entropy(states_BTD, next_BT[:, depth:]) * (further_weight / count)
        return total

    def _cross_entropy(self, states_BTD: Any, next_BT: Any) -> Any:
        logits = self.head(states_BTD).reshape([-1, self.config.vocabulary])
        return F.cross_entropy(logits, next_BT.reshape([-1]))


class HeadlessDecoder(Layer):
    """Hidden states [B, T, D] alone, of files without a head: what texts are embedded by."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)

    def forward(self, ids_BT: Any, padding_BT: Any = None) -> Any:
        """The normalised hidden states."""
        return self.model(ids_BT, padding_BT)
