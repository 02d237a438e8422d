"""Eager execution of the parity suite."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def _eager_by_numpy(eager_by_numpy):
    pass
