"""examples/distributed/llama: one training in one process, by annotation, and with collectives by hand."""

import ast
import runpy
import sys
from collections import Counter

import numpy as np
import pytest
from workspace import ROOT

from argosy.distributed.debug import run_ranks

FOLDER = ROOT / "examples" / "distributed" / "llama"


@pytest.fixture
def scripts(monkeypatch):
    """The functions of the three scripts, which import each other as they do where they are started."""
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    yield {path.stem: runpy.run_path(str(path)) for path in FOLDER.glob("*.py")}
    del sys.modules["one_process"]


@pytest.mark.exhaustive
def test_losses_are_those_of_one_process(scripts):
    """Two copies of two parts, by annotation and by hand."""
    alone = scripts["one_process"]
    expected = alone["train"](*alone["build"](), alone["batches"]())
    for name in ("annotated", "collectives"):
        for losses in run_ranks(scripts[name]["run"], 4, timeout=3600):
            np.testing.assert_allclose(losses, expected, rtol=1e-5, err_msg=name)


def test_annotation_saves_four_lines_of_five():
    """Lines of code that one_process.py does not have; the page says how many."""
    alone = _lines("one_process")
    annotated, by_hand = ((_lines(name) - alone).total() for name in ("annotated", "collectives"))
    assert annotated <= 0.2 * by_hand
    assert f"{annotated} and {by_hand} lines of code" in (ROOT / "docs" / "DISTRIBUTED.md").read_text().replace(
        "\n", " "
    )


def _lines(name):
    """Lines of a script, each as often as it is there, without comments and docstrings, formatted alike."""
    tree = ast.parse((FOLDER / f"{name}.py").read_text())
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return Counter(line.strip() for line in ast.unparse(tree).splitlines() if line.strip())
