"""Fused attention against the reference interpreter: found by dataflow, in memory linear in the sequence."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import assert_equal, build, check, unguarded_report, values

from argosy_cinn import CinnCompiler, explain
from argosy_cinn.fusion.memory import Memory
from argosy_cinn.pipeline import lower_program
from argosy_cinn.runtime import set_threads
from argosy_cinn.target import Target
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Builder, Program, TensorType
from argosy_pir.dims import SymExpr
from argosy_tensorcore.storage import StridedArray

RNG = np.random.default_rng(0)
HEADS = {"lhs_batch": (0, 1), "rhs_batch": (0, 1)}


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def rows(x, like):
    return prim.broadcast(x, shape=like.shape, axes=(0, 1, 2))


def scores_of(q, k):
    return prim.dot_general(q, k, lhs_contract=(3,), rhs_contract=(3,), **HEADS)


def index(like, axis, dtype="int64"):
    return prim.iota(shape=like.shape, axis=axis, dtype=dtype)


def spread(x, groups):
    """Heads that serve several others, as the operators write it."""
    batch, heads, length, size = x.shape
    wide = prim.broadcast(x, shape=(batch, heads, groups, length, size), axes=(0, 1, 3, 4))
    return prim.reshape(wide, shape=(batch, heads * groups, length, size))


class Attention:
    """Softmax attention with what autograd makes of it. ``mask(scores)`` gives scores and a function from the gradient
    of what it returns to that of what it got; ``drop(weights)`` likewise."""

    def __init__(self, mask=None, drop=None, scale=0.3):
        self.mask, self.drop, self.scale = mask, drop, scale

    def forward(self, q, k, v):
        s, self.unmask = prim.mul(scores_of(q, k), self.scale), lambda d: d
        if self.mask is not None:
            s, self.unmask = self.mask(s)
        self.e = prim.exp(prim.sub(s, rows(prim.reduce_max(s, axes=(3,)), s)))
        self.total = rows(prim.reduce_sum(self.e, axes=(3,)), s)
        self.p, (self.dropped, self.undrop) = prim.div(self.e, self.total), (None, lambda d: d)
        self.dropped = self.p
        if self.drop is not None:
            self.dropped, self.undrop = self.drop(self.p)
        return prim.dot_general(self.dropped, v, lhs_contract=(3,), rhs_contract=(2,), **HEADS)

    def both(self, q, k, v, g):
        o = self.forward(q, k, v)
        g = prim.add(g, o)  # the backward sweep needs the result
        dv = prim.dot_general(self.dropped, g, lhs_contract=(2,), rhs_contract=(2,), **HEADS)
        t = prim.div(self.undrop(scores_of(g, v)), self.total)
        inner = prim.reduce_sum(prim.neg(prim.mul(t, self.p)), axes=(3,))
        ds = prim.mul(self.unmask(prim.mul(prim.add(t, rows(inner, t)), self.e)), self.scale)
        dq = prim.dot_general(ds, k, lhs_contract=(3,), rhs_contract=(2,), **HEADS)
        dk = prim.dot_general(ds, q, lhs_contract=(2,), rhs_contract=(2,), **HEADS)
        return [o, dq, dk, dv]


def where(keep, fill=float("-inf")):
    return lambda s: (prim.select(keep(s), s, fill), lambda d: prim.select(keep(d), d, 0.0))


def causal(s):
    return prim.le(index(s, 3), index(s, 2))


def window(s):
    near = prim.gt(index(s, 3), prim.sub(index(s, 2), 20))
    return prim.logical_and(causal(s), near)


def operands(m, n, d=16, e=16, batch=2, heads=3):
    return f32(batch, heads, m, d), f32(batch, heads, n, d), f32(batch, heads, n, e), f32(batch, heads, m, e)


def kernels(executable):
    return [line.split()[0] for line in explain(executable).splitlines() if line.startswith("  ")]


def fused(executable):
    return [name for name in kernels(executable) if name.startswith("attention")]


@pytest.mark.parametrize("mask", [None, where(causal)], ids=["full", "causal"])
@pytest.mark.parametrize("length", [1, 7, 64, 129, 300])
def test_forward_and_gradients_agree_with_the_interpreter_at_any_length(length, mask):
    executable = check(Attention(mask).both, *operands(length, length, 16, 24), scale=10)
    assert bool(fused(executable)) == (length > 1)


@pytest.mark.parametrize(("m", "n"), [(5, 300), (64, 200), (200, 64), (33, 65)])
def test_queries_and_keys_may_differ_in_number(m, n):
    assert fused(check(Attention(where(causal)).both, *operands(m, n), scale=10))


@pytest.mark.parametrize(("d", "e"), [(1, 3), (8, 8), (20, 33), (64, 80)])
def test_any_head_size(d, e):
    assert fused(check(Attention().both, *operands(40, 40, d, e), scale=20))


@pytest.mark.parametrize("length", [16, 33])
def test_queries_that_are_computed_may_have_the_shape_of_the_scores(length):
    """As many features as keys (64 of both, say): they are operands all the same, and have memory."""

    def program(q, k, v):
        rotated = prim.add(prim.mul(prim.sin(q), 0.5), prim.reverse(q, axes=(3,)))
        return Attention(where(causal)).forward(rotated, prim.cos(k), prim.tanh(v))

    assert fused(check(program, *operands(length, length, length, length)[:3], scale=20))


@pytest.mark.parametrize(
    "mask", [None, where(causal), where(window), where(causal, -1e9)], ids=["full", "causal", "window", "number"]
)
def test_one_compilation_serves_every_batch_and_length(mask):
    """Of a program with symbolic sizes; tiles, parts and what bounds hide follow the sizes."""
    b, t = SymExpr.symbol("b"), SymExpr.symbol("t")
    shapes = [(b, 3, t, 16), (b, 3, t, 16), (b, 3, t, 24), (b, 3, t, 24)]
    executable = check_sizes(Attention(mask).both, shapes, [(1, 1), (2, 7), (5, 64), (1, 129), (2, 300)])
    assert len(fused(executable)) == 2
    hidden = any("bounded" in line for line in explain(executable).splitlines())
    assert hidden == (mask is not None)


def test_queries_and_keys_of_different_symbolic_number():
    s, t = SymExpr.symbol("b"), SymExpr.symbol("t")
    shapes = [(2, 3, s, 16), (2, 3, t, 16), (2, 3, t, 24), (2, 3, s, 24)]
    executable = check_sizes(Attention().both, shapes, [(1, 1), (1, 200), (200, 1), (33, 64), (300, 65)])
    regions = [name for name in fused(executable) if not name.startswith("attention_sum")]
    assert len(regions) == 2


def check_sizes(function, shapes, sizes):
    """Compile for all sizes, once, and compare with the interpreter at some."""
    program = Program("symbolic")
    inputs = [program.add_input(TensorType(shape, "float32")) for shape in shapes]
    with emit_at(Builder.at_end(program.block)):
        results = function(*inputs)
    program.set_outputs(results)
    executable = CinnCompiler().compile(program, device("cpu"))
    for b, t in sizes:
        numbers = {"b": b, "t": t}
        given = [f32(*(n if isinstance(n, int) else n.evaluate(numbers) for n in shape)) for shape in shapes]
        want, _ = interpret(program, given)
        for got, expected in zip(executable.run([StridedArray(x) for x in given]), want, strict=True):
            assert_equal(got.array(), expected, 10, str(numbers))
    assert executable.report()["compilations"] == 1
    return executable


def test_a_forward_pass_is_one_kernel_without_intermediate_memory():
    report = unguarded_report(check(Attention(where(causal)).forward, *operands(100, 100)[:3], scale=5))
    assert (report["kernel_calls"], report["arena_bytes"]) == (1, 0)


def test_memory_is_linear_in_the_sequence():
    """Four times the tokens take at most about four times the arena; scores would take sixteen."""

    def arena(length):
        program = build(Attention(where(causal)).both, operands(length, length, heads=8))
        return CinnCompiler().compile(program, device("cpu")).report()["arena_bytes"]

    small, large = arena(256), arena(1024)
    assert large < 4.5 * small
    assert large < 2 * 8 * 1024 * 1024 * 4 / 4


def test_masks_by_index_comparison_skip_tiles_however_they_are_written():
    def additive(s):
        nothing, much = (prim.constant(x, s.dtype, s.shape) for x in (0.0, -1e9))
        return prim.add(s, prim.select(causal(s), nothing, much)), lambda d: d

    def tril(s):
        ones = prim.cast(prim.ge(index(s, 2), index(s, 3)), dtype="float32")
        return prim.add(s, prim.mul(prim.sub(1.0, ones), -1e9)), lambda d: d

    def refused(s):
        return prim.select(prim.gt(index(s, 3), index(s, 2)), float("-inf"), s), lambda d: d

    for mask in (where(causal), where(window), additive, tril, refused):
        executable = check(Attention(mask).forward, *operands(150, 150)[:3], scale=5)
        assert "bounded" in explain(executable)


def test_a_sliding_window_has_gradients():
    executable = check(Attention(where(window)).both, *operands(150, 150), scale=10)
    assert explain(executable).count("bounded") == 2


def test_rows_that_see_no_key_stay_what_they_are():
    """A row without keys is NaN in the reference, so that no column may be left out."""
    strict = where(lambda s: prim.lt(index(s, 3), index(s, 2)))
    executable = check(Attention(strict).forward, *operands(40, 40)[:3], scale=5)
    assert "bounded" not in explain(executable)


def test_additive_and_boolean_masks_from_memory():
    m, n = 70, 45
    bias, keep = f32(1, 1, m, n), RNG.random((2, 1, 1, n)) < 0.7

    def program(q, k, v, g, bias, keep):
        def mask(s):
            kept = prim.broadcast(prim.reshape(keep, shape=(2, n)), shape=s.shape, axes=(0, 3))
            wide = prim.broadcast(prim.reshape(bias, shape=(m, n)), shape=s.shape, axes=(2, 3))
            return prim.select(kept, prim.add(s, wide), float("-inf")), lambda d: prim.select(kept, d, 0.0)

        return Attention(mask).both(q, k, v, g)

    assert len(fused(check(program, *operands(m, n), bias, keep, scale=10))) >= 2


def test_dropout_bits_are_computed_where_they_are_needed():
    def drop(p):
        bits = prim.shift_right(prim.rng_bits(state[0], shape=p.shape, counter=0), np.uint32(8))
        keep = prim.ge(prim.mul(prim.cast(bits, dtype="float32"), 2.0**-24), 0.2)
        return prim.select(keep, prim.mul(p, 1.25), 0.0), lambda d: prim.mul(prim.select(keep, d, 0.0), 1.25)

    state = [None]

    def program(q, k, v, g, key):
        state[0] = key
        return Attention(where(causal), drop).both(q, k, v, g)

    executable = check(program, *operands(200, 200, heads=6), np.array([3, 5], np.uint64), scale=10)
    assert len(fused(executable)) >= 2
    assert executable.report()["arena_bytes"] < 2 * 6 * 200 * 200 * 4 / 2


def test_heads_that_share_keys_read_them_in_place():
    def program(q, k, v, g):
        return Attention(where(causal)).both(q, spread(k, 3), spread(v, 3), g)

    q, k, v, g = f32(2, 6, 50, 16), f32(2, 2, 50, 16), f32(2, 2, 50, 16), f32(2, 6, 50, 16)
    executable = check(program, q, k, v, g, scale=10)
    assert [name for name in kernels(executable) if name.startswith("map")] == ["map_2x6x50x16"] or fused(executable)
    forward = check(lambda q, k, v: Attention().forward(q, spread(k, 3), spread(v, 3)), q, k, v, scale=5)
    assert forward.report()["kernel_calls"] == 1


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_narrow_floats_accumulate_in_float32(dtype):
    arguments = [values(RNG, x.shape, dtype, -1, 1) for x in operands(50, 50)]
    assert fused(check(Attention(where(causal)).both, *arguments, scale=4))


def shifted(by, reach=None):
    """Queries that see keys up to ``by`` behind themselves, and no more than ``reach`` of them."""

    def keep(s):
        near = prim.le(index(s, 3), prim.add(index(s, 2), by))
        if reach is None:
            return near
        return prim.logical_and(near, prim.gt(index(s, 3), prim.sub(prim.add(index(s, 2), by), reach)))

    return where(keep)


PAIRS = {
    "full": (None, 0), "causal": (shifted(0), 0), "even": (shifted(6), 6), "odd": (shifted(5), 5),
    "window": (shifted(0, 20), 0), "odd window": (shifted(0, 21), 0), "behind": (shifted(4, 30), 4),
}  # fmt: skip


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("case", PAIRS)
@pytest.mark.parametrize("length", [7, 64, 129, 183])
def test_cells_that_were_not_computed_are_not_read(length, case, dtype):
    """Strips of rows are in memory that holds anything: here what a run on NaN left there. Pairs of bfloat16 numbers
    begin at even places, whatever the length and the bound."""
    mask, behind = PAIRS[case]
    arguments = [values(RNG, x.shape, dtype, -1, 1) for x in operands(length, length + behind, 17, 33, 1, 2)]
    arguments[-1][:, :, -1] = 64  # so that it shows where the last row's share is missing
    program = build(Attention(mask).both, arguments, ())
    executable = CinnCompiler().compile(program, device("cpu"))
    assert fused(executable)
    nothing = [np.full_like(a, np.nan) for a in arguments]
    executable.run([StridedArray.from_array(a) for a in nothing])
    got = executable.run([StridedArray.from_array(a) for a in arguments])
    want, _ = interpret(program, arguments, [])
    for g, w in zip(got, want, strict=True):
        assert_equal(g.array(), w, 10)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_hidden_keys_of_large_scores_do_not_overflow_beside_the_last_column(dtype):
    """Beyond the last column there is no mask that would hide a score: its exponential is infinite."""
    q, k, v, g = (values(RNG, x.shape, dtype, -1, 1) for x in operands(33, 33))
    q[...], k[:, :, -1] = 3, 10
    hidden = np.zeros((33,), q.dtype)
    hidden[-1] = -np.inf

    def program(q, k, v, g, hidden):
        def mask(s):
            return prim.add(s, prim.broadcast(hidden, shape=s.shape, axes=(3,))), lambda d: d

        return Attention(mask).both(q, k, v, g)

    assert fused(check(program, q, k, v, g, hidden, scale=10))


def test_float64_is_not_fused_and_right():
    arguments = [x.astype(np.float64) for x in operands(30, 30)]
    assert not fused(check(Attention(where(causal)).both, *arguments, scale=10))


def test_transposed_layouts_are_read_and_written_in_place():
    def program(q, k, v):
        q, k, v = (prim.transpose(x, permutation=(0, 2, 1, 3)) for x in (q, k, v))
        return prim.transpose(Attention(where(causal)).forward(q, k, v), permutation=(0, 2, 1, 3))

    report = check(program, *(f32(2, 40, 3, 16) for _ in range(3)), scale=5).report()
    assert report["kernel_calls"] == 1


def test_weights_that_are_asked_for_are_not_fused_away():
    def program(q, k, v):
        attention = Attention()
        return [attention.forward(q, k, v), attention.p]

    assert not fused(check(program, *operands(30, 30)[:3], scale=5))


def test_a_logarithm_of_the_sum_may_leave():
    def program(q, k, v):
        s = scores_of(q, k)
        top = prim.reduce_max(s, axes=(3,))
        total = prim.reduce_sum(prim.exp(prim.sub(s, rows(top, s))), axes=(3,))
        norm = prim.add(top, prim.log(total))
        p = prim.exp(prim.sub(s, rows(norm, s)))
        return [prim.dot_general(p, v, lhs_contract=(3,), rhs_contract=(2,), **HEADS), norm]

    assert fused(check(program, *operands(40, 40)[:3], scale=5))


def test_two_layers_are_two_kernels_that_share_their_code():
    def program(q, k, v):
        for _ in range(2):
            q = Attention(where(causal)).forward(q, k, v)
        return q

    report = check(program, *operands(40, 40)[:3], scale=5).report()
    assert (report["kernel_calls"], report["kernels"]) == (2, 1)


def test_without_fuel_nothing_is_fused():
    assert not fused(check(Attention().forward, *operands(30, 30)[:3], scale=5, options={"fuel": 0}))


@pytest.mark.parametrize("heads", [1, 4])
def test_any_number_of_threads_gives_the_same_bits(heads):
    arguments = [StridedArray.from_array(x) for x in operands(700, 700, batch=1, heads=heads)]
    program = build(Attention(where(causal)).both, [x.array() for x in arguments])
    executable = CinnCompiler().compile(program, device("cpu"))
    found = []
    try:
        for threads in (1, 2, 4):
            set_threads(threads)
            found.append([x.array().tobytes() for x in executable.run(arguments)])
    finally:
        set_threads(1)
    assert found[0] == found[1] == found[2]


@pytest.mark.skipif(not Target.host().is_x86, reason="the levels are those of x86-64")
@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v2"])
def test_shorter_vectors_give_the_same_results(level, monkeypatch):
    monkeypatch.setattr(Target, "host", staticmethod(lambda: Target.from_name(level)))
    executable = check(Attention(where(window)).both, *operands(75, 75, 20, 20), scale=10)
    assert fused(executable)


@settings(max_examples=12, deadline=None)
@given(
    m=st.integers(4, 90),
    n=st.integers(4, 90),
    comparison=st.sampled_from(["le", "lt", "ge", "gt"]),
    shift=st.integers(-30, 90),
    slope=st.sampled_from([0, 1, 2]),
    inverted=st.booleans(),
)
def test_any_comparison_of_indices_is_a_mask(m, n, comparison, shift, slope, inverted):
    """What tiles a mask hides never changes what is computed, gradients included."""

    def mask(s):
        row = prim.add(prim.mul(index(s, 2), slope), shift)
        keep = getattr(prim, comparison)(index(s, 3), row)
        keep = prim.logical_not(keep) if inverted else keep
        return prim.select(keep, s, -1e9), lambda d: prim.select(keep, d, 0.0)

    check(Attention(mask).both, *operands(m, n, 8, 8, 1, 2), scale=10)


def test_what_a_region_reads_is_decided_once(monkeypatch):
    """By the first of its operations; and looked at again when all values are known."""
    settled = []
    plain = Memory._settle_region
    monkeypatch.setattr(Memory, "_settle_region", lambda self, region: (settled.append(region), plain(self, region)))
    program = build(Attention().both, [f32(1, 2, 40, 16)] * 4)
    memory = Memory(lower_program(program, Target.host()))
    regions = memory.regions.regions
    assert max(len(region.members()) for region in regions) > 1
    assert [settled.count(region) for region in regions] == [2] * len(regions)
