"""Each file in golden/ is a pass's golden file, see :mod:`argosy_pir.testing`."""

import os
from pathlib import Path

import pytest

from argosy_pir.testing import check_golden

FILES = sorted((Path(__file__).parent / "golden").glob("*.pir"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_pass_gives_the_golden_text(path):
    """The pipeline turns the first program of the file into the second, and then has nothing left to do."""
    check_golden(path, locations=True, update="ARGOSY_UPDATE_GOLDEN" in os.environ)
