"""Pooling: the vector of a text from the hidden states of its tokens, as sentence encoders say in ``modules.json``, in
the layout of sentence-transformers (a folder for each module: pooling, projections, normalisation).
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import argosy as paddle
from argosy import nn
from argosy.models.configuration import ConfigFile, ConfigurationError
from argosy.nn import functional as F
from argosy.nn.layer import Layer
from argosy_tensorcore.safetensors import CheckpointError, SafetensorsFile, file_parts
from argosy_tensorcore.storage import StridedArray

__all__ = ["Pooling", "Projection"]

_KINDS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "first",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "last",
}
_ACTIVATIONS = {
    "Identity": lambda x: x, "Tanh": paddle.tanh, "ReLU": F.relu, "GELU": F.gelu, "SiLU": F.silu, "Sigmoid": F.sigmoid,
}  # fmt: skip
_LENGTH_FILE = "sentence_bert_config.json"


class Projection(Layer):
    """A linear layer and an activation on vectors of texts [B, in] -> [B, out]: sentence-transformers' ``Dense``."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True, activation: str = "Tanh") -> None:
        super().__init__()
        self.activation = activation
        self.linear = nn.Linear(inputs, outputs, bias_attr=None if bias else False)

    @classmethod
    def read(cls, folder: str) -> Projection:
        """That of a module's folder. Raises ConfigurationError and CheckpointError naming key or tensor."""
        config, where = ConfigFile.read(folder), os.path.join(folder, "model.safetensors")
        activation = config.text("activation_function", default="torch.nn.Tanh").rpartition(".")[2]
        if activation not in _ACTIVATIONS:
            raise config.error("activation_function", f"one of {', '.join(_ACTIVATIONS)}", activation)
        inputs, outputs = config.integer("in_features"), config.integer("out_features")
        has_bias = config.flag("bias", default=True)
        with SafetensorsFile(where) as file:
            arrays = {name: np.array(file[name]) for name in file}
        for name, wanted in {
            "linear.weight": [outputs, inputs],
            **({"linear.bias": [outputs]} if has_bias else {}),
        }.items():
            found = list(arrays[name].shape) if name in arrays else "none"
            if found != wanted:
                raise CheckpointError(f"{where}: expected {name} of shape {wanted}, found {found}")
        made = cls(inputs, outputs, has_bias, activation)
        for name, parameter in made.named_parameters():
            parameter.payload = StridedArray.from_array(np.ascontiguousarray(arrays[name].T))
        return made

    def files(self, folder: str) -> dict[str, bytes]:
        """The contents of the files that :meth:`read` reads, by name."""
        inputs, outputs = self.linear.weight.shape
        form = "linear.Identity" if self.activation == "Identity" else f"activation.{self.activation}"
        config = {
            "in_features": inputs, "out_features": outputs, "bias": self.linear.bias is not None,
            "activation_function": f"torch.nn.modules.{form}",
        }  # fmt: skip
        arrays = {name: np.ascontiguousarray(each.numpy().T) for name, each in self.named_parameters()}
        return {
            f"{folder}/config.json": json.dumps(config, indent=2).encode(),
            f"{folder}/model.safetensors": b"".join(file_parts(arrays, {"format": "pt"})),
        }

    def forward(self, x: Any) -> Any:
        """The projected vectors."""
        return _ACTIVATIONS[self.activation](self.linear(x.astype(self.linear.weight.dtype)))


@dataclass(frozen=True)
class Pooling:
    """The ``mean`` or the ``max`` of all tokens, or the ``first`` or ``last`` one; ``normalised`` to length 1. A text
    has ``length`` tokens at most (None: as many as the model has positions). ``projections`` come before the length is
    made 1."""

    kind: Literal["mean", "max", "first", "last"] = "mean"
    normalised: bool = False
    length: int | None = None
    projections: tuple[Projection, ...] = ()

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
        order = ("Transformer", "Pooling", "Dense", "Normalize")
        if [kind for kind, _ in kinds] != sorted((kind for kind, _ in kinds if kind in order), key=order.index):
            got = ", ".join(kind for kind, _ in kinds)
            raise ConfigurationError(
                f"{path}: expected Transformer, Pooling, Dense and Normalize, in this order, got {got:.200}"
            )
        dense = [os.path.join(os.fspath(folder), os.path.basename(place)) for kind, place in kinds if kind == "Dense"]
        places = [place for kind, place in kinds if kind == "Pooling"]
        kind: Any = _kind_of(os.path.join(os.fspath(folder), os.path.basename(places[0]))) if places else "mean"
        normalised = any(name == "Normalize" for name, _ in kinds)
        return cls(kind, normalised, _length_of(os.fspath(folder)), tuple(map(Projection.read, dense)))

    def files(self, width: int) -> dict[str, bytes]:
        """The contents of the files that :meth:`read` reads, by name, of vectors of ``width`` numbers."""
        dense = ["Dense"] * len(self.projections)
        kinds = ["Transformer", "Pooling", *dense, *(["Normalize"] if self.normalised else [])]
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
        files = {name: json.dumps(content, indent=2).encode() for name, content in made.items()}
        for i, projection in enumerate(self.projections, 2):
            files |= projection.files(f"{i}_Dense")
        return files

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
        for projection in self.projections:
            pooled = projection(pooled)
        return F.normalize(pooled, axis=-1) if self.normalised else pooled


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


def _length_of(folder: str) -> int | None:
    """Tokens that a text has at most: by the module's file, else by the tokenizer's."""
    for name, key in ((_LENGTH_FILE, "max_seq_length"), ("tokenizer_config.json", "model_max_length")):
        if os.path.isfile(os.path.join(folder, name)):
            settings = ConfigFile.read(folder, name)
            if settings.optional(key) is not None:
                return settings.integer(key)
    return None
