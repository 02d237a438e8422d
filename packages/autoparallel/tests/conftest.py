"""Puts this folder on the path, for the helpers that tests share."""

import gc
import sys
from pathlib import Path

import pytest

from argosy_phi_ops.context import AMBIENT
from argosy_phi_ops.eager import tiering

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True, scope="module")
def eager_by_numpy():
    """What is not exact is left to numpy: samples that are applied once are not worth compiling. How compiled code
    comes in is tested across the packages."""
    before = tiering.is_deterministic()
    tiering.set_deterministic(True)
    yield
    tiering.set_deterministic(before)


@pytest.fixture(autouse=True)
def plain_dispatch_afterwards():
    """Distributed tensors in reference cycles hold dispatch on its long way until they are collected."""
    yield
    if AMBIENT.word:
        gc.collect()
        gc.freeze()  # what is left stays: the collection after the next test need not look at it
