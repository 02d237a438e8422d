"""Large batches go through a program in blocks of rows, with the results of the program as it was written."""

import numpy as np
import pytest
from programs import assert_equal, build, check

from argosy_cinn import CinnCompiler
from argosy_cinn.batch_tiling import rewrite
from argosy_cinn.pipeline import lower_program
from argosy_cinn.runtime import set_threads
from argosy_cinn.runtime.cache import ObjectCache
from argosy_cinn.runtime.workers import default_threads
from argosy_cinn.target import Target
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.passes.primitives import to_primitives
from argosy_tensorcore.storage import StridedArray

RNG = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of 16 rows, so that small programs have some."""
    monkeypatch.setattr(rewrite, "_LEAST", 16)
    monkeypatch.setattr(rewrite, "_MOST", 16)
    monkeypatch.setattr(rewrite, "_NEAR", 6000 / Target.host().l2_bytes)
    monkeypatch.setattr(rewrite, "_AGAIN", 100.0)


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def fresh(**options):
    return {"cache": ObjectCache(None), **options}


def product(x, w):
    return prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,))


def weight_gradient(x, g):
    return prim.dot_general(x, g, lhs_contract=(0,), rhs_contract=(0,))


def loops(function, *arguments, states=()):
    """The lengths of the loops that a program has become."""
    program = lower_program(to_primitives(build(function, arguments, states)), Target.host())
    found = [op for op in program.block if op.name == "control.scan"]
    return [op.operand(0).shape[0] for op in found]


def step(x, y, w, v):
    """Loss and gradients of a network of two layers, and its error by row."""
    h = prim.tanh(product(x, w))
    error = prim.sub(product(h, v), y)
    back = prim.mul(prim.dot_general(error, v, lhs_contract=(1,), rhs_contract=(1,)), prim.sub(1.0, prim.mul(h, h)))
    loss = prim.reduce_sum(prim.mul(error, error), axes=(0, 1))
    return loss, weight_gradient(x, back), weight_gradient(h, error), prim.reduce_sum(back, axes=(0,))


@pytest.mark.parametrize("rows", [160, 167])
def test_a_training_step_is_a_loop_over_blocks_whose_sums_are_carried(rows):
    arguments = f32(rows, 3), f32(rows, 2), f32(3, 20), f32(20, 2)
    assert loops(step, *arguments) == [10]
    check(step, *arguments, scale=100, options=fresh())


@pytest.mark.usefixtures("unguarded")
def test_blocks_need_less_memory_and_can_be_left_out():
    arguments = f32(1600, 3), f32(1600, 2), f32(3, 20), f32(20, 2)
    program = build(step, arguments)
    blocks, whole = (
        CinnCompiler().compile(program, device("cpu"), options=fresh(without=without))
        for without in ((), ("batch-tiling",))
    )
    assert blocks.report()["arena_bytes"] < whole.report()["arena_bytes"] / 5
    inputs = [StridedArray.from_array(a) for a in arguments]
    for a, b in zip(blocks.run(inputs), whole.run(inputs), strict=True):
        assert_equal(a.array(), b.array(), 100)


def test_a_chain_of_layers_stays_whole_and_many_values_at_a_time_do_not(monkeypatch):
    def chain(x, w):
        for _ in range(8):
            x = prim.tanh(product(x, w))
        return prim.reduce_sum(x, axes=(1,))

    def directions(x, w):
        values = [prim.mul(x, float(i)) for i in range(8)]
        for _ in range(3):
            values = [prim.tanh(product(v, w)) for v in values]
        total = values[0]
        for v in values[1:]:
            total = prim.mul(total, v)
        return prim.reduce_sum(total, axes=(1,))

    assert loops(chain, f32(160, 20), f32(20, 20)) == []
    monkeypatch.setattr(rewrite, "_NEAR", 1e5 / Target.host().l2_bytes)
    assert loops(directions, f32(160, 20), f32(20, 20)) == [10]
    check(directions, f32(160, 20), f32(20, 20), scale=100, options=fresh())


def test_a_stack_counts_as_so_many_values_and_is_taken_from_in_blocks(monkeypatch):
    """Taylor coefficients along many directions: one value with an axis before the rows."""

    def stacked(x, w, seeds, pairs):
        slopes = prim.mul(prim.sub(1.0, prim.mul(prim.tanh(x), prim.tanh(x))), seeds)
        moved = prim.dot_general(slopes, w, lhs_contract=(2,), rhs_contract=(0,))
        left, right = (
            prim.gather(moved, prim.slice(pairs, start=(0, i), limit=(12, i + 1), stride=(1, 1)), axes=(0,))
            for i in (0, 1)
        )
        product = prim.mul(left, right)
        return prim.reduce_sum(product, axes=(0, 2)), prim.reduce_sum(product, axes=(0, 1))

    pairs = np.asarray([(i, j) for i in range(8) for j in range(8)][::5][:12], np.int64)
    arguments = f32(160, 20), f32(20, 20), f32(8, 1, 20), pairs
    for near, blocks in ((3e4, 10), (2e3, 160)):  # a single row of many stacked values may be a block
        monkeypatch.setattr(rewrite, "_NEAR", near / Target.host().l2_bytes)
        monkeypatch.setattr(rewrite, "_AGAIN", 100.0)
        monkeypatch.setattr(rewrite, "_LEAST", 8)
        assert loops(stacked, *arguments) == [blocks]
        check(stacked, *arguments, scale=200, options=fresh())


def test_what_depends_on_a_sum_comes_after_the_loop_and_reads_whole_values():
    def centred(x, w):
        h = prim.tanh(product(x, w))
        mean = prim.mul(prim.reduce_sum(h, axes=(0,)), 1 / x.shape[0])
        return prim.sub(h, prim.broadcast(mean, shape=h.shape, axes=(1,))), mean

    assert loops(centred, f32(200, 5), f32(5, 20)) == [12]
    check(centred, f32(200, 5), f32(5, 20), scale=100, options=fresh())


def test_rows_may_run_along_any_axis():
    def turned(x, w, other):
        h = prim.transpose(prim.tanh(product(x, w)), permutation=(1, 0))  # [features, rows]
        shifted = prim.add(h, other)
        return shifted, prim.dot_general(shifted, x, lhs_contract=(1,), rhs_contract=(0,))

    arguments = f32(166, 5), f32(5, 20), f32(20, 166)
    assert loops(turned, *arguments) == [10]
    check(turned, *arguments, scale=100, options=fresh())


def test_what_does_not_depend_on_the_batch_but_has_its_rows_is_made_in_blocks():
    def weighted(x, w, scale, bias):
        factor = prim.exp(prim.broadcast(scale, shape=(x.shape[0], 20), axes=(0,)))
        h = prim.mul(product(x, w), factor)
        return weight_gradient(x, prim.add(h, prim.broadcast(bias, shape=h.shape, axes=(1,))))

    arguments = f32(160, 5), f32(5, 20), f32(160), f32(20)
    assert loops(weighted, *arguments) == [10]
    check(weighted, *arguments, scale=100, options=fresh())


def test_rows_that_meet_each_other_stay_whole():
    def similar(x, w):
        h = prim.tanh(product(x, w))
        return prim.dot_general(h, h, lhs_contract=(1,), rhs_contract=(1,)), prim.cumulative(h, axis=0, kind="sum")

    check(similar, f32(160, 5), f32(5, 20), scale=100, options=fresh())


def test_states_are_updated_after_all_blocks():
    def training(x, y, w, v):
        loss, dw, dv, _ = step(x, y, w, v)
        return [loss], [prim.sub(w, prim.mul(dw, 1e-3)), prim.sub(v, prim.mul(dv, 1e-3))]

    arguments, states = (f32(165, 3), f32(165, 2)), (f32(3, 20), f32(20, 2))
    assert loops(training, *arguments, states=states) == [10]
    check(training, *arguments, scale=100, options=fresh(), states=states)


def test_narrow_sums_are_not_rounded_block_by_block():
    arguments = [a.astype(np.float16) for a in (f32(160, 3), f32(160, 2), f32(3, 20), f32(20, 2))]
    program = lower_program(to_primitives(build(step, arguments)), Target.host())
    found = [op for op in program.block if op.name == "control.scan"]
    assert all(op.attributes["inputs"] == len(op.operands) for op in found)


def test_the_same_bits_on_any_number_of_threads():
    arguments = f32(1600, 3), f32(1600, 2), f32(3, 20), f32(20, 2)
    executable = CinnCompiler().compile(build(step, arguments), device("cpu"), options=fresh())
    inputs = [StridedArray.from_array(a) for a in arguments]
    try:
        found = []
        for threads in (1, 2, 3):
            set_threads(threads)
            found.append([r.array().copy() for r in executable.run(inputs)])
    finally:
        set_threads(default_threads())
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            assert a.tobytes() == b.tobytes()


def test_small_batches_and_single_products_stay_as_they_are(monkeypatch):
    monkeypatch.undo()
    assert loops(step, f32(256, 3), f32(256, 2), f32(3, 20), f32(20, 2)) == []
    assert loops(lambda x, w: product(x, w), f32(4096, 512), f32(512, 512)) == []


def random_program(rng, rows):
    """A program of tensors [rows, 6] and their sums, products, layouts and look-ups; and the arguments for it."""
    arguments = [f32(rows, 6), f32(6, 6), f32(6), f32(rows), rng.integers(0, rows, (rows, 1))]

    def program(x, w, bias, column, indices):
        wide = lambda v, axes: prim.broadcast(v, shape=x.shape, axes=axes)  # noqa: E731
        values = [x, prim.tanh(product(x, w))]
        sums = [w, wide_bias := prim.mul(bias, 0.5)]
        swapped = lambda v: prim.transpose(v, permutation=(1, 0))  # noqa: E731
        pick = lambda: values[rng.integers(len(values))]  # noqa: E731
        steps = {
            "product": lambda: prim.tanh(product(pick(), w)),
            "turned": lambda: prim.dot_general(pick(), w, lhs_contract=(1,), rhs_contract=(1,)),
            "add": lambda: prim.add(pick(), pick()),
            "scale": lambda: prim.mul(pick(), wide(column, (0,))),
            "bias": lambda: prim.add(pick(), wide(wide_bias, (1,))),
            "softmax": lambda: prim.div(
                e := prim.exp(prim.tanh(pick())), wide(prim.reduce_sum(e, axes=(1,)), (0,))
            ),
            "transposes": lambda: swapped(prim.exp(prim.neg(prim.abs(swapped(pick()))))),
            "reverse": lambda: prim.reverse(pick(), axes=(int(rng.integers(2)),)),
            "running": lambda: prim.mul(prim.cumulative(pick(), axis=int(rng.integers(2)), kind="sum"), 0.1),
            "gather": lambda: prim.gather(pick(), indices, axes=(0,)),
            "join": lambda: prim.slice(
                prim.concat(pick(), pick(), axis=1), start=(0, 3), limit=(rows, 9), stride=(1, 1)
            ),
            "shift": lambda: prim.pad(
                prim.slice(pick(), start=(1, 0), limit=(rows, 6), stride=(1, 1)), 0.5, low=(0, 0), high=(1, 0),
                interior=(0, 0),
            ),
            "centre": lambda: prim.sub(v := pick(), wide(prim.mul(prim.reduce_sum(v, axes=(0,)), 1 / rows), (1,))),
            "folded": lambda: prim.reshape(prim.mul(prim.reshape(pick(), shape=(rows, 2, 3)), 0.5), shape=(rows, 6)),
            "largest": lambda: wide(prim.reduce_max(pick(), axes=(0,)), (1,)),
            "gradient": lambda: product(pick(), prim.mul(weight_gradient(pick(), pick()), 1 / rows)),
        }  # fmt: skip
        for name in rng.choice(list(steps), 9):
            values.append(steps[name]())
            if rng.random() < 0.4:
                sums.append(prim.mul(weight_gradient(pick(), pick()), 1 / rows))
            if rng.random() < 0.3:
                sums.append(prim.reduce_sum(pick(), axes=(0,)))
        return [*sums[2:], values[-1], prim.reduce_sum(values[-2], axes=(0, 1))]

    return program, arguments


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("seed", range(16))
def test_random_programs_give_what_the_interpreter_gives(seed):
    rng = np.random.default_rng(seed)
    program, arguments = random_program(rng, int(rng.choice([160, 171])))
    state = rng.bit_generator.state

    def repeatable(*inputs):
        rng.bit_generator.state = state
        return program(*inputs)

    check(repeatable, *arguments, scale=3000, options=fresh())


def test_most_random_programs_have_loops():
    found = 0
    for seed in range(16):
        rng = np.random.default_rng(seed)
        program, arguments = random_program(rng, int(rng.choice([160, 171])))
        found += bool(loops(program, *arguments))
    assert found >= 8


def test_quantised_weights_are_no_batch():
    """The hidden units of two products with weights of eight bits are rows, too; but products convert those where they
    read them, so that blocks would save nothing and copy what is not one after the other."""
    gate, down = (RNG.integers(-128, 128, shape).astype(np.int8) for shape in ((64, 96), (96, 64)))
    x = f32(1, 96)

    def feed_forward(gate, x, down):
        wide = [prim.cast(w, dtype="float32") for w in (gate, down)]
        hidden = prim.tanh(prim.dot_general(x, wide[0], lhs_contract=(1,), rhs_contract=(1,)))
        return prim.dot_general(hidden, wide[1], lhs_contract=(1,), rhs_contract=(1,))

    assert loops(feed_forward, gate, x, down) == []
    check(feed_forward, gate, x, down, scale=100)
