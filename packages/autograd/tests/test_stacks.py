"""Many directions as one axis: the same numbers as a sweep with a part for each coefficient, in programs that do not
grow with the directions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from requested import N, arrays, built, check, column, dot, gradient, laplacian, network, total, work

from argosy_autograd.passes.expand import ExpandGradients
from argosy_autograd.passes.taylor import TaylorMode
from argosy_autograd.taylor import families
from argosy_autograd.taylor.deferred_coefficients import DeferredCoefficients
from argosy_autograd.taylor.families import Families, StackingError, compositions, homogeneous
from argosy_autograd.taylor.functional import Functional, derivative, proper_splits
from argosy_autograd.taylor.lifting import convolve
from argosy_autograd.taylor.stacks import Stacks
from argosy_autograd.taylor.sweep import Sweep
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Builder, Program, TensorType
from argosy_pir.passes import PassManager

RNG = np.random.default_rng(11)
SINGLE = "argosy_autograd.taylor.deferred_coefficients.DeferredCoefficients.single_coefficient"
ALONE = DeferredCoefficients.single_coefficient


@pytest.fixture
def stacked(monkeypatch):
    """Families for every program, and no way past them."""

    def refuse(self, value, functional):
        raise AssertionError("a coefficient was made alone")

    monkeypatch.setattr(families, "FEW", 1)
    monkeypatch.setattr(SINGLE, refuse)


def layers(dimensions, width=8):
    return ((N, dimensions), (dimensions, width), (width, width), (width, width), (width, 1))


def of_network(operator, dimensions):
    return built(lambda b, q, *w: operator(b, network(q, *w), q), *layers(dimensions))


def biharmonic(builder, u, q):
    return laplacian(builder, laplacian(builder, u, q), q)


@pytest.mark.parametrize("operator", [laplacian, biharmonic])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_isotropic_operators(stacked, operator, dimensions):
    """Against nested reverse mode."""
    check(of_network(operator, dimensions), *arrays(*layers(dimensions), rows=2), rtol=1e-11)


def simplified(program):
    made = program.clone()
    assert TaylorMode("always").run(made)
    ExpandGradients().run(made)
    PassManager("cse,dce").run(made)
    return made


@pytest.mark.parametrize("operator", [laplacian, biharmonic])
def test_programs_do_not_grow_with_the_directions(operator):
    """Twelve dimensions or twenty-four: the same operations, on longer axes."""
    small, large = (simplified(of_network(operator, d)) for d in (12, 24))
    assert [op.name for op in small.block] == [op.name for op in large.block]
    assert len(large.block) < 400


def test_a_biharmonic_operator_costs_one_pass_for_each_coefficient():
    """Slopes, second derivatives (each once), sums of third ones, and a sum of fourth ones."""
    d = 12
    forward = built(lambda b, q, *w: network(q, *w), *layers(d))
    made = simplified(of_network(biharmonic, d))
    passes = 1 + d + d * (d + 1) // 2 + d + 1
    assert work(made) <= passes * work(forward)


def test_few_coefficients_are_parts_of_the_program(monkeypatch):
    """Where that is the faster way: no family is made for a Laplacian in two dimensions, nor for high orders along one
    direction."""
    monkeypatch.setattr("argosy_autograd.taylor.deferred_coefficients.Stacks", None)
    assert TaylorMode("always").run(of_network(laplacian, 2))
    assert not Families([derivative((0,) * 20)]).is_costly


def test_operators_with_coefficients_of_their_own(stacked):
    """Anisotropic, mixed, of several degrees at once, and with fields as coefficients."""

    def make(builder, q, *w):
        u = network(q, *w)
        (g,) = gradient(builder, [total(u)], [q])
        rows = [gradient(builder, [total(column(g, i))], [q])[0] for i in range(3)]
        flat = column(rows[0], 0) * 2 - column(rows[1], 1) * 0.5 + column(rows[0], 2) * 3 + column(g, 1) * 4 + u
        (h,) = gradient(builder, [total(column(rows[2], 2))], [q])
        field = column(rows[0], 1) * prim.sin(column(q, 0)) + column(g, 2) * column(q, 1)
        return [flat + column(h, 0) * 0.3 + column(h, 2), field, g]

    check(built(make, *layers(3)), *arrays(*layers(3), rows=3), rtol=1e-11)


@pytest.mark.parametrize("operator", [laplacian, biharmonic])
def test_the_gradient_by_parameters(stacked, operator):
    """Reverse mode goes back over families as over any program."""

    def make(builder, q, *w):
        residual = operator(builder, network(q, *w), q) - column(q, 0)
        loss = total(residual * residual)
        return [loss, *gradient(builder, [loss], list(w))]

    check(built(make, *layers(3)), *arrays(*layers(3), rows=2), rtol=1e-10)


def test_points_in_several_tensors(stacked):
    """Directions of x and of t, whose rows are the same."""

    def make(builder, x, t, *w):
        u = network(prim.concat(x, t, axis=1), *w)
        (ux,) = gradient(builder, [total(u)], [x])
        (ut,) = gradient(builder, [total(u)], [t])
        uxx = [column(gradient(builder, [total(column(ux, i))], [x])[0], i) for i in range(2)]
        (utt,) = gradient(builder, [total(ut)], [t])
        (uxt,) = gradient(builder, [total(column(ux, 0))], [t])
        return [uxx[0] + uxx[1] - utt, uxt, ux]

    shapes = ((N, 2), (N, 1), *layers(3)[1:])
    check(built(make, *shapes), *arrays(*shapes), rtol=1e-11)


def widened(x, size):
    """Columns that all depend on all columns of x."""
    rows, columns = (prim.cast(prim.iota(shape=(3, size), axis=i, dtype="int64"), dtype=x.dtype) for i in (0, 1))
    return dot(x, prim.sin(rows * columns + 0.3 * rows) * 0.2 + 0.3)


def turned(x):
    """Each row as a matrix, so that both sides of a product move."""
    square = prim.reshape(widened(x, 4), shape=(x.shape[0], 2, 2))
    axes = {"lhs_contract": (2,), "rhs_contract": (1,), "lhs_batch": (0,), "rhs_batch": (0,)}
    product = prim.dot_general(prim.sin(square), prim.transpose(prim.exp(square), permutation=(0, 2, 1)), **axes)
    again = prim.dot_general(product, product, **axes)
    return prim.reduce_sum(again, axes=(1, 2))


def spectrum(x):
    """The power in the frequencies of sin(x), and a complex signal's."""
    half = prim.fft(prim.sin(x), kind="r2c", axes=(1,))
    whole = prim.fft(prim.complex(x * x, prim.cos(x)), kind="c2c", axes=(1,))
    parts = [f(y) for y in (half, whole) for f in (prim.real, prim.imag)]
    return prim.reduce_sum(prim.concat(*(p * p for p in parts), axis=1), axes=(1,))


CONV = {"strides": (2,), "padding": ((1, 0),), "lhs_dilation": (1,), "rhs_dilation": (1,), "groups": 2}


def filtered(x):
    """Each row as two channels of six samples, filtered in two groups."""
    channels = prim.reshape(prim.concat(x, prim.sin(x), x * x, prim.exp(x), axis=1), shape=(x.shape[0], 2, 6))
    taps = prim.cast(prim.reshape(prim.iota(shape=(8,), axis=0, dtype="int64"), shape=(4, 1, 2)), dtype=x.dtype) * 0.2
    made = prim.conv(channels, taps, **CONV)
    return prim.reduce_sum(prim.reduce_sum(made * made, axes=(2,)), axes=(1,))


SHAPED = {
    "products of what moves": turned,
    "a product from the right": lambda x: prim.reduce_sum(
        prim.tanh(
            prim.dot_general(
                prim.cast(prim.iota(shape=(5, 3), axis=0, dtype="int64"), dtype=x.dtype) * 0.2,
                x, lhs_contract=(1,), rhs_contract=(1,), lhs_batch=(), rhs_batch=(),
            )
        ),
        axes=(0,),
    ),
    "quotient": lambda x: prim.reduce_sum(prim.sin(x) / (x * x + 2), axes=(1,)),
    "softmax": lambda x: prim.reduce_sum(prim.exp(x) * x, axes=(1,)) / prim.reduce_sum(prim.exp(x), axes=(1,)),
    "power": lambda x: prim.reduce_sum(prim.pow(x, prim.constant(3, x.dtype, x.shape)), axes=(1,)),
    "parts": lambda x: prim.reduce_sum(
        prim.concat(prim.tanh(column(x, 0)), prim.constant(1, x.dtype, (x.shape[0], 1)), -column(x, 2) * x, axis=1)
        * 0.5, axes=(1,),
    ),
    "padding": lambda x: prim.reduce_sum(
        prim.sin(prim.pad(x * x, prim.constant(0.5, x.dtype), low=(0, 1), high=(0, 0), interior=(0, 1))), axes=(1,)
    ),
    "sums so far": lambda x: prim.reduce_sum(prim.exp(prim.cumulative(x, axis=1, kind="sum")), axes=(1,)),
    "choices": lambda x: prim.reduce_sum(
        prim.select(prim.gt(x, prim.constant(0.4, x.dtype, x.shape)), x * x * x, prim.sin(x)), axes=(1,)
    ),
    "maximum": lambda x: prim.reduce_sum(prim.maximum(x * x * x, prim.sin(x)) * prim.abs(x), axes=(1,)),
    "gathered": lambda x: prim.reduce_sum(
        prim.sin(prim.gather(x * x, prim.iota(shape=(2, 1), axis=0, dtype="int64"), axes=(1,))), axes=(0,)
    ),
    "gathered by row": lambda x: prim.reduce_sum(
        prim.exp(
            prim.gather(
                x * x,
                prim.broadcast_to(prim.iota(shape=(2, 1), axis=0, dtype="int64"), (x.shape[0], 2, 1)),
                axes=(1,), batch=1,
            )
        ),
        axes=(1,),
    ),
    "transformed": spectrum,
    "angle": lambda x: prim.reduce_sum(prim.atan2(x, prim.reverse(x, axes=(1,)) + 0.3), axes=(1,)),
    "angle to a constant": lambda x: prim.reduce_sum(
        prim.atan2(x, prim.constant(0.5, x.dtype, x.shape)) * prim.atan2(prim.constant(0.5, x.dtype, x.shape), x),
        axes=(1,),
    ),
    "angle of what is made of the other": lambda x: prim.reduce_sum(prim.atan2(x, prim.sin(x) + 1), axes=(1,)),
    "moving exponent": lambda x: prim.reduce_sum(prim.pow(x, prim.reverse(x, axes=(1,))), axes=(1,)),
    "power of itself": lambda x: prim.reduce_sum(prim.pow(x, x), axes=(1,)),
    "exponential": lambda x: prim.reduce_sum(prim.pow(prim.constant(1.5, x.dtype, x.shape), x * x), axes=(1,)),
    "convolution": filtered,
    "reversed": lambda x: prim.reduce_sum(prim.sqrt(prim.reverse(x, axes=(1,)) + 2) * prim.log(x + 2), axes=(1,)),
}  # fmt: skip


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("name", SHAPED)
def test_every_primitive_that_has_a_rule(stacked, name):
    """Second and fourth derivatives of functions of three columns."""

    def make(builder, q):
        u = SHAPED[name](widened(q, 3))
        return [laplacian(builder, u, q), biharmonic(builder, u, q)]

    check(built(make, (N, 3)), RNG.uniform(0.2, 0.9, (4, 3)), rtol=1e-9)


@pytest.mark.parametrize("stacked", ["left", "right", "both"])
def test_convolutions_of_stacks(stacked):
    """Member by member, of samples, of filters, and of both."""

    def make(builder, x, w):
        op = prim.conv(x, w, **CONV).op
        xs = [x + float(i) if stacked != "right" else x for i in range(3)]
        ws = [w * float(i + 2) if stacked != "left" else w for i in range(3)]

        def joined(parts):
            return prim.concat(*(prim.reshape(p, shape=(1, *p.shape)) for p in parts), axis=0)

        left, right = (x if stacked == "right" else joined(xs)), (w if stacked == "left" else joined(ws))
        apart = [prim.conv(a, b, **CONV) for a, b in zip(xs, ws, strict=True)]
        return [convolve(op, left, right, stacked), joined(apart)]

    shapes = ((2, 6, 7), (4, 3, 3))
    got, want = interpret(built(make, *shapes), [RNG.standard_normal(shape) for shape in shapes])[0]
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["angle", "moving exponent", "power of itself", "convolution"])
def test_derivatives_to_order_eight(stacked, name):
    """Along one column and mixed, each against nested reverse mode of one coefficient after the other."""

    def make(builder, q):
        u = SHAPED[name](widened(q, 3))
        made = []
        for order in (2, 4, 8):
            v = u
            for k in range(order):
                v = column(gradient(builder, [total(v)], [q])[0], k % 2)
            made.append(v)
        return made

    program = built(make, (N, 3))
    points = RNG.uniform(0.3, 0.9, (2, 3))
    found = []
    for few in (1, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(families, "FEW", few)
            if few > 1:
                patch.setattr(SINGLE, ALONE)
            found.append(interpret(simplified(program), [points])[0])
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-8)


def test_what_has_no_rule_is_made_alone(monkeypatch):
    """A Laplacian through a remainder, which families have no rule for."""
    monkeypatch.setattr(families, "FEW", 1)
    program = built(lambda b, q: laplacian(b, prim.rem(column(q, 0), column(q, 1) * column(q, 1) + 1), q), (N, 2))
    check(program, RNG.uniform(-1, 1, (4, 2)))


def test_directions_that_are_no_unit_directions():
    """Are refused, not taken for others."""
    program = Program("p")
    x = program.add_input(TensorType((4,), "float64"))
    with emit_at(Builder.at_end(program.block)):
        sweep = Sweep()
        along = sweep.add_direction(x, prim.constant(2, "float64", (4,)))
        stacks = Stacks(sweep, Families([derivative((along, along))]))
        with pytest.raises(StackingError, match="unit direction"):
            stacks.coefficient(prim.sin(x), derivative((along, along)))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_splits_are_all_products(data):
    """Expanded, the products of a split are the terms of the product rule, each once."""
    degree = data.draw(st.integers(2, 4))
    index = st.lists(st.integers(0, 3), min_size=degree, max_size=degree).map(lambda i: tuple(sorted(i)))
    terms = data.draw(st.dictionaries(index, st.sampled_from([1.0, 2.0, 24.0, -0.5]), min_size=1, max_size=9))
    target = Functional(terms)
    made = Families([target])
    for lower in range(1, degree // 2 + 1):
        found = spread(made, degree, lower, made.split(degree, lower, False))
        expected = {}
        for whole, c in target:
            for a, b in proper_splits(whole):
                if len(a) == lower:
                    expected[a, b] = expected.get((a, b), 0.0) + c
        assert {k: v for k, v in found.items() if abs(v) > 1e-9} == pytest.approx(expected)


def spread(made, degree, lower, split):
    """The products of the only member of the highest family, by pairs of multi-indices."""
    found = {}

    def add(left, right, c):
        for a, x in made.members[lower][left]:
            for b, y in made.members[degree - lower][right]:
                found[a, b] = found.get((a, b), 0.0) + c * x * y

    for _, left, right, c in split.products:
        add(left, right, c)
    for _, left, c in split.with_common:
        for right, factor in split.common:
            add(left, right, c * factor)
    return found


def test_isotropic_operators_share_their_sums():
    """Of a biharmonic operator in d dimensions no split has d^2 products of second derivatives."""
    d = 10
    target = Functional(
        {**{(i,) * 4: 24.0 for i in range(d)}, **{(i, i, j, j): 8.0 for j in range(d) for i in range(j)}}
    )
    split = Families([target]).split(4, 2, True)
    assert len(split.products) <= d * (d + 1) // 2 + d
    assert len(split.with_common) == d


def test_compositions():
    """Four as a sum of several numbers."""
    assert dict(compositions(4)) == {(1, 3): 2, (2, 2): 1, (1, 1, 2): 3, (1, 1, 1, 1): 1}
    assert homogeneous(Functional({(): 1.0, (0,): 2.0, (1, 1): 3.0, (2,): 4.0})) == [
        Functional({(): 1.0}), Functional({(0,): 2.0, (2,): 4.0}), Functional({(1, 1): 3.0}),
    ]  # fmt: skip


UNARY = [prim.tanh, prim.sin, prim.logistic, prim.erf, lambda v: v * v, lambda v: 1 / (v * v + 2), prim.exp]


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_random_programs(data):
    """Random expressions of two columns: a fourth-order operator from families and from single coefficients."""
    step = st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(0, 5))
    steps = data.draw(st.lists(step, min_size=1, max_size=6))

    def make(builder, q):
        values = [column(q, 0), column(q, 1)]
        for kind, i, j in steps:
            x, y = values[i % len(values)], values[j % len(values)]
            values.append(UNARY[kind](x * 0.5) if kind < 7 else (x * y, x - y, x / (y * y + 1))[kind - 7])
        return biharmonic(builder, values[-1] + column(q, 0) * 0, q)

    program, points = built(make, (N, 2)), RNG.uniform(-1, 1, (3, 2))
    results = []
    for few in (1, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(families, "FEW", few)
            results.append(interpret(simplified(program), [points])[0][0])
    np.testing.assert_allclose(*results, rtol=1e-8, atol=1e-8 * (1 + np.abs(results[1]).max()))
