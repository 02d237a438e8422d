"""Encoders whose tokens see each other both ways (Devlin et al., 2019), and their heads.

Shapes: B batch, T positions, D width of the model, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import argosy as paddle
from argosy import nn
from argosy.models.feedforward import ACTIVATIONS
from argosy.nn import functional as F
from argosy.nn.layer import Layer

__all__ = ["Encoder", "EncoderClassifier", "EncoderConfig", "EncoderTokenClassifier", "MaskedLM"]


@dataclass(frozen=True)
class EncoderConfig:
    """An encoder: sizes, kinds of segments and of tasks (0: none), activation, probabilities of dropout; ``tied``:
    masked tokens are found by the table of embeddings."""

    vocabulary: int
    width: int
    layers: int
    heads: int
    hidden: int
    positions: int
    segments: int = 2
    tasks: int = 0
    activation: str = "gelu"
    epsilon: float = 1e-12
    dropout: float = 0.0
    attention_dropout: float = 0.0
    tied: bool = True


class Embeddings(Layer):
    """The sum of what token, position, segment and task are, normalised."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocabulary, config.width)
        self.position_embeddings = nn.Embedding(config.positions, config.width)
        self.token_type_embeddings = nn.Embedding(config.segments, config.width)
        if config.tasks:
            self.task_type_embeddings = nn.Embedding(config.tasks, config.width)
        self.LayerNorm = nn.LayerNorm(config.width, epsilon=config.epsilon)
        self.dropout = nn.Dropout(config.dropout)
        self.tasks = config.tasks

    def forward(self, ids_BT: Any, segments_BT: Any, tasks_BT: Any) -> Any:
        """The embeddings [B, T, D]; segments and tasks are 0 where none are given."""
        none = paddle.zeros_like(ids_BT)
        x_BTD = self.word_embeddings(ids_BT)
        x_BTD = x_BTD + self.token_type_embeddings(none if segments_BT is None else segments_BT)
        x_BTD = x_BTD + self.position_embeddings(paddle.arange(ids_BT.shape[1], dtype="int64"))
        if self.tasks:
            x_BTD = x_BTD + self.task_type_embeddings(none if tasks_BT is None else tasks_BT)
        return self.dropout(self.LayerNorm(x_BTD))


class EncoderBlock(Layer):
    """Attention and a perceptron, each followed by dropout, a residual connection and a LayerNorm."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.query = nn.Linear(config.width, config.width)
        self.key = nn.Linear(config.width, config.width)
        self.value = nn.Linear(config.width, config.width)
        self.attention_output = nn.Linear(config.width, config.width)
        self.attention_norm = nn.LayerNorm(config.width, epsilon=config.epsilon)
        self.intermediate = nn.Linear(config.width, config.hidden)
        self.output = nn.Linear(config.hidden, config.width)
        self.output_norm = nn.LayerNorm(config.width, epsilon=config.epsilon)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x_BTD: Any, mask: Any) -> Any:
        """The block's output, of the input's shape."""
        config = self.config
        q, k, v = (
            layer(x_BTD).reshape([0, 0, config.heads, config.width // config.heads])
            for layer in (self.query, self.key, self.value)
        )
        dropout = config.attention_dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(q, k, v, mask, dropout, training=self.training)
        mixed_BTD = self.attention_output(mixed.reshape([0, 0, config.width]))
        x_BTD = self.attention_norm(x_BTD + self.dropout(mixed_BTD))
        hidden = self.output(ACTIVATIONS[config.activation](self.intermediate(x_BTD)))
        return self.output_norm(x_BTD + self.dropout(hidden))


class Encoder(Layer):
    """Hidden states of every token: ids_BT (integers) -> [B, T, D]."""

    def __init__(self, config: EncoderConfig, pooled: bool = False) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.layers = nn.LayerList([EncoderBlock(config) for _ in range(config.layers)])
        if pooled:
            self.pooler = nn.Linear(config.width, config.width)

    def forward(self, ids_BT: Any, padding_BT: Any = None, segments_BT: Any = None, tasks_BT: Any = None) -> Any:
        """The hidden states; ``padding_BT`` is False where a token is none. Raises ValueError for sequences longer than
        the model has positions."""
        length = ids_BT.shape[1]
        if isinstance(length, int) and length > self.config.positions:
            raise ValueError(
                f"a sequence of {length} tokens is longer than the model's {self.config.positions} positions"
            )
        mask = None if padding_BT is None else padding_BT.astype("bool").unsqueeze([1, 2])
        x_BTD = self.embeddings(ids_BT, segments_BT, tasks_BT)
        for block in self.layers:
            x_BTD = block(x_BTD, mask)
        return x_BTD

    def pool(self, x_BTD: Any) -> Any:
        """``tanh(first token @ weight + bias)`` [B, D]: what a sequence is, as next-sentence prediction trained it."""
        return paddle.tanh(self.pooler(x_BTD[:, 0]))


class MaskedLM(Layer):
    """Logits [B, T, V] of what stood at each position."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Encoder(config)
        self.transform = nn.Linear(config.width, config.width)
        self.transform_norm = nn.LayerNorm(config.width, epsilon=config.epsilon)
        if config.tied:
            self.bias = self.create_parameter([config.vocabulary], is_bias=True)
        else:
            self.decoder = nn.Linear(config.width, config.vocabulary)

    def forward(self, ids_BT: Any, padding_BT: Any = None, segments_BT: Any = None) -> Any:
        """The logits, by the table of embeddings, or by a matrix of their own."""
        x_BTD = ACTIVATIONS[self.config.activation](self.transform(self.model(ids_BT, padding_BT, segments_BT)))
        x_BTD = self.transform_norm(x_BTD)
        if not self.config.tied:
            return self.decoder(x_BTD)
        table_VD = self.model.embeddings.word_embeddings.weight
        return paddle.matmul(x_BTD, table_VD, transpose_y=True) + self.bias


class EncoderClassifier(Layer):
    """Scores [B, classes] of sequences by their pooled first token."""

    def __init__(self, config: EncoderConfig, classes: int) -> None:
        super().__init__()
        self.config = config
        self.model = Encoder(config, pooled=True)
        self.dropout = nn.Dropout(config.dropout)
        self.classifier = nn.Linear(config.width, classes)

    def forward(self, ids_BT: Any, padding_BT: Any = None, segments_BT: Any = None) -> Any:
        """The scores."""
        return self.classifier(self.dropout(self.model.pool(self.model(ids_BT, padding_BT, segments_BT))))


class EncoderTokenClassifier(Layer):
    """Scores [B, T, classes] of tokens."""

    def __init__(self, config: EncoderConfig, classes: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.config = config
        self.model = Encoder(config)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(config.width, classes)

    def forward(self, ids_BT: Any, padding_BT: Any = None, segments_BT: Any = None) -> Any:
        """The scores."""
        return self.classifier(self.dropout(self.model(ids_BT, padding_BT, segments_BT)))
