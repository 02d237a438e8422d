"""The errors of this package. Each refines ``ValueError``, so whoever catches that keeps working."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argosy_pir.core import Operation


class IRError(ValueError):
    """Base of every error raised here about a program."""


class DialectError(IRError):
    """A dialect or operation is registered twice, is malformed, or its plugin cannot be loaded."""


class PassError(IRError):
    """A pipeline text is wrong, or a pass failed or left an invalid program behind."""


class FormatError(IRError):
    """Bytes are not a program: truncated, corrupt, or of a newer major version."""


class VerifyError(IRError):
    """A program breaks a rule. ``operation`` is the culprit, where one is known.

    The message names the operation, its operands' types, the expectation and the user's source line.
    """

    def __init__(self, message: str, operation: Operation | None = None) -> None:
        self.operation = operation
        super().__init__(message if operation is None else _describe(message, operation))


class ParseError(IRError):
    """Text is not a program. Carries ``line`` and ``column`` (both from 1) and shows a caret under the
    place."""

    def __init__(self, message: str, source: str, offset: int, name: str = "<text>") -> None:
        start = source.rfind("\n", 0, offset) + 1
        end = source.find("\n", offset)
        self.line = source.count("\n", 0, offset) + 1
        self.column = offset - start + 1
        shown = source[start : end if end >= 0 else len(source)].replace("\t", " ")
        shown, caret = _window(shown, self.column - 1)
        super().__init__(f"{name}:{self.line}:{self.column}: {message}\n  {shown}\n  {' ' * caret}^")


def _window(line: str, caret: int, width: int = 100) -> tuple[str, int]:
    """The part of a long line around the caret, and the caret's column in it."""
    start = max(0, caret - width // 2) if len(line) > width else 0
    return line[start : start + width], caret - start


def _describe(message: str, operation: Operation) -> str:
    operands = ", ".join(str(value.type) for value in operation.operands)
    where = operation.location.suffix
    return f"'{operation.name}' ({operands}): {message}{where}"
