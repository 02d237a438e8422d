"""Copies past the caches: the code that is installed, or numpy's."""

import numpy as np
import pytest

from argosy_hwadapt.cpu import streaming


@pytest.fixture(autouse=True)
def _forget():
    streaming.copy_function.cache_clear()
    yield
    streaming.copy_function.cache_clear()


class _Installed:
    def __init__(self, made):
        self.made = made

    def names(self):
        return sorted(self.made)

    def locate(self, name):
        return "somebody", lambda: lambda: self.made[name]


def test_the_first_code_for_this_machine_is_called_with_addresses(monkeypatch):
    called = []
    installed = _Installed({"a": None, "b": lambda *given: called.append(given), "c": None})
    monkeypatch.setattr(streaming, "_COPIES", installed)
    x, y = np.zeros(5, np.float32), np.ones(8, np.float32)
    streaming.copy_function()(x, y[3:])
    assert called == [(x.ctypes.data, y.ctypes.data + 12, 20)]


@pytest.mark.parametrize("made", [{}, {"a": None}])
def test_numpy_copies_where_there_is_none(made, monkeypatch):
    monkeypatch.setattr(streaming, "_COPIES", _Installed(made))
    assert streaming.copy_function() is np.copyto
