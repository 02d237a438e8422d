"""Names that sources write as text, for modules that are imported late, are there: renaming sees no text."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

from workspace import ROOT

ADDRESS = re.compile(r"(argosy\w*(?:\.\w+)*):(\w+(?:\.\w+)*)")
SOURCES = sorted(ROOT.glob("packages/*/src/argosy*/**/*.py"))


def _late_names(path: Path) -> set[tuple[str, str]]:
    """Module and attribute of every ``"module:name"`` of a source and of every entry of its ``_LAZY`` tables."""
    tree = ast.parse(path.read_text("utf-8"))
    package = ".".join(path.parent.relative_to(next(p for p in path.parents if p.name == "src")).parts)
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    found = {match.groups() for match in map(ADDRESS.fullmatch, texts) if match}
    for node in tree.body:
        is_table = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_LAZY"
        if is_table and isinstance(node.value, ast.Dict):
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                    module, _, attribute = str(value.value).partition(":")
                    module = module if module.startswith("argosy") else f"{package}.{module}"
                    found.add((module, attribute or str(key.value)))
    return found


def test_names_written_as_text_resolve() -> None:
    """Each module can be imported and has its attribute."""
    late = {path: names for path in SOURCES if (names := _late_names(path))}
    assert len(late) > 10
    assert sum(map(len, late.values())) > 50
    for path, names in late.items():
        for module, attribute in sorted(names):
            value = import_module(module)
            for part in attribute.split("."):
                assert hasattr(value, part), f"{path.relative_to(ROOT)} names {module}:{attribute}"
                value = getattr(value, part)
