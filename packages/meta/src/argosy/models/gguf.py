"""GGUF files: what their metadata says as a ``config.json``, and their tensors by the names that transformers uses.

The library ``gguf`` (the extra ``[gguf]``) parses the container and knows the formats of blocks. Tensors of float32,
float16 and bfloat16 are the file's own pages; blocks become float32 when they are read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.models.configuration import ConfigFile
from argosy_hwadapt.files import replace_file
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.safetensors import CheckpointError

__all__ = ["GgufFile", "write_gguf"]

Array = np.ndarray[Any, Any]
_READ = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K")
_NORMS = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
_SANDWICH = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm",
}  # fmt: skip
_PARTS = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}  # fmt: skip
_WHOLE = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


@dataclass(frozen=True)
class _Architecture:
    """How an architecture's files differ: names of its norms, whether rows of queries and keys are ordered for
    neighbouring pairs (``turned``), and what is added to the weights of norms."""

    model_type: str
    norms: Mapping[str, str]
    turned: bool = False
    offset: float = 0.0


_ARCHITECTURES = {
    "llama": _Architecture("llama", _NORMS, turned=True),
    "qwen2": _Architecture("qwen2", _NORMS),
    "qwen3": _Architecture("qwen3", _NORMS),
    "gemma2": _Architecture("gemma2", _SANDWICH, offset=1.0),
}


class GgufFile(Mapping[str, Array]):
    """The tensors of a file by transformers' names; ``config``: its metadata as a ``config.json``.

    Raises CheckpointError naming the file for one that is damaged, an architecture or a format of blocks that is not
    known, and ImportError naming what to install.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        reader = _reader(self.path)
        self._fields = {name: field for name, field in reader.fields.items() if not name.startswith("GGUF.")}
        name = str(self.value("general.architecture"))
        if name not in _ARCHITECTURES:
            raise CheckpointError(f"{self.path}: architecture {name!r}; expected {', '.join(_ARCHITECTURES)}")
        self.name, self.architecture = name, _ARCHITECTURES[name]
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

    def value(self, key: str, default: Any = None) -> Any:
        """The metadata under ``key``. Raises CheckpointError where there is none and no default."""
        field = self._fields.get(key)
        if field is None:
            if default is None:
                raise CheckpointError(f"{self.path} has no metadata {key!r}")
            return default
        return field.contents()

    def __getitem__(self, name: str) -> Array:
        array = _array(self._tensors[name])
        return _rearrange(name, array, self.architecture, self._heads, _rows_by_halves)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def _reader(path: str) -> Any:
    gguf = _library()
    try:
        return gguf.GGUFReader(path, "c")
    except FileNotFoundError:
        raise CheckpointError(f"{path} does not exist") from None
    except (ValueError, IndexError, KeyError, TypeError, OSError, OverflowError, MemoryError, RuntimeWarning) as error:
        raise CheckpointError(f"{path} is no GGUF file: {error}") from None


def _library() -> Any:
    try:
        import gguf
    except ModuleNotFoundError as error:
        install = "python -m pip install argosy[gguf]"
        raise ImportError(f"GGUF files need the library gguf: {install}", name=error.name) from error
    return gguf


def _array(tensor: Any) -> Array:
    """A tensor's numbers [rows, columns]; blocks become float32."""
    shape = tuple(int(n) for n in reversed(tensor.shape))
    kind = tensor.tensor_type.name
    if kind in ("F32", "F16"):
        made: Array = tensor.data
    elif kind == "BF16":
        made = tensor.data.view(as_dtype("bfloat16").numpy)
    else:
        made = _library().dequantize(tensor.data, tensor.tensor_type)
    return made.reshape(shape)


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
    if file.name == "gemma2":
        config |= {
            "sliding_window": own("attention.sliding_window"),
            "attn_logit_softcapping": own("attn_logit_softcapping"),
            "final_logit_softcapping": own("final_logit_softcapping"),
            "query_pre_attn_scalar": width // heads if config["num_hidden_layers"] == 46 else config["head_dim"],
        }
    return config


def _own_name(name: str, architecture: _Architecture) -> str | None:
    """Transformers' name of a tensor; its own where it has none, so that it counts as surplus."""
    match = re.fullmatch(r"(?:blk\.(\d+)\.)?(\w+)\.(weight|bias)", name)
    if match is None:
        return name
    layer, part, kind = match.groups()
    table = _WHOLE if layer is None else {**architecture.norms, **_PARTS}
    own = next((own for own, theirs in table.items() if theirs == part), None)
    if own is None:
        return name
    return f"{own}.{kind}" if layer is None else f"model.layers.{layer}.{own}.{kind}"


def _file_name(own: str, architecture: _Architecture) -> str:
    """The name in a file of the tensor that transformers calls ``own``."""
    match = re.fullmatch(r"model\.layers\.(\d+)\.(.+)\.(weight|bias)", own)
    if match is None:
        name, _, kind = own.rpartition(".")
        return f"{_WHOLE[name]}.{kind}"
    return f"blk.{match[1]}.{ {**architecture.norms, **_PARTS}[match[2]] }.{match[3]}"


def _rearrange(
    name: str, array: Array, architecture: _Architecture, heads: Mapping[str, int], turn: Callable[[Array, int], Array]
) -> Array:
    """A tensor from a file's order to transformers'; ``turn`` reorders rows of queries and keys."""
    part = next((each for each in heads if f".{each}." in name), None)
    if architecture.turned and part is not None:
        return turn(array, heads[part])
    if architecture.offset and name.endswith(("norm.weight", "layernorm.weight")):
        sign = -1.0 if turn is _rows_by_halves else 1.0
        moved: Array = array + np.asarray(sign * architecture.offset, array.dtype)
        return moved
    return array


def _rows_by_halves(array: Array, heads: int) -> Array:
    """Rows of each head whose pairs are neighbours, with first halves before second ones."""
    return array.reshape(heads, -1, 2, *array.shape[1:]).swapaxes(1, 2).reshape(array.shape)


def _rows_by_pairs(array: Array, heads: int) -> Array:
    """The inverse of :func:`_rows_by_halves`."""
    return array.reshape(heads, 2, -1, *array.shape[1:]).swapaxes(1, 2).reshape(array.shape)


# ---- writing


def write_gguf(
    path: str | os.PathLike[str], config: ConfigFile, tensors: Mapping[str, Array], format: str = "F32"
) -> None:
    """Write tensors under transformers' names as a GGUF file that llama.cpp runs: matrices in ``format`` (``F32``,
    ``F16``, ``BF16``, ``Q8_0``, ``Q4_0``), vectors in float32. The file is replaced as a whole.

    Raises ValueError for families and formats that it cannot write.
    """
    gguf = _library()
    name = next((name for name, a in _ARCHITECTURES.items() if a.model_type == config.text("model_type")), None)
    if name is None:
        raise ValueError(f"write_gguf() knows {', '.join(_ARCHITECTURES)}, got {config.text('model_type')!r}")
    if format not in ("F32", "F16", "BF16", "Q8_0", "Q4_0"):
        raise ValueError(f"write_gguf(): format is one of F32, F16, BF16, Q8_0, Q4_0; got {format!r}")
    kind = gguf.GGMLQuantizationType[format]
    architecture = _ARCHITECTURES[name]
    with replace_file(path) as temporary:
        writer = gguf.GGUFWriter(temporary, name)
        heads = _write_metadata(writer, name, config)
        for own, array in tensors.items():
            values = _rearrange(own, array.astype(np.float32), architecture, heads, _rows_by_pairs)
            whole = values.ndim < 2 or format == "F32"
            data = np.ascontiguousarray(values) if whole else gguf.quants.quantize(values, kind)
            writer.add_tensor(_file_name(own, architecture), data, raw_dtype=None if whole else kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def _write_metadata(writer: Any, name: str, config: ConfigFile) -> dict[str, int]:
    """Write what a file says of the model; returns heads of queries and of keys."""
    heads, width = config.integer("num_attention_heads"), config.integer("hidden_size")
    key_heads = config.integer("num_key_value_heads", default=heads)
    head_width = config.integer("head_dim", default=width // heads)
    writer.add_context_length(config.integer("max_position_embeddings", default=2048))
    writer.add_embedding_length(width)
    writer.add_block_count(config.integer("num_hidden_layers"))
    writer.add_feed_forward_length(config.integer("intermediate_size"))
    writer.add_head_count(heads)
    writer.add_head_count_kv(key_heads)
    writer.add_key_length(head_width)
    writer.add_value_length(head_width)
    writer.add_rope_dimension_count(head_width)
    writer.add_layer_norm_rms_eps(config.number("rms_norm_eps", default=1e-6))
    rotary = config.table("rope_parameters")
    if rotary.text("rope_type", default="default") != "default" or "rope_scaling" in config:
        raise ValueError("write_gguf() writes plain rotary positions; the model scales them")
    writer.add_rope_freq_base(rotary.number("rope_theta", default=config.number("rope_theta", default=10000.0)))
    if name == "gemma2":
        writer.add_sliding_window(config.integer("sliding_window", default=4096))
        writer.add_attn_logit_softcapping(config.number("attn_logit_softcapping", default=0.0))
        writer.add_final_logit_softcapping(config.number("final_logit_softcapping", default=0.0))
    return {"q_proj": heads, "k_proj": key_heads}
