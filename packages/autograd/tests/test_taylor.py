"""Taylor mode: sweeps, the pass that rewrites nested requests to them, and collapsed sums."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from requested import N, arrays, both_ways, built, check, column, dot, gradient, laplacian, network, total, work

from argosy_autograd.passes.expand import ExpandGradients
from argosy_autograd.passes.taylor import TaylorMode, depth, nested_requests
from argosy_autograd.taylor import Functional, Sweep, derivative
from argosy_autograd.taylor.cost import cost
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Builder, Program, TensorType
from argosy_pir.passes import parse_pipeline
from argosy_pir.values import OpResult

RNG = np.random.default_rng(3)


def nth(function, order):
    """x[n, 1] -> the derivative of the given order of function(x), asked for by nested requests."""

    def make(builder, x):
        y = function(x)
        for _ in range(order):
            (y,) = gradient(builder, [total(y)], [x])
        return y

    return built(make, (N, 1))


def tanh_derivative(x, order):
    """By the polynomial in y = tanh x: P -> P' (1 - y^2)."""
    p = np.polynomial.Polynomial([0, 1])
    for _ in range(order):
        p = p.deriv() * np.polynomial.Polynomial([1, 0, -1])
    return p(np.tanh(x))


EXACT = {
    "tanh": (prim.tanh, tanh_derivative),
    "sin": (prim.sin, lambda x, n: np.sin(x + n * np.pi / 2)),
    "cos": (prim.cos, lambda x, n: np.cos(x + n * np.pi / 2)),
    "exp": (lambda x: prim.exp(x * 2), lambda x, n: 2.0**n * np.exp(2 * x)),
    "reciprocal": (lambda x: 1 / (x + 3), lambda x, n: (-1) ** n * factorial(n) / (x + 3) ** (n + 1)),
    "log": (lambda x: prim.log(x + 3), lambda x, n: (-1) ** (n - 1) * factorial(n - 1) / (x + 3) ** n),
    "logistic": (prim.logistic, lambda x, n: tanh_derivative(x / 2, n) / 2 ** (n + 1)),
    "power": (lambda x: (x + 3) * (x + 3) * (x + 3), lambda x, n: [(x + 3) ** 3, 3 * (x + 3) ** 2, 6 * (x + 3), 6][n]),
    "root": (
        lambda x: prim.sqrt(x + 3),
        lambda x, n: np.prod([0.5 - k for k in range(n)]) * (x + 3) ** (0.5 - n),
    ),
    "real power": (
        lambda x: prim.pow(x + 3, prim.constant(2.5, "float64", x.shape)),
        lambda x, n: np.prod([2.5 - k for k in range(n)]) * (x + 3) ** (2.5 - n),
    ),
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("order", [1, 2, 3, 5, 8])
def test_derivatives_of_every_order_are_exact(name, order):
    """To order 8 against closed forms, to a few units in the last place."""
    if name == "power" and order > 3:
        pytest.skip("the fourth derivative of a cube is zero")
    function, exact = EXACT[name]
    _, taylor = both_ways(nth(function, order))
    x = np.linspace(-0.9, 0.9, 5).reshape(5, 1)
    expected = exact(x, order)
    np.testing.assert_allclose(
        interpret(taylor, [x])[0][0], expected * np.ones_like(x), rtol=1e-10, atol=1e-12 * np.abs(expected).max()
    )


SMOOTH = {
    "erf": prim.erf,
    "atan": prim.atan,
    "asinh": prim.asinh,
    "rsqrt": lambda x: prim.rsqrt(x * x + 1),
    "lgamma": lambda x: prim.lgamma(x * x + 1.5),
    "atan2": lambda x: prim.atan2(x, x * x + 1),
    "variable exponent": lambda x: prim.pow(x * x + 1, x),
    "abs": lambda x: prim.abs(x * x * x),
    "maximum": lambda x: prim.maximum(x * x, prim.sin(x)),
    "product": lambda x: prim.reshape(prim.reduce_prod(prim.sin(dot(x, WIDE(x))), axes=(1,)), shape=x.shape),
    "cumulative": lambda x: prim.cumulative(dot(x, WIDE(x)), axis=1, kind="prod"),
    "softmax": lambda x: prim.exp(dot(x, WIDE(x))) / repeated(prim.reduce_sum(prim.exp(dot(x, WIDE(x))), axes=(1,)), 3),
    "complex": lambda x: prim.imag(prim.exp(prim.complex(x, x * x))),
    "fft": lambda x: prim.real(prim.fft(prim.tanh(dot(x, WIDE(x))), axes=(1,), kind="r2c", inverse=False, length=None)),
}


def WIDE(x):
    return prim.cast(prim.iota(shape=(1, 3), axis=1, dtype="int64"), dtype=x.dtype) * 0.3 + 0.5


def repeated(x, size):
    return prim.broadcast(x, shape=(*x.shape, size), axes=(0,))


@pytest.mark.parametrize("name", SMOOTH)
def test_every_kind_of_rule_agrees_with_nested_reverse_mode(name):
    """Third derivatives of linear, bilinear, elementwise and other primitives."""
    check(nth(lambda x: SMOOTH[name](x), 3), RNG.uniform(0.2, 0.9, (4, 1)), rtol=1e-10)


def test_whole_powers_are_right_where_they_vanish():
    """x^4 and its derivatives at zero."""
    for order, expected in ((1, 0.0), (2, 0.0), (3, 0.0), (4, 24.0)):
        program = nth(lambda x: prim.pow(x, prim.constant(4, "float64", x.shape)), order)
        _, taylor = both_ways(program)
        assert float(interpret(taylor, [np.zeros((1, 1))])[0][0][0, 0]) == expected


def korteweg_de_vries(builder, q, *weights):
    """Residual u_t + u u_x + u_xxx of a network, and the gradient of its square."""
    u = network(q, *weights)
    (du,) = gradient(builder, [total(u)], [q])
    (duu,) = gradient(builder, [total(column(du, 0))], [q])
    (duuu,) = gradient(builder, [total(column(duu, 0))], [q])
    residual = column(du, 1) + u * column(du, 0) + column(duuu, 0)
    loss = total(residual * residual)
    return [loss, *gradient(builder, [loss], list(weights))]


SHAPES = ((N, 2), (2, 6), (6, 6), (6, 1))


def test_a_residual_and_its_parameter_gradient():
    """Reverse mode for the parameters runs over the sweep; the cheaper way is chosen without being told."""
    program = built(korteweg_de_vries, *SHAPES)
    check(program, *arrays(*SHAPES))
    plain, taylor = both_ways(program, "cheaper")
    assert cost(taylor) < 0.7 * cost(plain)


def test_inputs_in_separate_tensors_and_mixed_derivatives():
    """u_xt and u_tt of a network of x and t, which are columns of their own."""

    def make(builder, x, t, *weights):
        u = network(prim.concat(x, t, axis=1), *weights)
        (ux,) = gradient(builder, [u], [x])
        uxt, uxx = gradient(builder, [ux], [t, x])
        (ut,) = gradient(builder, [u], [t])
        (utt,) = gradient(builder, [ut], [t])
        return [uxt, uxx, utt]

    shapes = ((N, 1), (N, 1), *SHAPES[1:])
    check(built(make, *shapes), *arrays(*shapes))


def test_weights_and_several_outputs():
    """Cotangents that depend on the input, sums of scaled terms, and outputs with several columns."""

    def make(builder, q, *weights):
        u = network(q, *weights)
        weight = prim.sin(column(q, 1))
        (g,) = gradient(builder, [u], [q], [weight])
        (h,) = gradient(builder, [total(column(g, 0)) * 3 + total(u) / 2], [q])
        (k,) = gradient(builder, [prim.concat(g, h, axis=1)], [q])
        return [h, k]

    check(built(make, *SHAPES), *arrays(*SHAPES))


@pytest.mark.parametrize("dimensions", [2, 5, 12])
def test_a_laplacian_costs_a_forward_pass_for_each_dimension_and_two_more(dimensions):
    """Second derivatives travel as one sum (a nested way needs several passes for each dimension)."""
    shapes = ((N, dimensions), (dimensions, 16), (16, 16), (16, 16), (16, 1))
    forward = built(lambda builder, q, *w: network(q, *w), *shapes)
    program = built(lambda builder, q, *w: laplacian(builder, network(q, *w), q), *shapes)
    _, taylor = check(program, *arrays(*shapes))

    assert work(taylor) <= 1.1 * (dimensions + 2) * work(forward)


def test_a_laplacian_in_many_dimensions_is_a_sweep():
    """Slopes are one stack of 200, whatever their number."""
    shapes = ((N, 200), (200, 8), (8, 1))
    program = built(lambda b, q, *w: laplacian(b, network(q, *w), q), *shapes)
    assert TaylorMode().run(program)
    assert not any(op.dialect == "ad" for op in program.block)


@pytest.mark.parametrize("dimensions", [3, 40])
def test_products_with_a_hessian_of_many_components_are_left_to_reverse_mode(dimensions):
    """They want all components of a second derivative at once: a sweep has a coefficient for each pair."""

    def make(builder, q, v, *w):
        (g,) = gradient(builder, [total(network(q, *w))], [q])
        return gradient(builder, [total(g * v)], [q])[0]

    shapes = ((N, dimensions), (N, dimensions), (dimensions, 8), (8, 1))
    program = built(make, *shapes)
    check(program, *arrays(*shapes))
    TaylorMode("always").run(program)
    assert any(op.name == "ad.gradient" for op in program.block) == (dimensions > 16)


@pytest.mark.parametrize("dimensions", [1, 3, 5])
def test_a_biharmonic_operator(dimensions):
    """Values, slopes, second derivatives, Laplacians, their slopes and Laplacians: all else travels in sums."""
    d, shapes = dimensions, ((N, dimensions), (dimensions, 8), (8, 8), (8, 8), (8, 1))
    forward = built(lambda b, q, *w: network(q, *w), *shapes)
    program = built(lambda b, q, *w: laplacian(b, laplacian(b, network(q, *w), q), q), *shapes)
    plain, taylor = check(program, *arrays(*shapes, rows=2), rtol=1e-11)
    assert cost(taylor) < 0.6 * cost(plain)
    assert work(taylor) <= (1 + d + d * (d + 1) // 2 + 1 + d + 1) * work(forward)


def test_a_sum_of_many_fourth_derivatives_is_written_down_at_once():
    """In twelve dimensions 144 terms are wanted as one sum: the program stays short."""
    shapes = ((N, 12), (12, 4), (4, 4), (4, 1))
    program = built(lambda b, q, *w: laplacian(b, laplacian(b, network(q, *w), q), q), *shapes)
    assert TaylorMode().run(program)
    assert len(program.block) < 7000
    assert not any(op.dialect == "ad" for op in program.block)


def test_the_work_grows_with_the_square_of_the_order():
    """Twice the order costs about four times as much, where nested reverse mode would cost 3^order."""
    work = [cost(both_ways(nth(prim.tanh, order))[1]) for order in (4, 8)]
    assert work[1] < 6 * work[0]


@pytest.mark.parametrize("function", [prim.tanh, prim.sin], ids=["tanh", "sin"])
def test_terms_of_a_coefficient_share_their_factors(function):
    """A coefficient of order n has n terms; numbers multiply their sums, and each term of lower order once."""
    order = 8
    program = both_ways(nth(lambda x: function(x * x), order))[1]
    numbers = [op for op in program.block if op.name == "prim.mul" and any(is_number(v) for v in op.operands)]
    assert len(numbers) <= 3 * order


def is_number(value):
    if isinstance(value, OpResult) and value.op.name == "prim.broadcast":
        return is_number(value.op.operand(0))
    return isinstance(value, OpResult) and value.op.name == "builtin.constant"


def test_high_orders_are_not_written_down_as_nested_reverse_mode():
    """Whose program grows by a factor with every order: the choice for order 9 is made without it."""
    program = nth(prim.tanh, 9)
    requests = [op for op in program.block if op.name == "ad.gradient"]
    assert depth(requests) == 9
    assert depth(requests[:1]) == 1
    assert TaylorMode().run(program)
    x = np.linspace(-0.9, 0.9, 5).reshape(5, 1)
    ExpandGradients().run(program)
    np.testing.assert_allclose(interpret(program, [x])[0][0], tanh_derivative(x, 9), rtol=1e-10, atol=1e-8)


def test_rows_that_depend_on_each_other_are_left_to_reverse_mode():
    """A normalisation over the batch mixes rows: nothing is rewritten, and the result is right all the same."""

    def make(builder, x):
        mean = prim.reduce_sum(x, axes=(0,)) * 0.25
        y = prim.tanh(x - prim.broadcast(mean, shape=x.shape, axes=(1,)))
        (g,) = gradient(builder, [total(y)], [x])
        (h,) = gradient(builder, [total(g * g)], [x])
        return h

    program = built(make, (4, 40))
    assert not TaylorMode("always").run(program)


def test_mixed_rows_of_a_small_batch_are_not_written_down_element_by_element():
    """Third derivatives by 12 elements, none of which stays apart, are 364; of the fourth order they took minutes."""

    def make(builder, x):
        mean = prim.reduce_sum(x, axes=(0,)) * 0.25
        y = prim.tanh(x - prim.broadcast(mean, shape=x.shape, axes=(1,)))
        for _ in range(3):
            (y,) = gradient(builder, [total(y * y)], [x])
        return y

    assert not TaylorMode("always").run(built(make, (4, 3)))


def test_a_function_of_one_point_has_all_its_elements_as_components():
    """Without rows, a Hessian row by row."""

    def make(builder, x):
        (g,) = gradient(builder, [total(prim.exp(x)) * total(x * x)], [x])
        rows = [
            gradient(builder, [total(prim.slice(g, start=(i,), limit=(i + 1,), stride=(1,)))], [x])[0] for i in range(3)
        ]
        return rows

    check(built(make, (3,)), RNG.uniform(-1, 1, 3))


def test_complex_inputs_are_left_to_reverse_mode():
    """A conjugate gradient is no derivative along a direction."""
    program = Program("p")
    z = program.add_input(TensorType((4, 1), "complex128"))
    with emit_at(Builder.at_end(program.block)) as builder:
        size = prim.abs(z)
        (g,) = gradient(builder, [total(size * size * size)], [z])
        (h,) = gradient(builder, [total(prim.real(g) * prim.imag(g))], [z])
    program.set_outputs([h])
    assert not TaylorMode("always").run(program)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_values_of_another_dtype_than_the_input(dtype):
    """A gradient has the dtype of its input; of complex values it is the real part."""

    def make(builder, x):
        u = prim.cast(x, dtype=dtype)
        (g,) = gradient(builder, [total(u * u * u * (1j if dtype == "complex128" else 1.0) + u * u)], [x])
        return gradient(builder, [total(g * g)], [x])[0]

    check(built(make, (N, 1)), RNG.uniform(-1, 1, (4, 1)), rtol=1e-6)


def test_first_derivatives_alone_stay_in_reverse_mode():
    """One request is not nested: the pass looks no further."""
    program = built(lambda b, q, *w: gradient(b, [total(network(q, *w))], [q])[0], *SHAPES)
    assert not TaylorMode().run(program)


def test_slopes_that_are_values_of_the_program():
    """The first slope of tanh along a unit direction is the factor 1 - y^2 itself, of which more is wanted."""
    program = built(lambda b, q: laplacian(b, laplacian(b, prim.reduce_sum(prim.tanh(q), axes=(1,)), q), q), (N, 2))
    check(program, RNG.uniform(-1, 1, (4, 2)), rtol=1e-11)


def test_the_gradient_by_parameters_stays_in_reverse_mode():
    """It depends on nested requests, but differentiates once only."""
    program = built(korteweg_de_vries, *SHAPES)
    assert TaylorMode("always").run(program)
    (left,) = [op for op in program.block if op.name == "ad.gradient"]
    assert left.operands[1:] == program.inputs[1:]
    single = built(lambda b, q, *w: gradient(b, [total(network(q, *w))], [q])[0], *SHAPES)
    assert nested_requests([op for op in single.block if op.name == "ad.gradient"]) == set()


def test_the_pass_is_found_by_name():
    """A pipeline names it."""
    assert parse_pipeline("taylor-mode") == [TaylorMode()]


def test_functionals():
    """Derivatives are scaled coefficients; differentiating first raises every index."""
    assert derivative((1, 0, 1)).terms == (((0, 1, 1), 2.0),)
    assert derivative((0,)).after_direction(0) == derivative((0, 0))
    assert Functional({(0,): 0.0, (1,): 2.0}).terms == (((1,), 2.0),)


def test_a_contraction_of_a_value_with_itself_tells_left_from_right():
    """An outer product does not commute: of two derivatives along different directions both orders are needed."""

    def make(builder, q, w):
        moved = prim.tanh(q)
        outer = prim.dot_general(
            moved, moved, lhs_contract=(), rhs_contract=(), lhs_batch=(0,), rhs_batch=(0,), accumulate=""
        )
        u = prim.reduce_sum(prim.mul(outer, prim.broadcast(w, shape=outer.shape, axes=(1, 2))), axes=(1, 2))
        for direction in (0, 1, 1):
            (g,) = gradient(builder, [total(u)], [q])
            u = column(g, direction)
        return u

    plain, taylor = check(built(make, (N, 2), (2, 2)), *arrays((N, 2), (2, 2)))
    assert [op.name for op in plain.block] != [op.name for op in taylor.block]


def test_long_programs_need_no_recursion():
    """Three thousand operations one after the other."""
    program = Program("long")
    x = program.add_input(TensorType((), "float64"))
    with emit_at(Builder.at_end(program.block)):
        y = x
        for _ in range(3000):
            y = prim.sin(y)
        sweep = Sweep()
        along = sweep.add_direction(x, prim.constant(1, "float64"))
        program.set_outputs([sweep.coefficient(y, derivative((along, along)))])
    assert np.isfinite(interpret(program, [np.array(0.3)])[0][0])


UNARY = [prim.tanh, prim.sin, prim.logistic, prim.erf, lambda v: v * v, lambda v: 1 / (v * v + 2), prim.exp]


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_random_programs_agree_with_nested_reverse_mode(data):
    """Random expressions of two columns, mixed derivatives to third order."""
    step = st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(0, 5))
    steps = data.draw(st.lists(step, min_size=1, max_size=7))
    path = data.draw(st.lists(st.integers(0, 1), min_size=2, max_size=3))

    def make(builder, q):
        values = [column(q, 0), column(q, 1)]
        for kind, i, j in steps:
            x, y = values[i % len(values)], values[j % len(values)]
            values.append(UNARY[kind](x * 0.5) if kind < 7 else (x * y, x - y, x / (y * y + 1))[kind - 7])
        u = values[-1]
        for direction in path:
            (g,) = gradient(builder, [total(u)], [q])
            u = column(g, direction)
        return u

    check(built(make, (N, 2)), RNG.uniform(-1, 1, (3, 2)), rtol=1e-9)
