"""Chat templates: the text that a model was trained to see for the messages of a conversation.

A template comes with a model and is not trusted: it runs in jinja2's sandbox, which reaches nothing but what it is
given, and is ended when it runs longer than any text needs.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from functools import cached_property
from types import FrameType
from typing import Any

__all__ = ["ChatError", "ChatTemplate"]

_FAILURES = (TypeError, ValueError, AttributeError, ArithmeticError, LookupError, RecursionError, MemoryError)
LONGEST = 1 << 20
"""Characters of a template, at most, and lines that it runs."""


class ChatError(ValueError):
    """A chat template that is damaged, or that refuses the messages."""


class ChatTemplate:
    """A template in jinja2's language over ``messages``; ``special`` are the texts of special tokens."""

    def __init__(self, source: str, special: Mapping[str, str], path: str = "chat_template") -> None:
        if len(source) > LONGEST:
            raise ChatError(f"{path}: a template of {len(source)} characters; at most {LONGEST} are taken")
        self.source, self.special, self.path = source, dict(special), path

    @classmethod
    def read(
        cls, folder: str | os.PathLike[str], config: Mapping[str, Any], special: Mapping[str, str]
    ) -> ChatTemplate | None:
        """The template of a folder: ``chat_template.jinja``, or the one in ``tokenizer_config.json``; None without."""
        path = os.path.join(os.fspath(folder), "chat_template.jinja")
        if os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                return cls(file.read(LONGEST + 1), special, path)
        given = config.get("chat_template")
        if isinstance(given, list):  # several by name
            named = {each.get("name"): each.get("template") for each in given if isinstance(each, dict)}
            given = named.get("default")
        return cls(given, special) if isinstance(given, str) else None

    def render(self, messages: Sequence[Mapping[str, Any]], answer: bool = True, **values: Any) -> str:
        """The text of ``messages`` (each with ``role`` and ``content``); ``answer``: with the beginning of the
        assistant's turn. ``values`` are further names of the template (``tools``, ...). Raises ChatError."""
        from jinja2 import TemplateError

        for message in messages:
            if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
                raise ChatError(f"a message is {message!r:.80}; expected a table with role and content")
        template = self._compile
        given = {**self.special, **values, "messages": list(messages), "add_generation_prompt": answer}
        try:
            with _bounded_lines(template.filename):
                text: str = template.render(given)
        except (TemplateError, *_FAILURES) as error:
            raise ChatError(f"{self.path}: {error}") from None
        return text

    @cached_property
    def _compile(self) -> Any:
        try:
            from jinja2 import TemplateError
            from jinja2.sandbox import ImmutableSandboxedEnvironment
        except ModuleNotFoundError as error:
            raise ImportError(
                "chat templates need jinja2: python -m pip install argosy-infer[text]", name=error.name
            ) from error

        class Sandbox(ImmutableSandboxedEnvironment):
            """The sandbox, without products that are a way to very long texts."""

            intercepted_binops = frozenset(["*", "**"])

            def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
                if not all(isinstance(x, (int, float)) and abs(x) < LONGEST for x in (left, right)):
                    raise ChatError(f"{operator} of other things than small numbers")
                return super().call_binop(context, operator, left, right)

        environment = Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
        environment.filters["tojson"] = _to_json
        environment.globals.update(raise_exception=_refuse, strftime_now=lambda text: date.today().strftime(text))
        try:
            return environment.from_string(self.source)
        except (TemplateError, *_FAILURES) as error:
            raise ChatError(f"{self.path} is no template: {error}") from None


def _refuse(message: str) -> None:
    raise ChatError(str(message))


@contextmanager
def _bounded_lines(filename: str) -> Iterator[None]:
    """Raise ChatError where the code of ``filename`` runs more than LONGEST lines in this thread."""
    left = LONGEST

    def watch(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename != filename:
            return None
        left -= 1
        if left < 0:
            raise ChatError(f"the template runs more than {LONGEST} lines")
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        yield
    finally:
        sys.settrace(before)


def _to_json(value: Any, indent: int | None = None, **_: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)
