"""What users are told of a hundred mistakes, word by word."""

import gc
import weakref
from pathlib import Path
from runpy import run_path

import pytest

import argosy as paddle

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


def test_checks_of_arguments_keep_no_class_of_the_users():
    class Numbers(paddle.io.Dataset):
        def __getitem__(self, index):
            return index

        def __len__(self):
            return 4

    paddle.io.DataLoader(Numbers(), batch_size=2)
    paddle.io.BatchSampler(Numbers(), batch_size=2)
    alive = weakref.ref(Numbers)
    del Numbers
    gc.collect()
    assert alive() is None
