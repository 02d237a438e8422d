"""Updates on several threads: duplicates are combined in order, and any number of threads gives the same bits."""

import numpy as np
import pytest
from programs import assert_equal, build, values

from argosy_cinn import CinnCompiler
from argosy_cinn.assembly import products
from argosy_cinn.assembly.building import generated_code
from argosy_cinn.runtime import set_threads
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Builder, Program, TensorType
from argosy_pir.dims import SymExpr
from argosy_tensorcore.storage import StridedArray

RNG = np.random.default_rng(5)


def on_threads(executable, inputs, state):
    """The state after a run on 1, 2 and 4 threads: equal bits."""
    results = []
    try:
        for threads in (1, 2, 4):
            set_threads(threads)
            held = StridedArray.from_array(state.copy())
            executable.run([StridedArray.from_array(a) for a in inputs], [held])
            results.append(held.array().copy())
    finally:
        set_threads(1)
    assert all(r.tobytes() == results[0].tobytes() for r in results), "threads change bits"
    return results[0]


def check_update(update, inputs, state):
    """An update in place of the only state, against the interpreter."""
    program = build(lambda *a: ([], [update(a[-1], *a[:-1])]), inputs, [state])
    _, (want,) = interpret(program, inputs, [state.copy()])
    executable = CinnCompiler().compile(program, device("cpu"))
    assert executable.report()["host_calls"] == {}
    got = on_threads(executable, inputs, state)
    assert_equal(got, want, 50)
    return executable


@pytest.mark.parametrize("kind", ["set", "add", "mul", "max"])
@pytest.mark.parametrize(("dtype", "columns"), [("float32", 128), ("float32", 1003), ("float64", 129), ("int8", 300)])
def test_rows_that_meet_are_combined_in_order(kind, dtype, columns):
    rows = 70_000 // columns + 1
    indices = RNG.integers(-2, 12, (rows, 1))  # many meet, some are outside
    updates, state = values(RNG, (rows, columns), dtype, 0.9, 1.1), values(RNG, (10, columns), dtype, 0.9, 1.1)
    executable = check_update(lambda x, i, u: prim.scatter(x, i, u, axes=(0,), kind=kind), [indices, updates], state)
    assert [call.chunks for call in executable.manifest.calls] == [0], "one share for each thread"


@pytest.mark.parametrize("kind", ["set", "add", "mul", "min"])
@pytest.mark.parametrize(("dtype", "columns"), [("float32", 8), ("float64", 17), ("int16", 100), ("float32", 1)])
def test_narrow_rows_that_meet_are_combined_in_order(kind, dtype, columns):
    rows = 70_000 // columns + 1
    indices = RNG.integers(-2, 62, (rows, 1))
    updates, state = values(RNG, (rows, columns), dtype, 0.99, 1.01), values(RNG, (60, columns), dtype, 0.9, 1.1)
    executable = check_update(lambda x, i, u: prim.scatter(x, i, u, axes=(0,), kind=kind), [indices, updates], state)
    assert [call.chunks for call in executable.manifest.calls] == [0 if columns > 1 else 1]


def test_pairs_of_places_of_narrow_rows():
    indices = np.stack([RNG.integers(-1, 8, 9000), RNG.integers(0, 6, 9000)], axis=1)
    check_update(lambda x, i, u: prim.scatter(x, i, u, axes=(0, 2), kind="add"),
                 [indices, values(RNG, (9000, 9), "float32")], values(RNG, (7, 9, 5), "float32"))  # fmt: skip


def test_columns_of_a_middle_axis_and_narrow_rows():
    indices = RNG.integers(0, 5, (150, 1))
    wide, narrow = values(RNG, (150, 3, 200), "float32"), values(RNG, (150, 600), "float32")
    check_update(lambda x, i, u: prim.scatter(x, i, u, axes=(0,), kind="add"), [indices, wide],
                 values(RNG, (5, 3, 200), "float32"))  # fmt: skip
    places = RNG.integers(0, 5, (150, 600, 1))
    executable = check_update(lambda x, i, u: prim.scatter(x, i, u, axes=(0,), kind="add"), [places, narrow],
                              values(RNG, (7,), "float32"))  # fmt: skip
    assert [call.chunks for call in executable.manifest.calls] == [1], "elements that meet anywhere have one thread"


def test_a_block_is_written_by_all_threads():
    block, starts = values(RNG, (300, 257), "float32"), [np.array(3), np.array(100)]
    state = values(RNG, (2000, 400), "float32")
    executable = check_update(lambda x, u, i, j: prim.dynamic_update_slice(x, u, i, j), [block, *starts], state)
    assert executable.manifest.calls[-1].chunks > 1


def test_rows_known_at_run_time():
    n = SymExpr.symbol("n")
    program = Program("rows")
    indices = program.add_input(TensorType((n, 1), "int64"))
    updates = program.add_input(TensorType((n, 1024), "float32"))
    state = program.add_state("table", TensorType((9, 1024), "float32"))
    with emit_at(Builder.at_end(program.block)):
        made = prim.scatter(state.argument, indices, updates, axes=(0,), kind="add")
    program.set_outputs([], [made])
    executable = CinnCompiler().compile(program, device("cpu"))
    for rows in (1, 100):
        arrays = [RNG.integers(0, 9, (rows, 1)), values(RNG, (rows, 1024), "float32")]
        table = values(RNG, (9, 1024), "float32")
        _, (want,) = interpret(program, arrays, [table.copy()])
        assert_equal(on_threads(executable, arrays, table), want, 50)
    assert executable.report()["compilations"] == 1


def test_places_in_a_table_whose_size_is_known_at_run_time():
    rows, n = SymExpr.symbol("rows"), SymExpr.symbol("n")
    program = Program("cache")
    indices = program.add_input(TensorType((n, 1), "int64"))
    updates = program.add_input(TensorType((n, 8), "float32"))
    state = program.add_state("table", TensorType((rows, 8), "float32"))
    with emit_at(Builder.at_end(program.block)):
        made = prim.scatter(state.argument, indices, updates, axes=(0,), kind="set")
    program.set_outputs([], [made])
    executable = CinnCompiler().compile(program, device("cpu"))
    for size in (3, 50):
        arrays = [RNG.integers(-1, size + 2, (20, 1)), values(RNG, (20, 8), "float32")]  # some are outside
        table = values(RNG, (size, 8), "float32")
        _, (want,) = interpret(program, arrays, [table.copy()])
        assert_equal(on_threads(executable, arrays, table), want)
    assert executable.report()["compilations"] == 1
    assert executable.report()["not_symbolic"] == ""


def test_moments_far_from_the_caches_are_asked_for_while_their_gradient_is_summed(monkeypatch):
    """The epilogue of a weight's gradient updates what it reads, on any number of threads and in any step along k."""
    x, g, moments = (RNG.standard_normal(s).astype(np.float32) for s in ((900, 520), (900, 515), (520, 515)))

    def update(m, x, g):
        gradient = prim.dot_general(x, g, lhs_contract=(0,), rhs_contract=(0,))
        return prim.add(prim.mul(m, 0.9), prim.mul(gradient, 0.1))

    assert check_update(update, [x, g], moments).report()["kernel_calls"] == 1
    program = build(lambda *a: ([], [update(a[-1], *a[:-1])]), [x, g], [moments])
    asks = generated_code(program).count("call void @llvm.prefetch")
    monkeypatch.setattr(products, "_LEAST_TOUCHED", 1 << 40)
    assert asks > generated_code(program).count("call void @llvm.prefetch")
