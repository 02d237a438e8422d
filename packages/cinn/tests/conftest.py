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


@pytest.fixture
def quick_code(monkeypatch):
    """LLVM's code generator optimises nothing, unless a level is set: for tests that compile much, of what the compiler
    itself decides."""
    if "ARGOSY_CODEGEN_LEVEL" not in os.environ:
        monkeypatch.setenv("ARGOSY_CODEGEN_LEVEL", "0")


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
