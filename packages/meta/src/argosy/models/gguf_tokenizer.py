"""The tokenizer within a GGUF file, built anew for the library ``tokenizers``."""

from __future__ import annotations

import json
import os
from typing import Any

from argosy.models.gguf import GgufFile
from argosy_infer.llm import ChatTemplate, Tokenizer, TokenizerError

__all__ = ["read_tokenizer"]

_CONTROL, _USER_DEFINED = 3, 4  # of the kinds of tokens that the format tells apart
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_PATTERNS = {"default": None, "gpt-2": None, "llama-bpe": _WORDS % "{1,3}", "qwen2": _WORDS % ""}
"""How a text is cut into words before its bytes are merged, by the format's name; None: as GPT-2 does."""


def read_tokenizer(path: str | os.PathLike[str]) -> Tokenizer | None:
    """The tokenizer of a file that merges bytes (``gpt2``); None where the file has none. Raises NotImplementedError
    for another kind and TokenizerError for damaged tables, naming the file."""
    file = GgufFile(path)
    kind = file.value("tokenizer.ggml.model", "none")
    if kind == "none":
        return None
    cut = file.value("tokenizer.ggml.pre", "default")
    if kind != "gpt2" or cut not in _PATTERNS:
        raise NotImplementedError(f"{file.path}: tokenizer {kind!r} ({cut!r}) is not implemented; byte-level BPE is")
    tokens, kinds = _listed(file, "tokens", str), _listed(file, "token_type", int, optional=True)
    merges = _listed(file, "merges", str)
    control = [i for i, each in enumerate(kinds) if each in (_CONTROL, _USER_DEFINED)]
    if len(set(tokens)) != len(tokens) or len(kinds) not in (0, len(tokens)):
        raise TokenizerError(f"{file.path}: {len(tokens)} tokens, some twice or of no kind ({len(kinds)} kinds)")
    special = {
        name: tokens[number]
        for name in ("bos_token", "eos_token", "unk_token", "pad_token")
        if 0 <= (number := int(file.value(f"tokenizer.ggml.{_key(name)}_token_id", -1))) < len(tokens)
    }
    template = file.value("tokenizer.chat_template", "")
    form = _form(tokens, merges, [tokens[i] for i in control], _PATTERNS[cut])
    chat = ChatTemplate(template, special, file.path) if template else None
    return Tokenizer.from_json(json.dumps(form), special, chat, file.path)


def _key(name: str) -> str:
    return {"unk_token": "unknown", "pad_token": "padding"}.get(name, name.partition("_")[0])


def _listed(file: GgufFile, name: str, of: type, optional: bool = False) -> list[Any]:
    values = file.value(f"tokenizer.ggml.{name}", [] if optional else None)
    if not isinstance(values, list) or not all(isinstance(each, of) for each in values):
        raise TokenizerError(f"{file.path}: tokenizer.ggml.{name} should be a list of {of.__name__}")
    return values


def _form(tokens: list[str], merges: list[str], control: list[str], pattern: str | None) -> dict[str, Any]:
    """The tokenizer as the library writes it."""
    bytes_only = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": pattern is None}
    cut = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    place = {token: i for i, token in enumerate(tokens)}
    flags = {"special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {
        "version": "1.0",
        "added_tokens": [{"id": place[token], "content": token, **flags} for token in control],
        "pre_tokenizer": bytes_only if pattern is None else {"type": "Sequence", "pretokenizers": [cut, bytes_only]},
        "decoder": {**bytes_only, "use_regex": True},
        "model": {"type": "BPE", "vocab": place, "merges": [merge.split(" ", 1) for merge in merges]},
    }
