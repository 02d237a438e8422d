"""Each file in golden/ is a pass's golden file, see :mod:`argosy_pir.testing`."""

import os
from pathlib import Path

import pytest

from argosy_pir.testing import check_golden, check_passes

FILES = sorted((Path(__file__).parent / "golden").glob("*.pir"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_pass_gives_the_golden_text(path):
    """The pipeline turns the first program of the file into the second, and then has nothing left to do."""
    check_golden(path, update="ARGOSY_UPDATE_GOLDEN" in os.environ)


def test_every_pass_has_a_golden_text_a_docstring_and_an_entry_point():
    """Of this package's."""
    check_passes("argosy_phi_ops", FILES)
