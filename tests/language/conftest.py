"""What tests of language models share."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def _eager_by_numpy(eager_by_numpy):
    """Eager models are what exports of theirs are compared with, run once or twice."""
