"""Quoting of strings in program text: printable text as it is, everything else as escapes."""

from __future__ import annotations

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_UNESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t", "r": "\r"}
_HEX_LENGTH = {"x": 2, "u": 4, "U": 8}


def quote(text: str) -> str:
    """``text`` in double quotes, on one line, so that :func:`unquote` gives it back."""
    if text.isalnum() and text.isascii():
        return f'"{text}"'
    return '"' + "".join(_quote_character(c) for c in text) + '"'


def _quote_character(c: str) -> str:
    if c in _ESCAPES:
        return _ESCAPES[c]
    if c.isprintable():
        return c
    code = ord(c)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def unquote(body: str) -> str:
    """The string whose quoted form has ``body`` between the quotes; raises ``ValueError`` on a bad escape."""
    if "\\" not in body:
        return body
    parts: list[str] = []
    i = 0
    while i < len(body):
        if body[i] != "\\":
            end = body.find("\\", i)
            end = len(body) if end < 0 else end
            parts.append(body[i:end])
            i = end
            continue
        kind = body[i + 1 : i + 2]
        i += 2
        if kind in _UNESCAPES and kind:
            parts.append(_UNESCAPES[kind])
        elif kind in _HEX_LENGTH and kind:
            parts.append(_code(body[i : i + _HEX_LENGTH[kind]], _HEX_LENGTH[kind]))
            i += _HEX_LENGTH[kind]
        else:
            raise ValueError(f"unknown escape '\\{kind}' in a string")
    return "".join(parts)


def _code(digits: str, length: int) -> str:
    if len(digits) != length or not all(d in "0123456789abcdefABCDEF" for d in digits):
        raise ValueError(f"an escape needs {length} hexadecimal digits, got {digits!r}")
    code = int(digits, 16)
    if code > 0x10FFFF:
        raise ValueError(f"U+{code:X} is not a character")
    return chr(code)
