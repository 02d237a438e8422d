"""Programs of several sizes that depend on each other, compiled once: right at every combination of sizes up to 70,
where vectors, tiles and windows end anywhere. A size of zero has code of its own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import assert_equal
from test_symbolic import F, argument, matmul, program_of, softmax

from argosy_cinn import CinnCompiler
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Builder, Program, TensorType
from argosy_pir.core import Block, Operation, Region
from argosy_pir.dims import SymExpr
from argosy_tensorcore.storage import StridedArray

B, T, N = (SymExpr.symbol(name) for name in "btn")
ONES = {name: (1, 1) for name in ("strides", "lhs_dilation", "rhs_dilation")}


def images(x, w):
    """Two convolutions, the second one over what the first one leaves of an image."""
    first = prim.tanh(prim.conv(x, w, padding=((1, 1), (1, 1)), **ONES))
    return prim.conv(first, w, padding=((2, 1), (1, 2)), **{**ONES, "strides": (2, 1)})


def attention(q, k, v):
    """Causal heads whose queries and keys have lengths of their own."""
    batch = {"lhs_batch": (0,), "rhs_batch": (0,)}
    scores = prim.dot_general(q, k, lhs_contract=(2,), rhs_contract=(2,), **batch)
    rows, columns = (prim.iota(shape=scores.shape, axis=axis, dtype="int64") for axis in (1, 2))
    seen = prim.select(prim.ge(rows, columns), scores, prim.constant(-1e9, F, scores.shape))
    top = prim.broadcast(prim.reduce_max(seen, axes=(2,)), shape=scores.shape, axes=(0, 1))
    e = prim.exp(prim.sub(seen, top))
    p = prim.div(e, prim.broadcast(prim.reduce_sum(e, axes=(2,)), shape=scores.shape, axes=(0, 1)))
    return prim.dot_general(p, v, lhs_contract=(2,), rhs_contract=(1,), **batch)


def joined_and_split(x, y):
    """Joined along a sum of sizes, normalised there, and cut where the parts met."""
    both = softmax(prim.concat(x, y, axis=1))
    left = prim.slice(both, start=(0, 0), limit=(B, T), stride=(1, 1))
    right = prim.slice(both, start=(0, T), limit=(B, T + N), stride=(1, 1))
    return [prim.mul(left, x), prim.reduce_sum(prim.add(right, y), axes=(0,)), prim.reverse(right, axes=(0, 1))]


def padded(x, w):
    """Gaps and margins, and a product over the length that this gives."""
    wide = prim.pad(x, 0.5, low=(0, 3), high=(0, 1), interior=(0, 1))
    cut = prim.slice(wide, start=(0, 2), limit=(B, 2 + 2 * T), stride=(1, 2))
    return [softmax(wide), matmul(cut, w), prim.cumulative(cut, axis=1, kind="sum")]


CASES = {
    "convolution": (images, [((B, 3, T, N), F), ((3, 3, 3, 3), F)], 200),
    "attention": (attention, [((B, T, 16), F), ((B, N, 16), F), ((B, N, 16), F)], 50),
    "concat and split": (joined_and_split, [((B, T), F), ((B, N), F)], 50),
    "padding": (padded, [((B, T), F), ((T, N), F)], 200),
}
#: Each size alone at vector ends and primes, and none; small batches keep the interpreter quick.
EDGES = [(2, 1, 5), (1, 2, 1), (3, 15, 17), (2, 16, 3), (1, 33, 64), (2, 31, 2), (1, 70, 67), (5, 7, 70)]
_made = {}


def executable_of(name):
    if name not in _made:
        function, types, _ = CASES[name]
        program = program_of(function, types)
        _made[name] = program, CinnCompiler().compile(program, device("cpu"))
    return _made[name]


def agree(name, sizes):
    _, types, scale = CASES[name]
    program, executable = executable_of(name)
    symbols = dict(zip("btn", sizes, strict=True))
    arguments = [argument(*type, symbols) for type in types]
    want, _ = interpret(program, arguments)
    got = executable.run([StridedArray.from_array(a) for a in arguments])
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        assert_equal(g.array(), w, scale, f"output {i} at {sizes}")


@pytest.mark.parametrize("name", CASES)
def test_one_compilation_serves_all_combinations(name):
    for sizes in EDGES:
        agree(name, sizes)
    report = executable_of(name)[1].report()
    assert (report["not_symbolic"], report["compilations"]) == ("", 1)


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=15, deadline=None)
@given(st.integers(1, 4), st.integers(1, 70), st.integers(1, 70))
def test_any_combination_of_sizes_is_right(name, b, t, n):
    agree(name, (b, t, n))


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("concat and split", (0, 5, 7)), ("concat and split", (2, 0, 7)), ("concat and split", (2, 5, 0)),
     ("convolution", (0, 5, 7)), ("attention", (0, 5, 7)), ("attention", (2, 0, 7)), ("padding", (0, 5, 7)),
     ("padding", (2, 5, 0))],
)  # fmt: skip
def test_nothing_of_a_size_is_right_too(name, sizes):
    agree(name, sizes)
    agree(name, (2, 5, 7))


@pytest.mark.parametrize(
    ("name", "sizes", "message"),
    [("padding", (2, 0, 7), r"b = 2, t = 0, n = 7: .*prim\.pad"), ("convolution", (2, 5, 0), r"n = 0: .*window of 3")],
)
def test_what_a_size_of_zero_makes_another_shape_is_refused(name, sizes, message):
    """Gaps between no elements are none: the formula of the padded size is not right there."""
    _, executable = executable_of(name)
    arguments = [argument(*type, dict(zip("btn", sizes, strict=True))) for type in CASES[name][1]]
    with pytest.raises(ShapeError, match=message):
        executable.run([StridedArray.from_array(a) for a in arguments])
    agree(name, (2, 5, 7))


def test_a_scan_of_a_part_of_a_batch_is_right_at_any_size():
    """As many steps as rows are left of a longer batch; what it stacks goes through a softmax."""
    program = Program("recurrence")
    xs, before, h = (program.add_input(TensorType(s, F)) for s in ((T, B), (N, B), (B,)))
    builder = Builder.at_end(program.block)
    with emit_at(builder):
        part = prim.slice(prim.concat(before, xs, axis=0), start=(N, 0), limit=(N + T, B), stride=(1, 1))
    block = Block([h.type, h.type])
    with emit_at(Builder.at_end(block)):
        x, old = block.arguments
        new = prim.tanh(prim.add(prim.mul(x, 0.5), prim.mul(old, 0.5)))
    block.append(Operation("control.yield", [prim_copy(block, new), new]))
    region = Region()
    region.append(block)
    scan = builder.create("control.scan", [part, h], {"inputs": 1}, [TensorType((T, B), F), h.type], [region])
    with emit_at(builder):
        results = [softmax(scan.results[0]), scan.results[1]]
    program.set_outputs(results)
    executable = CinnCompiler().compile(program, device("cpu"))
    for b, t, n in [*EDGES, (70, 3, 1), (64, 70, 13)]:
        arguments = [argument(v.shape, F, {"b": b, "t": t, "n": n}) for v in (xs, before, h)]
        want, _ = interpret(program, arguments)
        got = executable.run([StridedArray.from_array(a) for a in arguments])
        for g, v in zip(got, want, strict=True):
            assert_equal(g.array(), v, 50)
    report = executable.report()
    assert (report["not_symbolic"], report["compilations"], report["host_calls"]) == ("", 1, {})


def prim_copy(block, value):
    with emit_at(Builder.at_end(block)):
        return prim.mul(value, 2.0)


def test_sizes_of_the_arguments_must_agree():
    _, executable = executable_of("concat and split")
    x, y = (np.zeros(shape, np.float32) for shape in ((3, 5), (4, 7)))
    with pytest.raises(ValueError, match="b"):
        executable.run([StridedArray.from_array(x), StridedArray.from_array(y)])
