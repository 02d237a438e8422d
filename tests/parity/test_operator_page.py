"""The page of operators is what the sources say."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.api.operator_page import page

PAGE = Path(__file__).parents[2] / "docs" / "OPERATORS.md"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_page_of_operators_is_current() -> None:
    """``python -m argosy.api.operator_page`` would change nothing."""
    assert PAGE.read_text(encoding="utf-8") == page()
