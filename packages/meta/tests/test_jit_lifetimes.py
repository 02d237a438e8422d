"""What a captured function leaves behind when it is gone, and how much one function keeps."""

import copy
import dataclasses
import gc
import linecache
import pickle
import time
import weakref

import numpy as np
import pytest

import argosy as paddle
from argosy.jit import captures, guards, methods, static_function
from argosy.jit.conversion import source, split
from argosy_pir.program import Program


def defined(folder, number, body="return x * number + 1"):
    """A function with a file and code of its own."""
    file = folder / f"function{number}.py"
    file.write_text(f"def function(x):\n    number = {number}.5\n    {body}\n")
    names = {"__name__": "generated", "paddle": paddle}
    exec(compile(file.read_text(), str(file), "exec"), names)
    return names["function"]


def test_a_captured_function_goes_with_all_that_was_made_of_it(tmp_path):
    x, seen = paddle.ones([3]), []
    for i in range(4):
        function = defined(tmp_path, i)
        static = paddle.jit.to_static(function, full_graph=i % 2 == 0)
        assert static(x).numpy().tolist() == [i + 1.5] * 3
        compiled = static.compiled[0]
        executable = compiled.executable
        seen += map(weakref.ref, (function, function.__code__, static, executable, executable.library))
        del function, static, compiled, executable
    gc.collect()
    assert [each() for each in seen if each() is not None] == []


def test_tables_of_code_hold_no_code(tmp_path):
    tables = (source._made, split._quiet, guards._known_globals)
    x, function = paddle.ones([3]), defined(tmp_path, 0, "print(end='')\n    return x * number")
    paddle.jit.to_static(function)(x)
    assert split.is_quiet(function) in (True, False)
    code = function.__code__
    assert all(code in table for table in tables)
    alive = weakref.ref(code)
    del function, code
    gc.collect()
    assert alive() is None


def test_lines_of_few_files_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "FILES_KEPT", 3)
    for i in range(8):
        assert source.syntax(defined(tmp_path, i)) is not None
    kept = [file for file in linecache.cache if file.startswith(str(tmp_path))]
    assert kept == [str(tmp_path / f"function{i}.py") for i in (5, 6, 7)]


def programs():
    """The programs that live."""
    gc.collect()
    return [x for x in gc.get_objects() if type(x) is Program]


@pytest.mark.parametrize("kinds", [0, 3])
def test_what_is_compiled_keeps_no_program_until_somebody_looks(kinds):
    """Neither what was compiled now (with another number each time) nor what was found in the cache."""

    def function(x):
        return paddle.tanh(x * kinds + random) + 1

    x, random = paddle.ones([3]), time.time()
    expected = np.tanh(kinds + np.float32(random)) + 1
    for _ in range(2):
        static = paddle.jit.to_static(function, full_graph=True)
        np.testing.assert_allclose(static(x).numpy(), [expected] * 3, rtol=1e-6)
        assert [each.name for each in programs() if each.name == "function"] == []
        program = static.main_program
        assert "prim.tanh" in str(program)
        assert program is static.main_program
        assert [each.name for each in programs() if each.name == "function"] == ["function"]
        assert "kernel" in static.compiled[0].executable.describe()
        del static, program


def tables(static):
    """All that a captured function knows by kinds of calls."""
    return (static._known, static._by_key, static._floats, static._runtime, static._plain, static._by_value)


def test_a_function_knows_so_many_kinds_of_calls_and_the_latest_used(monkeypatch):
    monkeypatch.setattr(captures, "_KINDS", 6)
    for module in (captures, static_function):
        monkeypatch.setattr(module, "MANY", 2)
    static = paddle.jit.to_static(lambda x, k: x * k, full_graph=True)
    x, seen = paddle.ones([2]), {}
    for k in range(12):
        assert static(x, k=k).numpy().tolist() == [k, k]
        seen[k] = weakref.ref(static.compiled[-1].executable)
        assert static(x, k=0).numpy().tolist() == [0, 0]
        assert all(len(table) <= 6 for table in tables(static))
    gc.collect()
    assert [k for k, each in seen.items() if each() is not None] == [0, 7, 8, 9, 10, 11]
    assert static(x, k=3).numpy().tolist() == [3, 3]
    assert len(static.compiled) == 6


def test_kinds_of_calls_that_run_as_python_are_bounded(monkeypatch):
    monkeypatch.setattr(captures, "_KINDS", 4)
    static = paddle.jit.to_static(lambda x, k: float(x.sum()) * k)
    for k in range(9):
        assert static(paddle.ones([2]), k) == 2.0 * k
        assert all(len(table) <= 4 for table in tables(static))
    assert len(static._plain) == 4


class Scaled:
    """A class with a captured method."""

    def __init__(self, factor):
        self.factor = factor

    @paddle.jit.to_static
    def scale(self, x):
        return x * self.factor


class ScaledLayer(paddle.nn.Layer):
    """A layer whose forward function is captured where it is declared."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor
        self.linear = paddle.nn.Linear(2, 2)

    @paddle.jit.to_static(full_graph=True)
    def forward(self, x):
        return self.linear(x) * self.factor

    scale = forward


@dataclasses.dataclass
class Equal:
    """Instances that are equal and cannot be hashed."""

    factor: float

    @paddle.jit.to_static
    def scale(self, x):
        return x * self.factor


class Slotted:
    """A class whose instances have no dictionary, nor weak references."""

    __slots__ = ("factor",)

    def __init__(self, factor):
        self.factor = factor

    @paddle.jit.to_static
    def scale(self, x):
        return x * self.factor


@pytest.mark.parametrize("kind", [Scaled, ScaledLayer, Equal])
def test_an_instance_goes_with_what_was_captured_of_its_methods(kind):
    x, seen = paddle.ones([1, 2]), []
    for factor in (2.0, 3.0):
        made = kind(factor)
        made.scale(x)
        assert made.scale is made.scale
        seen += [weakref.ref(made), weakref.ref(made.scale), weakref.ref(made.scale.compiled[0].executable)]
    del made
    gc.collect()
    assert [each() for each in seen if each() is not None] == []


def test_equal_instances_have_captures_of_their_own():
    first, second = Equal(2.0), Equal(2.0)
    second.scale(paddle.ones([2]))
    first.factor = 5.0
    assert first.scale(paddle.ones([2])).tolist() == [5, 5]
    assert second.scale(paddle.ones([2])).tolist() == [2, 2]


def test_few_instances_without_attributes_are_kept(monkeypatch):
    monkeypatch.setattr(methods, "_SLOTTED", 2)
    made = [Slotted(float(i)) for i in range(5)]
    for _ in range(2):
        assert [int(each.scale(paddle.ones([]))) for each in made] == [0, 1, 2, 3, 4]
    assert made[-1].scale is made[-1].scale
    assert len(Slotted.__dict__["scale"]._slotted) == 2


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_instances_have_captures_of_their_own(copied):
    first = Scaled(2.0)
    assert first.scale(paddle.ones([])) == 2
    second = copied(first)
    second.factor = 3.0
    assert (float(first.scale(paddle.ones([]))), float(second.scale(paddle.ones([])))) == (2, 3)
    assert second.scale is not first.scale
    assert len(first.scale.compiled) == 1
