"""What the wheel answered comes back from disk as it was, whether its numbers stand in the JSON or in an archive."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from parity import records
from parity.case import call
from parity.compare import differences
from parity.inputs import tensor
from parity.runner import Outcome


@pytest.mark.parametrize("limit", [0, 1 << 10])
def test_answers_come_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: int) -> None:
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    monkeypatch.setattr(records, "INLINE", limit)
    numbers = [
        np.array([[0.1, np.nan], [-np.inf, 1e-45]], np.float32),
        np.array(1 / 3),
        np.array([1 / 3 + 0.1j, -2j], np.complex64),
        np.array([True, False]),
        np.array([2**62, -1]),
        np.zeros((0, 3), np.float16),
    ]
    case, failing = call("add", tensor(2)), call("add", tensor(3))
    told = Outcome([*numbers, "text", None], [numbers[0]], gradient_error="ValueError")
    records.save("family", "3.3", [(case, told), (failing, Outcome(error="TypeError"))])
    assert (tmp_path / "family.npz").exists() is (limit == 0)
    found = records.load("family")
    digest, back = found[case.id]
    assert digest == records.digest(case)
    assert back.outputs[6:] == ["text", None]
    assert (back.gradient_error, found[failing.id][1].error) == ("ValueError", "TypeError")
    for a, b in zip([*numbers, numbers[0]], [*back.outputs[:6], *back.gradients], strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_array_equal(a, b)


def test_a_gradient_that_cancels_is_judged_by_the_size_of_its_terms() -> None:
    """Two roundings of a sum of terms near 8 that is zero agree; the same two beside terms near 1 do not."""
    for size, agree in ((8.0, True), (1.0, False)):
        others = np.array([size, -size], "float32")
        wheel, argosy = (
            Outcome(gradients=[others, np.array([rest], "float32")], outputs=[]) for rest in (-7e-7, 1.9e-6)
        )
        assert (differences(wheel, argosy, True) == []) is agree
