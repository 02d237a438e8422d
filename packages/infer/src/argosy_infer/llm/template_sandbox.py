"""The sandbox of chat templates: jinja2's, with bounds on what a template runs and on texts and lists that it makes.

What multiplies lengths (sums, products, formats, replacements, joins, widths) is measured before it is done, since no
single operation of Python can be ended from outside.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from types import FrameType
from typing import Any

from jinja2 import filters, nodes, pass_eval_context
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

__all__ = ["LINES", "Sandbox", "SandboxError", "bounded_lines"]

LINES = 1 << 20
"""Lines that a template runs, those of filters and functions that it calls among them, at most."""
_LARGEST = 1 << 24  # letters of a text and members of a list
_NUMBER = 1 << 20  # what is multiplied, and widths
_WITHOUT = ("batch", "center", "filesizeformat", "format", "pprint", "slice", "urlize", "wordwrap", "xmlattr")
_WIDTH = re.compile(r"\d{5}|\*")


class SandboxError(ValueError):
    """A template asks for more than any text of a chat needs."""


class _Sums(NodeTransformer):
    """``a ~ b`` as the sum of texts, which is measured."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        first, *rest = [nodes.Filter(each, "string", [], [], None, None, lineno=node.lineno) for each in node.nodes]
        made: nodes.Expr = first
        for each in rest:
            made = nodes.Add(made, each, lineno=node.lineno)
        return made


class _Generation(Extension):
    """The tag around what the assistant says, which training asks for: its text is what is within."""

    tags = {"generation"}  # noqa: RUF012 - as jinja2 declares it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class Sandbox(ImmutableSandboxedEnvironment):
    """An environment for templates that are not trusted."""

    intercepted_binops = frozenset(["+", "*", "**", "%"])

    def __init__(self) -> None:
        extensions = ["jinja2.ext.loopcontrols", _Generation]
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=extensions, finalize=_measured)
        for name in _WITHOUT:
            del self.filters[name]
        self.filters.update(indent=_indent, join=_join, replace=_replace, string=_string, tojson=_to_json)
        del self.globals["lipsum"]
        self.globals.update(strftime_now=_date)

    concat = staticmethod(lambda texts: "".join(_fitting(list(texts))))

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree: nodes.Template = _Sums().visit(super()._parse(source, name, filename))
        return tree

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if all(isinstance(x, (int, float)) and abs(x) < _NUMBER for x in (left, right)):
            pass
        elif operator == "+":
            _refuse_beyond(_size(left) + _size(right))
        elif operator == "%" and isinstance(left, str):
            _check_format(left)
            _measured(right)
        else:
            raise SandboxError(f"{operator} of other things than small numbers")
        return super().call_binop(context, operator, left, right)

    def call(self, context: Any, function: Any, /, *arguments: Any, **named: Any) -> Any:
        method = getattr(function, "__wrapped__", function)  # jinja2 wraps those that format
        owner = getattr(method, "__self__", None)
        if isinstance(owner, str):
            arguments = _check_method(owner, method.__name__, arguments, named)
        made = super().call(context, function, *arguments, **named)
        _refuse_beyond(_size(made))
        return made


def _refuse_beyond(size: int) -> None:
    if size > _LARGEST:
        raise SandboxError(f"a text or list of {size} parts; at most {_LARGEST} are made")


def _size(value: Any) -> int:
    return len(value) if isinstance(value, (str, bytes, list, tuple, dict)) else 0


def _fitting(texts: list[str]) -> list[str]:
    """Texts that are joined."""
    _refuse_beyond(sum(map(len, texts)))
    return texts


def _measured(value: Any) -> Any:
    """A value that becomes a text: tables and lists in it are counted wherever they occur."""
    left, found = [value], 0
    while left:
        each = left.pop()
        found += 1 + (len(each) if isinstance(each, str) else 0)
        if isinstance(each, Mapping):
            left += [*each.keys(), *each.values()]
        elif isinstance(each, (list, tuple)):
            left += each
        _refuse_beyond(found + len(left))
    return value


def _check_method(owner: str, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of a text's method, where what it makes is no longer than any text needs."""
    numbers = [abs(x) for x in (*arguments, *named.values()) if isinstance(x, int)]
    if max(numbers, default=0) >= _NUMBER:
        raise SandboxError(f"{name} with {max(numbers)}; numbers below {_NUMBER} are taken")
    if name in ("format", "format_map"):
        _check_format(owner)
        _measured([*arguments, named])
    elif name == "replace" and len(arguments) > 1:
        _check_replace(owner, *arguments[:2])
    elif name == "join" and arguments:
        return (_fitting_between(owner, arguments[0]), *arguments[1:])
    elif name == "expandtabs":
        _refuse_beyond(len(owner) + owner.count("\t") * max(numbers, default=8))
    elif name == "translate":
        raise SandboxError("translate is not among the methods that templates have")
    return arguments


def _check_format(text: str) -> None:
    if _WIDTH.search(text) and ("%" in text or "{" in text):
        raise SandboxError(f"a format with widths as in {text!r:.40}")


def _check_replace(text: str, old: Any, new: Any) -> None:
    if isinstance(old, str) and isinstance(new, str):
        _refuse_beyond(len(text) + text.count(old) * len(new))


def _fitting_between(separator: str, texts: Iterable[Any]) -> list[Any]:
    parts = list(texts)
    _refuse_beyond(sum(map(_size, parts)) + len(separator) * len(parts))
    return parts


# ---- filters and functions


def _string(value: Any) -> str:
    return str(_measured(value))


def _replace(text: Any, old: Any, new: Any, count: int | None = None) -> str:
    made = _string(text)
    _check_replace(made, str(old), str(new))
    return made.replace(str(old), str(new), -1 if count is None else count)


@pass_eval_context
def _join(context: Any, values: Iterable[Any], separator: str = "", attribute: Any = None) -> str:
    if attribute is not None:
        values = map(filters.make_attrgetter(context.environment, attribute), values)
    return str(separator).join(_fitting_between(str(separator), [_string(each) for each in values]))


def _indent(text: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    made = _string(text)
    each = width if isinstance(width, int) else len(width)
    _refuse_beyond(len(made) + (made.count("\n") + 1) * abs(each))
    return filters.do_indent(made, width, first, blank)


def _to_json(value: Any, indent: int | None = None, **_: Any) -> str:
    if indent is not None and not (isinstance(indent, int) and 0 <= indent <= 64):
        raise SandboxError(f"an indent of {indent!r:.40}; 0 to 64 are taken")
    return json.dumps(_measured(value), ensure_ascii=False, indent=indent)


def _date(form: str) -> str:
    if len(form) > 1000:
        raise SandboxError(f"a form of dates of {len(form)} letters")
    return date.today().strftime(form)


@contextmanager
def bounded_lines() -> Iterator[None]:
    """Raise SandboxError where more than LINES lines run in this thread."""
    left = LINES

    def watch(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        nonlocal left
        left -= 1
        if left < 0:
            raise SandboxError(f"the template runs more than {LINES} lines")
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        yield
    finally:
        sys.settrace(before)
