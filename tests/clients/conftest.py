"""argosy in the place of paddle, for libraries that have a Paddle back end."""

import sys

import pytest

import argosy


@pytest.fixture
def as_paddle(monkeypatch):
    """``import paddle`` gives argosy; libraries that ask for a version see 3.1, the last before MmapStorage,
    which argosy does not have."""
    monkeypatch.setitem(sys.modules, "paddle", argosy)
    monkeypatch.setattr(argosy, "__version__", "3.1.0")
    return argosy
