"""The text of pipelines: ``canonicalize{max-iterations=4},cse,inline{functions=[f,g]}``."""

from __future__ import annotations

from dataclasses import fields
from re import ASCII
from re import compile as compile_pattern

from argosy_pir.errors import PassError
from argosy_pir.passes.printing import WORDS
from argosy_pir.passes.registry import Pass, get_pass
from argosy_pir.text.strings import unquote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import Field
    from typing import Any

_TOKEN = compile_pattern(r'\s*("(?:[^"\\]|\\.)*+"|[^\s{}\[\],="]++|.)', ASCII)


def parse_pipeline(text: str) -> list[Pass]:
    """The passes that ``text`` names, with their options; raises ``PassError`` that points at what is
    wrong."""
    reader = _Reader(text)
    passes: list[Pass] = []
    while reader.peek():
        passes.append(reader.one_pass())
        if reader.peek():
            reader.expect(",")
    return passes


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = [*_TOKEN.findall(text.strip()), ""]
        self._at = 0

    def peek(self) -> str:
        return self._tokens[self._at]

    def expect(self, token: str) -> None:
        if self.peek() != token:
            raise self._error(f"expected '{token}', found '{self.peek() or 'the end'}'")
        self._at += 1

    def one_pass(self) -> Pass:
        name = self._word("a pass")
        cls = get_pass(name)
        options: dict[str, Any] = {}
        if self.peek() == "{":
            self._at += 1
            while self.peek() != "}":
                self._option(name, cls, options)
                if self.peek() != "}":
                    self.expect(",")
            self._at += 1
        try:
            return cls(**options)
        except (TypeError, ValueError) as error:
            raise PassError(f"pass '{name}' refuses its options: {error}") from error

    def _option(self, name: str, cls: type[Pass], options: dict[str, Any]) -> None:
        option = self._word("an option").replace("-", "_")
        known = {field.name: field for field in fields(cls)}  # type: ignore[arg-type]
        if option not in known:
            names = ", ".join(n.replace("_", "-") for n in known) or "none"
            raise PassError(f"pass '{name}' has no option '{option.replace('_', '-')}'; it has: {names}")
        self.expect("=")
        options[option] = _convert_option(name, known[option], self._value())

    def _value(self) -> Any:
        token = self.peek()
        if token == "[":
            self._at += 1
            items = []
            while self.peek() != "]":
                items.append(self._read_scalar())
                if self.peek() != "]":
                    self.expect(",")
            self._at += 1
            return tuple(items)
        return self._read_scalar()

    def _read_scalar(self) -> Any:
        token = self._word("a value")
        if token[0] == '"':
            return unquote(token[1:-1])
        if token in WORDS:
            return WORDS[token]
        for convert in (int, float):
            try:
                return convert(token)
            except ValueError:
                continue
        return token

    def _word(self, what: str) -> str:
        token = self.peek()
        if not token or token in '{}[],="':
            raise self._error(f"expected {what}, found '{token or 'the end'}'")
        self._at += 1
        return token

    def _error(self, message: str) -> PassError:
        return PassError(f"pipeline {self._text!r}: {message}")


def _convert_option(name: str, field: Field[Any], value: Any) -> Any:
    """``value`` if it suits the annotation of the option; numbers widen and words may be strings."""
    wanted = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", str(field.type))
    kinds = [kind.strip() for kind in wanted.split("|")]
    if "float" in kinds and type(value) is int:
        return float(value)
    for kind in kinds:
        plain = kind.partition("[")[0]
        if plain == ("None" if value is None else type(value).__name__):
            return value
    raise PassError(f"option '{field.name.replace('_', '-')}' of pass '{name}' is {wanted}, got {value!r}")
