"""What users are told of a hundred mistakes, word by word."""

from pathlib import Path
from runpy import run_path

import pytest

MISTAKES = run_path(str(Path(__file__).with_name("mistakes.py")))


def test_a_hundred_mistakes_and_their_texts() -> None:
    """As in ``golden/mistakes.txt``, which ``mistakes.py`` writes; each line of code is a mistake."""
    found = MISTAKES["page"]()
    assert found == MISTAKES["GOLDEN"].read_text(encoding="utf-8"), "python packages/meta/tests/mistakes.py"
    assert "no error" not in found.splitlines()
    assert found.count(">>> ") >= 100


@pytest.mark.parametrize("word", ["prim.", "tensor<", "NoneType' object", "list index", "KeyError", "__init__"])
def test_texts_do_not_speak_of_insides(word: str) -> None:
    """Of primitives, of the IR's types, or of Python's."""
    assert word not in MISTAKES["GOLDEN"].read_text(encoding="utf-8")
