"""Results do not depend on which optimisations ran: each kind is left out, and fuel ends after any number of them."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import build, check
from test_programs import f32, graphs, grow, layer_norm, mm, softmax

from argosy_cinn import CinnCompiler
from argosy_cinn.fuel import KINDS, Budget, allowed
from argosy_cinn.rewrites.simplify import RULES
from argosy_hwadapt import device
from argosy_phi_ops import prim


def classifier(x, w, b, labels):
    """A layer with normalisation, cross-entropy and its gradient by hand: rewrites and fusions of every sort."""
    h = prim.tanh(prim.add(mm(x, w), prim.broadcast_to(b, (x.shape[0], w.shape[1]))))
    p = softmax(layer_norm(h, b))
    columns = prim.iota(shape=p.shape, axis=1, dtype="int64")
    hit = prim.eq(columns, prim.broadcast(labels, shape=p.shape, axes=(0,)))
    chosen = prim.reduce_sum(prim.select(hit, p, prim.constant(0.0, "float32", p.shape)), axes=(1,))
    loss = prim.div(prim.reduce_sum(prim.neg(prim.log(prim.add(chosen, 1e-3))), axes=(0,)), float(x.shape[0]))
    best = prim.argmax(mm(x, w), axis=1)
    gradient = prim.sub(p, prim.cast(hit, dtype="float32"))
    return [loss, best, mm(prim.transpose(x, permutation=(1, 0)), gradient), prim.reduce_sum(gradient, axes=(0,))]


def views(x, y):
    """Layouts, powers, divisions by constants, casts there and back, empty and interleaved reductions, equal parts."""
    a = prim.pow(prim.reshape(prim.transpose(x, permutation=(1, 0)), shape=x.shape), prim.constant(2.0, "float32"))
    b = prim.cast(prim.cast(prim.mul(y, 1.0), dtype="float64"), dtype="float32")
    empty = prim.reduce_sum(prim.slice(x, start=(0, 0), limit=(0, x.shape[1]), stride=(1, 1)), axes=(0,))
    cube = prim.reshape(x, shape=(2, x.shape[0] // 2, x.shape[1]))
    interleaved = prim.reduce_max(cube, axes=(0, 2))
    padded = prim.pad(a, prim.constant(0.0, "float32"), low=(0, 0), high=(0, 0), interior=(0, 0))
    joined = prim.concat(prim.add(padded, 0.0), prim.neg(prim.neg(b)), prim.sub(prim.add(x, y), prim.add(x, y)), axis=0)
    return [prim.div(joined, 4.0), empty, interleaved, prim.reverse(prim.reshape(b, shape=(1, *b.shape)), axes=(0,))]


def training(x, w, m):
    """States updated in place: a product's epilogue, and values that are cheaper made twice than kept."""
    y = prim.tanh(mm(x, w))
    z = prim.mul(y, y)
    g = mm(prim.transpose(x, permutation=(1, 0)), prim.sub(z, y))
    moment = prim.add(prim.mul(m, 0.9), g)
    return [prim.reduce_sum(z, axes=(0, 1))], [prim.sub(w, prim.mul(moment, 0.1)), moment]


def others(x, w, i):
    """Selections, scatters of one row, products with constants, positions, windows, orders, and moves that are none."""
    flag = prim.constant(True, "bool", x.shape)
    one = prim.scatter(x, i, prim.slice(x, start=(0, 0), limit=(1, 6), stride=(1, 1)), axes=(0,), kind="add")
    halves = prim.dot_general(x, prim.constant(0.5, "float32", (6, 3)), lhs_contract=(1,), rhs_contract=(0,))
    wide = {"padding": ((1, 1),), "strides": (1,), "lhs_dilation": (2,), "rhs_dilation": (1,)}
    windows = prim.conv(prim.reshape(x, shape=(1, 4, 6)), w, **wide)
    same = prim.bitcast(prim.copy(prim.stop_gradient(prim.slice(x, start=(0, 0), limit=(4, 6), stride=(1, 1)))),
                        dtype="float32")  # fmt: skip
    thin = prim.reshape(x, shape=(4, 1, 6))
    reduced = [getattr(prim, f"reduce_{kind}")(thin, axes=(1,)) for kind in ("min", "prod")]
    flags = [getattr(prim, f"reduce_{kind}")(prim.gt(thin, 0.0), axes=(1,)) for kind in ("and", "or")]
    places = [prim.argmax(x, axis=0), prim.argmin(x, axis=1), *prim.sort(x, x, axis=1)]
    return [prim.select(flag, x, one), halves, windows, same, *reduced, *flags, *places]


PROGRAMS = {
    "others": (others, [f32(4, 6), f32(2, 4, 3), np.array([[2]])], []),
    "classifier": (classifier, [f32(24, 10), f32(10, 7), f32(7), np.arange(24) % 7], []),
    "views": (views, [f32(6, 8), f32(6, 8)], []),
    "training": (training, [f32(150, 12)], [f32(12, 12), f32(12, 12)]),
}


def run(name, **options):
    function, arguments, states = PROGRAMS[name]
    return check(function, *arguments, scale=100, options=options, states=states)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("kind", [*KINDS, "everything"])
def test_each_kind_of_optimisation_may_be_left_out(name, kind):
    run(name, without=KINDS if kind == "everything" else (kind,))


@pytest.mark.parametrize("kind", [*KINDS, "everything"])
def test_a_sum_over_nothing_is_zero_whatever_is_left_out(kind):
    def program(x):
        turned = prim.transpose(prim.tanh(x), permutation=(0, 2, 1))
        sums = [prim.reduce_sum(turned, axes=axes) for axes in ((1, 2), (1,), (2,))]
        product = prim.dot_general(turned, prim.exp(turned), lhs_contract=(0, 2), rhs_contract=(0, 2))
        return [*sums, prim.reduce_prod(x, axes=(1,)), product]

    check(program, f32(5, 0, 7), options={"without": KINDS if kind == "everything" else (kind,)})


@pytest.mark.parametrize("name", PROGRAMS)
def test_fuel_may_end_after_any_number_of_steps(name):
    function, arguments, states = PROGRAMS[name]
    program, spent = build(function, arguments, states), []
    original = Budget.settle
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Budget, "settle", lambda self: (spent.append(self.spent), original(self)))
        CinnCompiler().compile(program, device("cpu"), options={"fuel": 1 << 40})
    assert spent[0] > 5
    for fuel in range(0, spent[0], max(spent[0] // 4, 1)):
        run(name, fuel=fuel)


IN_VIEWS = (
    "reshape", "transpose", "broadcast", "reverse", "pad", "concat", "cast", "add", "sub", "mul", "div", "pow", "neg",
    "reduce_sum", "reduce_max",
)  # fmt: skip
IN_OTHERS = (
    "select", "scatter", "dot_general", "conv", "slice", "bitcast", "copy", "stop_gradient", "argmax", "argmin",
    "sort", "reduce_min", "reduce_prod", "reduce_and", "reduce_or",
)  # fmt: skip


@pytest.mark.parametrize("rule", [*IN_VIEWS, *IN_OTHERS])
def test_each_rewrite_may_be_left_out(rule):
    run("views" if rule in IN_VIEWS else "others", without=(f"rewrite.{rule}",))


def test_every_rewrite_is_left_out_by_a_test():
    assert {*IN_VIEWS, *IN_OTHERS} == {*RULES, "sort"}


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(graphs(), st.integers(0, 60), st.sets(st.sampled_from(KINDS), max_size=2))
def test_random_graphs_are_right_whatever_is_left_out(recipe, fuel, without):
    steps, rows, columns, picked = recipe
    rng = np.random.default_rng(len(steps))
    x, y, w = (rng.uniform(-1, 1, s).astype(np.float32) for s in ((rows, columns), (rows, columns), (columns, columns)))

    def program(x, y, w):
        found = grow(steps, x, y, w)
        return [found[-1], *(found[i % len(found)] for i in sorted(picked))]

    check(program, x, y, w, scale=100, options={"fuel": fuel, "without": tuple(sorted(without))})


def test_steps_are_counted_named_and_repeatable():
    budget = Budget(3)
    for _ in range(2):
        with budget.simplifying():
            assert [allowed("common", "a"), allowed("rewrite.add", "b")] == [True, True]
        with budget.fusing():
            assert [allowed("fuse", "c"), allowed("fuse", "d")] == [True, False]
        assert budget.spent == 3
    with Budget(without=("rewrite.add",)).simplifying():
        assert [allowed("rewrite.add", "x"), allowed("rewrite.mul", "x")] == [False, True]
    assert allowed("fuse", "outside of a compilation nothing is limited")


def test_unknown_kinds_are_refused():
    with pytest.raises(ValueError, match=r"no kind \['magic'\]"):
        check(lambda x: prim.neg(x), f32(3), options={"without": ("magic",)})
