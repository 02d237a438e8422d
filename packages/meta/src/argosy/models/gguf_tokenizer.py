"""The tokenizer within a GGUF file: built anew for the library ``tokenizers``, and written from it."""

from __future__ import annotations

import json
import re
from typing import Any

from argosy.models.gguf import GgufFile
from argosy.models.gguf_words import WORDS, Words, name_of_words
from argosy_infer.llm import ChatTemplate, Tokenizer, TokenizerError

__all__ = ["read_tokenizer", "write_tokenizer"]

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(
    1, 7
)  # the kinds of tokens that the format tells apart
_NAMES = ("bos_token", "eos_token", "unk_token", "pad_token")


def read_tokenizer(file: GgufFile) -> Tokenizer | None:
    """The tokenizer of a file that merges bytes (``gpt2``) or pieces by their scores (``llama``, as SentencePiece
    does); None where the file has none. Raises NotImplementedError for another kind and TokenizerError for damaged
    tables, naming the file."""
    kind = file.value("tokenizer.ggml.model", "none")
    if kind == "none":
        return None
    cut = file.value("tokenizer.ggml.pre", "default")
    words = Words((), begins=True) if kind == "llama" else WORDS.get(cut) if kind == "gpt2" else None
    if words is None:
        raise NotImplementedError(
            f"{file.path}: tokenizer {kind!r} ({cut!r}) is not implemented; 'llama' is, and 'gpt2' with "
            f"{', '.join(WORDS)}"
        )
    tokens, kinds = _read_list(file, "tokens", str), _read_list(file, "token_type", int, optional=True)
    control = [i for i, each in enumerate(kinds) if each in (_CONTROL, _USER_DEFINED)]
    if len(set(tokens)) != len(tokens) or len(kinds) not in (0, len(tokens)):
        raise TokenizerError(f"{file.path}: {len(tokens)} tokens, some twice or of no kind ({len(kinds)} kinds)")
    special = {
        name: tokens[number]
        for name in _NAMES
        if 0 <= (number := int(file.value(f"tokenizer.ggml.{_key(name)}_token_id", -1))) < len(tokens)
    }
    template = file.value("tokenizer.chat_template", "")
    if kind == "llama":
        special.setdefault(
            "unk_token", next((tokens[i] for i, each in enumerate(kinds) if each == _UNKNOWN), tokens[0])
        )
        form = _form_of_pieces(file, tokens, special["unk_token"])
    else:
        form = _form_of_bytes(tokens, _read_list(file, "merges", str), words)
    form["added_tokens"] = [{"id": i, "content": tokens[i], "special": kinds[i] == _CONTROL, **_FLAGS} for i in control]
    if file.value("tokenizer.ggml.add_bos_token", words.begins) and "bos_token" in special:
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


_FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # what stands for a space in pieces


def _form_of_bytes(tokens: list[str], merges: list[str], words: Words) -> dict[str, Any]:
    """The tokenizer as the library writes it."""
    bytes_only = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    splits = [
        {"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False} for p in words.patterns
    ]
    place = {token: i for i, token in enumerate(tokens)}
    return {
        "version": "1.0",
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*splits, bytes_only]},
        "decoder": {**bytes_only, "use_regex": True},
        "model": {
            "type": "BPE", "vocab": place, "merges": [merge.split(" ", 1) for merge in merges],
            "ignore_merges": words.whole,
        },
    }  # fmt: skip


def _form_of_pieces(file: GgufFile, tokens: list[str], unknown: str) -> dict[str, Any]:
    """The same for pieces; what is no piece falls apart into bytes."""
    scores = _read_list(file, "scores", float)
    if len(scores) != len(tokens):
        raise TokenizerError(f"{file.path}: {len(tokens)} tokens have {len(scores)} scores")
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
            "type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)}, "merges": _merges_of(tokens, scores),
            "unk_token": unknown, "fuse_unk": True, "byte_fallback": True,
        },
    }  # fmt: skip


def _merges_of(tokens: list[str], scores: list[float]) -> list[tuple[str, str]]:
    """What is merged, in order: of all neighbours that make a piece together those of the highest score come first
    (Kudo and Richardson, SentencePiece, 2018)."""
    place = {token: i for i, token in enumerate(tokens)}
    return [
        (piece[:at], piece[at:])
        for piece in sorted(tokens, key=lambda piece: -scores[place[piece]])
        for at in range(1, len(piece))
        if piece[:at] in place and piece[at:] in place
    ]


def _begin_with(token: str, number: int) -> dict[str, Any]:
    """The token before every text."""
    first, text = {"SpecialToken": {"id": token, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    return {
        "type": "TemplateProcessing", "single": [first, text],
        "pair": [first, text, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {token: {"id": token, "ids": [number], "tokens": [token]}},
    }  # fmt: skip


# ---- writing


def write_tokenizer(writer: Any, tokenizer: Tokenizer | None, count: int) -> None:
    """Write the tokenizer of a model of ``count`` tokens by a writer of the library ``gguf``; without one the file says
    so, and llama.cpp takes ids alone.

    Raises NotImplementedError for a tokenizer that the format's kinds ``gpt2`` and ``llama`` cannot say, and ValueError
    for one that has more tokens than the model.
    """
    if tokenizer is None:
        writer.add_tokenizer_model("none")
        writer.add_vocab_size(count)
        return
    form = json.loads(tokenizer.to_json())
    model, added = form["model"], {token["id"]: token for token in form["added_tokens"]}
    if model["type"] != "BPE":
        raise NotImplementedError(f"GGUF files: a tokenizer of type {model['type']} is not implemented; BPE is")
    texts = {i: text for text, i in model["vocab"].items()} | {i: token["content"] for i, token in added.items()}
    if max(texts, default=-1) >= count:
        raise ValueError(f"the tokenizer has token {max(texts)}, the model {count} tokens")
    tokens = [texts.get(i, f"[PAD{i}]") for i in range(count)]
    merges = [tuple(each.split(" ", 1) if isinstance(each, str) else each) for each in model["merges"]]
    pieces = bool(model.get("byte_fallback"))
    if pieces:
        writer.add_tokenizer_model("llama")
        writer.add_token_scores(_scores_of(tokens, merges))
        writer.add_add_space_prefix(_begins_with_space(form))
    else:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(name_of_words(form))
        writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_token_list(tokens)
    unknown = model.get("unk_token") if pieces else None
    writer.add_token_types([_kind_of(i, texts.get(i), added.get(i), pieces, unknown) for i in range(count)])
    writers = (writer.add_bos_token_id, writer.add_eos_token_id, writer.add_unk_token_id, writer.add_pad_token_id)
    for name, write in zip(_NAMES, writers, strict=True):
        if (number := tokenizer.id_of(name)) is not None:
            write(number)
    writer.add_add_bos_token(tokenizer.encode("")[:1] == [tokenizer.id_of("bos_token")])
    if tokenizer.template is not None:
        writer.add_chat_template(tokenizer.template.source)


def _kind_of(number: int, text: str | None, added: dict[str, Any] | None, pieces: bool, unknown: str | None) -> int:
    """A token's kind; ``added`` is what the tokenizer says of it where it is none of the merged ones."""
    if text is None:
        return _UNUSED
    if text == unknown:
        return _UNKNOWN
    if added is not None:
        return _CONTROL if added["special"] else _USER_DEFINED
    return _BYTE if pieces and re.fullmatch("<0x[0-9A-F]{2}>", text) else _NORMAL


def _scores_of(tokens: list[str], merges: list[tuple[str, ...]]) -> list[float]:
    """Scores in whose order pieces are merged as in the list. Raises NotImplementedError where there are none."""
    ranks: dict[str, int] = {}
    for i, pair in enumerate(merges):
        ranks.setdefault("".join(pair), i)
    scores = [-float(ranks.get(token, len(merges))) for token in tokens]
    expected = _merges_of(tokens, scores)
    if set(expected) != set(merges) or [a + b for a, b in expected] != ["".join(pair) for pair in merges]:
        raise NotImplementedError("GGUF files: a tokenizer of pieces whose merges are not in the order of scores")
    return scores


def _begins_with_space(form: dict[str, Any]) -> bool:
    """Whether a tokenizer of pieces puts a space before a text."""
    cut, first = form.get("pre_tokenizer") or {}, form.get("normalizer") or {}
    normalizers = first.get("normalizers", [first])
    metaspace = cut.get("type") == "Metaspace" and cut.get("prepend_scheme") != "never"
    return metaspace or any(each.get("type") == "Prepend" for each in normalizers)
