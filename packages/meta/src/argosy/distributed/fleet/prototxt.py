"""The text format of protocol buffers (https://protobuf.dev/reference/protobuf/textformat-spec) for nested mappings.

``name: value`` is a scalar, ``name { ... }`` a message, a list what is repeated. What a field may hold is known from a
mapping of defaults, as there is no schema here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["format_message", "parse_message"]

_TOKEN = re.compile(
    r"""\s+|\#[^\n]*|(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?P<word>[A-Za-z_]\w*)"""
    r"""|(?P<number>-?(?:inf\b|nan\b|0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[fF]?)|(?P<mark>[:{}<>\[\],;])"""
)
_WORDS = {"true": True, "True": True, "t": True, "false": False, "False": False, "f": False, "inf": float("inf"),
          "nan": float("nan")}  # fmt: skip
_CLOSING = {"{": "}", "<": ">"}
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPED = {"n": b"\n", "r": b"\r", "t": b"\t", "a": b"\a", "b": b"\b", "f": b"\f", "v": b"\v"}
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|(.))", re.DOTALL)


def format_message(message: Mapping[str, Any], indent: str = "") -> str:
    """The text of a message: a line for each scalar and for each element of what is repeated."""
    lines = []
    for name, value in message.items():
        if isinstance(value, Mapping):
            lines.append(f"{indent}{name} {{\n{format_message(value, indent + '  ')}{indent}}}\n")
        else:
            each = value if isinstance(value, (list, tuple)) else [value]
            lines += [f"{indent}{name}: {_scalar_text(x)}\n" for x in each]
    return "".join(lines)


def _scalar_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + "".join(_ESCAPES.get(c, c if c.isprintable() else _octal(c)) for c in value) + '"'
    return repr(value)


def _octal(text: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in text.encode())


def parse_message(text: str, repeated: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The message of a text. Fields of the names ``repeated`` are lists, and so is what comes more than once.

    Raises ValueError with the line for what is no text of a message.
    """
    tokens = list(_tokens(text))
    message, at = _fields(tokens, 0, "", repeated)
    assert at == len(tokens)
    return message


Token = tuple[str, str, int]


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"prototxt, line {text.count(chr(10), 0, at) + 1}: {text[at : at + 10]!r} is no token")
        if found.lastgroup:
            yield found.lastgroup, found[0], text.count("\n", 0, at) + 1
        at = found.end()


def _fields(tokens: list[Token], at: int, end: str, repeated: frozenset[str]) -> tuple[dict[str, Any], int]:
    """The fields up to the mark ``end`` (or the end of the text), and where what follows begins."""
    message: dict[str, Any] = {}
    while at < len(tokens) and tokens[at][1] != end:
        name = _expect(tokens, at, "word", "a field's name")
        at += 1
        colon = at < len(tokens) and tokens[at][1] == ":"
        value, at = _value(tokens, at + colon, not colon, repeated)
        message[name] = _append_value(message, name, value, name in repeated)
        if at < len(tokens) and tokens[at][1] in (",", ";"):
            at += 1
    if end:
        _expect(tokens, at, "mark", f"{end!r}")
        at += 1
    return message, at


def _append_value(message: Mapping[str, Any], name: str, value: Any, repeated: bool) -> Any:
    if name not in message:
        return value if not repeated or isinstance(value, list) else [value]
    before = message[name]
    return [*(before if isinstance(before, list) else [before]), *(value if isinstance(value, list) else [value])]


def _value(tokens: list[Token], at: int, needs_message: bool, repeated: frozenset[str]) -> tuple[Any, int]:
    kind, text, line = tokens[at] if at < len(tokens) else ("", "", 0)
    if text in _CLOSING:
        return _fields(tokens, at + 1, _CLOSING[text], repeated)
    if text == "[" and not needs_message:
        return _elements(tokens, at + 1, repeated)
    if needs_message or kind not in ("string", "number", "word"):
        raise ValueError(f"prototxt, line {line or 'last'}: expected a value, got {text!r}")
    if kind == "string":
        made = ""
        while at < len(tokens) and tokens[at][0] == "string":
            made, at = made + _unescape(tokens[at][1][1:-1]), at + 1
        return made, at
    return (_WORDS.get(text, text) if kind == "word" else _number(text)), at + 1


def _elements(tokens: list[Token], at: int, repeated: frozenset[str]) -> tuple[list[Any], int]:
    found: list[Any] = []
    while at < len(tokens) and tokens[at][1] != "]":
        value, at = _value(tokens, at, False, repeated)
        found.append(value)
        if at < len(tokens) and tokens[at][1] == ",":
            at += 1
    _expect(tokens, at, "mark", "']'")
    return found, at + 1


def _expect(tokens: list[Token], at: int, kind: str, what: str) -> str:
    if at >= len(tokens):
        raise ValueError(f"prototxt: expected {what}, but the text ends")
    if tokens[at][0] != kind:
        raise ValueError(f"prototxt, line {tokens[at][2]}: expected {what}, got {tokens[at][1]!r}")
    return tokens[at][1]


def _number(text: str) -> float | int:
    if text[:2].lower() == "0x" or text[:3].lower() == "-0x":
        return int(text, 16)
    digits = text.rstrip("fF") if "inf" not in text else text
    return int(digits) if re.fullmatch(r"-?\d+", digits) else float(digits)


def _unescape(text: str) -> str:
    def byte(found: re.Match[bytes]) -> bytes:
        octal, hexadecimal, other = found.groups()
        if octal or hexadecimal:
            return bytes([int(octal, 8) & 255 if octal else int(hexadecimal, 16)])
        return _ESCAPED.get(other.decode("latin-1"), other)

    return _ESCAPE.sub(byte, text.encode()).decode("utf-8", "replace")
