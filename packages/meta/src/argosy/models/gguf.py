"""GGUF files: what their metadata says as a ``config.json``, and their tensors by the names that transformers uses.

The library ``gguf`` (the extra ``[gguf]``) parses the container and knows the formats of blocks. Tensors of float32,
float16 and bfloat16 are the file's own pages; blocks become float32 when they are read, or, where that is asked for,
the integers and scales of a layer that multiplies with them (`gguf_blocks`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.models.configuration import ConfigFile
from argosy.models.gguf_blocks import PARTS_OF_BLOCKS, read_blocks
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.safetensors import CheckpointError

__all__ = [
    "ARCHITECTURES",
    "GEMMA3",
    "PARTS",
    "WHOLE",
    "Architecture",
    "GgufFile",
    "gguf_library",
    "rearrange",
    "rows_by_halves",
]

Array = np.ndarray[Any, Any]
_FLOATS = {"F32": as_dtype("float32"), "F16": as_dtype("float16"), "BF16": as_dtype("bfloat16")}
_READ = (*_FLOATS, "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K")
_NORMS = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
_BY_WIDTH = {"gemma2": 46, "gemma3": 62}
"""Layers of the model that scales scores by the width of all heads, not that of one."""
_SANDWICH = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm",
}  # fmt: skip
PARTS = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}  # fmt: skip
WHOLE = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


@dataclass(frozen=True)
class Architecture:
    """How an architecture's files differ: names of its norms, whether rows of queries and keys are ordered for
    neighbouring pairs (``turned``), and what is added to the weights of norms."""

    model_type: str
    norms: Mapping[str, str]
    turned: bool = False
    offset: float = 0.0


ARCHITECTURES = {
    "llama": Architecture("llama", _NORMS, turned=True),
    "qwen2": Architecture("qwen2", _NORMS),
    "qwen3": Architecture("qwen3", _NORMS),
    "gemma2": Architecture("gemma2", _SANDWICH, offset=1.0),
    "gemma3": Architecture("gemma3_text", _SANDWICH, offset=1.0),
}

GEMMA3: Mapping[str, Any] = {"sliding_window_pattern": 6, "rope_local_base_freq": 10000.0}
"""What llama.cpp knows of Gemma 3, and its files do not say: each sixth layer has no window, the others a base of
their own for positions."""


class GgufFile(Mapping[str, Array]):
    """The tensors of a file by transformers' names; ``config``: its metadata as a ``config.json``. With ``integers``
    a matrix NAME.weight of blocks is its parts by `gguf_blocks`, such as NAME.numbers
    [out, in].

    Raises CheckpointError naming the file for one that is damaged, an architecture or a format of blocks that is not
    known, and ImportError naming what to install.
    """

    def __init__(self, path: str | os.PathLike[str], integers: bool = False) -> None:
        self.path = os.fspath(path)
        reader = _reader(self.path)
        self._fields = {name: field for name, field in reader.fields.items() if not name.startswith("GGUF.")}
        name = str(self.value("general.architecture"))
        if name not in ARCHITECTURES:
            raise CheckpointError(f"{self.path}: architecture {name!r}; expected {', '.join(ARCHITECTURES)}")
        self.name, self.architecture = name, ARCHITECTURES[name]
        stored = {tensor.name: tensor for tensor in reader.tensors}
        for tensor in reader.tensors:
            if tensor.tensor_type.name not in _READ:
                kind = tensor.tensor_type.name
                raise CheckpointError(f"{self.path}: {tensor.name} is {kind}; expected {', '.join(_READ)}")
        self.config = ConfigFile(_config(self, stored), self.path)
        self._heads = {
            "q_proj": self.config.integer("num_attention_heads"), "k_proj": self.config.integer("num_key_value_heads")
        }  # fmt: skip
        names = {_own_name(name, self.architecture): tensor for name, tensor in stored.items()}
        self._tensors = {name: tensor for name, tensor in names.items() if name is not None}
        self._in_blocks = set[str]()
        for name, tensor in list(self._tensors.items()) if integers else []:
            parts = PARTS_OF_BLOCKS.get(tensor.tensor_type.name, ())
            if parts and name.endswith(".weight") and len(tensor.shape) == 2:
                own = [f"{name.removesuffix('.weight')}.{part}" for part in parts]
                self._tensors |= dict.fromkeys(own, tensor)
                self._in_blocks.update(own)
                del self._tensors[name]
                self.config.values["quantization_config"] = {"quant_method": "gguf"}

    def value(self, key: str, default: Any = None) -> Any:
        """The metadata under ``key``. Raises CheckpointError where there is none and no default."""
        field = self._fields.get(key)
        if field is None:
            if default is None:
                raise CheckpointError(f"{self.path} has no metadata {key!r}")
            return default
        return field.contents()

    def form(self, name: str) -> Array:
        """An array of the shape and dtype of a weight or bias, without its numbers: blocks are not read."""
        tensor = self._tensors[name]
        dtype = _FLOATS.get(tensor.tensor_type.name, as_dtype("float32"))
        return np.broadcast_to(np.zeros((), dtype.numpy), _shape(tensor))

    def __getitem__(self, name: str) -> Array:
        tensor, part = self._tensors[name], name.rpartition(".")[2]
        if name not in self._in_blocks:
            array = _array(tensor)
        else:
            rows = np.asarray(tensor.data).view(np.uint8).reshape(int(tensor.shape[1]), -1)
            array = read_blocks(rows, tensor.tensor_type.name, part)
        if part == "form":
            return array
        return rearrange(name, array, self.architecture, self._heads, rows_by_halves)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def _reader(path: str) -> Any:
    gguf = gguf_library()

    class Reader(gguf.GGUFReader):  # type: ignore[misc, name-defined]
        """The library's, on a plain array: parts of a memory map, one for each word, take twice as long to make."""

        @property
        def data(self) -> Array:
            return self._bytes

        @data.setter
        def data(self, mapped: Array) -> None:
            self._bytes = np.asarray(mapped)

    try:
        return Reader(path, "c")
    except FileNotFoundError:
        raise CheckpointError(f"{path} does not exist") from None
    except (ValueError, IndexError, KeyError, TypeError, OSError, OverflowError, MemoryError, RuntimeWarning) as error:
        raise CheckpointError(f"{path} is no GGUF file: {error}") from None


def gguf_library() -> Any:
    try:
        import gguf
    except ModuleNotFoundError as error:
        install = "python -m pip install argosy[gguf]"
        raise ImportError(f"GGUF files need the library gguf: {install}", name=error.name) from error
    return gguf


def _array(tensor: Any) -> Array:
    """A tensor's numbers [rows, columns]; blocks become float32."""
    shape, kind = _shape(tensor), tensor.tensor_type.name
    if kind in _FLOATS:
        made: Array = tensor.data.view(_FLOATS[kind].numpy)
    elif 0 in shape:
        made = np.zeros(shape, np.float32)  # the library reads no empty ones
    else:
        made = gguf_library().dequantize(tensor.data, tensor.tensor_type)
    return made.reshape(shape)


def _shape(tensor: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in reversed(tensor.shape))


def _config(file: GgufFile, stored: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata under the keys of a ``config.json``."""

    def own(key: str, default: Any = None) -> Any:
        return file.value(f"{file.name}.{key}", default)

    heads, width = own("attention.head_count"), own("embedding_length")
    config = {
        "model_type": file.architecture.model_type,
        "architectures": ["ForCausalLM"],
        "vocab_size": int(stored["token_embd.weight"].shape[-1]) if "token_embd.weight" in stored else 0,
        "hidden_size": width,
        "intermediate_size": own("feed_forward_length"),
        "num_hidden_layers": own("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": own("attention.head_count_kv", heads),
        "head_dim": own("attention.key_length", width // max(1, heads)),
        "max_position_embeddings": own("context_length"),
        "rms_norm_eps": own("attention.layer_norm_rms_epsilon", 1e-6),
        "rope_theta": own("rope.freq_base", 10000.0),
        "tie_word_embeddings": "output.weight" not in stored,
        "attention_bias": "blk.0.attn_q.bias" in stored,
        "qkv_bias": "blk.0.attn_q.bias" in stored,
        "mlp_bias": "blk.0.ffn_gate.bias" in stored,
    }
    scaling = own("rope.scaling.type", "none")
    if scaling != "none":
        positions = config["max_position_embeddings"]
        config["rope_scaling"] = {
            "rope_type": scaling,
            "factor": own("rope.scaling.factor"),
            "original_max_position_embeddings": own("rope.scaling.original_context_length", positions),
        }
    if "rope_freqs.weight" in stored:
        raise CheckpointError(f"{file.path}: rope_freqs.weight, a factor for each frequency, is not implemented")
    if file.name in _BY_WIDTH:
        largest = config["num_hidden_layers"] == _BY_WIDTH[file.name]
        config["query_pre_attn_scalar"] = width // heads if largest else config["head_dim"]
        config["sliding_window"] = own("attention.sliding_window")
    if file.name == "gemma2":
        config["attn_logit_softcapping"] = own("attn_logit_softcapping")
        config["final_logit_softcapping"] = own("final_logit_softcapping")
    return {**config, **GEMMA3} if file.name == "gemma3" else config


def _own_name(name: str, architecture: Architecture) -> str | None:
    """Transformers' name of a tensor; its own where it has none, so that it counts as surplus."""
    match = re.fullmatch(r"(?:blk\.(\d+)\.)?(\w+)\.(weight|bias)", name)
    if match is None:
        return name
    layer, part, kind = match.groups()
    table = WHOLE if layer is None else {**architecture.norms, **PARTS}
    own = next((own for own, theirs in table.items() if theirs == part), None)
    if own is None:
        return name
    return f"{own}.{kind}" if layer is None else f"model.layers.{layer}.{own}.{kind}"


def rearrange(
    name: str, array: Array, architecture: Architecture, heads: Mapping[str, int], turn: Callable[[Array, int], Array]
) -> Array:
    """A tensor from a file's order to transformers'; ``turn`` reorders rows of queries and keys."""
    part = next((each for each in heads if f".{each}." in name), None)
    if architecture.turned and part is not None:
        if not array.size or len(array) % (2 * heads[part]):
            raise CheckpointError(f"{name} has {len(array)} rows; expected two halves for each of {heads[part]} heads")
        return turn(array, heads[part])
    if architecture.offset and name.endswith(("norm.weight", "layernorm.weight")):
        sign = -1.0 if turn is rows_by_halves else 1.0
        moved: Array = array + np.asarray(sign * architecture.offset, array.dtype)
        return moved
    return array


def rows_by_halves(array: Array, heads: int) -> Array:
    """Rows of each head whose pairs are neighbours, with first halves before second ones."""
    return array.reshape(heads, -1, 2, *array.shape[1:]).swapaxes(1, 2).reshape(array.shape)
