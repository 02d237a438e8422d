"""Reports that read well at a prompt, in a file and in a notebook: titled sections of text and tables.

On a terminal tables are drawn by rich where that is installed; else they are aligned text.
"""

from __future__ import annotations

import html
import io
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

#: What is shown at a prompt: lines of a listing, how long they are where no terminal says more, rows of a table.
_SHORT = 8
_WIDTH = 160
_ROWS = 20
#: Percentages that are good, and that are fair; lower ones are bad.
_GOOD, _FAIR = 60, 30


@dataclass(slots=True)
class Table:
    """``rows`` under ``header``; columns whose cells look like numbers are set to the right. ``most``: how many rows
    are shown at a prompt; ``judged``: the header of a column of percentages that are coloured by how good they are."""

    header: Sequence[str]
    rows: list[Sequence[str]]
    most: int = _ROWS
    judged: str = ""

    def text(self) -> list[str]:
        """Aligned lines."""
        cells = [list(self.header), *map(list, self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        right = self._numbers()
        lines = [
            "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)).rstrip()
            for row in cells
        ]
        return [lines[0], "  ".join("-" * w for w in widths), *lines[1:]]

    def cut(self) -> list[str | Table]:
        """The table as it is shown at a prompt, and a line about what is left out."""
        more = len(self.rows) - self.most
        if more <= 0:
            return [self]
        return [replace(self, rows=self.rows[: self.most]), f"... {more} more rows: save() them to a file"]

    def render(self) -> Any:
        """The table as a table of rich. Raises ModuleNotFoundError where that is not installed."""
        table = import_module("rich.table").Table(box=import_module("rich.box").SIMPLE_HEAD, pad_edge=False)
        last = len(self.header) - 1
        for i, (name, number) in enumerate(zip(self.header, self._numbers(), strict=True)):
            table.add_column(name, justify="right" if number else "left", no_wrap=i != last)
        for row in self.rows:
            table.add_row(*(self._colour(name, cell) for name, cell in zip(self.header, row, strict=True)))
        return table

    def html(self) -> str:
        """An HTML table."""
        rows = ["".join(f"<td>{html.escape(c)}</td>" for c in row) for row in self.rows]
        head = "".join(f"<th>{html.escape(c)}</th>" for c in self.header)
        return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"

    def _numbers(self) -> list[bool]:
        """Which columns hold numbers."""
        return [all(_is_number(row[i]) for row in self.rows) for i in range(len(self.header))]

    def _colour(self, name: str, cell: str) -> Any:
        colour = ""
        if name == self.judged and cell.endswith("%"):
            percent = float(cell[:-1])
            colour = "green" if percent >= _GOOD else "yellow" if percent >= _FAIR else "red"
        return import_module("rich.text").Text(cell, style=colour)


def _is_number(cell: str) -> bool:
    return len(cell) < 12 and (not cell or cell[0].isdigit() or cell[0] in "-<~")


@dataclass(slots=True)
class Section:
    """A title, and what is under it."""

    title: str
    body: list[str | Table]

    def parts(self, width: int) -> list[str | Table]:
        """Its body as it is shown at a prompt: listings and tables are cut."""
        found: list[str | Table] = []
        for part in self.body:
            if isinstance(part, Table):
                found += part.cut()
                continue
            lines = part.splitlines()
            if len(lines) > _SHORT:
                left = f"... {len(lines) - _SHORT} more lines: save() them to a file"
                lines = [*(_truncate(line, width) for line in lines[:_SHORT]), left]
            found += lines
        return found

    def lines(self, short: bool) -> list[str]:
        """Its body as lines of text; all of it unless ``short``."""
        parts = self.parts(_WIDTH) if short else self.body
        return [line for part in parts for line in (part.text() if isinstance(part, Table) else part.splitlines())]


def _truncate(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 4] + " ..."


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

    def text(self, short: bool = False) -> str:
        """All sections as plain text; ``short``: as at a prompt."""
        parts = ["\n".join([f"== {section.title}", *section.lines(short)]) for section in self.sections]
        return "\n\n".join([self.title, *parts])

    def render(self, width: int) -> str:
        """The short form in colours, for a terminal of so many columns. Raises ModuleNotFoundError without rich."""
        terminal = import_module("rich.console").Console(
            file=io.StringIO(), force_terminal=True, width=width, highlight=False, markup=False
        )
        terminal.print(self.title, style="bold")
        for section in self.sections:
            terminal.print(f"\n== {section.title}", style="bold")
            for part in section.parts(width):
                terminal.print(part.render() if isinstance(part, Table) else part)
        text: str = terminal.file.getvalue()
        return "\n".join(line.rstrip() for line in text.splitlines())

    def html(self) -> str:
        """All sections as one page."""
        parts = [f"<h1>{html.escape(self.title)}</h1>"]
        for section in self.sections:
            tables = any(isinstance(part, Table) for part in section.body)
            parts.append(f"<details{' open' if tables else ''}><summary>{html.escape(section.title)}</summary>")
            for part in section.body:
                parts.append(part.html() if isinstance(part, Table) else f"<pre>{html.escape(part)}</pre>")
            parts.append("</details>")
        head = "<meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        head += f"<title>{html.escape(self.title)}</title><style>{_STYLE}</style>"
        return f"<!doctype html><html lang='en'><head>{head}</head><body>{''.join(parts)}</body></html>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it: HTML where the name ends in ``.html``, else text."""
        name = os.fspath(path)
        with open(name, "w", encoding="utf-8") as file:
            file.write(self.html() if name.endswith((".html", ".htm")) else self.text() + "\n")

    def __repr__(self) -> str:
        if not sys.stdout.isatty():
            return self.text(short=True)
        try:
            return self.render(shutil.get_terminal_size((_WIDTH, 24)).columns)
        except ModuleNotFoundError:  # rich is not installed
            return self.text(short=True)

    def __str__(self) -> str:
        return self.text(short=True)

    def _repr_html_(self) -> str:
        return self.html()


_STYLE = (
    "body{font:14px/1.4 system-ui,sans-serif;margin:2em}h1{overflow-wrap:anywhere}details{overflow-x:auto}"
    "pre{background:#f4f4f4;padding:.7em;overflow:auto}"
    "summary{font-weight:600;cursor:pointer;margin:.8em 0 .3em}td,th{padding:.15em .8em;text-align:left;"
    "border-bottom:1px solid #ddd;font-variant-numeric:tabular-nums}"
)
