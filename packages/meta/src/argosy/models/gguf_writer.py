"""GGUF files as llama.cpp runs them, written from a model's tensors under transformers' names and its tokenizer."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from argosy.models.configuration import ConfigFile
from argosy.models.gguf import ARCHITECTURES, GEMMA3, PARTS, WHOLE, Architecture, gguf_library, rearrange
from argosy.models.gguf_blocks import WRITTEN, pack_numbers
from argosy.models.gguf_tokenizer import write_tokenizer
from argosy.models.quantized_layers import Numbers
from argosy_hwadapt.files import replace_file
from argosy_infer.llm import Tokenizer

__all__ = ["write_gguf"]

Array = np.ndarray[Any, Any]
_FLOATS = ("F32", "F16", "BF16")
_FORMATS = (*_FLOATS, "Q8_0", "Q4_0", *WRITTEN)
_BLOCK = 256
"""Numbers of a block of the last formats."""
_SMALL_BLOCK = 32
"""Of the others."""


def write_gguf(
    path: str | os.PathLike[str],
    config: ConfigFile,
    tensors: Mapping[str, Array | Numbers],
    format: str = "F32",
    tokenizer: Tokenizer | None = None,
) -> None:
    """Write tensors under transformers' names as a GGUF file that llama.cpp runs: matrices in ``format`` (``F32``,
    ``F16``, ``BF16``, ``Q8_0``, ``Q4_0``, ``Q4_K``, ``Q6_K``; instead of the last two in ``Q8_0``, where their rows are
    no multiple of 256, and in ``F16`` where they are none of 32), vectors in float32. The file is replaced as a whole.
    Integers of eight or four bits are written as they are, in ``Q8_0`` or ``Q4_0``, their scales in float16.

    Raises ValueError for families and formats that it cannot write, and for numbers that are not finite in formats of
    blocks, NotImplementedError for integers that such blocks cannot hold, and for tokenizers.
    """
    gguf = gguf_library()
    name = next((name for name, a in ARCHITECTURES.items() if a.model_type == config.text("model_type")), None)
    if name is None:
        raise ValueError(f"write_gguf() knows {', '.join(ARCHITECTURES)}, got {config.text('model_type')!r}")
    if format not in _FORMATS:
        raise ValueError(f"write_gguf(): format is one of {', '.join(_FORMATS)}; got {format!r}")
    architecture = ARCHITECTURES[name]
    with replace_file(path) as temporary:
        writer = gguf.GGUFWriter(temporary, name)
        heads = _write_metadata(writer, name, config)
        write_tokenizer(writer, tokenizer, config.integer("vocab_size"))
        for own, array in tensors.items():
            if isinstance(array, Numbers):
                data, kind = _blocks_of(own, array, architecture, heads)
                writer.add_tensor(_file_name(own, architecture), data, raw_dtype=gguf.GGMLQuantizationType[kind])
                continue
            values = rearrange(own, array.astype(np.float32), architecture, heads, _rows_by_pairs)
            kind = "F32" if values.ndim < 2 else format
            if kind not in _FLOATS and not np.isfinite(values).all():
                raise ValueError(f"write_gguf(): {own} has numbers that are not finite; {kind} holds none")
            if kind in WRITTEN and values.shape[-1] % _BLOCK:
                kind = "Q8_0"
            if kind not in _FLOATS and values.shape[-1] % _SMALL_BLOCK:
                kind = "F16"
            if kind in WRITTEN:
                data = WRITTEN[kind](values).reshape(len(values), -1)
            else:
                data = gguf.quants.quantize(values, gguf.GGMLQuantizationType[kind])
            writer.add_tensor(_file_name(own, architecture), data, raw_dtype=gguf.GGMLQuantizationType[kind])
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def _blocks_of(own: str, made: Numbers, architecture: Architecture, heads: Mapping[str, int]) -> tuple[Array, str]:
    """Rows of blocks of a matrix of integers, and their format."""
    reason = ""
    if made.numbers.dtype != np.int8:
        reason = f"they are {made.numbers.dtype}"
    elif made.all_offsets() is not None:
        reason = "their groups have zero points or minima"
    elif made.order is not None:
        reason = "their inputs are in another order (act-order)"
    elif made.inputs is not None:
        reason = "their inputs are bytes"
    numbers, scales = (
        rearrange(own, np.ascontiguousarray(array.T), architecture, heads, _rows_by_pairs)
        for array in (made.numbers, made.scales)
    )
    try:
        if not reason:
            return pack_numbers(numbers, scales, made.bits), f"Q{made.bits}_0"
    except ValueError as error:
        reason = str(error)
    raise NotImplementedError(f"write_gguf(): {own} has integers that no block holds: {reason}")


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
    if name == "gemma3":
        _check_gemma3(config, rotary.table("sliding_attention"), head_width)
        rotary = rotary.table("full_attention")
        writer.add_sliding_window(config.integer("sliding_window", default=4096))
    if rotary.text("rope_type", default="default") != "default" or "rope_scaling" in config:
        raise ValueError("write_gguf() writes plain rotary positions; the model scales them")
    writer.add_rope_freq_base(rotary.number("rope_theta", default=config.number("rope_theta", default=10000.0)))
    if name == "gemma2":
        writer.add_sliding_window(config.integer("sliding_window", default=4096))
        writer.add_attn_logit_softcapping(config.number("attn_logit_softcapping", default=0.0))
        writer.add_final_logit_softcapping(config.number("final_logit_softcapping", default=0.0))
    return {"q_proj": heads, "k_proj": key_heads}


def _check_gemma3(config: ConfigFile, local: ConfigFile, head_width: int) -> None:
    """Raises ValueError for a Gemma 3 that is not as files have them, whose metadata say nothing of it."""
    layers, pattern = config.integer("num_hidden_layers"), GEMMA3["sliding_window_pattern"]
    own = config.integer("sliding_window_pattern", "_sliding_window_pattern", default=6)
    kinds, windows = (
        ["sliding_attention" if (i + 1) % each else "full_attention" for i in range(layers)] for each in (pattern, own)
    )
    base = config.number("rope_local_base_freq", default=GEMMA3["rope_local_base_freq"])
    found = {
        "layer_types": (config.texts("layer_types", layers) or windows, kinds),
        "the base of layers with windows": (local.number("rope_theta", default=base), GEMMA3["rope_local_base_freq"]),
        "query_pre_attn_scalar": (config.number("query_pre_attn_scalar", default=256.0), head_width),
        "use_bidirectional_attention": (config.flag("use_bidirectional_attention", default=False), False),
        "final_logit_softcapping": (config.number("final_logit_softcapping", default=0.0), 0.0),
    }
    for what, (got, expected) in found.items():
        if got != expected:
            raise ValueError(f"write_gguf(): files of gemma3 say nothing of {what}: expected {expected}, got {got}")


def _file_name(own: str, architecture: Architecture) -> str:
    """The name in a file of the tensor that transformers calls ``own``."""
    match = re.fullmatch(r"model\.layers\.(\d+)\.(.+)\.(weight|bias)", own)
    if match is None:
        name, _, kind = own.rpartition(".")
        return f"{WHOLE[name]}.{kind}"
    return f"blk.{match[1]}.{ {**architecture.norms, **PARTS}[match[2]] }.{match[3]}"


def _rows_by_pairs(array: Array, heads: int) -> Array:
    """The inverse of :func:`rows_by_halves`."""
    return array.reshape(heads, 2, -1, *array.shape[1:]).swapaxes(1, 2).reshape(array.shape)
