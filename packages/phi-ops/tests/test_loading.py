"""Operators are loaded by name on first use, by several threads as by one."""

import sys
import threading
from types import SimpleNamespace

import pytest

from argosy_phi_ops import ops
from argosy_phi_ops.declare.index import MODULES
from argosy_phi_ops.declare.operator import OPERATORS, _whole, get_operator

MODULE = '''
import unhurried
from argosy_phi_ops.declare.operator import Sample, get_operator, operator


@operator()
def unhurried_op(x):
    """The same."""
    return x


assert get_operator("unhurried_op") is unhurried_op
unhurried.declared.set()
unhurried.go_on.wait(3600)


@unhurried_op.samples
def _(rng):
    yield Sample(rng)
'''


@pytest.fixture
def gate(tmp_path, monkeypatch):
    """A module of operators whose import stops in the middle until it is told to go on."""
    (tmp_path / "unhurried_ops.py").write_text(MODULE)
    made = SimpleNamespace(declared=threading.Event(), go_on=threading.Event())
    monkeypatch.setitem(sys.modules, "unhurried", made)
    monkeypatch.setattr(ops, "__path__", [*ops.__path__, str(tmp_path)])
    monkeypatch.setitem(MODULES, "unhurried_op", "unhurried_ops")
    yield made
    sys.modules.pop("argosy_phi_ops.ops.unhurried_ops", None)
    OPERATORS.pop("unhurried_op", None)
    _whole.pop("unhurried_op", None)


def test_no_thread_sees_an_operator_that_another_is_still_declaring(gate):
    """Who asks in the middle of an import waits for its end; the module itself does not."""
    seen = []

    def ask():
        seen.append(get_operator("unhurried_op").sampler is not None)

    first = threading.Thread(target=ask)
    first.start()
    assert gate.declared.wait(3600)
    second = threading.Thread(target=ask)
    second.start()
    second.join(0.05)
    assert not seen
    gate.go_on.set()
    for thread in (first, second):
        thread.join(3600)
    assert seen == [True, True]
