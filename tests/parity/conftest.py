"""Eager execution of the parity suite."""

import pytest

from argosy_phi_ops.eager import tiering


@pytest.fixture(autouse=True, scope="module")
def eager_by_numpy():
    """What is not exact is left to numpy: samples that are applied once are not worth compiling. How compiled code
    comes in is tested across the packages."""
    before = tiering.is_deterministic()
    tiering.set_deterministic(True)
    yield
    tiering.set_deterministic(before)
