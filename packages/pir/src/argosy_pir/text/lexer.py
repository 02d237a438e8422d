"""The lexer: text to a list of tokens by one regular expression.

A token is its own text; its first characters tell what it is. Tensor types and symbolic sizes are one token
each, so that the parser looks a repeated type up instead of reading it again. Offsets are found again only
for an error.
"""

from __future__ import annotations

from re import ASCII
from re import compile as compile_pattern

_STRING = r'"(?:[^"\\\n]|\\[^\n])*+"'
_IDENTIFIER = r"[A-Za-z_][\w$]*+(?:\.[\w$]++)*+"
_NUMBER = r"-?(?:0x[0-9a-fA-F]*+|\d++(?:\.\d*+)?(?:[eE][+-]?\d++)?+|(?:inf|nan)(?![\w$.]))"
_TOKEN = compile_pattern(
    # spaces and comments, then one token; the last alternatives take an open string or any
    # character, for the parser to refuse
    r"(?:[ \t\r\n]++|//[^\n]*+)*+("
    rf"%(?:[\w$]++(?:\.[\w$]++)*+|{_STRING})(?:\#\d++)?+"
    rf"|(?:tensor|dim)<[^<>\"\n]*+>|{_NUMBER}|{_IDENTIFIER}|@(?:{_IDENTIFIER}|{_STRING})|{_STRING}|\"[^\n]*+|->|.|\Z)",
    ASCII,
)


def tokenize(text: str) -> list[str]:
    """The tokens of ``text``, ended by an empty one."""
    tokens: list[str] = _TOKEN.findall(text)  # the pattern matches emptily at the end
    return tokens


def token_offset(text: str, index: int) -> int:
    """Where token ``index`` of ``text`` starts; the end of the text for the empty one."""
    for i, match in enumerate(_TOKEN.finditer(text)):
        if i == index:
            return match.start(1)
    return len(text.rstrip())
