"""Imports between the modules of a package, read from its sources; circles among them; the floors that its README
lists.

Imports inside functions count: they hide a circle from Python, not from a reader. Those under ``TYPE_CHECKING`` do not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

Graph = dict[str, dict[str, int]]
"""By module, relative to its package (``""`` for the package itself): what it imports, with the line."""

HEADING = "## Modules, from top to bottom"


def import_graph(source: Path) -> Graph:
    """The imports between modules of the package whose folder is ``source``."""
    paths = {_name(path.relative_to(source)): path for path in sorted(source.rglob("*.py"))}
    graph: Graph = {name: {} for name in paths}
    for name, path in paths.items():
        for line, base, member in _imported(path, source.name, name):
            inner = f"{base}.{member}".strip(".")
            target = inner if member and inner in paths else base
            if target in paths and target != name:
                graph[name].setdefault(target, line)
    return graph


def circles(graph: Graph) -> list[list[str]]:
    """Modules that import each other, directly or through others: the strongly connected components."""
    reached = {name: _reachable(graph, name) for name in graph}
    found: dict[tuple[str, ...], None] = {}
    for name, others in reached.items():
        if name in others:
            found[tuple(sorted(other for other in others if name in reached[other]))] = None
    return [list(circle) for circle in found]


class Floors:
    """The floors of a package: rows of the README's table of modules, the topmost first.

    A row names modules and folders (for all modules inside that no other row names) in backticks: ``passes/``,
    ``passes.inline``, and ``.outline`` for one more of the same folder. The package itself and ``__main__`` stand above
    all rows, ``__about__`` below.
    """

    def __init__(self, readme: str) -> None:
        _, _, text = readme.partition(HEADING + "\n")
        self.rows: dict[str, int] = {"": -1, "__main__": -1, "__about__": 1 << 30}
        self.repeated: list[str] = []
        cells = re.findall(r"^\| (`[^|]*) \|", text.partition("\n## ")[0], re.MULTILINE)
        for number, cell in enumerate(cells):
            for name in _names(cell):
                if name in self.rows:
                    self.repeated.append(name)
                self.rows[name] = number

    def row(self, module: str) -> int | None:
        """The row that names a module, or else its nearest folder; None where there is none."""
        folder = module
        while folder not in self.rows:
            folder = folder.rpartition(".")[0]
        return self.rows[folder] if folder or not module else None

    def upward(self, graph: Graph) -> Iterator[Upward]:
        """The imports of a row that stands higher."""
        for name, targets in graph.items():
            for target, line in targets.items():
                here, there = self.row(name), self.row(target)
                if here is not None and there is not None and there < here:
                    yield Upward(name, target, line)


class Upward(NamedTuple):
    """An import of something from a higher floor."""

    module: str
    imports: str
    line: int


def _names(cell: str) -> Iterator[str]:
    folder = ""
    for text in re.findall(r"`([^`]+)`", cell):
        name = text.removesuffix(".py").strip("/").replace("/", ".")
        name = folder + name if name.startswith(".") else name
        folder = name.rpartition(".")[0]
        yield name


def _name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _reachable(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    pending = list(graph[start])
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += graph[name]
    return found


def _imported(path: Path, package: str, name: str) -> Iterator[tuple[int, str, str]]:
    """The line, the module and the member (empty for none) of each import of the package's own."""
    for node, checked in import_statements(path):
        if isinstance(node, ast.Import) and not checked:
            for alias in node.names:
                if alias.name.startswith(package + "."):
                    yield node.lineno, alias.name.removeprefix(package + "."), ""
        elif isinstance(node, ast.ImportFrom) and not checked:
            base = _base(node, package, name, path.name == "__init__.py")
            if base is not None:
                for alias in node.names:
                    yield node.lineno, base, alias.name


def _base(node: ast.ImportFrom, package: str, name: str, is_folder: bool) -> str | None:
    if not node.level:
        module = node.module or ""
        return module[len(package) + 1 :] if f"{module}.".startswith(package + ".") else None
    parts = name.split(".") if is_folder else name.split(".")[:-1]
    kept = parts[: len(parts) - node.level + 1]
    return ".".join([*kept, *filter(None, [node.module])])


@cache
def import_statements(path: Path) -> list[tuple[ast.Import | ast.ImportFrom, bool]]:
    """The imports anywhere in a file, each with whether type checkers alone see it."""
    return list(_walk(ast.parse(path.read_text(encoding="utf-8")).body, False))


def _walk(body: list[Any], checked: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Those of some statements; expressions hold none."""
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node, checked
        typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        yield from _walk(getattr(node, "body", []), checked or typing)
        for field in ("handlers", "orelse", "finalbody", "cases"):
            yield from _walk(getattr(node, field, []), checked)
