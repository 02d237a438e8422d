"""The examples of the READMEs run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1]
ROOT = PACKAGE.parents[1]


def _blocks(path):
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


def _run(code, folder):
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)


def test_the_packages_example_runs(tmp_path):
    """The package's README shows a program that works."""
    path = PACKAGE / "README.md"
    if not path.exists():
        pytest.skip("the README is in the repository, not in the wheel")
    (code,) = _blocks(path)
    result = _run(code, tmp_path)
    assert result.returncode == 0, result.stderr
    assert float(result.stdout) > 0


def test_the_tour_runs(tmp_path):
    """The tour is one program up to the export, and a second one that serves it without argosy."""
    path = ROOT / "docs" / "TOUR.md"
    if not path.exists():
        pytest.skip("the tour is in the repository, not in the wheel")
    *training, serving = _blocks(path)
    result = _run("\n".join(training), tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("program @step(")
    assert (tmp_path / "checkpoint.safetensors").exists()
    result = _run("import sys\nsys.modules['argosy'] = None\n" + serving + "\nprint(y.shape)", tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "(1, 1)"
