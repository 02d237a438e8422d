"""Intermediate values and results beside pages without access: right programs run there, wrong ones end."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from programs import assert_equal, build, on_host

from argosy_cinn import CinnCompiler
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Builder, Program, SymExpr, TensorType
from argosy_tensorcore.storage import StridedArray

RNG = np.random.default_rng(3)


def chain(x, w):
    """Values that need memory: operands of products, and a sum that many rows read."""
    y = prim.tanh(prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,)))
    total = prim.reduce_sum(prim.mul(y, y), axes=(0, 1))
    z = prim.mul(y, prim.broadcast(prim.exp(prim.neg(total)), shape=y.shape, axes=()))
    return [prim.dot_general(z, w, lhs_contract=(1,), rhs_contract=(0,)), total]


def run(function, *arguments, states=(), **options):
    program = build(function, arguments, states)
    want, updates = interpret(program, arguments, [s.copy() for s in states])
    executable = CinnCompiler().compile(program, device("cpu"), options=options)
    held = [StridedArray.from_array(s.copy()) for s in states]
    got = executable.run([StridedArray.from_array(a) for a in arguments], held)
    for g, w in zip([*got, *held], [*want, *updates], strict=True):
        assert_equal(g.array(), w, 50)
    return executable


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("guard", ["before", "behind"])
def test_results_are_the_same_between_guarded_pages(guard):
    executable = run(chain, f32(33, 31), f32(31, 31), guard=guard)
    assert executable.report()["arena_bytes"] >= 2 * 4096
    run(lambda x: [prim.mul(on_host(prim.exp(x), 0), 2.0)], f32(5, 7), guard=guard)
    run(lambda x, s: ([prim.add(x, s)], [prim.mul(prim.sort(s, axis=0), x)]), f32(40), states=[f32(40)], guard=guard)
    run(lambda x: [prim.reduce_sum(x, axes=(1,)), prim.neg(x)], f32(3, 0), guard=guard)


@pytest.mark.parametrize("guard", ["before", "behind"])
def test_code_for_all_sizes_runs_between_guarded_pages(guard):
    n = SymExpr.symbol("n")
    program = Program("sizes")
    arguments = [program.add_input(TensorType(shape, "float32")) for shape in ((n, 31), (31, 31))]
    with emit_at(Builder.at_end(program.block)):
        program.set_outputs(chain(*arguments))
    executable = CinnCompiler().compile(program, device("cpu"), options={"guard": guard})
    for rows in (1, 7, 33, 130):
        arrays = f32(rows, 31), f32(31, 31)
        want, _ = interpret(program, arrays)
        for g, w in zip(executable.run([StridedArray.from_array(a) for a in arrays]), want, strict=True):
            assert_equal(g.array(), w, 50)
    assert executable.report()["compilations"] == 1


WRONG = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np
from argosy_cinn.plan import lifetimes
right = lifetimes.nbytes
lifetimes.nbytes = lambda value: max(right(value) - {less}, 1)
from test_guard import chain, run
run(chain, np.ones((64, 64), np.float32), np.ones((64, 64), np.float32), guard={guard!r})
"""


def wrong(less, guard):
    code = WRONG.format(tests=str(Path(__file__).parent), less=less, guard=guard)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_a_value_larger_than_its_memory_ends_the_process():
    assert wrong(4096, "behind").returncode == -signal.SIGSEGV


def test_a_few_bytes_too_many_are_an_error_that_names_the_program():
    done = wrong(8, "before")
    assert done.returncode == 1
    assert "intermediate values of program 'test': code wrote beside value" in done.stderr


def test_other_sides_are_refused(monkeypatch):
    with pytest.raises(ValueError, match="option guard is 'left'"):
        run(chain, f32(3, 3), f32(3, 3), guard="left")
    monkeypatch.setenv("ARGOSY_GUARD", "1")
    with pytest.raises(ValueError, match="ARGOSY_GUARD is '1': expected 'before' or 'behind'"):
        run(chain, f32(3, 3), f32(3, 3))
