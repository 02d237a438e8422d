"""The scripts in examples/scripts: their first losses are those of the real wheel, recorded by record.py."""

import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPTS = Path(__file__).parents[2] / "examples" / "scripts"
RECORDED = json.loads(Path(__file__).with_name("losses.json").read_text())
_WANTS_DIGITS = ("digits", "vae", "vit")


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("name", list(RECORDED))
def test_first_losses_are_paddles(name, monkeypatch):
    """Four steps from the same weights on the same batches give Paddle's losses (and what beam search finds)."""
    if name in _WANTS_DIGITS:
        pytest.importorskip("sklearn")
    monkeypatch.syspath_prepend(str(SCRIPTS))
    try:
        losses = runpy.run_path(str(SCRIPTS / f"{name}.py"))["main"](4)
    finally:
        sys.modules.pop("common", None)
    np.testing.assert_allclose(losses, RECORDED[name], rtol=2e-4)
