"""The dialect ``ad`` and the pass that expands it."""

from __future__ import annotations

import numpy as np
import pytest

from argosy_autograd.errors import MissingRule
from argosy_autograd.passes.expand import ExpandGradients
from argosy_autograd.transform import jvp_program
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.passes.decompose import Decompose
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Block, Builder, Program, Region, SymExpr, TensorType, VerifyError
from argosy_pir.passes import parse_pipeline


def gradient(builder, outputs, inputs, cotangents=()):
    counts = (len(outputs), len(inputs), len(cotangents))
    return builder.create("ad.gradient", [*outputs, *inputs, *cotangents], {"counts": counts}).results


def cube_program(order):
    """x -> the derivative of the given order of sum(x^3), asked for by nested gradients."""
    program = Program("cube")
    x = program.add_input(TensorType((SymExpr.symbol("n"),), "float64"))
    with emit_at(Builder.at_end(program.block)) as builder:
        y = x * x * x
        for _ in range(order):
            (y,) = gradient(builder, [prim.reduce_sum(y, axes=(0,))], [x])
    program.set_outputs([y])
    return program


@pytest.mark.parametrize(("order", "expected"), [(1, [3.0, 12.0]), (2, [6.0, 12.0]), (3, [6.0, 6.0]), (4, [0.0, 0.0])])
def test_gradients_of_gradients_expand_innermost_first(order, expected):
    """Nested requests over a symbolic size give exact derivatives of every order; unused inputs give zeros."""
    program = cube_program(order)
    program.verify()
    assert ExpandGradients().run(program)
    program.verify()
    assert "ad." not in str(program)
    np.testing.assert_allclose(interpret(program, [np.array([1.0, 2.0])])[0][0], expected)


def test_the_pass_is_found_by_name():
    """A pipeline names it; the entry point loads it."""
    (found,) = parse_pipeline("expand-gradients")
    assert found == ExpandGradients()


def test_gradients_are_of_values_not_of_variables():
    """A gradient with respect to an intermediate value stops there, and stop_gradient is a constant."""
    program = Program("values")
    x = program.add_input(TensorType((), "float64"))
    with emit_at(Builder.at_end(program.block)) as builder:
        y = x * x
        z = y * y + prim.stop_gradient(y) * x
        program.set_outputs(gradient(builder, [z], [y, x]))
    ExpandGradients().run(program)
    assert [float(v) for v in interpret(program, [np.array(3.0)])[0]] == [18.0, 4 * 27.0 + 9.0]


def test_round_trip_through_text():
    """The request prints as text that parses back."""
    text = str(cube_program(2))
    assert str(Program.parse(text)) == text


def test_cotangents_must_have_the_type_of_their_output():
    """A wrong cotangent is refused where the request is made."""
    program = Program("bad")
    x = program.add_input(TensorType((2,), "float64"))
    with emit_at(Builder.at_end(program.block)) as builder, pytest.raises(VerifyError, match="cotangent"):
        gradient(builder, [x * x], [x], [prim.constant(1, "float64")])


def test_weight_gradients_are_told_from_input_gradients():
    """What serves one state alone may be put off; what goes on to another layer may not."""
    program = Program("net")
    x = program.add_input(TensorType((4, 3), "float64"))
    w1, w2 = (program.add_state(f"w{i}", TensorType((3, 3), "float64")).argument for i in range(2))
    with emit_at(Builder.at_end(program.block)) as builder:
        h = prim.tanh(prim.dot_general(x, w1, lhs_contract=(1,), rhs_contract=(0,)))
        y = prim.dot_general(h, w2, lhs_contract=(1,), rhs_contract=(0,))
        program.set_outputs(gradient(builder, [prim.reduce_sum(y * y, axes=(0, 1))], [x, w1, w2]))
    ExpandGradients().run(program)
    phases = [op.annotations.get("phase") for op in program.block if op.name == "prim.dot_general"]
    assert phases.count(None) == 2
    assert phases.count("weight-gradient") == 2
    assert phases.count("input-gradient") == 2


def loop_program(detached):
    """w, xs -> a scan that carries h = tanh(w h + x) and stacks the gradient of h in w of each step alone."""
    program = Program("loop")
    item = TensorType((), "float64")
    xs = program.add_input(TensorType((3,), "float64"))
    w = program.add_input(item)
    body = Block([item, item])
    with emit_at(Builder.at_end(body)) as builder:
        x, h = body.arguments
        new = prim.tanh(w * (prim.stop_gradient(h) if detached else h) + x)
        builder.create("control.yield", [*gradient(builder, [new], [w]), new])
    with emit_at(Builder.at_end(program.block)) as builder:
        start = prim.constant(0.5, "float64")
        made = builder.create("control.scan", [xs, start], {"inputs": 1}, regions=[Region([body])])
    program.set_outputs([made.results[0]])
    return program


def test_a_gradient_inside_a_loop_does_not_drop_earlier_iterations():
    """What would have to go back through the loop is refused; a truncated gradient is given."""
    with pytest.raises(MissingRule, match="earlier iterations"):
        ExpandGradients().run(loop_program(detached=False))
    program = loop_program(detached=True)
    ExpandGradients().run(program)
    xs, w, h = np.array([0.1, -0.2, 0.3]), 0.7, 0.5
    expected = []
    for x in xs:
        expected.append((1 - np.tanh(w * h + x) ** 2) * h)
        h = np.tanh(w * h + x)
    np.testing.assert_allclose(interpret(program, [xs, np.array(w)])[0][0], expected)


@pytest.mark.parametrize(("shape", "axis"), [((2, 5), 0), ((2, 5), None), ((), None)])
def test_an_operator_that_is_kept_whole_has_the_derivatives_of_its_decomposition(shape, axis):
    """``topk``: gradients, of gradients, too, and tangents."""
    x, v = np.random.default_rng(0).standard_normal((2, *shape))
    attributes = {"k": 2 if shape else 1, "axis": axis, "largest": True, "sorted": True}
    found = []
    for keep in ((), ("topk",)):
        program, forward = Program("gradients"), Program("forward")
        with emit_at(Builder.at_end(program.block)) as builder:
            x_in, v_in = (program.add_input(TensorType(shape, "float64")) for _ in range(2))
            y, _ = builder.create("phi.topk", [x_in], attributes).results
            (first,) = gradient(builder, [y * y * y], [x_in], [y])
            program.set_outputs([first, *gradient(builder, [first], [x_in], [v_in])])
        with emit_at(Builder.at_end(forward.block)) as builder:
            made = builder.create("phi.topk", [forward.add_input(x_in.type)], attributes)
            forward.set_outputs(made.results[:1])
        for each in (program, forward):
            Decompose(keep).run(each)
        ExpandGradients().run(program)
        forward = jvp_program(forward)
        assert [any(op.name == "phi.topk" for op in each.walk()) for each in (program, forward)] == [bool(keep)] * 2
        for each in (program, forward):
            Decompose().run(each)
        found.append([*interpret(program, [x, v])[0], *interpret(forward, [x, v])[0]])
    for whole, parts in zip(*found, strict=True):
        np.testing.assert_allclose(whole, parts, atol=1e-12)
