"""A test session compiles into a cache folder of its own, or into the one that ``ARGOSY_CACHE_DIR`` names."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def unguarded(monkeypatch):
    """For tests of what guard mode changes: how values share memory, what allocates it, and the short way of calls."""
    monkeypatch.delenv("ARGOSY_GUARD", raising=False)


AS_IT_SHIPS = {*"contraction printers runtime test_guard test_levels test_math test_programs test_report".split()}
"""Folders and modules of tests of generated code itself, in which LLVM's code generator does what it does for users."""


@pytest.fixture(scope="module", autouse=True)
def _quick_code(request):
    """Elsewhere it optimises nothing, unless a level is set: they compile much, of what the compiler itself decides,
    and run it a few times."""
    with pytest.MonkeyPatch.context() as patch:
        if "ARGOSY_CODEGEN_LEVEL" not in os.environ and not AS_IT_SHIPS & {request.path.stem, request.path.parent.name}:
            patch.setenv("ARGOSY_CODEGEN_LEVEL", "0")
        yield


@pytest.fixture(scope="session", autouse=True)
def _private_cache(tmp_path_factory):
    from argosy_cinn.runtime.cache import default_cache

    if os.environ.get("ARGOSY_CACHE_DIR"):  # the whole suite: what earlier sessions compiled is not compiled again
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARGOSY_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        default_cache.cache_clear()
        yield
    default_cache.cache_clear()
