"""The example with a data set of Hugging Face, where ``datasets`` is installed."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "scripts" / "reviews.py"


def test_reviews_are_learned_from_a_hugging_face_data_set(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A DataLoader takes the data set as it is; new reviews are told right."""
    pytest.importorskip("datasets")
    monkeypatch.syspath_prepend(SCRIPT.parent)
    spec = importlib.util.spec_from_file_location("reviews", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    losses = module.main(steps=96)
    assert losses[-1] < 0.1 * losses[0]
    assert float(capsys.readouterr().out.split("; ")[1].split("%")[0]) > 95
