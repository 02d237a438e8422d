"""Programs with symbolic sizes: one compilation, right at every size."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import assert_equal

from argosy_cinn import CinnCompiler, specialise
from argosy_cinn.shapes import surely_at_least, surely_less
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Builder, Program, TensorType
from argosy_pir.core import Block, Operation, Region
from argosy_pir.dims import SymExpr
from argosy_tensorcore.storage import StridedArray

B, T = SymExpr.symbol("b"), SymExpr.symbol("t")
SIZES = ((1, 1), (2, 7), (7, 64), (64, 3), (3, 129))
RNG = np.random.default_rng(7)


def program_of(function, types):
    program = Program("symbolic")
    inputs = [program.add_input(TensorType(shape, dtype)) for shape, dtype in types]
    with emit_at(Builder.at_end(program.block)):
        results = function(*inputs)
    program.set_outputs(list(results) if isinstance(results, (tuple, list)) else [results])
    return program


def argument(shape, dtype, symbols):
    shape = tuple(n if isinstance(n, int) else n.evaluate(symbols) for n in shape)
    if dtype.startswith("float"):
        return (RNG.random(shape) * 4 - 2).astype(dtype)
    return RNG.integers(0, 5, shape).astype(dtype)


def check(function, *types, scale=50.0, sizes=SIZES, compilations=1):
    """Compile once, and compare with the interpreter at several sizes."""
    program = program_of(function, types)
    executable = CinnCompiler().compile(program, device("cpu"))
    for b, t in sizes:
        arguments = [argument(*type, {"b": b, "t": t}) for type in types]
        want, _ = interpret(program, arguments)
        got = executable.run([StridedArray.from_array(a) for a in arguments])
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            assert_equal(g.array(), w, scale, f"output {i} at {(b, t)}")
    report = executable.report()
    assert report["not_symbolic"] == ""
    assert report["compilations"] == compilations
    return executable


def rows(x, value):
    return prim.broadcast(value, shape=x.shape, axes=(0,))


def softmax(x):
    e = prim.exp(prim.sub(x, rows(x, prim.reduce_max(x, axes=(1,)))))
    return prim.div(e, rows(x, prim.reduce_sum(e, axes=(1,))))


def heads(x):
    y = prim.transpose(prim.reshape(x, shape=(B, T, 4, 16)), permutation=(0, 2, 1, 3))
    scores = prim.dot_general(y, y, lhs_contract=(3,), rhs_contract=(3,), lhs_batch=(0, 1), rhs_batch=(0, 1))
    mixed = prim.dot_general(scores, y, lhs_contract=(3,), rhs_contract=(2,), lhs_batch=(0, 1), rhs_batch=(0, 1))
    return prim.reshape(prim.transpose(mixed, permutation=(0, 2, 1, 3)), shape=(B * T, 64))


def matmul(x, w):
    return prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,))


def convolution(**settings):
    ones = {name: (1, 1) for name in ("strides", "lhs_dilation", "rhs_dilation")}
    return lambda x, w: prim.conv(x, w, padding=((1, 1), (1, 1)), **ones | settings)


F, INTEGER = "float32", "int64"
CASES = {
    "elementwise": (lambda x, y: prim.mul(prim.add(x, y), prim.exp(x)), ((B, T), F), ((B, T), F)),
    "one row": (lambda x: prim.add(x, 1.0), ((T,), F)),
    "row sums": (lambda x: prim.reduce_sum(x, axes=(1,)), ((B, T), F)),
    "column sums": (lambda x: prim.reduce_sum(prim.mul(x, x), axes=(0,)), ((B, T), F)),
    "middle sums": (lambda x: prim.reduce_max(x, axes=(1,)), ((B, T, 20), F)),
    "softmax": (softmax, ((B, T), F)),
    "rows of a product": (
        lambda x, w: prim.tanh(matmul(prim.reshape(x, shape=(B * T, 70)), w)), ((B, T, 70), F), ((70, 33), F),
    ),
    "depth of a product": (matmul, ((B, T), F), ((T, 33), F)),
    "columns of a product": (matmul, ((33, B), F), ((B, T), F)),
    "transposed product": (lambda x, y: matmul(prim.transpose(x, permutation=(1, 0)), y), ((B, T), F), ((B, 9), F)),
    "wide product": (matmul, ((B, T), "float64"), ((T, T), "float64")),
    "heads": (heads, ((B, T, 64), F)),
    "joined": (lambda x, y: prim.concat(x, y, axis=1), ((B, T), F), ((B, 2 * T), F)),
    "padded": (lambda x: prim.pad(x, 0.5, low=(1, 2), high=(0, 1), interior=(1, 0)), ((B, T), F)),
    "joined with gaps": (
        lambda x: prim.concat(x, prim.pad(x, 7.0, low=(0, 3), high=(0, 2), interior=(0, 2)), axis=1), ((B, T), F),
    ),
    "reversed": (lambda x: prim.reverse(x, axes=(0, 1)), ((B, T), F)),
    "positions": (lambda x: prim.add(prim.iota(shape=(B, T), axis=1, dtype=F), x), ((B, T), F)),
    "looked up": (
        lambda w, i: prim.gather(w, prim.reshape(i, shape=(B, T, 1)), axes=(0,)), ((50, 32), F), ((B, T), INTEGER),
    ),
    "added up at": (
        lambda w, i, u: prim.scatter(w, prim.reshape(i, shape=(T, 1)), u, axes=(0,), kind="add"),
        ((9, B), F), ((T,), INTEGER), ((T, B), F),
    ),
    "sorted": (lambda x: prim.sort(x, prim.iota(shape=(B, T), axis=1, dtype=INTEGER), axis=1, keys=1), ((B, T), F)),
    "complex": (
        lambda x, y: [prim.abs(prim.mul(prim.complex(x, y), prim.complex(y, x))),
                      prim.cumulative(prim.complex(x, y), axis=1, kind="sum")], ((B, T), F), ((B, T), F),
    ),
    "running": (lambda x: prim.cumulative(x, axis=1, kind="sum", reverse=False), ((B, T), F)),
    "convolution": (convolution(groups=1), ((B, 4, 12, 11), F), ((8, 4, 3, 3), F)),
    "convolution of few places": (convolution(groups=1), ((B, 4, 3, 4), F), ((8, 4, 3, 3), F)),
    "convolution by taps": (convolution(groups=4), ((B, 4, T, 9), F), ((4, 1, 3, 3), F)),
    "convolution of any image": (convolution(groups=2, strides=(2, 1)), ((B, 4, T, T), F), ((6, 2, 3, 3), F)),
    "transposed convolution": (convolution(groups=1, lhs_dilation=(2, 2)), ((B, 4, T, 5), F), ((6, 4, 3, 3), F)),
    "gradient of a convolution's weights": (convolution(groups=1), ((3, B, T, T), F), ((8, B, T, T), F)),
    "beside an empty tensor": (
        lambda x, y: [prim.tanh(x), prim.reduce_sum(prim.concat(y, y, axis=1), axes=(1,)),
                      prim.mul(prim.broadcast(prim.reduce_sum(x, axes=(1,)), shape=(B, 0), axes=(0,)), 2.0)],
        ((B, T), F), ((3, 0), F),
    ),
    "beside a number": (lambda x, w: matmul(prim.constant(0.5, F, (B, T)), matmul(w, x)), ((B, T), F), ((T, B), F)),
    "mean": (lambda x: prim.div(prim.reduce_sum(x, axes=(0, 1)), prim.cast(prim.dim_size(dim=B * T), dtype=F)),
             ((B, T), F)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_one_compilation_is_right_at_every_size(name):
    function, *types = CASES[name]
    check(function, *types)


@pytest.mark.parametrize("transposed", [False, True])
def test_products_of_any_number_of_rows_from_one_to_more_than_a_few(transposed):
    def function(x, w):
        return prim.tanh(matmul(x, prim.transpose(w, permutation=(1, 0)) if transposed else w))

    sizes = [(n, 1) for n in (1, 2, 5, 6, 7, 8, 9, 33, 64, 65, 130)]
    check(function, ((B, 300), F), ((40, 300) if transposed else (300, 40), F), sizes=sizes)


def test_many_sizes_share_the_code_and_a_zero_does_not():
    executable = check(lambda x: prim.reduce_sum(x, axes=(1,)), ((B, T), F), sizes=[(1 + i, 3) for i in range(40)])
    assert executable.report()["sizes"] == 40
    check(lambda x: prim.reduce_sum(x, axes=(1,)), ((B, T), F), sizes=[(2, 3), (0, 3), (2, 0)], compilations=3)


def test_host_calls_are_named_as_the_reason_for_specialising():
    program = program_of(lambda x: prim.fft(x, axes=(0,), kind="r2c"), [((T,), F)])
    executable = CinnCompiler().compile(program, device("cpu"))
    executable.run([StridedArray.from_array(argument((T,), F, {"t": n})) for n in (5,)])
    report = executable.report()
    assert "prim.fft" in report["not_symbolic"]
    assert (report["compilations"], report["specialisations"]) == (1, 1)


def test_a_state_of_known_size_is_updated_from_batches_of_any_size():
    program = Program("step")
    x = program.add_input(TensorType((B, 30), F))
    w = program.add_state("w", TensorType((30, 20), F)).argument
    with emit_at(Builder.at_end(program.block)):
        y = matmul(x, w)
        gradient = matmul(prim.transpose(x, permutation=(1, 0)), prim.tanh(y))
        updated = prim.sub(w, prim.mul(gradient, 0.01))
    program.set_outputs([y], [updated])
    executable = CinnCompiler().compile(program, device("cpu"))
    held = StridedArray.from_array(argument((30, 20), F, {}))
    call = executable.bind([held])
    for size in (1, 2, 7, 64, 129):
        a = argument((size, 30), F, {})
        (want,), (after,) = interpret(program, [a], [held.array().copy()])
        (got,) = call([StridedArray.from_array(a)])
        assert_equal(got.array(), want, 50)
        assert_equal(held.array(), after, 50)
    assert executable.report()["compilations"] == 1


def test_what_is_proven_of_sizes_holds_for_all_of_them():
    assert surely_less(T * 64 - 1, T * 64)
    assert surely_at_least(B * T, T)
    assert not surely_less(B, T)
    assert not surely_less(T, B * T)
    assert not surely_at_least(T - 2, 0)


@st.composite
def graphs(draw):
    """A list of steps that grow a pool of values of shape (b, t)."""
    return draw(
        st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=9)
    )


STEPS = ("add", "mul", "tanh", "softmax", "rows", "columns", "transposed", "reversed", "shifted", "product", "flat")


def _grow(name, x, y):
    if name in ("add", "mul"):
        return getattr(prim, name)(x, y)
    if name == "tanh":
        return prim.tanh(x)
    if name == "softmax":
        return softmax(x)
    if name == "rows":
        return prim.sub(x, rows(x, prim.reduce_max(y, axes=(1,))))
    if name == "columns":
        return prim.sub(x, prim.broadcast(prim.reduce_max(y, axes=(0,)), shape=x.shape, axes=(1,)))
    if name == "transposed":
        return prim.transpose(prim.tanh(prim.transpose(x, permutation=(1, 0))), permutation=(1, 0))
    if name == "reversed":
        return prim.reverse(x, axes=(1,))
    if name == "shifted":
        wide = prim.pad(x, 0.0, low=(0, 1), high=(0, 0), interior=(0, 0))
        return prim.slice(wide, start=(0, 0), limit=(B, T), stride=(1, 1))
    if name == "product":
        square = prim.dot_general(prim.tanh(x), prim.tanh(y), lhs_contract=(0,), rhs_contract=(0,))
        return prim.tanh(prim.dot_general(x, square, lhs_contract=(1,), rhs_contract=(0,)))
    return prim.reshape(prim.abs(prim.reshape(x, shape=(B * T,))), shape=(B, T))


@settings(max_examples=12, deadline=None)
@given(graphs(), st.integers(1, 70), st.integers(1, 70))
def test_random_programs_agree_with_the_interpreter_at_every_size(graph, b, t):
    def function(x, y):
        pool = [x, y]
        for name, i, j in graph:
            pool.append(_grow(name, pool[i % len(pool)], pool[j % len(pool)]))
        return [prim.tanh(pool[-1]), prim.reduce_max(pool[-2], axes=(0, 1))]

    check(function, ((B, T), "float64"), ((B, T), "float64"), scale=1e5, sizes=[(b, t), (1, 5), (17, 33)])


def test_a_scan_of_any_length_and_batch_is_compiled_once():
    program = Program("recurrence")
    xs, h, w = (program.add_input(TensorType(s, F)) for s in ((T, B, 8), (B, 8), (8, 8)))
    builder = Builder.at_end(program.block)
    block = Block([h.type, h.type])
    with emit_at(Builder.at_end(block)):
        x, old = block.arguments
        largest = prim.broadcast(prim.reduce_max(old, axes=(1,)), shape=x.shape, axes=(0,))
        new = prim.tanh(prim.mul(prim.add(matmul(old, w), prim.mul(x, largest)), 0.1))  # errors do not grow
    block.append(Operation("control.yield", [prim_sum(block, new), new]))
    region = Region()
    region.append(block)
    scan = builder.create("control.scan", [xs, h], {"inputs": 1}, [TensorType((T, 8), F), h.type], [region])
    program.set_outputs(list(scan.results))
    executable = CinnCompiler().compile(program, device("cpu"))
    for b, t in SIZES:
        arguments = [argument(v.shape, F, {"b": b, "t": t}) for v in (xs, h, w)]
        want, _ = interpret(program, arguments)
        got = executable.run([StridedArray.from_array(a) for a in arguments])
        for g, v in zip(got, want, strict=True):
            assert_equal(g.array(), v, 200)
    report = executable.report()
    assert (report["not_symbolic"], report["compilations"], report["host_calls"]) == ("", 1, {})


def prim_sum(block, value):
    """The sum over axis 0, at the end of a block."""
    with emit_at(Builder.at_end(block)):
        return prim.reduce_sum(value, axes=(0,))


def test_code_of_single_sizes_is_kept_for_the_latest_used(monkeypatch):
    monkeypatch.setattr(specialise, "_KEPT_SPECIALISED", 2)
    program = program_of(lambda x: prim.fft(x, axes=(0,), kind="r2c"), [((T,), F)])
    executable = CinnCompiler().compile(program, device("cpu"))
    inputs = {n: [StridedArray.from_array(argument((T,), F, {"t": n}))] for n in (4, 5, 6)}
    run = executable.bind([])
    made = {n: weakref.ref(executable.for_sizes(inputs[n], [])) for n in (4, 5)}
    for n in (4, 5, 4):
        run(inputs[n])
    assert executable.for_sizes(inputs[4], []) is made[4]()
    np.testing.assert_allclose(run(inputs[6])[0].array(), np.fft.rfft(inputs[6][0].array()), rtol=1e-5)
    assert executable.for_sizes(inputs[4], []) is made[4]()
    assert executable.report()["specialisations"] == 3
    run(inputs[4])
    gc.collect()
    assert made[5]() is None
    run(inputs[5])
    assert executable.report()["specialisations"] == 4
