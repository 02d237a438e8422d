"""Dialects: found when needed, checked when known, opaque when not."""

import os
import signal
import sys
import threading
import time
import types

import pytest

from argosy_pir import (
    PURE,
    Builder,
    Dialect,
    DialectError,
    IRError,
    OpDef,
    Program,
    TensorType,
    VerifyError,
    get_definition,
    get_dialect,
    has_trait,
    register_dialect,
)
from argosy_pir import dialect as dialects

T = TensorType((4,), "int32")


def test_duplicates_name_both_owners():
    """Two dialects of one name, or two operations, say who they come from."""
    register_dialect(Dialect("twice"))
    scope = {"Dialect": Dialect, "__name__": "other.module"}
    exec("again = Dialect('twice')", scope)
    with pytest.raises(DialectError, match=r"'twice' is registered twice: by .*test_dialect and by other\.module"):
        register_dialect(scope["again"])
    with pytest.raises(DialectError, match=r"'d\.x' is defined twice"):
        Dialect("d", [OpDef("d.x"), OpDef("d.x")])
    with pytest.raises(DialectError, match="does not start with"):
        Dialect("d", [OpDef("e.x")])


def test_plugins_load_when_their_name_is_met(monkeypatch):
    """An entry point is loaded on first use of its dialect, once, and a broken one is reported by name."""
    module = types.ModuleType("plugin_dialect")
    loads = []

    def make():
        loads.append(1)
        return Dialect("plugin", [OpDef("plugin.op", ["x"], traits=[PURE])])

    module.make = make
    module.broken = lambda: 1 / 0
    monkeypatch.setitem(sys.modules, "plugin_dialect", module)
    from importlib.metadata import EntryPoint

    def entry_points(group, name):
        targets = {"plugin": "plugin_dialect:make", "broken": "plugin_dialect:broken"}
        return [EntryPoint(name, targets[name], group)] if name in targets else []

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    assert not loads
    assert get_definition("plugin.op").traits == {PURE}
    assert get_dialect("plugin") is get_dialect("plugin")
    assert loads == [1]
    assert get_dialect("nobodys") is None
    with pytest.raises(DialectError, match="'broken' cannot be loaded from plugin_dialect:broken: division by zero"):
        get_dialect("broken")


def test_definitions_made_on_demand():
    """A dialect may make definitions when they are asked for; each is made once."""
    asked = []

    def resolve(name):
        asked.append(name)
        return OpDef(name, ["x"]) if name.endswith("known") else None

    register_dialect(Dialect("lazy", resolve=resolve))
    assert get_definition("lazy.known") is get_definition("lazy.known")
    assert get_definition("lazy.other") is None
    assert asked == ["lazy.known", "lazy.other"]


def test_known_operations_are_checked_and_unknown_ones_kept():
    """Known dialects check operands, attributes and types; an unknown dialect's operations pass."""
    program = Program("p", [T])
    x = program.inputs[0]
    builder = Builder(program.block)
    cases = [
        (("test.neg", []), r"takes operands \(x\), got 0"),
        (("test.typed", [x], {}, [T]), r"needs attribute 'axis' \(int\)"),
        (("test.typed", [x], {"axis": 1.5}, [T]), "attribute 'axis' should be int, got 1.5"),
        (("test.typed", [x], {"axis": 1, "axes": (1, "a")}, [T]), "'axes' should be ints"),
        (("test.neg", [x], {}, [TensorType((5,), "int32")]), r"gives \(tensor<\[5\].* expected \(tensor<\[4\]"),
        (("test.absent", [x], {}, [T]), "dialect 'test' has no operation of this name"),
    ]
    for arguments, message in cases:
        with pytest.raises(VerifyError, match=message):
            builder.create(*arguments)
    assert x.uses == ()  # nothing refused stays attached
    with pytest.raises(IRError, match="result types must be given"):
        builder.create("nobody.op", [x])
    builder.create("nobody.op", [x], {"any": ("thing",)}, [T])
    assert not has_trait(program.block.first, PURE)


def test_verify_errors_show_operation_types_and_line():
    """A broken rule names the operation, its operands' types, the expectation, and the user's line."""
    program = Program.parse(
        "program @p(%x: tensor<[4], int32>) {\n"
        '  %0 = test.neg(%x) : tensor<[5], int32> loc("model.py":12 in "forward")\n  return(%0)\n}'
    )
    expected = r"'test\.neg' \(tensor<\[4\], int32>\): gives .* at model\.py:12 in forward"
    with pytest.raises(VerifyError, match=expected) as caught:
        program.verify()
    assert caught.value.operation is program.block.first


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("program @p() { }", "does not end in builtin.return"),
        ("program @p() { return() return() }", "operations follow it"),
        ("program @p() { builtin.call() {callee = @f} return() }", "there is no function @f"),
        (
            "program @p() { builtin.call() {callee = @f} return() } function @f(%x: token) { return() }",
            "has type function",
        ),
        ('program @p() state(%a = "a": tensor<[2], f>) { return() }', "fewer values than there are states"),
        (
            'program @p(%x: tensor<[3], f>) state(%a = "a": tensor<[2], f>) { return(;%x) }',
            r"state 'a' of type tensor<\[2\], f> becomes tensor<\[3\], f>",
        ),
        (
            "program @p() { test.pure() region { %x = test.pure() : token } test.pure(%x) return() }",
            r"operand 0 \(a result of 'test.pure'\) is not defined before",
        ),
        ("program @p() { %0 = foo.a() : token return(%0) foo.b() }", "does not end in"),
        ("program @p() { builtin.call() {callee = @f} return() } function @f() { }", "@f does not end in"),
    ],
)
def test_verifier_rules(text, message):
    """Structure, dominance, terminators, calls and states are checked."""
    with pytest.raises(VerifyError, match=message):
        Program.parse(text).verify()


def test_moving_a_definition_after_its_use_is_found():
    """Dominance is checked on the operations' present order."""
    program = Program.parse("program @p() { %0 = foo.a() : token foo.b(%0) return() }")
    program.verify()
    program.block.first.move_after(program.block.operations[1])
    with pytest.raises(VerifyError, match="not defined before its use"):
        program.verify()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX processes")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_does_not_wait_for_a_dialect_that_a_thread_was_loading(monkeypatch):
    """A process forks when the dialect is there, so that the child finds it."""
    started = threading.Event()

    def load(name):
        started.set()
        time.sleep(0.3)
        return register_dialect(Dialect(name))

    monkeypatch.setattr(dialects, "_load", load)
    monkeypatch.setattr(dialects, "_dialects", dict(dialects._dialects))
    loading = threading.Thread(target=get_dialect, args=("slowly_loaded",))
    loading.start()
    started.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(600)  # a child that waits for ever is killed by it
        os._exit(0 if get_dialect("slowly_loaded") is not None and get_dialect("builtin") is not None else 1)
    assert os.waitpid(child, 0)[1] == 0
    loading.join()
