"""Eager execution of the parity suite."""

import pytest

from argosy_phi_ops import hot


@pytest.fixture(autouse=True, scope="module")
def eager_by_numpy():
    """What is not exact is left to numpy: samples that are applied once are not worth compiling. How compiled code
    comes in is tested across the packages."""
    before = hot.is_deterministic()
    hot.set_deterministic(True)
    yield
    hot.set_deterministic(before)
