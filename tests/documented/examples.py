"""Where the examples come from: prompts and what they print, out of the docstrings of an installed framework."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from parity.public_names import MODULES

NAMES = Path(__file__).parents[1] / "parity" / "records" / "names.json"
MORE = {
    "vision": ("vision", "vision.transforms", "vision.datasets", "vision.models", "vision.ops"),
}
"""Areas beyond those of ``names.json``: the modules whose public names are theirs."""


class Example(NamedTuple):
    """One block of a docstring. ``steps``: (source, printed text) pairs, which share one namespace."""

    area: str
    name: str
    block: int
    steps: list[tuple[str, str]]

    @property
    def key(self) -> str:
        """The name under which its outcome is recorded."""
        return self.name if not self.block else f"{self.name}#{self.block}"


def collect(root: ModuleType) -> list[Example]:
    """The examples of all public names of the framework ``root``, each docstring once."""
    found, seen = [], set()
    for area, name in _names(root):
        try:
            doc = inspect.getdoc(_reached(root, name)) or ""
        except (AttributeError, ImportError):
            continue
        if doc in seen:
            continue
        seen.add(doc)
        found += [Example(area, name, i, steps) for i, steps in enumerate(blocks_of(doc))]
    return found


def _names(root: ModuleType) -> Iterator[tuple[str, str]]:
    for area, names in json.loads(NAMES.read_text()).items():
        if area in MODULES:  # beyond the areas of which examples are recorded
            continue
        for name in names:
            bare = area == "nn.functional" and not name.startswith("nn.")
            yield area, f"nn.functional.{name}" if bare else name
    for area, modules in MORE.items():
        for module in modules:
            try:
                offered = import_module(f"{root.__name__}.{module}")
            except ImportError:
                continue
            for name in getattr(offered, "__all__", ()):
                yield area, f"{module}.{name}"
                kind = getattr(offered, name, None)
                for member in vars(kind) if isinstance(kind, type) else ():
                    if not member.startswith("_"):
                        yield area, f"{module}.{name}.{member}"


def _reached(root: Any, name: str) -> Any:
    for part in name.split("."):
        root = getattr(root, part)
    return root


def blocks_of(doc: str) -> list[list[tuple[str, str]]]:
    """The blocks of prompts in ``doc``. Continuation lines may stand at any indentation, as the documentation's do."""
    blocks: list[list[tuple[str, str]]] = [[]]
    state = ""
    for line in doc.splitlines():
        text = line.strip()
        if text.startswith(".. code-block::"):
            blocks.append([])
            state = ""
        elif text.startswith(">>>"):
            blocks[-1].append((text[4:] + "\n", ""))
            state = "source"
        elif text.startswith("...") and state == "source" and (text == "..." or text[3] == " "):
            source, printed = blocks[-1][-1]
            blocks[-1][-1] = (source + text[4:] + "\n", printed)
        elif state and text:
            source, printed = blocks[-1][-1]
            blocks[-1][-1] = (source, printed + line + "\n")
            state = "printed"
        else:
            state = ""
    return [_joined(block) for block in blocks if block]


def _joined(steps: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Steps that parse: a decorator and its function, say, may stand at prompts of their own."""
    steps = list(steps)
    at = 0
    while at < len(steps):
        for end in range(at + 1, min(at + 9, len(steps)) + 1):
            source = "".join(source for source, _ in steps[at:end])
            if _parses(source):
                steps[at:end] = [(source, steps[end - 1][1])]
                break
        at += 1
    return steps


def _parses(source: str) -> bool:
    try:
        compile(source, "example", "exec")
    except SyntaxError:
        return False
    return True
