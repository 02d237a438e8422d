"""What a run could save is counted and named: attention in separate kernels, weights that several kernels read."""

import ml_dtypes
import numpy as np
import pytest
from programs import build, check
from test_narrow_products import halves

from argosy_cinn import CinnCompiler, explain
from argosy_cinn.runtime.cache import ObjectCache
from argosy_cinn.target import Target
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir import Builder, Program, SymExpr, TensorType
from argosy_tensorcore.storage import StridedArray

RNG = np.random.default_rng(0)
HEADS = {"lhs_batch": (0,), "rhs_batch": (0,)}


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def attend(q, k, v, between=lambda weights: weights):
    """Softmax attention of [heads, length, size]."""
    scores = prim.dot_general(q, k, lhs_contract=(2,), rhs_contract=(2,), **HEADS)
    spread = {"shape": scores.shape, "axes": (0, 1)}
    weights = prim.exp(prim.sub(scores, prim.broadcast(prim.reduce_max(scores, axes=(2,)), **spread)))
    weights = prim.div(weights, prim.broadcast(prim.reduce_sum(weights, axes=(2,)), **spread))
    return prim.dot_general(between(weights), v, lhs_contract=(2,), rhs_contract=(1,), **HEADS)


@pytest.mark.parametrize(
    ("size", "between", "reason"),
    [
        (16, lambda weights: prim.reverse(weights, axes=(2,)), "'prim.reverse' reads its scores"),
        (16, lambda weights: prim.cumulative(weights, axis=2, kind="sum"), "'prim.cumulative' reads its scores"),
        (264, lambda weights: weights, "its heads are of 264 numbers"),
    ],
)
def test_attention_that_is_not_fused_is_counted_and_named(size, between, reason):
    operands = [f32(2, 24, size) for _ in range(3)]
    executable = check(lambda q, k, v: attend(q, k, v, between), *operands, scale=30)
    (found,) = executable.report()["unfused_attention"]
    assert found["bytes"] == 2 * 24 * 24 * 4
    assert reason in found["reason"]
    (line,) = [line for line in explain(executable).splitlines() if line.startswith("attention that is not fused")]
    assert "1, 4.5 KiB of scores in memory: " in line
    assert reason in line


def test_attention_that_returns_its_weights_is_not_fused():
    weights = []
    operands = [f32(2, 24, 16) for _ in range(3)]
    program = build(lambda *x: [attend(*x, lambda w: weights.append(w) or w), weights[-1]], operands)
    (found,) = CinnCompiler().compile(program, device("cpu")).report()["unfused_attention"]
    assert found["reason"] == "its scores are a result"


def test_fused_attention_and_one_row_are_not_counted():
    for rows in (24, 1):
        operands = [f32(2, rows, 16), f32(2, 24, 16), f32(2, 24, 16)]
        executable = check(attend, *operands)
        assert executable.report()["unfused_attention"] == []
        assert "not fused" not in explain(executable)


def test_a_norm_between_products_of_weights_is_no_attention():
    """Row sums join two products here, too: of weights, whose activations are not scores."""

    def network(x, up, down):
        h = prim.dot_general(x, up, lhs_contract=(1,), rhs_contract=(0,))
        total = prim.broadcast(prim.reduce_sum(prim.mul(h, h), axes=(1,)), shape=h.shape, axes=(0,))
        return [prim.dot_general(prim.div(h, total), down, lhs_contract=(1,), rhs_contract=(0,))], [up, down]

    program = build(network, [f32(64, 8)], [f32(8, 32), f32(32, 8)])
    assert CinnCompiler().compile(program, device("cpu")).report()["unfused_attention"] == []


def test_sizes_of_a_call_give_the_bytes_of_scores():
    n = SymExpr.symbol("n")
    program = Program("symbolic")
    operands = [program.add_input(TensorType((2, n, 16), "float32")) for _ in range(3)]
    with emit_at(Builder.at_end(program.block)):
        program.set_outputs([attend(*operands, lambda w: prim.cumulative(w, axis=2, kind="sum"))])
    executable = CinnCompiler().compile(program, device("cpu"))
    for length in (9, 30):
        executable.run([StridedArray.from_array(f32(2, length, 16)) for _ in range(3)])
        report = executable.report()
        assert report["not_symbolic"] == ""
        assert [found["bytes"] for found in report["unfused_attention"]] == [2 * length * length * 4]


def test_a_weight_that_two_products_read_is_counted_and_named(tmp_path):
    """One product waits for the other; a program from the cache says the same."""

    def twice(x, w):
        h = prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,))
        return [prim.dot_general(prim.tanh(h), w, lhs_contract=(1,), rhs_contract=(0,))], [w]

    for hit in (False, True):
        options = {"cache": ObjectCache(tmp_path)}
        program = build(twice, [f32(2, 128)], [f32(128, 128)])
        executable = CinnCompiler().compile(program, device("cpu"), options=options)
        report = executable.report()
        assert report["cache_hit"] is hit
        assert report["weights_read_again"] == [{"name": "s0", "bytes": 1 << 16, "times": 2.0}]
        (line,) = [line for line in explain(executable).splitlines() if line.startswith("weights read more")]
        assert "1, 64 KiB read again: s0 of 64 KiB 2 times (" in line


def test_products_that_share_a_read_are_one():
    """Both halves of a byte: from one read where there are few rows, and from two where siblings are left out."""
    weight = RNG.integers(-128, 128, (256, 512), np.int8)
    program = build(lambda x, w: [list(halves(x, w)), [w]], [f32(2, 512)], [weight])
    compile = CinnCompiler().compile
    assert compile(program, device("cpu")).report()["weights_read_again"] == []
    (apart,) = compile(program, device("cpu"), options={"without": ["siblings"]}).report()["weights_read_again"]
    assert apart["times"] == 2


def test_a_weight_is_read_again_for_each_few_rows_that_do_not_leave_it_in_the_cache():
    """Where the second-level cache does not hold what a chunk reads; code for all numbers of rows counts those of a
    call, and few rows read it once."""
    target, n = Target.host(), SymExpr.symbol("n")
    together, out = min(8, target.registers // 4), 256
    for depth, again in ((target.l2_bytes // 512, False), (target.l2_bytes // 128, True)):
        program = Program("rows")
        x = program.add_input(TensorType((n, depth), "bfloat16"))
        weight = program.add_state("weight", TensorType((out, depth), "bfloat16")).argument
        with emit_at(Builder.at_end(program.block)):
            made = prim.dot_general(x, weight, lhs_contract=(1,), rhs_contract=(1,), accumulate="float32")
            program.set_outputs([made], [weight])
        executable = CinnCompiler().compile(program, device("cpu"), options={"batch_invariant": True})
        run = executable.bind([StridedArray.from_array(np.zeros((out, depth), ml_dtypes.bfloat16))])
        for rows in (together, 3 * together):
            run([StridedArray.from_array(np.zeros((rows, depth), ml_dtypes.bfloat16))])
            expected = [{"name": "weight", "bytes": 2 * out * depth, "times": 3}] if again and rows > together else []
            assert executable.report()["weights_read_again"] == expected, (depth, rows)


def test_rows_of_a_table_slices_and_trained_weights_are_read_once():
    def tied(ids, table):
        x = prim.gather(table, prim.reshape(ids, shape=(3, 1)), axes=(0,))
        return [prim.dot_general(x, table, lhs_contract=(1,), rhs_contract=(1,))], [table]

    def sliced(x, w):
        parts = [prim.slice(w, start=(0, i * 128), limit=(128, i * 128 + 128), stride=(1, 1)) for i in (0, 1)]
        return [prim.dot_general(x, part, lhs_contract=(1,), rhs_contract=(0,)) for part in parts], [w]

    def trained(x, w):
        h = prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,))
        return [prim.dot_general(h, w, lhs_contract=(1,), rhs_contract=(1,))], [prim.mul(w, 0.5)]

    for function, given, weight in (
        (tied, np.arange(3), f32(500, 64)),
        (sliced, f32(2, 128), f32(128, 256)),
        (trained, f32(2, 128), f32(128, 128)),
    ):
        report = CinnCompiler().compile(build(function, [given], [weight]), device("cpu")).report()
        assert report["weights_read_again"] == [], function
