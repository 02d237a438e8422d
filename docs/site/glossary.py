"""Parameters that mean the same wherever they stand: the reference says so where a docstring does not name them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_CODE = re.compile(r"``[^`]*``|`[^`]*`")
_NAME = re.compile(r"`+\*{0,2}\w+`+")


@cache
def meanings() -> list[tuple[dict[str, str], re.Pattern[str]]]:
    """The lines of ``glossary.txt``: what each name means, and where."""
    lines = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    found = [_line(line) for line in lines if line and line[0] != "#"]
    return sorted(found, key=lambda entry: not entry[1].pattern)  # what holds everywhere comes last


def _line(line: str) -> tuple[dict[str, str], re.Pattern[str]]:
    """One line: names, where, and one text for all of them or, between strokes, one for each."""
    first, _, rest = line.partition(" | ")
    where, _, text = rest.rpartition("| ")
    names, texts = first.split(), text.split(" / ")
    return dict(zip(names, texts if len(texts) > 1 else texts * len(names), strict=True)), re.compile(where.strip())


def is_named(parameter: str, doc: str) -> bool:
    """Whether a docstring names a parameter."""
    return re.search(rf"\b{re.escape(parameter.strip('*'))}\b", doc) is not None


def meaning(parameter: str, path: str, doc: str) -> str:
    """What ``parameter`` of the thing at ``path`` is, where its docstring ``doc`` has no sentence on it; else empty."""
    if is_named(parameter, _CODE.sub(lambda code: code[0] if _NAME.fullmatch(code[0]) else "", doc)):
        return ""
    name = parameter.strip("*")
    found = (texts[name] for texts, where in meanings() if name in texts and where.match(path))
    return next(found, "see the code above" if is_named(parameter, doc) else "")
