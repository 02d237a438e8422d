"""Where builtins of our own are made, and where calls go through ctypes instead."""

import gc
import sysconfig

import numpy as np
import pytest

from argosy_cinn.runtime import arrays, entry, load
from argosy_cinn.runtime import trampolines as made

DOUBLE = """
define void @run(ptr %addresses, ptr %dims) nounwind {
  %at = load ptr, ptr %addresses
  %x = load i64, ptr %at
  %twice = shl i64 %x, 1
  store i64 %twice, ptr %at
  ret void
}
"""


@pytest.fixture(params=["builtins", "without the global lock", "another interpreter"])
def interpreter(request, monkeypatch):
    """The interpreter there is, and others as far as the guard can tell."""
    places = (arrays._trampoline, entry.__globals__["_trampolines"])
    if request.param == "without the global lock":
        monkeypatch.setattr(sysconfig, "get_config_var", {"Py_GIL_DISABLED": 1}.get)
    elif request.param == "another interpreter":
        monkeypatch.setattr(made.sys.implementation, "name", "pypy")
    for place in places:
        place.cache_clear()
    yield request.param
    for place in places:
        place.cache_clear()


@pytest.mark.parametrize("release_gil", [False, True])
def test_programs_are_called_on_every_interpreter(interpreter, release_gil):
    word = np.array([21], np.int64)
    table = np.array([word.ctypes.data], np.int64)
    call = entry(load(DOUBLE, ("run",)), "run", release_gil)
    call(table.ctypes.data, 0)
    assert word[0] == 42
    if interpreter != "builtins":
        assert type(call).__name__ == "CFunctionType"
        assert arrays._trampoline() is None


def test_a_builtin_outlives_the_trampolines_it_was_made_from(interpreter):
    """Programs that were compiled earlier are called with the code that they were made with."""
    word = np.array([21], np.int64)
    table = np.array([word.ctypes.data], np.int64)
    call = entry(load(DOUBLE, ("run",)))
    trampolines = entry.__globals__["_trampolines"]
    trampolines.cache_clear()
    gc.collect()
    others = [bytearray(64) for _ in range(1000)]  # where freed definitions were
    call(table.ctypes.data, 0)
    assert word[0] == 42
    del others
