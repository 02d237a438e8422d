"""Programs that cannot be compiled, caches that cannot be used, and memory that is not there."""

import errno
import os

import numpy as np
import pytest
from programs import build
from test_programs import mm

from argosy_cinn import CinnCompiler, explain, fallback, fault_localization
from argosy_cinn.assembly import assemble
from argosy_cinn.plan import planning
from argosy_cinn.runtime import CodegenError, ObjectCache
from argosy_cinn.store.program_cache import find
from argosy_hwadapt import DeviceOutOfMemory, device
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.errors import CompileError
from argosy_pir import Builder, Location, Operation, Program, TensorType
from argosy_pir.dims import SymExpr
from argosy_tensorcore.storage import StridedArray

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def program(function=lambda x: prim.tanh(prim.mul(x, 3.0)), line=17):
    made = build(function, [X])
    for op in made.block:
        op.location = Location("model.py", line)
    return made


def compiled(made=None, **options):
    return CinnCompiler().compile(made or program(), device("cpu"), options=options)


def result(executable):
    return executable.run([StridedArray(X)])[0].array()


@pytest.fixture
def forgetful(monkeypatch):
    monkeypatch.setattr(fallback, "_warned", set())
    monkeypatch.setattr(fallback, "fallbacks", {})
    return ObjectCache(None)


def test_what_code_generation_fails_on_is_interpreted_named_counted_and_told_once(monkeypatch, forgetful):
    def broken(*_):
        raise KeyError("no such register")

    monkeypatch.setattr(assemble, "emitter_of", broken)
    with pytest.warns(RuntimeWarning, match=r"prim\.tanh at model\.py:17 \(KeyError: 'no such register'\)"):
        executable = compiled(cache=forgetful)
    again = compiled(cache=forgetful)  # warnings are errors here: the second is silent
    np.testing.assert_allclose(result(again), np.tanh(3 * X), rtol=1e-6)
    assert "prim.tanh" in executable.report()["fallback"]
    assert list(fallback.fallbacks.values()) == [2]
    assert "interpreter" in explain(executable)


def test_code_that_llvm_refuses_is_interpreted_and_states_are_updated(monkeypatch, forgetful):
    def refused(*_):
        raise CodegenError("LLVM refused generated code: expected type", "text")

    monkeypatch.setattr("argosy_cinn.assembly.building.compile_objects", refused)
    made = build(lambda x, s: ([prim.add(x, s)], [prim.mul(s, 2.0)]), [X], [X])
    with pytest.warns(RuntimeWarning, match=r"no code for prim\.add, .*prim\.mul .*expected type"):
        executable = compiled(made, cache=forgetful)
    state = StridedArray(X.copy())
    (out,) = executable.bind([state])([StridedArray(X)])
    np.testing.assert_array_equal(out.array(), 2 * X)
    np.testing.assert_array_equal(state.array(), 2 * X)


def test_code_for_all_sizes_that_is_not_linked_is_told_and_made_for_each(monkeypatch, forgetful):
    def refused(*_):
        raise CodegenError("generated code cannot be linked: out of range", "")

    monkeypatch.setattr("argosy_cinn.compiler.compile_symbolic", refused)
    made = Program("open")
    x = made.add_input(TensorType((SymExpr.symbol("n"), 4), "float32"))
    with emit_at(Builder.at_end(made.block)):
        made.set_outputs([prim.tanh(x)])
    with pytest.warns(RuntimeWarning, match=r"'open' has no code for all sizes .*cannot be linked: out of range"):
        executable = compiled(made, cache=forgetful)
    np.testing.assert_allclose(result(executable), np.tanh(X), rtol=1e-6)
    assert "out of range" in executable.report()["not_symbolic"]


class _RefusesSine(planning.KnownReads):
    def __init__(self, memory):
        super().__init__(memory)
        if any(op.name == "prim.sin" for op in memory.kinds):
            raise ZeroDivisionError("in the middle of planning")


@pytest.mark.parametrize("before", [0, 1, 5, 12])
def test_an_operation_that_an_error_does_not_tell_is_found(monkeypatch, forgetful, before):
    """The error comes from a plan of everything: the first operation without which there is none is named."""

    def long(x):
        y = x
        for i in range(before):
            y = prim.tanh(prim.add(y, float(i)))
        y = prim.exp(prim.sin(y))
        return [prim.mul(y, 2.0), prim.cos(x)]

    monkeypatch.setattr(planning, "KnownReads", _RefusesSine)
    expected = r"no code for prim\.sin at model\.py:17 \(ZeroDivisionError: in the middle"
    with pytest.warns(RuntimeWarning, match=expected):
        executable = compiled(program(long), cache=forgetful)
    np.testing.assert_allclose(executable.run([StridedArray(X)])[1].array(), np.cos(X), rtol=1e-6)


def test_what_takes_too_long_to_find_is_told_as_far_as_it_is_known(monkeypatch):
    monkeypatch.setattr(fault_localization, "_PATIENCE", -1.0)
    made = program(lambda x: prim.tanh(prim.exp(x)))

    def attempt(part):
        if any(op.name == "prim.tanh" for op in part.block):
            raise ValueError("no")

    named = fault_localization.name_operations(ValueError("no"), made, attempt)
    assert str(named) == "no code for prim.exp, prim.tanh at model.py:17"


def test_beginnings_of_a_program_are_programs():
    def function(x, s):
        y = prim.mul(prim.add(x, s), 2.0)
        return [prim.neg(y)], [prim.sin(y)]

    def kept(made):
        return [op.name for op in made.block if op.results and op.name != "builtin.constant"]

    made = build(function, [X], [X])
    for count in range(len(kept(made)) + 1):
        part = fault_localization.program_prefix(made, count)
        part.verify()
        assert kept(part) == kept(made)[:count]
        assert part.state_updates == tuple(state.argument for state in part.states)


def test_warnings_are_about_the_line_of_the_caller(monkeypatch, forgetful, tmp_path):
    monkeypatch.setattr(assemble, "emitter_of", lambda *_: 1 / 0)
    with pytest.warns(RuntimeWarning, match="cannot be compiled") as told:
        compiled(cache=forgetful)
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(RuntimeWarning, match="cannot be written") as also:
        ObjectCache(tmp_path / "file" / "objects").get("a")
    assert [w.filename for w in (*told, *also)] == [__file__, __file__]


def test_a_warning_that_is_an_error_for_the_user_is_no_fault_of_the_compiler(forgetful):
    """Warnings are errors here: this one stops, and is not taken for something that cannot be compiled."""

    def function(x):
        return mm(prim.tanh(mm(x, prim.transpose(x, permutation=(1, 0)))), x)

    with pytest.raises(RuntimeWarning, match="more than the memory budget"):
        compiled(program(function), memory_budget=1, cache=forgetful)
    assert not fallback.fallbacks


def test_a_primitive_without_lowering_and_kernel_is_named_with_its_line():
    made = Program("p")
    x = made.add_input(TensorType((3, 4), "float32"))
    op = Operation("prim.nonesuch", [x], [x.type], location=Location("model.py", 5))
    made.block.append(op)
    made.set_outputs([op.result])
    with pytest.raises(CompileError, match=r"prim\.nonesuch.*model\.py:5"):
        compiled(made)


# -- caches


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_cache_that_cannot_be_written_is_no_cache_after_one_warning(monkeypatch, tmp_path, code):
    def refuse(*_, **__):
        raise OSError(code, os.strerror(code))

    result(compiled())  # what all programs share is in the cache of the session
    monkeypatch.setattr("argosy_cinn.runtime.cache.write_file", refuse)
    cache = ObjectCache(tmp_path / "objects")
    with pytest.warns(RuntimeWarning, match=os.strerror(code)) as told:
        np.testing.assert_allclose(result(compiled(cache=cache)), np.tanh(3 * X), rtol=1e-6)
    assert len(told) == 1
    assert compiled(program(prim.exp), cache=cache).report()["cache_hit"] is False


def test_a_disk_that_fills_up_while_an_entry_is_written_leaves_nothing_behind(monkeypatch, tmp_path):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    result(compiled())
    monkeypatch.setattr("argosy_cinn.runtime.cache.os.replace", full)
    cache = ObjectCache(tmp_path / "objects")
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        compiled(cache=cache)
    assert list(cache.folder.iterdir()) == []


def test_a_cache_whose_folder_cannot_be_made_is_no_cache(tmp_path):
    (tmp_path / "file").write_text("in the way")
    cache = ObjectCache(tmp_path / "file" / "objects")
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        assert cache.get("a") is None
    cache.put("a", b"x")
    np.testing.assert_allclose(result(compiled(cache=cache)), np.tanh(3 * X), rtol=1e-6)


@pytest.mark.parametrize("content", [b"", b"\1\0\0\0\0\0\0\0{", (2).to_bytes(8, "little") + b"{}" + b"code"])
def test_an_entry_that_is_whole_but_senseless_is_rebuilt(tmp_path, content):
    cache = ObjectCache(tmp_path / "objects")
    compiled(cache=cache)
    (path,) = cache.folder.glob("*.obj")
    cache.put(path.stem, content)
    assert find(cache, path.stem) is None
    np.testing.assert_allclose(result(compiled(cache=cache)), np.tanh(3 * X), rtol=1e-6)
    assert compiled(cache=cache).report()["cache_hit"]


def test_an_entry_whose_code_cannot_be_linked_is_rebuilt(tmp_path):
    cache = ObjectCache(tmp_path / "objects")
    compiled(cache=cache)
    (path,) = cache.folder.glob("*.obj")
    data = cache.get(path.stem)
    size = 8 + int.from_bytes(data[:8], "little")
    cache.put(path.stem, data[:size] + b"no object file" * 20)
    executable = compiled(cache=cache)
    np.testing.assert_allclose(result(executable), np.tanh(3 * X), rtol=1e-6)
    assert executable.report()["cache_hit"] is False
    assert compiled(cache=cache).report()["cache_hit"]


# -- memory


@pytest.mark.usefixtures("unguarded")
def test_out_of_memory_names_the_peak_and_the_largest_buffers_with_their_lines(monkeypatch):
    def two_products(x):
        y = prim.dot_general(x, x, lhs_contract=(0,), rhs_contract=(0,))
        return prim.dot_general(y, y, lhs_contract=(0,), rhs_contract=(0,))

    executable = compiled(program(two_products, line=42))
    monkeypatch.setattr("argosy_cinn.arena._free", {})

    def refuse(self, nbytes):
        raise DeviceOutOfMemory(f"cpu: the system refused {nbytes} bytes", nbytes)

    monkeypatch.setattr(type(device("cpu")), "allocate", refuse)
    with pytest.raises(MemoryError, match=r"(?s)needs \d+ B .*prim\.dot_general.*4, 4.* at model\.py:42"):
        executable.run([StridedArray(X)])
