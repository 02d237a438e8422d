"""Puts this folder on the path, for the helpers that tests share."""

import gc
import sys
from pathlib import Path

import pytest

from argosy_phi_ops.context import AMBIENT

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def plain_dispatch_afterwards():
    """Distributed tensors in reference cycles hold dispatch on its long way until they are collected."""
    yield
    if AMBIENT.word:
        gc.collect()
