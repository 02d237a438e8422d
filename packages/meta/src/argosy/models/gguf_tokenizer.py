"""The tokenizer within a GGUF file, built anew for the library ``tokenizers``."""

from __future__ import annotations

import json
import os
from typing import Any

from argosy.models.gguf import GgufFile
from argosy_infer.llm import ChatTemplate, Tokenizer, TokenizerError

__all__ = ["read_tokenizer"]

_UNKNOWN, _CONTROL, _USER_DEFINED = 2, 3, 4  # of the kinds of tokens that the format tells apart
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_PATTERNS = {"default": None, "gpt-2": None, "llama-bpe": _WORDS % "{1,3}", "qwen2": _WORDS % ""}
"""How a text is cut into words before its bytes are merged, by the format's name; None: as GPT-2 does."""


def read_tokenizer(path: str | os.PathLike[str]) -> Tokenizer | None:
    """The tokenizer of a file that merges bytes (``gpt2``) or pieces by their scores (``llama``, as SentencePiece
    does); None where the file has none. Raises NotImplementedError for another kind and TokenizerError for damaged
    tables, naming the file."""
    file = GgufFile(path)
    kind = file.value("tokenizer.ggml.model", "none")
    if kind == "none":
        return None
    cut = file.value("tokenizer.ggml.pre", "default")
    if kind not in ("gpt2", "llama") or (kind == "gpt2" and cut not in _PATTERNS):
        raise NotImplementedError(f"{file.path}: tokenizer {kind!r} ({cut!r}) is not implemented; BPE is")
    tokens, kinds = _read_list(file, "tokens", str), _read_list(file, "token_type", int, optional=True)
    control = [i for i, each in enumerate(kinds) if each in (_CONTROL, _USER_DEFINED)]
    if len(set(tokens)) != len(tokens) or len(kinds) not in (0, len(tokens)):
        raise TokenizerError(f"{file.path}: {len(tokens)} tokens, some twice or of no kind ({len(kinds)} kinds)")
    special = {
        name: tokens[number]
        for name in ("bos_token", "eos_token", "unk_token", "pad_token")
        if 0 <= (number := int(file.value(f"tokenizer.ggml.{_key(name)}_token_id", -1))) < len(tokens)
    }
    template = file.value("tokenizer.chat_template", "")
    if kind == "llama":
        special.setdefault(
            "unk_token", next((tokens[i] for i, each in enumerate(kinds) if each == _UNKNOWN), tokens[0])
        )
        form = _form_of_pieces(file, tokens, special["unk_token"])
    else:
        form = _form_of_bytes(tokens, _read_list(file, "merges", str), _PATTERNS[cut])
    form["added_tokens"] = [{"id": i, "content": tokens[i], **_FLAGS} for i in control]
    if file.value("tokenizer.ggml.add_bos_token", kind == "llama") and "bos_token" in special:
        form["post_processor"] = _begin_with(special["bos_token"], tokens.index(special["bos_token"]))
    chat = ChatTemplate(template, special, file.path) if template else None
    return Tokenizer.from_json(json.dumps(form), special, chat, file.path)


def _key(name: str) -> str:
    return {"unk_token": "unknown", "pad_token": "padding"}.get(name, name.partition("_")[0])


def _read_list(file: GgufFile, name: str, of: type, optional: bool = False) -> list[Any]:
    values = file.value(f"tokenizer.ggml.{name}", [] if optional else None)
    if not isinstance(values, list) or not all(isinstance(each, of) for each in values):
        raise TokenizerError(f"{file.path}: tokenizer.ggml.{name} should be a list of {of.__name__}")
    return values


_FLAGS = {"special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # what stands for a space in pieces


def _form_of_bytes(tokens: list[str], merges: list[str], pattern: str | None) -> dict[str, Any]:
    """The tokenizer as the library writes it."""
    bytes_only = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": pattern is None}
    cut = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    place = {token: i for i, token in enumerate(tokens)}
    return {
        "version": "1.0",
        "pre_tokenizer": bytes_only if pattern is None else {"type": "Sequence", "pretokenizers": [cut, bytes_only]},
        "decoder": {**bytes_only, "use_regex": True},
        "model": {"type": "BPE", "vocab": place, "merges": [merge.split(" ", 1) for merge in merges]},
    }


def _form_of_pieces(file: GgufFile, tokens: list[str], unknown: str) -> dict[str, Any]:
    """The same for pieces: of all neighbours that make a piece together those of the highest score are merged first,
    and what is no piece falls apart into bytes (Kudo and Richardson, SentencePiece, 2018)."""
    scores = _read_list(file, "scores", float)
    if len(scores) != len(tokens):
        raise TokenizerError(f"{file.path}: {len(tokens)} tokens have {len(scores)} scores")
    place = {token: i for i, token in enumerate(tokens)}
    merges = [
        (piece[:at], piece[at:])
        for piece in sorted(tokens, key=lambda piece: -scores[place[piece]])
        for at in range(1, len(piece))
        if piece[:at] in place and piece[at:] in place
    ]
    prefix = bool(file.value("tokenizer.ggml.add_space_prefix", True))
    normalizers = [
        *([{"type": "Prepend", "prepend": _SPACE}] if prefix else []),
        {"type": "Replace", "pattern": {"String": " "}, "content": _SPACE},
    ]
    decoders = [
        {"type": "Replace", "pattern": {"String": _SPACE}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
        *([{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefix else []),
    ]  # fmt: skip
    return {
        "version": "1.0",
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": {
            "type": "BPE", "vocab": place, "merges": merges, "unk_token": unknown, "fuse_unk": True,
            "byte_fallback": True,
        },
    }  # fmt: skip


def _begin_with(token: str, number: int) -> dict[str, Any]:
    """The token before every text."""
    first, text = {"SpecialToken": {"id": token, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    return {
        "type": "TemplateProcessing", "single": [first, text],
        "pair": [first, text, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {token: {"id": token, "ids": [number], "tokens": [token]}},
    }  # fmt: skip
