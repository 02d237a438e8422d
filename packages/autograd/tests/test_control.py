"""Derivatives of control flow and calls."""

from __future__ import annotations

import numpy as np
import pytest

from argosy_autograd.checks import check_program
from argosy_autograd.rules import while_loops
from argosy_autograd.transform import jvp_program, vjp_program
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Block, Builder, Function, Program, Region, Symbol, TensorType

F3 = TensorType((3,), "float64")
RNG = np.random.default_rng(3)


def normal(*shape):
    return RNG.standard_normal(shape)


def scalar(value, dtype="int64"):
    return prim.constant(value, dtype)


def if_program():
    """x, y, w -> if sum(x) > 0 then (tanh(x) w, y) else (x y, sin(w))."""
    program = Program("branches")
    x, y, w = (program.add_input(F3) for _ in range(3))
    builder = Builder.at_end(program.block)
    with emit_at(builder):
        condition = prim.gt(prim.reduce_sum(x, axes=(0,)), 0)
        left, right = Block(), Block()
        with emit_at(Builder.at_end(left)) as inner:
            inner.create("control.yield", [prim.tanh(x) * w, y])
        with emit_at(Builder.at_end(right)) as inner:
            inner.create("control.yield", [x * y, prim.sin(w)])
        made = builder.create("control.if", [condition], regions=[Region([left]), Region([right])])
        program.set_outputs([made.results[0] * x, made.results[1]])
    return program


def scan_program(reverse=False):
    """A recurrent net: h' = tanh(x_t w + h u), stacking h' h'; w and u are captured."""
    program = Program("recurrence")
    xs = program.add_input(TensorType((4, 2, 3), "float64"))
    h = program.add_input(TensorType((2, 5), "float64"))
    w, u = program.add_input(TensorType((3, 5), "float64")), program.add_input(TensorType((5, 5), "float64"))
    body = Block([TensorType((2, 3), "float64"), h.type])
    with emit_at(Builder.at_end(body)) as inner:
        x, state = body.arguments
        new = prim.tanh(matmul(x, w) + matmul(state, u) * 0.5)
        inner.create("control.yield", [new * new, new])
    with emit_at(Builder.at_end(program.block)) as builder:
        made = builder.create("control.scan", [xs, h], {"inputs": 1, "reverse": reverse}, regions=[Region([body])])
    program.set_outputs(made.results)
    return program


def matmul(x, y):
    return prim.dot_general(x, y, lhs_contract=(1,), rhs_contract=(0,))


def for_program(stop, step=1, start=0):
    """x -> x after steps x <- sin(x) * (i + 1)."""
    program = Program("loop")
    x = program.add_input(F3)
    with emit_at(Builder.at_end(program.block)) as builder:
        bounds = [scalar(n) for n in (start, stop, step)]
        body = Block([bounds[0].type, F3])
        with emit_at(Builder.at_end(body)) as inner:
            index, value = body.arguments
            inner.create("control.yield", [prim.sin(value) * prim.cast(index + 1, dtype="float64")])
        made = builder.create("control.for", [*bounds, x], regions=[Region([body])])
    program.set_outputs([made.result])
    return program


def while_program():
    """(x, w) -> x doubled w-wise until its sum exceeds 10."""
    program = Program("until")
    x, w = program.add_input(F3), program.add_input(F3)
    test, body = Block([F3]), Block([F3])
    with emit_at(Builder.at_end(test)) as inner:
        inner.create("control.condition", [prim.lt(prim.reduce_sum(test.arguments[0], axes=(0,)), 10)])
    with emit_at(Builder.at_end(body)) as inner:
        inner.create("control.yield", [body.arguments[0] * w])
    with emit_at(Builder.at_end(program.block)) as builder:
        made = builder.create("control.while", [x], regions=[Region([test]), Region([body])])
    program.set_outputs([made.result])
    return program


@pytest.mark.parametrize("sign", [1, -1])
def test_both_branches_of_if_differentiate(sign):
    """Each branch gives its own gradient, to second order."""
    check_program(if_program(), [sign * np.abs(normal(3)), normal(3), normal(3)])


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_differentiates_through_time(reverse):
    """Gradients reach scanned, carried and captured values, to second order."""
    arrays = [normal(4, 2, 3), normal(2, 5), normal(3, 5), normal(5, 5)]
    check_program(scan_program(reverse), arrays)


def test_gradients_of_a_scan_keep_what_they_read_once():
    """The backward scan reads stacked residuals instead of computing the forward body again."""
    text = str(vjp_program(scan_program()))
    assert text.count("prim.tanh") == 1


@pytest.mark.parametrize(("start", "stop", "step"), [(0, 3, 1), (2, 7, 2), (5, 1, -1), (0, 0, 1)])
def test_for_with_known_bounds_differentiates(start, stop, step):
    """A loop of a known number of steps is differentiated in both modes, to second order."""
    check_program(for_program(stop, step, start), [normal(3)])


@pytest.mark.parametrize("start", [0.5, 20.0])
def test_while_differentiates(start):
    """A loop of a number of steps that only running tells, none among them, in both modes, to second order."""
    check_program(while_program(), [start * np.array([0.5, 1.0, 0.7]), np.array([1.5, 2.0, 1.2])])


def counting_program():
    """(x, w, n) -> x after n steps x <- sin(x) w + i, and the sum of all x on the way."""
    program = Program("steps")
    x, w = program.add_input(F3), program.add_input(F3)
    n = program.add_input(TensorType((), "int64"))
    test, body = (Block([n.type, F3, TensorType((), "float64"), F3]) for _ in range(2))
    with emit_at(Builder.at_end(test)) as inner:
        inner.create("control.condition", [prim.lt(test.arguments[0], n)])
    with emit_at(Builder.at_end(body)) as inner:
        i, value, total, factor = body.arguments
        moved = prim.sin(value) * factor + prim.cast(i, dtype="float64") * 0.01
        inner.create("control.yield", [i + 1, moved, total + prim.reduce_sum(value, axes=(0,)), factor])
    with emit_at(Builder.at_end(program.block)) as builder:
        start = [scalar(0), x, prim.constant(0.0, "float64"), w]
        made = builder.create("control.while", start, regions=[Region([test]), Region([body])])
    program.set_outputs(made.results[1:3])
    return program


@pytest.mark.parametrize(("steps", "rows"), [(0, 32), (1, 32), (33, 32), (16, 4), (17, 4), (70, 4), (5, 1)])
def test_reverse_mode_of_a_while_is_that_of_its_steps(steps, rows, monkeypatch):
    """Whatever the number of steps and of checkpoints, gradients are those of the same steps written out."""
    monkeypatch.setattr(while_loops, "_ROWS", rows)
    x, w, g, h = normal(3), normal(3), normal(3), normal()
    found = interpret(vjp_program(counting_program()), [x, w, np.array(steps), g, h])[0]
    states = [x]
    for i in range(steps):
        states.append(np.sin(states[-1]) * w + i * 0.01)
    gx, gw = g, np.zeros(3)
    for state in reversed(states[:-1]):
        gx, gw = gx * np.cos(state) * w + h, gw + gx * np.sin(state)
    np.testing.assert_allclose(found[0], states[-1], rtol=1e-12)
    np.testing.assert_allclose(found[2], gx, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(found[3], gw, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(("start", "stop", "step"), [(0, 5, 2), (4, 0, -1), (3, 3, 1)])
def test_for_with_bounds_that_are_computed_differentiates(start, stop, step):
    """Bounds that are inputs of the program make a loop of unknown length: gradients are those of known bounds."""
    known, x, g = for_program(stop, step, start), normal(3), normal(3)
    bounds = Program("loop")
    x_value = bounds.add_input(F3)
    given = [bounds.add_input(TensorType((), "int64")) for _ in range(3)]
    body = Block([given[0].type, F3])
    with emit_at(Builder.at_end(body)) as inner:
        index, value = body.arguments
        inner.create("control.yield", [prim.sin(value) * prim.cast(index + 1, dtype="float64")])
    with emit_at(Builder.at_end(bounds.block)) as builder:
        made = builder.create("control.for", [*given, x_value], regions=[Region([body])])
    bounds.set_outputs([made.result])
    expected = interpret(vjp_program(known), [x, g])[0]
    numbers = [np.array(n) for n in (start, stop, step)]
    for a, b in zip(interpret(vjp_program(bounds, [0]), [x, *numbers, g])[0], expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    tangents = interpret(jvp_program(bounds, [0]), [x, *numbers, g])[0][1]
    np.testing.assert_allclose(tangents, interpret(jvp_program(known), [x, g])[0][1], rtol=1e-12)


def call_program(depth=3):
    """The same layer called ``depth`` times with its own weights; the layer calls another function."""
    program = Program("stack")
    x = program.add_input(TensorType((2, 3), "float64"))
    weights = [program.add_input(TensorType((3, 3), "float64")) for _ in range(depth)]
    act = Function("act", [x.type])
    with emit_at(Builder.at_end(act.block)) as inner:
        inner.create("builtin.return", [prim.tanh(act.block.arguments[0])])
    layer = Function("layer", [x.type, weights[0].type])
    program.add_function(act)
    program.add_function(layer)
    with emit_at(Builder.at_end(layer.block)) as inner:
        a, w = layer.block.arguments
        call = inner.create("builtin.call", [matmul(a, w)], {"callee": Symbol("act")}, result_types=[x.type])
        inner.create("builtin.return", [call.result + a])
    with emit_at(Builder.at_end(program.block)) as builder:
        for w in weights:
            x = builder.create("builtin.call", [x, w], {"callee": Symbol("layer")}, result_types=[x.type]).result
    program.set_outputs([x])
    return program


def test_calls_differentiate():
    """Calls, nested ones too, give exact gradients to second order."""
    check_program(call_program(), [normal(2, 3), *(normal(3, 3) for _ in range(3))])


def test_repeated_calls_share_their_derivative():
    """However often a function is called, one forward and one backward version are made."""
    short, deep = (vjp_program(call_program(n)) for n in (3, 8))
    short.verify()
    assert list(short.functions) == list(deep.functions)
