"""Products of groups of rows whose sizes are data."""

import functools

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import build, check, values

from argosy_cinn import CinnCompiler
from argosy_cinn.pipeline import lower_program
from argosy_cinn.rewrites.indexed_products import ExpandIndexedProducts
from argosy_cinn.target import Target
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.passes.decompose import Decompose
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Builder, Program, TensorType
from argosy_pir.dims import SymExpr
from argosy_tensorcore.storage import StridedArray

LAYOUTS = {
    "rows": (lambda n, e, k, m: ((n, k), (e, k, m)), lambda *x: prim.grouped_dot(*x)),
    "transposed": (lambda n, e, k, m: ((n, k), (e, m, k)), lambda *x: prim.grouped_dot(*x, transposed=True)),
    "outer": (lambda n, e, k, m: ((n, k), (n, m)), lambda *x: prim.grouped_outer(*x)),
}


def operands(rng, layout, counts, k, m, dtype="float32", before=0, behind=0):
    starts = before + np.cumsum([0, *counts], dtype=np.int64)
    shapes = LAYOUTS[layout][0](int(starts[-1]) + behind, len(counts), k, m)
    return [*(values(rng, shape, dtype, -1, 1) for shape in shapes), starts]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_every_dtype_and_layout_gives_what_the_interpreter_does(layout, dtype):
    """Groups of none, one, few and many rows, and rows of no group."""
    given = operands(np.random.default_rng(0), layout, [0, 1, 30, 130, 2, 0], 70, 90, dtype, before=2, behind=3)
    report = check(LAYOUTS[layout][1], *given, scale=20).report()
    assert report["host_calls"] == {}


E2M1 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.int8)


def _pack(numbers, exact):
    """Bytes of two outputs, and what they hold, of ``exact`` numbers of a kind, or their places in ``E2M1``."""
    half = exact.shape[1] // 2
    if numbers not in ("int4", "e2m1"):
        return exact, exact
    return (exact[:, :half] & 15) | (exact[:, half:] << 4), E2M1[exact & 15] if numbers == "e2m1" else exact


def _unpack(numbers, packed):
    """The same within a program."""
    if numbers not in ("int4", "e2m1"):
        return packed
    halves = prim.shift_right(prim.shift_left(packed, 4), 4), prim.shift_right(packed, 4)
    return prim.concat(*(map(_twice_e2m1, halves) if numbers == "e2m1" else halves), axis=1)


def _twice_e2m1(bits):
    """Twice the numbers (two bits of exponent, one of mantissa) of four bits that are widened with their sign."""
    place = prim.bitwise_and(bits, 7)
    beyond = [prim.maximum(prim.sub(place, start), 0) for start in (4, 6, 6)]
    magnitude = functools.reduce(prim.add, beyond, place)
    return prim.select(prim.lt(bits, 0), prim.neg(magnitude), magnitude)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("numbers", "groups", "size"),
    [
        ("int8", 2, 96), ("float8_e4m3fn", 2, 96), ("int8", 1, 96), ("int4", 2, 96), ("int4", 2, 256), ("int4", 1, 640),
        ("e2m1", 3, 96), ("e2m1", 8, 256),
    ],
)  # fmt: skip
def test_matrices_in_few_bits_are_multiplied_as_they_are(numbers, groups, size, dtype):
    """With scales of groups, which are no whole cache lines, and of integers offsets: no matrix of floats is in memory,
    and none of bytes that hold two numbers each. Groups of none to many rows."""
    rng = np.random.default_rng(4)
    least, above = {"int8": (-127, 128), "int4": (-8, 8), "e2m1": (0, 16)}.get(numbers, (0, 1))
    wide = rng.standard_normal((4, 24, size)) if above == 1 else rng.integers(least, above, (4, 24, size))
    index = np.concatenate([np.zeros(40, np.int64), np.full(3, 2), [3]])[:, None]
    of_groups = [values(rng, (4, groups, 24), dtype, 0.01, 0.02) for _ in range(1 + (above > 1))]
    x, bias = (values(rng, shape, dtype, -1, 1) for shape in ((44, 1, size), (4, 24)))
    weight = wide.astype(ml_dtypes.float8_e4m3fn if above == 1 else np.int8)
    weight, exact = _pack(numbers, weight)

    def product(x, index, weight, *rest):
        weight = _unpack(numbers, weight)
        turned = prim.transpose(weight, permutation=(0, 2, 1))
        return get_operator("gather_mm")(x, index, turned, *rest)

    program = build(product, [x, index, weight, bias, *of_groups])
    Decompose().run(program)
    lowered = list(lower_program(program, Target.host()).block)
    (op,) = (op for op in lowered if op.name == "cinn.scaled_grouped_dot")
    assert not {"prim.grouped_dot", "prim.transpose", "prim.concat"} & {op.name for op in lowered}
    assert {scale.dtype for scale in op.operands[3:]} == {dtype}
    given = [StridedArray.from_array(a) for a in (x, index, weight, bias, *of_groups)]
    (made,) = CinnCompiler().compile(program, device("cpu")).run(given)
    scales, *offsets = (np.repeat(a, size // groups, 1).astype(np.float64) for a in of_groups)
    matrices = exact.astype(np.float64).swapaxes(1, 2) * scales + sum(offsets)
    want = np.einsum("nck,nckm->ncm", x.astype(np.float64), matrices[index]) + bias.astype(np.float64)[index]
    room = {"float32": 2.0**-20, "float16": 2.0**-9, "bfloat16": 2.0**-6}[dtype] * np.abs(want).max()
    np.testing.assert_allclose(made.array().astype(np.float64), want, rtol=0, atol=room)


@pytest.mark.parametrize("cpu", ["host", "skylake-avx512", "x86-64-v3", "x86-64-v2"])
@pytest.mark.parametrize(("numbers", "groups"), [("int8", 1), ("int8", 4), ("int4", 4), ("e2m1", 16)])
def test_rows_in_bytes_have_sums_of_integers(numbers, groups, cpu, monkeypatch):
    """Of groups where there are some, with whatever a processor multiplies bytes."""
    if cpu != "host":
        if not Target.host().is_x86:
            pytest.skip("x86 levels")
        target = Target.from_name(cpu)
        if target.vector_bits > Target.host().vector_bits:
            pytest.skip("vectors of 512 bits")
        monkeypatch.setattr(Target, "host", staticmethod(lambda: target))
    rng, size = np.random.default_rng(5), 512
    bound = 128 if numbers == "int8" else 8
    exact = rng.integers(-bound, bound, (4, 38, size)).astype(np.int8)
    exact[0, :2], index = -bound, np.concatenate([np.zeros(90, np.int64), np.full(3, 2), [3]])[:, None]
    x = rng.integers(-128, 128, (94, 1, size)).astype(np.int8)
    x[0], x[93] = -128, 127
    scales = rng.uniform(0.01, 0.02, (4, groups, 38)).astype(np.float32 if groups == 4 else np.float16)
    weight, exact = _pack(numbers, exact)

    def product(x, index, weight, scales):
        turned = prim.transpose(_unpack(numbers, weight), permutation=(0, 2, 1))
        return get_operator("gather_mm")(x, index, turned, None, scales)

    program = build(product, [x, index, weight, scales])
    Decompose().run(program)
    (op,) = (op for op in lower_program(program, Target.host()).block if op.name == "cinn.scaled_grouped_dot")
    assert op.operand(0).dtype == "int8"
    given = [StridedArray.from_array(a) for a in (x, index, weight, scales)]
    executable = CinnCompiler().compile(program, device("cpu"))
    ((made,), ((want,), _)) = executable.run(given), interpret(program, [x, index, weight, scales])
    terms = x.astype(np.int64).reshape(94, 1, groups, -1) * exact[index[:, 0]].reshape(94, 38, groups, -1)
    sums = (terms.sum(-1).swapaxes(1, 2) * scales[index[:, 0]].astype(np.float64)).sum(1)[:, None]
    rounded = sums if groups == 1 else np.abs(terms).sum((2, 3))[:, None] * scales.max()  # lanes of groups are
    assert (np.abs(made.array() - sums) <= np.abs(rounded) * 2.0**-23).all()
    assert np.abs(made.array() - want).max() <= 1e-5 * np.abs(want).max()
    assert not executable.report().get("fallback")


@settings(deadline=None, max_examples=20)
@given(st.data())
def test_groups_of_any_sizes(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    counts = data.draw(st.lists(st.sampled_from([0, 1, 2, 5, 17, 70]), min_size=1, max_size=5))
    k, m = (data.draw(st.sampled_from([1, 3, 16, 33, 600])) for _ in range(2))
    layout = data.draw(st.sampled_from(sorted(LAYOUTS)))
    given = operands(rng, layout, counts, k, m, before=data.draw(st.integers(0, 1)), behind=1)
    check(LAYOUTS[layout][1], *given, scale=20)


def test_bounds_beyond_the_rows_are_clamped():
    rng = np.random.default_rng(2)
    for layout in LAYOUTS:
        given = operands(rng, layout, [3, 4, 5], 20, 24)
        given[2] = np.array([-5, 4, 9, 1 << 40])
        check(LAYOUTS[layout][1], *given, scale=10)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_compilation_serves_every_number_of_rows(layout):
    n = SymExpr.symbol("n")
    shapes = [*LAYOUTS[layout][0](n, 3, 40, 48), (4,)]
    program = Program("grouped")
    inputs = [program.add_input(TensorType(s, "float32" if i < 2 else "int64")) for i, s in enumerate(shapes)]
    with emit_at(Builder.at_end(program.block)):
        program.set_outputs([LAYOUTS[layout][1](*inputs)])
    executable = CinnCompiler().compile(program, device("cpu"))
    rng = np.random.default_rng(3)
    for counts in ([1, 0, 0], [9, 1, 70], [300, 5, 4], [0, 2500, 1]):
        given = operands(rng, layout, counts, 40, 48)
        fixed = CinnCompiler().compile(build(LAYOUTS[layout][1], given), device("cpu"))
        made, want = (e.run([StridedArray.from_array(x) for x in given], [])[0].array() for e in (executable, fixed))
        np.testing.assert_allclose(made, want, rtol=1e-4, atol=1e-4)
    assert executable.report()["compilations"] == 1


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_sums_of_what_is_looked_up_are_the_same(layout, dtype):
    """What work-groups compute: groups of none, and rows of no group."""
    given = operands(np.random.default_rng(4), layout, [0, 1, 9, 0, 3], 7, 5, dtype, before=2, behind=3)
    program = build(LAYOUTS[layout][1], given)
    ((expected,), _) = interpret(program, given)
    assert ExpandIndexedProducts().run(program)
    ((found,), _) = interpret(program, given)
    found, expected = (x.astype(np.float64) for x in (found, expected))
    np.testing.assert_allclose(found, expected, rtol=1e-2 if dtype == "bfloat16" else 1e-5, atol=1e-6)
