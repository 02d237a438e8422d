"""Forward and backward programs that share residuals."""

from __future__ import annotations

import numpy as np
import pytest

from argosy_autograd.split import split_program
from argosy_autograd.transform import vjp_program
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Builder, Function, Program, Symbol, SymExpr, TensorType

N = SymExpr.symbol("n")


def net(call=False):
    """x [n, 3], state w [3, 3] -> tanh(x w) x, and its sum; with ``call`` the layer is a function."""
    program = Program("net")
    x = program.add_input(TensorType((N, 3), "float64"), "x")
    w = program.add_state("w", TensorType((3, 3), "float64")).argument
    layer = Function("layer", [x.type, w.type])
    with emit_at(Builder.at_end(layer.block)) as builder:
        a, b = layer.block.arguments
        h = prim.tanh(prim.dot_general(a, b, lhs_contract=(1,), rhs_contract=(0,)))
        builder.create("builtin.return", [h * a])
    with emit_at(Builder.at_end(program.block)) as builder:
        if call:
            program.add_function(layer)
            y = builder.create("builtin.call", [x, w], {"callee": Symbol("layer")}, result_types=[x.type]).result
            y = builder.create("builtin.call", [y, w], {"callee": Symbol("layer")}, result_types=[x.type]).result
        else:
            y = prim.tanh(prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,))) * x
        outputs = [prim.reduce_sum(y, axes=(0, 1)), y]
    program.set_outputs(outputs)
    return program


@pytest.mark.parametrize("call", [False, True])
def test_split_programs_give_the_same_gradients(call):
    """Forward, then backward from the residuals, equals the whole; the original is untouched."""
    program = net(call)
    text = str(program)
    split = split_program(program, wrt=[0, 1], outputs=[0])
    assert str(program) == text
    split.forward.verify()
    split.backward.verify()
    rng = np.random.default_rng(0)
    x, w, g = rng.standard_normal((4, 3)), rng.standard_normal((3, 3)), np.array(2.0)
    made, _ = interpret(split.forward, [x], [w])
    outputs, residuals = made[:2], made[2:]
    assert len(residuals) == split.residuals
    arguments = [(x, w)[i] for i in split.arguments]
    gradients, _ = interpret(split.backward, [*arguments, *residuals, g])
    expected, _ = interpret(vjp_program(program, [0, 1], [0]), [x, g], [w])
    for got, want in zip([*outputs, *gradients], expected, strict=True):
        np.testing.assert_allclose(got, want)


def test_nothing_is_computed_twice():
    """The backward program has no tanh: it reads the one that forward kept."""
    split = split_program(net(), wrt=[0, 1], outputs=[0])
    assert "prim.tanh" not in str(split.backward)
    assert split.residuals == 1


def test_sizes_are_carried_where_nothing_else_tells_them():
    """The gradient of a sum reads no data, but its shape."""
    program = Program("sum")
    x = program.add_input(TensorType((N,), "float64"))
    with emit_at(Builder.at_end(program.block)):
        y = prim.reduce_sum(x, axes=(0,))
    program.set_outputs([y])
    split = split_program(program)
    assert split.arguments == (0,)
    assert interpret(split.backward, [np.zeros(3), np.array(2.0)])[0][0].tolist() == [2.0, 2.0, 2.0]
