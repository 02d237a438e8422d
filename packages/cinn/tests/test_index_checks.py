"""Checks of indices in compiled programs: the first one is told, by every way into a program, before states change."""

import numpy as np
import pytest
from programs import build

from argosy_cinn import CinnCompiler
from argosy_cinn.tools import tracing
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.errors import AxisError
from argosy_phi_ops.reference.compiler import ReferenceCompiler
from argosy_pir import Builder, Program, TensorType
from argosy_pir.dims import SymExpr
from argosy_tensorcore.storage import StridedArray

TABLE = np.arange(12, dtype=np.float32).reshape(6, 2)


def checked(x, i, size=None, name="look"):
    size = x.shape[0] if size is None else size
    prim.check_index(i, operator=name, low=0, size=size, besides=None)
    return prim.gather(x, prim.reshape(i, shape=(*i.shape, 1)), axes=(0,))


def compiled(program, **options):
    return CinnCompiler().compile(program, device("cpu"), options=options)


def run(executable, *arrays, states=()):
    return [p.array() for p in executable.run([StridedArray.from_array(a) for a in arrays], list(states))]


def refused(executable, *arrays, states=()):
    with pytest.raises(AxisError) as caught:
        run(executable, *arrays, states=states)
    return str(caught.value)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("count", [1, 31, 70_001])
def test_the_first_index_that_is_out_of_range_is_told(dtype, count):
    indices = np.zeros(count, dtype)
    executable = compiled(build(checked, [TABLE, indices]))
    for first, value in ((count - 1, 7), (count // 2, 6), (0, 100)):
        indices[first] = value
        expected = f"look: index {value} is out of range; expected 0 to 5 for an axis of 6"
        assert refused(executable, TABLE, indices) == expected
    indices[:] = 5
    np.testing.assert_array_equal(run(executable, TABLE, indices)[0], TABLE[indices.astype(int)])
    if not dtype.startswith("u"):
        indices[0] = -1
        assert "index -1 " in refused(executable, TABLE, indices)
    assert executable.report()["host_calls"] == {}


@pytest.mark.parametrize("size", [2**31, 2**40])
def test_sizes_beyond_the_dtype_of_the_indices_are_no_sizes_in_it(size):
    indices = np.array([3, -1], np.int32)
    executable = compiled(build(lambda x, i: checked(x, i, size), [TABLE, indices]))
    assert "index -1 " in refused(executable, TABLE, indices)
    run(executable, TABLE, abs(indices))


def test_one_index_may_be_allowed_besides():
    def function(x, i):
        prim.check_index(i, operator="look", low=0, size=6, besides=-100)
        return prim.gather(x, prim.reshape(i, shape=(3, 1)), axes=(0,))

    executable = compiled(build(function, [TABLE, np.zeros(3, np.int64)]))
    run(executable, TABLE, np.array([1, -100, 5]))
    assert refused(executable, TABLE, np.array([-100, -100, -99])).endswith("an axis of 6, or -100")


def many_checks(count):
    """A program of ``count`` lookups, each at indices of its own, and a state that each of them changes."""

    def function(*values):
        *indices, state = values
        for number, i in enumerate(indices):
            state = prim.add(state, checked(state, i, name=f"look{number}"))
        return [prim.reduce_sum(state, axes=(0, 1))], [state]

    return build(function, [np.zeros(6, np.int64)] * count, [TABLE])


@pytest.mark.parametrize("count", [1, 3, 60])
def test_each_of_many_checks_is_told_apart_and_comes_before_states_change(count):
    """Segments of few calls and those that read their calls from tables."""
    executable = compiled(many_checks(count))
    good = [np.arange(6)] * count
    for wrong in {0, count // 2, count - 1}:
        given = [*good]
        given[wrong] = np.array([0, 1, 9, 3, 4, 5])
        state = StridedArray.from_array(TABLE.copy())
        version = state.version
        assert refused(executable, *given, states=[state]).startswith(f"look{wrong}: index 9 ")
        np.testing.assert_array_equal(state.array(), TABLE)
        assert state.version != version  # whoever keeps what it was must look again
    state = StridedArray.from_array(TABLE.copy())
    run(executable, *good, states=[state])
    np.testing.assert_array_equal(state.array(), TABLE * 2.0**count)


def test_calls_with_arrays_and_watched_ones_refuse():
    executable = compiled(build(checked, [TABLE, np.zeros(2, np.int64)]))
    bound = executable.bind([])
    wrong = [TABLE, np.array([0, 6])]
    if bound.on_arrays is not None:
        with pytest.raises(AxisError, match="index 6 "):
            bound.on_arrays(wrong)
        assert bound.on_arrays([TABLE, np.array([0, 5])]) is not None
    assert bound.native_code() is None  # nobody would look at what it notes
    events = []
    tracing.start(events.extend)
    try:
        assert "index 6 " in refused(executable, *wrong)
    finally:
        tracing.stop()
    assert any(event.name.startswith("note_index") for event in events)


def test_host_calls_do_not_run_after_a_refusal():
    """The segment before one tells, and so does the one behind it."""

    def function(x, i, j):
        first = prim.dot_general(checked(x, i), checked(x, i), lhs_contract=(0,), rhs_contract=(0,))
        values = prim.eigh(first)[0]
        return checked(values, j)

    executable = compiled(build(function, [TABLE, np.zeros(2, np.int64), np.zeros(1, np.int64)]))
    assert executable.report()["host_calls"]
    assert "index 6 " in refused(executable, TABLE, np.array([0, 6]), np.array([0]))
    assert "index 2 is out of range; expected 0 to 1" in refused(executable, TABLE, np.array([0, 5]), np.array([2]))
    run(executable, TABLE, np.array([0, 5]), np.array([1]))


@pytest.mark.parametrize("side", ["before", "behind"])
def test_guarded_programs_refuse(side):
    executable = compiled(many_checks(3), guard=side)
    good = [np.arange(6)] * 3
    state = StridedArray.from_array(TABLE.copy())
    assert "look2: index 6 " in refused(executable, *good[:2], np.full(6, 6), states=[state])
    run(executable, *good, states=[state])


def test_sizes_that_are_open_are_those_of_the_call():
    n, m = SymExpr.symbol("n"), SymExpr.symbol("m")
    program = Program("open")
    x, i = program.add_input(TensorType((n, 2), "float32")), program.add_input(TensorType((m,), "int64"))
    with emit_at(Builder.at_end(program.block)):
        program.set_outputs([checked(x, i)])
    for compiler in (CinnCompiler(), ReferenceCompiler()):
        executable = compiler.compile(program, device("cpu"))
        for rows, count in ((6, 3), (2, 5), (6, 1000)):
            indices = np.zeros(count, np.int64)
            run(executable, TABLE[:rows], indices)
            indices[-1] = rows
            said = refused(executable, TABLE[:rows], indices)
            assert said.startswith(
                f"look: index {rows} is out of range; expected 0 to {rows - 1} for an axis of {rows}"
            )
        run(executable, TABLE[:0], np.zeros(0, np.int64))


def test_an_option_leaves_checks_out_and_is_part_of_the_key(monkeypatch):
    program, wrong = build(checked, [TABLE, np.zeros(2, np.int64)]), np.array([0, 9])
    for compiler in (CinnCompiler(), ReferenceCompiler()):
        plain = compiler.compile(program, device("cpu"), options={"check_index": False})
        np.testing.assert_array_equal(run(plain, TABLE, wrong)[0], TABLE[[0, 5]])
        assert "index 9 " in refused(compiler.compile(program, device("cpu")), TABLE, wrong)
        monkeypatch.setenv("ARGOSY_CHECK_INDEX", "0")
        np.testing.assert_array_equal(run(compiler.compile(program, device("cpu")), TABLE, wrong)[0], TABLE[[0, 5]])
        monkeypatch.setenv("ARGOSY_CHECK_INDEX", "yes")
        with pytest.raises(ValueError, match="ARGOSY_CHECK_INDEX is 'yes': expected 1 or 0"):
            compiler.compile(program, device("cpu"))
        monkeypatch.delenv("ARGOSY_CHECK_INDEX")
        with pytest.raises(ValueError, match="option check_index is 1"):
            compiler.compile(program, device("cpu"), options={"check_index": 1})


def test_a_check_does_not_keep_a_batch_whole():
    """Large batches go in blocks of rows still, with a check of their labels before."""
    rows = 1 << 15
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal((rows, 64)).astype(np.float32), rng.integers(0, 6, rows)
    weights = [rng.standard_normal((64, 64)).astype(np.float32) / 8 for _ in range(8)]

    def function(x, labels, *weights):
        prim.check_index(labels, operator="pick", low=0, size=64, besides=None)
        for w in weights:
            x = prim.tanh(prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,)))
        picked = prim.gather(x, prim.reshape(labels, shape=(rows, 1)), axes=(1,), batch=1)
        return prim.reduce_sum(picked, axes=(0,))

    executable = compiled(build(function, [x, labels, *weights]))
    plain = compiled(build(function, [x, labels, *weights]), check_index=False)
    scans = [["scan" in call.text for call in e.manifest.calls].count(True) for e in (executable, plain)]
    assert scans[0] == scans[1] == 1
    np.testing.assert_array_equal(run(executable, x, labels, *weights)[0], run(plain, x, labels, *weights)[0])
    labels[-1] = 64
    assert "pick: index 64 " in refused(executable, x, labels, *weights)
