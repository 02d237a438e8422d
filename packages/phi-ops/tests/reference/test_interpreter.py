"""The interpreter and the compiler made of it, on programs written as text."""

import numpy as np
import pytest

from argosy_hwadapt import device
from argosy_phi_ops.errors import CompileError, DTypeError, ShapeError
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_phi_ops.reference.compiler import ReferenceCompiler
from argosy_phi_ops.reference.interpreter import interpret
from argosy_phi_ops.reference.kernels import KERNELS
from argosy_pir.attributes import Symbol
from argosy_pir.builder import Builder
from argosy_pir.core import Block, Region
from argosy_pir.dims import SymExpr
from argosy_pir.program import Function, Program
from argosy_pir.types import TensorType
from argosy_tensorcore.storage import StridedArray

S = SymExpr.symbol("s")
SCALAR, VECTOR, INDEX = TensorType((), "float32"), TensorType((S,), "float32"), TensorType((), "int64")
f32 = np.float32


def region(arguments, fill, terminator="control.yield"):
    """A region over `arguments` types; `fill(builder, *arguments)` returns what the terminator takes."""
    block = Block(arguments)
    builder = Builder(block)
    builder.create(terminator, fill(builder, *block.arguments))
    return Region([block])


def add(builder, x, y):
    return builder.create("prim.add", (x, y)).result


def test_every_primitive_has_a_kernel():
    assert PRIMITIVES.keys() == KERNELS.keys()


def test_symbolic_sizes_are_bound_from_the_inputs():
    program = Program()
    x = program.add_input(VECTOR)
    builder = Builder(program.block)
    twice = builder.create("prim.concat", (x, x), {"axis": 0}).result
    ones = builder.constant(TensorType((2 * S,), "float32"), 1.0)
    size = builder.create("prim.dim_size", (), {"dim": 2 * S, "dtype": "int64"}).result
    program.set_outputs([add(builder, twice, ones), size])
    (total, count), _ = interpret(program, [np.array([1, 2, 3], f32)])
    np.testing.assert_array_equal(total, [2, 3, 4, 2, 3, 4])
    assert count == 6


def test_inputs_that_do_not_fit_are_named():
    program = Program()
    x, y = program.add_input(VECTOR), program.add_input(VECTOR)
    program.set_outputs([add(Builder(program.block), x, y)])
    with pytest.raises(ShapeError, match=r"input 1 has shape \[3\]: axis 0 .* is 2 here"):
        interpret(program, [np.zeros(2, f32), np.zeros(3, f32)])
    with pytest.raises(DTypeError, match="input 0 has dtype float64"):
        interpret(program, [np.zeros(2), np.zeros(2, f32)])
    with pytest.raises(ShapeError, match="input 0"):
        interpret(program, [np.zeros((2, 1), f32), np.zeros(2, f32)])
    with pytest.raises(ValueError, match="takes 2 inputs, got 1"):
        interpret(program, [np.zeros(2, f32)])


def test_operators_and_gradient_requests_are_refused_by_name_with_the_remedy():
    for name, remedy in (("phi.relu", "decompose"), ("ad.gradient", "expand-gradients")):
        program = Program()
        x = program.add_input(SCALAR)
        operands, attributes = ((x,), {}) if name != "ad.gradient" else ((x, x), {"counts": (1, 1, 0)})
        made = Builder(program.block).create(name, operands, attributes, result_types=[SCALAR])
        program.set_outputs([made.result])
        with pytest.raises(CompileError, match=f"{name}.*{remedy}"):
            interpret(program, [np.zeros((), f32)])


def test_an_error_of_a_kernel_tells_the_operation(monkeypatch):
    def fail(x, y):
        raise ZeroDivisionError("there is no answer")

    monkeypatch.setitem(KERNELS, "div", fail)
    program = Program()
    x = program.add_input(INDEX)
    program.set_outputs([Builder(program.block).create("prim.div", (x, x)).result])
    with pytest.raises(ZeroDivisionError) as caught:
        interpret(program, [np.asarray(0)])
    assert "prim.div" in caught.value.__notes__[0]


def test_if_runs_one_region_which_sees_the_values_around_it():
    program = Program()
    condition, x = program.add_input(TensorType((), "bool")), program.add_input(SCALAR)
    builder = Builder(program.block)
    y = add(builder, x, x)
    chosen = builder.create(
        "control.if",
        (condition,),
        regions=[region((), lambda b: (add(b, x, y),)), region((), lambda b: (x,))],
    )
    program.set_outputs([chosen.result, y])
    for flag, expected in ((True, 6), (False, 2)):
        (result, double), _ = interpret(program, [np.asarray(flag), np.asarray(2, f32)])
        assert (result, double) == (expected, 4)


def test_while_and_for_carry_values():
    program = Program()
    limit = program.add_input(INDEX)
    builder = Builder(program.block)
    zero, one = builder.constant(INDEX, 0), builder.constant(INDEX, 1)
    below = region((INDEX,), lambda b, i: (b.create("prim.lt", (i, limit)).result,), "control.condition")
    counted = builder.create(
        "control.while", (zero,), regions=[below, region((INDEX,), lambda b, i: (add(b, i, one),))]
    )
    summed = builder.create(
        "control.for",
        (zero, limit, one, zero),
        regions=[region((INDEX, INDEX), lambda b, i, total: (add(b, total, i),))],
    )
    program.set_outputs([counted.result, summed.result])
    for n in (0, 5):
        (count, total), _ = interpret(program, [np.asarray(n)])
        assert (count, total) == (n, n * (n - 1) // 2)


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_stacks_and_carries(reverse):
    program = Program()
    x, start = program.add_input(VECTOR), program.add_input(SCALAR)

    def body(b, item, total):
        after = add(b, total, item)
        return after, after

    scanned = Builder(program.block).create(
        "control.scan",
        (x, start),
        {"inputs": 1, "reverse": reverse},
        regions=[region((SCALAR, SCALAR), body)],
    )
    program.set_outputs(scanned.results)
    values = np.array([1, 2, 3, 4], f32)
    (running, total), _ = interpret(program, [values, np.asarray(10, f32)])
    expected = 10 + (values[::-1].cumsum()[::-1] if reverse else values.cumsum())
    np.testing.assert_array_equal(running, expected)
    assert total == 20


def test_calls_run_functions():
    program = Program()
    x = program.add_input(SCALAR)
    double = program.add_function(Function("double", [SCALAR]))
    inner = Builder(double.block)
    inner.create("builtin.return", (add(inner, *double.block.arguments * 2),))
    builder = Builder(program.block)
    once = builder.create("builtin.call", (x,), {"callee": Symbol("double")}, [SCALAR]).result
    twice = builder.create("builtin.call", (once,), {"callee": Symbol("double")}, [SCALAR]).result
    program.set_outputs([twice])
    program.verify()
    (result,), _ = interpret(program, [np.asarray(3, f32)])
    assert result == 12


def swap_program():
    """States a and b exchange their values; the old a plus the input comes out."""
    program = Program()
    x = program.add_input(SCALAR)
    a, b = program.add_state("a", SCALAR), program.add_state("b", SCALAR)
    program.add_state("fixed", SCALAR)
    total = add(Builder(program.block), x, a.argument)
    program.set_outputs([total], [b.argument, a.argument, program.states[2].argument])
    return program


def test_an_executable_updates_states_in_place_and_bumps_their_versions():
    states = [StridedArray.from_array(np.array(v, f32)) for v in (1, 2, 3)]
    views = [payload.array() for payload in states]
    executable = ReferenceCompiler().compile(swap_program(), device("cpu"))
    run = executable.bind(states)
    (result,) = run([StridedArray.from_array(np.array(10, f32))])
    assert result.array() == 11
    assert [float(v) for v in views] == [2, 1, 3]
    assert [payload.version for payload in states] == [1, 1, 0]
    run([StridedArray.from_array(np.array(0, f32))])
    assert [float(v) for v in views] == [1, 2, 3]
    assert executable.report()["host_calls"] == {"prim.add": 1}
    assert executable.report()["kernels"] == 0


def test_outputs_have_memory_of_their_own():
    program = Program()
    x = program.add_input(VECTOR)
    flat = Builder(program.block).create("prim.reverse", (x,), {"axes": (0,)}).result
    program.set_outputs([x, flat, flat])
    source = StridedArray.from_array(np.array([1, 2], f32))
    outputs = ReferenceCompiler().compile(program, device("cpu")).run([source])
    for number, output in enumerate(outputs):
        output.array()[...] = number
    assert [list(output.array()) for output in outputs] == [[0, 0], [1, 1], [2, 2]]
    np.testing.assert_array_equal(source.array(), [1, 2])


def test_the_reference_compiler_decomposes_operators():
    program = Program()
    x = program.add_input(VECTOR)
    made = Builder(program.block).create("phi.silu", (x,), {"inplace": False}, [VECTOR])
    program.set_outputs([made.result])
    executable = ReferenceCompiler().compile(program, device("cpu"))
    (result,) = executable.run([StridedArray.from_array(np.array([0, 1], f32))])
    np.testing.assert_allclose(result.array(), [0, 1 / (1 + np.exp(-1))], rtol=1e-6)
    assert executable.program is program


def test_the_reference_compiler_refuses_options_and_gradient_requests():
    with pytest.raises(ValueError, match="the option check_index alone"):
        ReferenceCompiler().compile(swap_program(), device("cpu"), options={"fast": True})
    program = Program()
    x = program.add_input(SCALAR)
    made = Builder(program.block).create("ad.gradient", (x, x), {"counts": (1, 1, 0)}, [SCALAR])
    program.set_outputs([made.result])
    with pytest.raises(CompileError, match="expand-gradients"):
        ReferenceCompiler().compile(program, device("cpu"))


@pytest.mark.parametrize("wrong", [{"low": "0"}, {"size": 3.0}, {"besides": True}, {"size": None}])
def test_checks_of_indices_have_sizes_as_bounds(wrong):
    """Programs come from files, too."""
    program = Program()
    x = program.add_input(TensorType((2,), "int64"))
    bounds = {"operator": "look", "low": 0, "size": 3, "besides": None} | wrong
    with pytest.raises(ValueError, match="check_index"):
        Builder(program.block).create("prim.check_index", (x,), bounds)
