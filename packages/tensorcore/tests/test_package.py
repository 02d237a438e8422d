"""The package as a whole: its face, its example, what importing it loads."""

import subprocess
import sys
from pathlib import Path

import pytest

import argosy_tensorcore

README = Path(__file__).parents[1] / "README.md"


def test_every_public_name_exists():
    """__all__ lists what can be imported from the package, sorted, and nothing private but the version."""
    assert all(hasattr(argosy_tensorcore, name) for name in argosy_tensorcore.__all__)
    assert sorted(argosy_tensorcore.__all__) == argosy_tensorcore.__all__


@pytest.mark.skipif(not README.exists(), reason="the README is not beside the tests")
def test_the_readme_example_runs(tmp_path):
    """The example of the README runs as it stands."""
    code = README.read_text().split("```python\n")[1].split("```")[0]
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("bfloat16\n")


def test_importing_loads_nothing_heavy():
    """The package is on the path of every import of the framework: it brings nothing but itself."""
    code = (
        "import numpy, sys; before = set(sys.modules); import argosy_tensorcore;"
        "print(*sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert {name.split(".")[0] for name in loaded} <= {"argosy_tensorcore", "__future__"}
