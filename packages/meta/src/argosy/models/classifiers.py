"""Heads that score sequences or tokens, on decoders.

Shapes: B batch, T positions, D width of the model, C classes.
"""

from __future__ import annotations

from typing import Any

import argosy as paddle
from argosy import nn
from argosy.models.configuration import DecoderConfig
from argosy.models.decoder import Decoder
from argosy.models.gpt import GPT, GPTConfig
from argosy.nn.layer import Layer

__all__ = ["GPTClassifier", "GPTTokenClassifier", "SequenceClassifier", "TokenClassifier"]


def _last_states(x_BTD: Any, padding_BT: Any) -> Any:
    """The states [B, D] of last tokens; padding may stand before or behind the tokens."""
    if padding_BT is None:
        return x_BTD[:, -1]
    places_BT = paddle.arange(x_BTD.shape[1]) * padding_BT.astype("int64")
    last_B11 = places_BT.argmax(-1).reshape([-1, 1, 1])
    return paddle.take_along_axis(x_BTD, last_B11, axis=1)[:, 0]


class SequenceClassifier(Layer):
    """Scores [B, ``classes``] of sequences by the hidden state of their last token."""

    def __init__(self, config: DecoderConfig, classes: int) -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        self.score = nn.Linear(config.width, classes, bias_attr=False)

    def forward(self, ids_BT: Any, padding_BT: Any = None) -> Any:
        """The scores."""
        return self.score(_last_states(self.model(ids_BT, padding_BT), padding_BT))


class TokenClassifier(Layer):
    """Scores [B, T, ``classes``] of tokens."""

    def __init__(self, config: DecoderConfig, classes: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        self.dropout = nn.Dropout(dropout)
        self.score = nn.Linear(config.width, classes)

    def forward(self, ids_BT: Any, padding_BT: Any = None) -> Any:
        """The scores."""
        return self.score(self.dropout(self.model(ids_BT, padding_BT)))


class GPTClassifier(GPT):
    """Scores [B, ``classes``] of sequences by the hidden state of their last token."""

    def __init__(self, config: GPTConfig, classes: int) -> None:
        super().__init__(config)
        self.score = nn.Linear(config.width, classes, bias_attr=False)

    def forward(self, ids_BT: Any, padding_BT: Any = None) -> Any:
        """The scores."""
        return self.score(_last_states(self.hidden(ids_BT, padding_BT), padding_BT))


class GPTTokenClassifier(GPT):
    """Scores [B, T, ``classes``] of tokens."""

    def __init__(self, config: GPTConfig, classes: int, dropout: float = 0.0) -> None:
        super().__init__(config)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(config.width, classes)

    def forward(self, ids_BT: Any, padding_BT: Any = None) -> Any:
        """The scores."""
        return self.classifier(self.dropout(self.hidden(ids_BT, padding_BT)))
