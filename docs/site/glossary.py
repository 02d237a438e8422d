"""Parameters that mean the same wherever they stand: the reference says so where a docstring does not name them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path


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
    """What ``parameter`` of the thing at ``path`` is, where its docstring ``doc`` does not name it; else empty."""
    if is_named(parameter, doc):
        return ""
    name = parameter.strip("*")
    return next((texts[name] for texts, where in meanings() if name in texts and where.match(path)), "")
