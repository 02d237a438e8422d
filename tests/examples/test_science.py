"""Every example of examples/science runs for a few steps: trains, compares with its reference, draws."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "science"
HELPERS = {"pinn.py", "spectral.py"}
NAMES = sorted(p.stem for p in EXAMPLES.glob("*.py") if p.name not in HELPERS)


@pytest.mark.usefixtures("quick_code")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.exhaustive(every=3)
def test_example_runs(name, monkeypatch, capsys, tmp_path):
    """The error it prints is finite and what main gives; the bar reached the end."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(sys, "argv", [name, "--steps", "2", "--plots", str(tmp_path)])
    found = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]()
    out = capsys.readouterr()
    assert np.isfinite(found)
    assert f"{found:.2e}" in out.out
    assert re.search(r"\b([12])/\1\b", out.err)
