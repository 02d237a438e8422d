"""How a text is cut into words before its bytes are merged: the names of GGUF files for it, which are llama.cpp's.

The patterns are those of the ``tokenizer.json`` that the models were published with.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

__all__ = ["WORDS", "Words", "name_of_words"]

_CASES = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_IDEOGRAMS = "[\N{CJK UNIFIED IDEOGRAPH-4E00}-\N{CJK UNIFIED IDEOGRAPH-9FA5}\u3040-\u309f\u30a0-\u30ff]+"


class Words(NamedTuple):
    """A text is cut by each of the patterns in turn. ``whole``: words that are tokens are not merged of their bytes;
    ``begins``: texts begin with the token for it, unless a file says otherwise."""

    patterns: tuple[str, ...]
    whole: bool = False
    begins: bool = False


def _words(digits: str) -> str:
    return rf"{_CASES}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"


def _cased(ends: str, digits: str) -> str:
    """Words that end where a capital letter follows a small one."""
    first = r"[^\r\n\p{L}\p{N}]?"
    words = rf"{first}{_UPPER}*{_LOWER}+{ends}|{first}{_UPPER}+{_LOWER}*{ends}"
    return rf"{words}|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"


_DEEPSEEK_3 = (
    r"\p{N}{1,3}", _IDEOGRAMS,
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACES}",
)  # fmt: skip
_THREE_DIGITS, _ONE_DIGIT = Words((_words(r"\p{N}{1,3}"),)), Words((_words(r"\p{N}"),))
_DIGITS_FIRST, _SINCE_GPT_2 = Words((r"\p{N}", _GPT2)), Words((_GPT2,))
_LLAMA_3 = Words(_THREE_DIGITS.patterns, whole=True, begins=True)
#: Of names for the same the first is written.
WORDS: dict[str, Words] = {
    **dict.fromkeys(("gpt-2", "olmo", "mpt", "jais", "exaone4", "trillion"), _SINCE_GPT_2),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1"), _LLAMA_3),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "stablelm2", "megrez", "hunyuan"), _ONE_DIGIT),
    **dict.fromkeys(("dbrx", "smaug-bpe", "glm4", "chatglm-bpe"), _THREE_DIGITS),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"), _DIGITS_FIRST),
    **dict.fromkeys(("deepseek-v3", "hunyuan-dense"), Words(_DEEPSEEK_3)),
    "tekken": Words((_cased("", r"\p{N}"),), whole=True, begins=True),
    "gpt-4o": Words((_cased(f"{_CASES}?", r"\p{N}{1,3}"),)),
    "falcon": Words((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, "[0-9][0-9][0-9]")),
    "default": Words((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]")),
}


def name_of_words(form: dict[str, Any]) -> str:
    """The name for what a tokenizer, as the library ``tokenizers`` writes it, does. Raises NotImplementedError where
    there is none."""
    cut, whole = form.get("pre_tokenizer") or {}, bool(form["model"].get("ignore_merges"))
    patterns = _patterns_of(cut)
    for name, words in WORDS.items():
        if (words.patterns, words.whole) == (patterns, whole):
            return name
    raise NotImplementedError(f"GGUF files: words cut by {json.dumps(cut)} with ignore_merges={whole}")


def _patterns_of(cut: dict[str, Any]) -> tuple[str, ...] | None:
    """What the parts of a tokenizer cut by; None where they do something else."""
    *parts, last = cut.get("pretokenizers", [cut])
    found = [pattern for part in parts if (pattern := _pattern_of(part)) is not None]
    if len(found) < len(parts) or last.get("type") != "ByteLevel" or last["add_prefix_space"]:
        return None
    return (*found, _GPT2) if last["use_regex"] else tuple(found)


def _pattern_of(part: dict[str, Any]) -> str | None:
    if part.get("type") == "Split" and part["behavior"] == "Isolated" and not part["invert"]:
        pattern: str | None = part["pattern"].get("Regex")
        return pattern
    return r"\p{N}" if part == {"type": "Digits", "individual_digits": True} else None
