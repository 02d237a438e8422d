"""The record of the documented examples agrees with argosy's names, with the page of figures and with its bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest

import argosy

from .examples import NAMES, blocks_of
from .judging import OUTCOMES, judge
from .reasons import REASONS
from .refresh import PAGE, RECORD, with_figures

FOUND: dict[str, dict[str, str]] = json.loads(RECORD.read_text())
CORE = sorted(set(FOUND) & set(json.loads(NAMES.read_text())))


def reached(name: str) -> Any:
    at: Any = argosy
    for part in name.partition("#")[0].split("."):
        at = getattr(at, part)
    return at


@pytest.mark.parametrize("area", sorted(FOUND))
def test_what_ran_is_there(area: str) -> None:
    for name, outcome in FOUND[area].items():
        assert outcome in OUTCOMES
        if outcome in ("same", "random"):
            reached(name)


@pytest.mark.parametrize("area", CORE)
def test_nearly_all_examples_of_the_core_run(area: str) -> None:
    outcomes = [o for o in FOUND[area].values() if o != "apart"]
    assert sum(o in ("same", "random") for o in outcomes) >= 0.75 * len(outcomes)


def test_the_record_of_the_core_never_gets_worse() -> None:
    """Without the wheel nothing runs here: this keeps a refreshed record that lost examples from being committed."""
    outcomes = [o for area in CORE for o in FOUND[area].values() if o != "apart"]
    assert sum(o in ("same", "random") for o in outcomes) >= 0.955 * len(outcomes)


def test_each_that_differs_or_fails_has_its_reason() -> None:
    """And none that agrees has one."""
    found = [key for area in FOUND.values() for key, outcome in area.items() if outcome in ("differs", "fails")]
    assert sorted(found) == sorted(REASONS)


def test_the_page_shows_the_record() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_figures(page, FOUND) == page


STEPS = [("import paddle\n", ""), ("print(x)\n", "Tensor(shape=[2], dtype=float32, stop_gradient=True, [1.5, 2.])\n")]


def answer(*printed: str, error: str | None = None) -> dict[str, Any]:
    return {"printed": list(printed), "error": error}


@pytest.mark.parametrize(
    ("shown", "again", "outcome"),
    [
        ("Tensor(shape=[2],  dtype=float32, stop_gradient=True,\n [1.50000001, 2.])", "", "same"),
        ("Tensor(shape=[2], dtype=float32, stop_gradient=True, [1.6, 2.])", "", "differs"),
        ("Tensor(shape=[2], dtype=float32, stop_gradient=True, [1.6, 2.])", "[9., 8.]", "random"),
        ("Tensor(shape=[3], dtype=float32, stop_gradient=True, [1.6, 2.])", "[9., 8.]", "differs"),
        ("Tensor(shape=[2], dtype=float64, stop_gradient=True, [1.6, 2.])", "[9., 8.]", "differs"),
    ],
)
def test_outcomes(shown: str, again: str, outcome: str) -> None:
    wheel = STEPS[1][1]
    other = f"Tensor(shape=[2], dtype=float32, stop_gradient=True, {again})" if again else wheel
    assert judge(STEPS, answer("", shown), answer("", wheel), answer("", other))[0] == outcome


def test_errors_of_both_are_told_from_ours() -> None:
    wheel = answer("", STEPS[1][1])
    assert judge(STEPS, answer("", error="TypeError"), wheel, wheel)[0] == "fails"
    broken = answer("", error="OSError")
    assert judge(STEPS, broken, broken, broken)[0] == "apart"


def test_blocks_of_prompts_at_any_indentation() -> None:
    doc = """
    .. code-block:: pycon

        >>> @decorated
        >>> def f(x):
            ...     return x
        >>> f(1)
        1
        1.5

        Text that is no answer.
    """
    assert blocks_of(doc) == [[("@decorated\ndef f(x):\n    return x\n", ""), ("f(1)\n", "        1\n        1.5\n")]]
