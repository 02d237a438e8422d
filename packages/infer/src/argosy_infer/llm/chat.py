"""Chat templates: the text that a model was trained to see for the messages of a conversation.

A template comes with a model and is not trusted: it runs in jinja2's sandbox, which reaches nothing but what it is
given, and is ended when it runs longer, or makes longer texts, than any chat needs (`template_sandbox`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

__all__ = ["ChatError", "ChatTemplate"]

_FAILURES = (TypeError, ValueError, AttributeError, ArithmeticError, LookupError, RecursionError, MemoryError)
LONGEST = 1 << 20
"""Characters of a template, at most."""


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
        for message in messages:
            if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
                raise ChatError(f"a message is {message!r:.80}; expected a table with role and content")
        template, bounded_lines = self._compile
        given = {**self.special, **values, "messages": list(messages), "add_generation_prompt": answer}
        from jinja2 import TemplateError

        try:
            with bounded_lines():
                text: str = template.render(given)
        except (TemplateError, *_FAILURES) as error:
            raise ChatError(f"{self.path}: {error}") from None
        return text

    @cached_property
    def _compile(self) -> tuple[Any, Any]:
        """The template, and what bounds the lines that it runs."""
        try:
            from jinja2 import TemplateError

            from argosy_infer.llm.template_sandbox import Sandbox, bounded_lines
        except ModuleNotFoundError as error:
            raise ImportError(
                "chat templates need jinja2: python -m pip install argosy-infer[text]", name=error.name
            ) from error
        environment = Sandbox()
        environment.globals["raise_exception"] = _refuse
        try:
            with bounded_lines():  # what is constant is computed here
                return environment.from_string(self.source), bounded_lines
        except (TemplateError, *_FAILURES) as error:
            raise ChatError(f"{self.path} is no template: {error}") from None


def _refuse(message: str) -> None:
    raise ChatError(str(message))
