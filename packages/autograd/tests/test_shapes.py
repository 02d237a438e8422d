"""Shapes: symbolic sizes everywhere, sizes of zero and one, and any that hypothesis thinks of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy_autograd.checks import check_program
from argosy_autograd.transform import jvp_program, vjp_program
from argosy_phi_ops import get_operator, prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Builder, Program, SymExpr, TensorType

B, S = SymExpr.symbol("b"), SymExpr.symbol("s")
CALLS = [
    ("softmax", [(B, S)], {}),
    ("log_softmax", [(B, S, 3)], {"axis": 1}),
    ("layer_norm", [(B, S, 4), (4,), (4,)], {"normalized_shape": (4,), "segments": (1, 1, 1)}),
    ("linear", [(B, S, 4), (4, 3), (3,)], {"segments": (1, 1, 1)}),
    ("matmul", [(B, S, 4), (B, 4, S)], {}),
    ("add", [(B, 1, S), (3, 1)], {}),
    ("divide", [(B, S), (S,)], {}),
    ("mean", [(B, S)], {"axis": None}),
    ("sum", [(B, S)], {"axis": (0,)}),
    ("max", [(B, S)], {"axis": 1}),
    ("prod", [(B, S)], {"axis": 0}),
    ("cumsum", [(B, S)], {"axis": 1}),
    ("cumprod", [(B, S)], {"dim": 1}),
    ("logcumsumexp", [(B, S)], {"axis": 1}),
    ("concat", [(B, S), (B, 2)], {"axis": 1, "segments": (2,)}),
    ("stack", [(B, S), (B, S)], {"axis": 1, "segments": (2,)}),
    ("transpose", [(B, S, 2)], {"perm": (2, 0, 1)}),
    ("reshape", [(B, S, 4)], {"shape": (0, -1, 2)}),
    ("flip", [(B, S)], {"axis": (0,)}),
    ("gelu", [(B, S)], {}),
    (
        "scaled_dot_product_attention",
        [(B, S, 2, 4), (B, S, 2, 4), (B, S, 2, 4)],
        {"is_causal": True, "segments": (1, 1, 1, -1)},
    ),
    ("sort", [(B, S)], {"axis": 1}),
]


def completed(op, attributes):
    defaults = {p.name: p.default for p in op.signature.attributes}
    return {**defaults, **attributes}


@pytest.mark.parametrize(("name", "shapes", "attributes"), CALLS, ids=[name for name, *_ in CALLS])
def test_rules_work_on_symbolic_sizes(name, shapes, attributes):
    """One gradient program serves all sizes: it agrees with differences for several."""
    op = get_operator(name)
    program = op.expand([TensorType(shape, "float64") for shape in shapes], completed(op, attributes)).program
    for module in (vjp_program(program), jvp_program(program), vjp_program(vjp_program(program))):
        module.verify()
    rng = np.random.default_rng(0)
    for sizes in ({"b": 2, "s": 3}, {"b": 4, "s": 1}):
        arrays = [
            rng.standard_normal([d.evaluate(sizes) if isinstance(d, SymExpr) else d for d in shape]) for shape in shapes
        ]
        check_program(program, arrays, order=1, rtol=1e-4, atol=1e-6)


def matmul_program(x, w):
    """sum over everything of tanh(x @ w) * x[..., :1], with symbols or numbers as sizes."""
    program = Program("net")
    a, b = program.add_input(TensorType(x, "float64")), program.add_input(TensorType(w, "float64"))
    with emit_at(Builder.at_end(program.block)):
        y = prim.tanh(prim.dot_general(a, b, lhs_contract=(len(x) - 1,), rhs_contract=(0,)))
        result = prim.reduce_sum(y * y, axes=tuple(range(y.ndim)))
    program.set_outputs([result])
    return program


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 4), max_size=3), st.integers(0, 4), st.integers(0, 4))
def test_any_shape_differentiates(batch, inner, outer):
    """Sizes of zero and one, and any number of leading axes."""
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((*batch, inner)), rng.standard_normal((inner, outer))
    check_program(matmul_program(x.shape, w.shape), [x, w], order=1)


@st.composite
def broadcasts(draw):
    shape = draw(st.lists(st.integers(0, 3), max_size=4))
    other = [draw(st.sampled_from([n, 1])) for n in shape[draw(st.integers(0, len(shape))) :]]
    return tuple(shape), tuple(other)


@settings(max_examples=40, deadline=None)
@given(broadcasts(), st.sampled_from(["add", "sub", "mul", "div", "maximum"]))
def test_any_broadcast_differentiates(shapes, name):
    """Repeated axes sum, whichever they are."""
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(shape) + 3.0 * i for i, shape in enumerate(shapes)]
    program = Program(name)
    operands = [program.add_input(TensorType(a.shape, "float64")) for a in arrays]
    with emit_at(Builder.at_end(program.block)):
        result = getattr(prim, name)(*operands)
    program.set_outputs([result])
    check_program(program, arrays, order=2)


def test_cost_of_a_gradient_is_linear_in_the_program():
    """Twice the operations give twice the gradient, not more."""

    def size(depth):
        program = Program("chain")
        x = program.add_input(TensorType((2,), "float64"))
        with emit_at(Builder.at_end(program.block)):
            y = x
            for _ in range(depth):
                y = prim.sin(y) * x
        program.set_outputs([y])
        return len(vjp_program(program).block)

    assert size(80) - size(40) == 2 * (size(40) - size(20))


def test_a_deep_program_needs_no_recursion():
    """Ten thousand operations in a row."""
    program = Program("deep")
    x = program.add_input(TensorType((), "float64"))
    with emit_at(Builder.at_end(program.block)):
        y = x
        for _ in range(10_000):
            y = prim.neg(y)
    program.set_outputs([y])
    outputs, _ = interpret(vjp_program(program), [np.array(2.0), np.array(1.0)])
    assert float(outputs[1]) == 1.0
