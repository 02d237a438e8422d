"""Reports that read well at a prompt, in a file and in a notebook: titled sections of text and tables."""

from __future__ import annotations

import html
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

_SHORT = 8


@dataclass(slots=True)
class Table:
    """``rows`` under ``header``; columns whose cells look like numbers are set to the right."""

    header: Sequence[str]
    rows: list[Sequence[str]]

    def text(self) -> list[str]:
        """Aligned lines."""
        cells = [list(self.header), *map(list, self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        right = [all(_is_number(row[i]) for row in self.rows) for i in range(len(widths))]
        lines = [
            "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)).rstrip()
            for row in cells
        ]
        return [lines[0], "  ".join("-" * w for w in widths), *lines[1:]]

    def html(self) -> str:
        """An HTML table."""
        rows = ["".join(f"<td>{html.escape(c)}</td>" for c in row) for row in self.rows]
        head = "".join(f"<th>{html.escape(c)}</th>" for c in self.header)
        return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def _is_number(cell: str) -> bool:
    return len(cell) < 12 and (not cell or cell[0].isdigit() or cell[0] in "-<~")


@dataclass(slots=True)
class Section:
    """A title, and what is under it."""

    title: str
    body: list[str | Table]

    def lines(self, short: bool) -> list[str]:
        """Its body; long texts are cut when ``short``."""
        found: list[str] = []
        for part in self.body:
            lines = part.text() if isinstance(part, Table) else part.splitlines()
            if short and isinstance(part, str) and len(lines) > _SHORT:
                lines = [*lines[:_SHORT], f"... {len(lines) - _SHORT} more lines: save() them to a file"]
            found += lines
        return found


@dataclass(slots=True, repr=False)
class Report:
    """What `argosy.explain` returns: shows itself at a prompt and in notebooks; `save` writes all of it."""

    title: str
    sections: list[Section] = field(default_factory=list)

    def add(self, title: str, *body: str | Table) -> None:
        """Append a section."""
        self.sections.append(Section(title, list(body)))

    def __getitem__(self, title: str) -> str:
        """The whole text of the section whose title starts so. Raises KeyError naming those there are."""
        for section in self.sections:
            if section.title.startswith(title):
                return "\n".join(section.lines(short=False))
        raise KeyError(f"no section {title!r}; there are: {', '.join(s.title for s in self.sections)}")

    def text(self, short: bool = False, colour: bool = False) -> str:
        """All sections as plain text; titles in bold when ``colour``."""
        bold, plain = ("\033[1m", "\033[0m") if colour else ("", "")
        parts = [f"{bold}{self.title}{plain}"]
        for section in self.sections:
            parts.append("\n".join([f"{bold}== {section.title}{plain}", *section.lines(short)]))
        return "\n\n".join(parts)

    def html(self) -> str:
        """All sections as one page."""
        parts = [f"<h1>{html.escape(self.title)}</h1>"]
        for section in self.sections:
            tables = any(isinstance(part, Table) for part in section.body)
            parts.append(f"<details{' open' if tables else ''}><summary>{html.escape(section.title)}</summary>")
            for part in section.body:
                parts.append(part.html() if isinstance(part, Table) else f"<pre>{html.escape(part)}</pre>")
            parts.append("</details>")
        return f"<!doctype html><meta charset='utf-8'><style>{_STYLE}</style>{''.join(parts)}"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it: HTML where the name ends in ``.html``, else text."""
        name = os.fspath(path)
        with open(name, "w", encoding="utf-8") as file:
            file.write(self.html() if name.endswith((".html", ".htm")) else self.text() + "\n")

    def __repr__(self) -> str:
        return self.text(short=True, colour=sys.stdout.isatty())

    def __str__(self) -> str:
        return self.text(short=True)

    def _repr_html_(self) -> str:
        return self.html()


_STYLE = (
    "body{font:14px/1.4 system-ui,sans-serif;margin:2em}pre{background:#f4f4f4;padding:.7em;overflow:auto}"
    "summary{font-weight:600;cursor:pointer;margin:.8em 0 .3em}td,th{padding:.15em .8em;text-align:left;"
    "border-bottom:1px solid #ddd;font-variant-numeric:tabular-nums}"
)
