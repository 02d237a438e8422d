"""Passes as the text of a pipeline, which :func:`argosy_pir.passes.pipeline.parse_pipeline` reads back."""

from __future__ import annotations

from dataclasses import MISSING, fields
from re import ASCII
from re import compile as compile_pattern

from argosy_pir.text.strings import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from argosy_pir.passes.registry import Pass

_BARE = compile_pattern(r"[A-Za-z_@/][\w./@-]*", ASCII)
WORDS = {"true": True, "false": False, "none": None}
"""Values that are written as words."""


def print_pipeline(passes: Iterable[Pass]) -> str:
    """The text that `parse_pipeline` reads back; options at their defaults are left out."""
    return ",".join(map(_print_pass, passes))


def _print_pass(step: Pass) -> str:
    options = []
    for field in fields(step):  # type: ignore[arg-type]
        value = getattr(step, field.name)
        if field.default is MISSING or value != field.default:
            options.append(f"{field.name.replace('_', '-')}={_print_value(value)}")
    return step.name + ("{" + ",".join(options) + "}" if options else "")


def _print_value(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ",".join(map(_print_value, value)) + "]"
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value if _BARE.fullmatch(value) and value not in WORDS else quote(value)
    return repr(value)
