"""Pooling: the vector of a text from the hidden states of its tokens, as sentence encoders say in ``modules.json``, in
the layout of sentence-transformers (a folder for each module: pooling, normalisation).
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Literal

import argosy as paddle
from argosy.models.configuration import ConfigFile, ConfigurationError

__all__ = ["Pooling"]

_KINDS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "first",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "last",
}
_LENGTH_FILE = "sentence_bert_config.json"


@dataclass(frozen=True)
class Pooling:
    """The ``mean`` or the ``max`` of all tokens, or the ``first`` or ``last`` one; ``normalised`` to length 1. A text
    has ``length`` tokens at most (None: as many as the model has positions)."""

    kind: Literal["mean", "max", "first", "last"] = "mean"
    normalised: bool = False
    length: int | None = None

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Pooling:
        """That of a folder; the mean where it has no ``modules.json``. Raises ConfigurationError for modules and modes
        that are not known."""
        path = os.path.join(os.fspath(folder), "modules.json")
        if not os.path.isfile(path):
            return cls()
        try:
            with open(path, encoding="utf-8") as file:
                kinds = [(str(module["type"]).rpartition(".")[2], str(module["path"])) for module in json.load(file)]
        except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
            raise ConfigurationError(f"{path} is no list of modules: {error!r}") from None
        unknown = [kind for kind, _ in kinds if kind not in ("Transformer", "Pooling", "Normalize")]
        if unknown:
            raise ConfigurationError(f"{path}: expected Transformer, Pooling and Normalize, got {unknown}")
        places = [place for kind, place in kinds if kind == "Pooling"]
        kind: Any = _kind_of(os.path.join(os.fspath(folder), os.path.basename(places[0]))) if places else "mean"
        length = None
        if os.path.isfile(os.path.join(os.fspath(folder), _LENGTH_FILE)):
            settings = ConfigFile.read(folder, _LENGTH_FILE)
            length = None if settings.optional("max_seq_length") is None else settings.integer("max_seq_length")
        return cls(kind, any(name == "Normalize" for name, _ in kinds), length)

    def files(self, width: int) -> dict[str, bytes]:
        """The contents of the files that :meth:`read` reads, by name, of vectors of ``width`` numbers."""
        kinds = ["Transformer", "Pooling", *(["Normalize"] if self.normalised else [])]
        modules = [
            {
                "idx": i, "name": str(i), "path": f"{i}_{kind}" if i else "",
                "type": f"sentence_transformers.models.{kind}",
            }
            for i, kind in enumerate(kinds)
        ]  # fmt: skip
        flags = {key: kind == self.kind for key, kind in _KINDS.items()}
        made: dict[str, Any] = {
            "modules.json": modules,
            "1_Pooling/config.json": {"word_embedding_dimension": width, **flags},
            _LENGTH_FILE: {"max_seq_length": self.length, "do_lower_case": False},
        }
        return {name: json.dumps(content, indent=2).encode() for name, content in made.items()}

    def __call__(self, hidden_BTD: Any, real_BT: Any) -> Any:
        """Vectors [B, D]; ``real_BT`` is False where a token is none."""
        weight_BT1 = real_BT.astype(hidden_BTD.dtype).unsqueeze(-1)
        if self.kind == "mean":
            pooled = (hidden_BTD * weight_BT1).sum(1) / weight_BT1.sum(1).clip(min=1e-9)
        elif self.kind == "max":
            lowest = paddle.full([], float("-inf"), hidden_BTD.dtype)
            pooled = paddle.where(real_BT.astype("bool").unsqueeze(-1), hidden_BTD, lowest).max(1)
        elif self.kind == "first":
            pooled = hidden_BTD[:, 0]
        else:
            last_B11 = (paddle.arange(real_BT.shape[1]) * real_BT.astype("int64")).argmax(-1).reshape([-1, 1, 1])
            pooled = paddle.take_along_axis(hidden_BTD, last_B11, axis=1)[:, 0]
        return paddle.nn.functional.normalize(pooled, axis=-1) if self.normalised else pooled


def _kind_of(folder: str) -> Any:
    config = ConfigFile.read(folder)
    if "pooling_mode" in config:
        mode = config.text("pooling_mode")
        kind = {"mean": "mean", "cls": "first", "max": "max", "lasttoken": "last"}.get(mode)
    else:
        chosen = [key for key, value in config.values.items() if key.startswith("pooling_mode_") and value is True]
        kind = _KINDS.get(chosen[0]) if len(chosen) == 1 else None
    if kind is None:
        raise config.error("pooling_mode", "mean, cls, max or lasttoken, one alone", config.values)
    return kind
