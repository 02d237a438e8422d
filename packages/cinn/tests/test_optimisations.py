"""Results do not depend on which optimisations ran: each kind is left out, and fuel ends after any number of them."""

import functools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import build, check
from test_memory_budget import ARGUMENTS, STATES, residual_layers
from test_programs import f32, graphs, grow, layer_norm, mm, softmax

from argosy_cinn import CinnCompiler
from argosy_cinn.batch_tiling import rewrite as blocks
from argosy_cinn.fuel import ALWAYS, KINDS, Budget
from argosy_cinn.fusion import recompute
from argosy_cinn.plan import buffer_reuse
from argosy_cinn.rewrites.simplify import RULES
from argosy_cinn.runtime import ObjectCache
from argosy_cinn.target import Target
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_pir.rewrite import Session
from argosy_pir.rewrite.fuel import spend

#: A budget that is met with all optimisations need not be met with few, nor where values lie on pages of their own.
pytestmark = pytest.mark.filterwarnings("ignore:program .* more than the memory budget:RuntimeWarning")


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
    reversed_ = prim.reverse(prim.reshape(b, shape=(1, *b.shape)), axes=(0,))
    return [prim.div(joined, 4.0), empty, interleaved, reversed_, *same_numbers(x)]


def same_numbers(x):
    """What there and back, one after the other, beside nothing or less nothing becomes."""
    rows, columns = x.shape
    nothing = prim.slice(x, start=(0, 0), limit=(0, columns), stride=(1, 1))
    turned = prim.transpose(prim.transpose(prim.tanh(x), permutation=(1, 0)), permutation=(1, 0))
    thin = prim.reduce_sum(prim.reshape(prim.reshape(x, shape=(rows * columns,)), shape=(rows, 1, columns)), axes=(1,))
    same = prim.broadcast(prim.exp(thin), shape=(rows, columns), axes=(0, 1))
    return [prim.concat(turned, nothing, axis=0), prim.sub(same, 0.0)]


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


def transforms(x):
    """Transforms and the factors beside them, one after the other."""
    there = prim.fft(x, axes=(1,), kind="c2c")
    scaled = prim.mul(there, prim.constant(1 / 24, "complex64", there.shape))
    halves = prim.fft(prim.real(x), axes=(1,), kind="r2c")
    return [prim.fft(scaled, axes=(1,), kind="c2c", inverse=True), halves, prim.fft(there, axes=(0,), kind="c2c")]


def attention(q, k, v):
    """Heads whose positions see those before them."""
    heads = {"lhs_batch": (0,), "rhs_batch": (0,)}
    scores = prim.dot_general(q, k, lhs_contract=(2,), rhs_contract=(2,), **heads)
    rows, columns = (prim.iota(shape=scores.shape, axis=axis, dtype="int64") for axis in (1, 2))
    seen = prim.select(prim.ge(rows, columns), scores, prim.constant(float("-inf"), "float32", scores.shape))
    return prim.dot_general(softmax(seen), v, lhs_contract=(2,), rhs_contract=(1,), **heads)


def convolution(x, w):
    """A window of 3 x 3, what follows it, and the gradient of its weights."""
    ones = {name: (1, 1) for name in ("strides", "lhs_dilation", "rhs_dilation")}
    y = prim.tanh(prim.conv(x, w, padding=((1, 1), (1, 1)), **ones))
    x, g = (prim.transpose(v, permutation=(1, 0, 2, 3)) for v in (x, y))
    return [y, prim.conv(x, g, padding=((1, 1), (1, 1)), **ones)]


def nibbles(x, w):
    """Both numbers of four bits in each byte of the weights."""
    halves = (prim.shift_right(prim.shift_left(w, 4), 4), prim.shift_right(w, 4))
    return [prim.dot_general(x, prim.cast(h, dtype="float32"), lhs_contract=(1,), rhs_contract=(1,)) for h in halves]


def batch(x, y, w, v):
    """Loss and gradients of two layers: sums over rows."""
    h = prim.tanh(mm(x, w))
    error = prim.sub(mm(h, v), y)
    back = prim.mul(mm(error, prim.transpose(v, permutation=(1, 0))), prim.sub(1.0, prim.mul(h, h)))
    sums = [prim.dot_general(*operands, lhs_contract=(0,), rhs_contract=(0,)) for operands in ((x, back), (h, error))]
    return [prim.reduce_sum(prim.mul(error, error), axes=(0, 1)), *sums, mm(softmax(mm(x, w)), v)]


def large(x, y, w):
    """Results that leave the caches, sums over many rows, and products whose larger operand is the second."""
    p = softmax(x)
    parts = [prim.slice(v, start=(0, 0), limit=(v.shape[0], 100), stride=(1, 1)) for v in (y, w)]
    products = [prim.dot_general(*v, lhs_contract=(1,), rhs_contract=(1,)) for v in ((y, w), parts)]
    return [prim.exp(p), prim.reduce_sum(p, axes=(0,)), *products]


def blocks_of_a_matrix(x, y):
    """What the host takes as one tensor of several."""
    return [prim.svd(prim.concat(mm(x, y), prim.exp(x), axis=0))[1]]


def complex64(*shape):
    return (f32(*shape) + 1j * f32(*shape)).astype(np.complex64)


PROGRAMS = {
    "others": (others, [f32(4, 6), f32(2, 4, 3), np.array([[2]])], []),
    "classifier": (classifier, [f32(24, 10), f32(10, 7), f32(7), np.arange(24) % 7], []),
    "views": (views, [f32(6, 8), f32(6, 8)], []),
    "training": (training, [f32(150, 12)], [f32(12, 12), f32(12, 12)]),
    "transforms": (transforms, [complex64(6, 24)], []),
    "attention": (attention, [f32(3, 40, 16), f32(3, 40, 16), f32(3, 40, 16)], []),
    "convolution": (convolution, [f32(2, 16, 16, 16), f32(16, 16, 3, 3)], []),
    "nibbles": (nibbles, [f32(1, 64), (np.arange(64 * 64) % 251 - 125).astype(np.int8).reshape(64, 64)], []),
    "batch": (batch, [f32(160, 64), f32(160, 2), f32(64, 64), f32(64, 2)], []),
    "large": (large, [f32(512, 512), f32(40, 256), f32(600, 256)], []),
    "host": (blocks_of_a_matrix, [f32(16, 16), f32(16, 16)], []),
    "layers": (residual_layers, ARGUMENTS, STATES[:4]),
}
#: Programs that may take half of the memory that they would take; in blocks of rows they would take no more than that.
CRAMPED = ("layers",)


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch):
    """What is done for large batches and results is done for small ones."""
    for name, value in (("_LEAST", 16), ("_MOST", 16), ("_NEAR", 6000 / Target.host().l2_bytes), ("_AGAIN", 100.0)):
        monkeypatch.setattr(blocks, name, value)
    monkeypatch.setattr(buffer_reuse, "LARGE", 0)
    monkeypatch.setattr(recompute, "_LARGE", 0)
    monkeypatch.setattr(Target.host(), "l3_bytes", 0)


@functools.cache
def half_of_its_memory(name):
    function, arguments, states = PROGRAMS[name]
    options = {"cache": ObjectCache(None), "without": ("batch-tiling",)}
    executable = CinnCompiler().compile(build(function, arguments, states), device("cpu"), options=options)
    return executable.report()["arena_bytes"] // 2


def options_of(name, without=(), **options):
    options |= {"cache": ObjectCache(None), "without": without}
    if name in CRAMPED:
        options |= {"memory_budget": half_of_its_memory(name), "without": (*without, "batch-tiling")}
    return options


def run(name, **options):
    function, arguments, states = PROGRAMS[name]
    return check(function, *arguments, scale=100, options=options_of(name, **options), states=states)


def kinds_in(name):
    """The kinds that happen in a program."""
    take, found = Session.take, set()

    def noted(self, kind, where=None):
        done = take(self, kind, where)
        found.update([kind] if done and kind not in ALWAYS else [])
        return done

    function, arguments, states = PROGRAMS[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "take", noted)
        options = options_of(name, fuel=1 << 40)
        CinnCompiler().compile(build(function, arguments, states), device("cpu"), options=options)
    return found


@functools.cache
def happened():
    """The kinds that happen in each program, where what is done for large ones is done for small ones."""
    return {name: kinds_in(name) for name in PROGRAMS}


@pytest.mark.usefixtures("unguarded")
@pytest.mark.skipif(Target.host().vector_bits != 512, reason="some kinds take vectors of 512 bits")
def test_each_kind_happens_in_some_program_that_it_is_left_out_of():
    kinds = {kind for found in happened().values() for kind in found}
    assert {kind.partition(".")[0] for kind in kinds} == set(KINDS)
    assert {rule for rule in EVERY_RULE if f"rewrite.{rule}" not in happened()[_program_of(rule)]} == set()


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_optimisation_may_be_left_out(kind):
    """Of all programs that it happens in."""
    for name, kinds in happened().items():
        if kind in {each.partition(".")[0] for each in kinds}:
            run(name, without=(kind,))


@pytest.mark.parametrize("name", PROGRAMS)
def test_everything_may_be_left_out(name):
    run(name, without=KINDS)


@pytest.mark.parametrize("kind", [*KINDS, "everything"])
def test_a_sum_over_nothing_is_zero_whatever_is_left_out(kind):
    def program(x):
        turned = prim.transpose(prim.tanh(x), permutation=(0, 2, 1))
        sums = [prim.reduce_sum(turned, axes=axes) for axes in ((1, 2), (1,), (2,))]
        product = prim.dot_general(turned, prim.exp(turned), lhs_contract=(0, 2), rhs_contract=(0, 2))
        return [*sums, prim.reduce_prod(x, axes=(1,)), product]

    check(program, f32(5, 0, 7), options={"without": KINDS if kind == "everything" else (kind,)})


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_fuel_may_end_after_any_number_of_steps(name):
    function, arguments, states = PROGRAMS[name]
    program, spent = build(function, arguments, states), []
    original = Budget.settle
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Budget, "settle", lambda self: (spent.append(self.spent), original(self)))
        CinnCompiler().compile(program, device("cpu"), options=options_of(name, fuel=1 << 40))
    assert spent[0] > (0 if name == "nibbles" else 1)
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


EVERY_RULE = (*IN_VIEWS, *IN_OTHERS, "fft")


def _program_of(rule):
    return "views" if rule in IN_VIEWS else "transforms" if rule == "fft" else "others"


@pytest.mark.parametrize("rule", EVERY_RULE)
def test_each_rewrite_may_be_left_out(rule):
    run(_program_of(rule), without=(f"rewrite.{rule}",))


def test_every_rewrite_is_left_out_by_a_test():
    assert {*EVERY_RULE} == {*RULES, "conv", "sort", "fft"}


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
        with budget.simplification():
            assert [spend("cse", "a"), spend("rewrite.add", "b")] == [True, True]
        with budget.fusion():
            assert [spend("fuse", "c"), spend("fuse", "d")] == [True, False]
        assert budget.spent == 3
    with Budget(without=("rewrite.add",)).simplification():
        assert [spend("rewrite.add", "x"), spend("rewrite.mul", "x")] == [False, True]
    assert spend("fuse", "outside of a compilation nothing is limited")


def test_unknown_kinds_are_refused():
    with pytest.raises(ValueError, match=r"no kind \['magic'\]"):
        check(lambda x: prim.neg(x), f32(3), options={"without": ("magic",)})
