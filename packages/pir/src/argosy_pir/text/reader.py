"""A cursor over tokens, with the small steps that all grammar rules share."""

from __future__ import annotations

from argosy_pir.errors import ParseError
from argosy_pir.text.lexer import token_offset
from argosy_pir.text.strings import unquote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from argosy_pir.types import Type

    T = TypeVar("T")

MAX_DEPTH = 100  # of nested regions and attributes; far below the interpreter's recursion limit


class Reader:
    """Tokens and a position in them. ``types`` remembers the types read so far by their text."""

    __slots__ = ("_depth", "_name", "_text", "at", "tokens", "types")

    def __init__(self, text: str, tokens: list[str], name: str) -> None:
        self._text = text
        self._name = name
        self._depth = 0
        self.tokens = tokens
        self.at = 0
        self.types: dict[str, Type] = {}

    def peek(self) -> str:
        """The next token, empty at the end."""
        return self.tokens[self.at]

    def advance(self) -> str:
        """The next token, stepping over it."""
        token = self.tokens[self.at]
        if token:
            self.at += 1
        return token

    def take(self, token: str) -> bool:
        """Step over ``token`` if it is next."""
        if self.tokens[self.at] != token:
            return False
        self.at += 1
        return True

    def expect(self, token: str) -> None:
        """Step over ``token``; raises ``ParseError`` where something else is next."""
        if self.tokens[self.at] != token:
            raise self.error(f"expected '{token}', found {self.describe_token()}")
        self.at += 1

    def separate(self, end: str) -> None:
        """Step over a comma, unless ``end`` is next."""
        if self.tokens[self.at] != end:
            self.expect(",")

    def enter(self) -> None:
        """One level deeper; raises ``ParseError`` beyond the bound."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.error(f"nested deeper than {MAX_DEPTH} levels")

    def leave(self) -> None:
        """One level up."""
        self._depth -= 1

    def value_name(self) -> str:
        """A value's name such as ``%x``."""
        token = self.tokens[self.at]
        if len(token) < 2 or token[0] != "%":
            raise self.error(f"expected a value such as %x, found {self.describe_token()}")
        self.at += 1
        return token

    def hint(self, label: str) -> str | None:
        """The name hint that a value's name carries: none for numbers; ``#1`` and the like are not part of
        it."""
        if label[1] == '"':
            return self.unquote_text(label[2 : label.rindex('"')])
        name = label[1:].partition("#")[0]
        return None if name.isdecimal() else name

    def symbol(self) -> str:
        """A symbol such as ``@main``, without the mark."""
        token = self.advance()
        if len(token) < 2 or token[0] != "@":
            raise self.error(f"expected a symbol such as @main, found {self.describe_token(-1)}", self.at - 1)
        name = token[1:] if token[1] != '"' else self.unquote_text(token[2:-1])
        if not name:
            raise self.error("a symbol needs a name", self.at - 1)
        return name

    def string(self) -> str:
        """A string in quotes."""
        token = self.advance()
        if len(token) < 2 or token[0] != '"' or token[-1] != '"':
            raise self.error(f"expected a string in quotes, found {self.describe_token(-1)}", self.at - 1)
        return self.unquote_text(token[1:-1])

    def operation_name(self) -> str:
        """An operation's name, bare with a dot or in quotes; ``return`` is short for the builtin one."""
        token = self.tokens[self.at]
        if token == "return":
            self.at += 1
            return "builtin.return"
        if token[:1] == '"':
            return self.string()
        if "." not in token or not (token[0].isalpha() or token[0] == "_"):
            raise self.error(f"expected an operation such as dialect.name, found {self.describe_token()}")
        self.at += 1
        return token

    def integer(self) -> int:
        """A decimal integer of at most 64 bits, not negative."""
        token = self.advance()
        if not token.isdecimal() or len(token) > 19:
            raise self.error(f"expected an integer, found {self.describe_token(-1)}", self.at - 1)
        return int(token)

    def unquote_text(self, body: str) -> str:
        """The string that the text between quotes stands for."""
        try:
            return unquote(body)
        except ValueError as error:
            raise self.error(str(error), self.at - 1) from None

    def finish(self, result: T) -> T:
        """``result``, once nothing follows."""
        if self.peek():
            raise self.error(f"unexpected {self.describe_token()}")
        return result

    def describe_token(self, shift: int = 0) -> str:
        """The token at the position (plus ``shift``) for a message."""
        token = self.tokens[max(self.at + shift, 0)]
        return f"'{token[:40]}'" if token else "the end"

    def error(self, message: str, at: int | None = None) -> ParseError:
        """An error at token ``at``, by default the next one."""
        offset = token_offset(self._text, max(self.at if at is None else at, 0))
        return ParseError(message, self._text, offset, self._name)
