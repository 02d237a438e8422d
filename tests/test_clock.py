"""No test is judged by the clock: on a busy machine each takes many times as long."""

import ast
from pathlib import Path

from workspace import ROOT

UNTIMED = ("deadline=None", "steady")  # pir's tests share the latter


def _timed(path: Path) -> list[str]:
    """Tests by hypothesis that keep its limit of 200 ms for each example."""
    found = [f for f in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(f, ast.FunctionDef)]
    decorated = [(f.name, " ".join(map(ast.unparse, f.decorator_list))) for f in found]
    return [name for name, by in decorated if "given(" in by and not any(word in by for word in UNTIMED)]


def test_examples_may_take_any_time() -> None:
    files = [*ROOT.glob("packages/*/tests/**/test_*.py"), *ROOT.glob("tests/**/test_*.py")]
    assert {path.name: names for path in files if (names := _timed(path))} == {}
