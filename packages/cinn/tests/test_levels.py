"""Processors without multiply-add, float16 conversions or rounding: code of their own instructions, with right values.

Without them LLVM calls the C library for each lane, which costs a hundred times as much, or functions that nothing
links.
"""

import ctypes
import re

import ml_dtypes
import numpy as np
import pytest
from contraction.products import Product
from programs import build, check

from argosy_cinn import functions
from argosy_cinn.assembly.building import assemble_program
from argosy_cinn.fuel import Budget
from argosy_cinn.pipeline import lower_program
from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import BFLOAT, DOUBLE, FLOAT, HALF, bytes_of, vector
from argosy_cinn.runtime import load
from argosy_cinn.runtime.jit import compile_object
from argosy_cinn.target import Target
from argosy_phi_ops import prim
from argosy_phi_ops.passes.primitives import to_primitives

pytestmark = pytest.mark.skipif(not Target.host().is_x86, reason="the levels are those of x86-64")
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
LEVELS = ["x86-64-v3", "x86-64-v2", "x86-64"]
#: What LLVM calls where a processor lacks the instruction.
CALLS = re.compile(
    rb"\0(fmaf?|roundevenf?|rintf?|nearbyintf?|floorf?|ceilf?|truncf?|__(extend|trunc)[bhsdx]f[bhsd]f2)(?=\0)"
)


def calls_of(text, target):
    """Names of CALLS that the machine code of a module leaves to others."""
    return sorted({name.decode() for name, _ in CALLS.findall(compile_object(text, target))})


def mapped(level, emit, source, result, x):
    """An array's elements by ``emit``, in code for a level; the calls that the code makes."""
    target = Target.from_name(level)
    module, lanes = Module(target), 4
    with module.function("f", [("ptr", "x"), ("ptr", "y"), ("i64", "n")]) as b:
        first, to, n = b.arguments
        with b.loop(0, n, lanes) as loop:
            b.store(
                emit(b, b.load(vector(source, lanes), b.gep(first, loop.index, source))), b.gep(to, loop.index, result)
            )
    text = module.text()
    library = load(text, module.exports, target)
    y = np.empty(x.size * bytes_of(result), np.uint8)
    assert x.size % lanes == 0
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, ctypes.c_int64)(library.address("f"))(
        x.ctypes.data, y.ctypes.data, x.size
    )
    return y, calls_of(text, target)


@pytest.mark.parametrize(("level", "fused"), [("x86-64-v3", True), ("x86-64-v2", False), ("neoverse-v1", True)])
def test_multiply_add_is_one_instruction_or_two(level, fused):
    module = Module(Target.from_name(level))
    with module.function("f", [("ptr", "x")]) as b:
        (x,) = b.arguments
        b.store(b.fma(b.load("<4 x float>", x), 2.0, 1.0), x)
    assert ("@llvm.fma" in module.text()) is fused
    assert ("fmul <4 x float>" in module.text()) is not fused


@pytest.mark.parametrize("level", LEVELS)
def test_programs_call_nothing_for_each_lane(level):
    """Softmax, a norm, functions and sums; products; all roundings; conversions of float16."""
    target = Target.from_name(level)
    x, w = np.ones((33, 75), np.float32), np.ones(75, np.float32)

    def elementwise(x):
        return [getattr(prim, name)(x) for name in ("exp", "log", "tanh", "erf", "floor", "ceil", "round", "trunc")]

    for dtype in ("float32", "float16", ml_dtypes.bfloat16):
        arrays = [x.astype(dtype), w.astype(dtype)]
        rows = [np.ones((8, 4), dtype), np.ones((4, 2), dtype), np.ones(2, np.float32)]
        each = (row_work, arrays), (elementwise, arrays[:1]), (as_halves, arrays[:1]), (layer, rows)
        for function, operands in each:
            program = build(function, operands)
            _, assembly = assemble_program(lower_program(to_primitives(program), target), target, Budget())
            assert calls_of(assembly.module.text(), target) == []
    for element in (FLOAT, DOUBLE, HALF, BFLOAT):
        module = Module(target)
        Product(37, 75, 503, element=element, compute=DOUBLE if element == DOUBLE else FLOAT, module=module, name="p_")
        assert calls_of(module.text(), target) == []


@pytest.mark.parametrize("level", ["skylake-avx512", *LEVELS])
def test_convolutions_and_scatters_of_bfloat16_are_linked(level):
    """Numbers of 16 bits move as integers where there are no registers for them, constants among them too."""
    target, empty = Target.from_name(level), [np.zeros((2, 5, 12, 13), BFLOAT16), np.zeros((3, 5, 3, 3), BFLOAT16)]
    image = {"strides": (1, 1), "padding": ((1, 1),) * 2, "lhs_dilation": (1, 1), "rhs_dilation": (1, 1), "groups": 1}
    places, updates = np.zeros((4, 1), np.int64), np.zeros((4, 3), BFLOAT16)

    def scattered(x, places, updates):
        return prim.scatter(x, places, updates, axes=(0,), batch=0, kind="add")

    for program in (
        build(lambda x, w: prim.conv(x, w, **image), empty),
        build(scattered, [np.zeros((7, 3), BFLOAT16), places, updates]),
        build(lambda x: [prim.cast(x, dtype="float32"), prim.mul(x, 1.0)], [np.zeros(65_283, BFLOAT16)]),
    ):
        _, assembly = assemble_program(lower_program(to_primitives(program), target), target, Budget())
        assert calls_of(assembly.module.text(), target) == []


def row_work(x, w):
    like = {"shape": x.shape, "axes": (0,)}
    e = prim.exp(prim.sub(x, prim.broadcast(prim.reduce_max(x, axes=(1,)), **like)))
    scale = prim.rsqrt(prim.add(prim.reduce_sum(prim.mul(x, x), axes=(1,)), 1.0))
    normed = prim.mul(prim.mul(x, prim.broadcast(scale, **like)), prim.broadcast(w, shape=x.shape, axes=(1,)))
    return [prim.div(e, prim.broadcast(prim.reduce_sum(e, axes=(1,)), **like)), normed]


def layer(x, w, bias):
    """A product whose rows end within a vector, with an epilogue that rounds."""
    y = prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,))
    z = prim.add(y, prim.broadcast(prim.cast(bias, dtype=y.dtype), shape=y.shape, axes=(1,)))
    return [y, prim.add(z, z)]


def as_halves(x):
    return prim.cast(prim.cast(x, dtype="float16"), dtype="float64")


@pytest.mark.parametrize("level", LEVELS)
def test_every_half_is_a_float(level):
    x = np.arange(1 << 16, dtype=np.uint16)
    y, calls = mapped(level, lambda b, x: b.widen_float(x, FLOAT), HALF, FLOAT, x)
    want = x.view(np.float16).astype(np.float32)
    np.testing.assert_array_equal(y.view(np.float32), want)
    np.testing.assert_array_equal(np.signbit(y.view(np.float32)), np.signbit(want))
    assert calls == []


@pytest.mark.parametrize("level", LEVELS)
def test_floats_are_rounded_to_the_nearest_half(level):
    """Every half, the middle between it and the next, the neighbours of that middle; infinities and NaN; any bits."""
    halves = np.arange(1 << 15, dtype=np.uint16).view(np.float16)
    finite = halves[np.isfinite(halves)].astype(np.float32)
    middle = (finite + np.append(finite[1:], np.float32(65536))) / 2
    near = [finite, middle, np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(np.inf))]
    bits = np.random.default_rng(0).integers(0, 1 << 32, 40_000, np.uint32).view(np.float32)
    x = np.concatenate([*near, np.array([np.inf, np.nan, 1e-45, 3e38], np.float32), bits])
    x = np.resize(np.concatenate([x, -x]), 4 * (2 * x.size // 4))
    y, calls = mapped(level, lambda b, x: b.narrow_float(x, HALF), FLOAT, HALF, x)
    with np.errstate(all="ignore"):
        want = x.astype(np.float16)
    np.testing.assert_array_equal(y.view(np.float16), want)
    numbers = ~np.isnan(x)
    np.testing.assert_array_equal(y.view(np.uint16)[numbers], want.view(np.uint16)[numbers])
    assert calls == []


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("element", "dtype"), [(FLOAT, np.float32), (DOUBLE, np.float64)])
@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "roundeven", "rint", "nearbyint"])
def test_rounding_to_whole_numbers(name, element, dtype, level):
    """With the sign of zero; halves to even; numbers without a fraction, infinities and NaN as they are."""
    limit = 2.0**23 if dtype == np.float32 else 2.0**52
    x = np.concatenate([np.arange(-20, 20, 0.25), limit + np.arange(-4, 4, 0.5), [0.0, 1e-30, 1e30, np.inf, np.nan, 0.4,
                        0.49999997, 0.5]]).astype(dtype)  # fmt: skip
    x = np.concatenate([x, -x, np.nextafter(x, dtype(0)), np.nextafter(x, dtype(np.inf))])
    y, calls = mapped(level, lambda b, x: b.unary(name, x), element, element, x)
    want = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}.get(name, np.rint)(x)
    np.testing.assert_array_equal(y.view(dtype), want)
    np.testing.assert_array_equal(np.signbit(y.view(dtype)), np.signbit(want))
    assert calls == []


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_arguments_of_sine_and_cosine_are_reduced_exactly(name, level):
    """Also near multiples of pi / 2, where what is left is small beside what was taken away."""
    whole = np.unique(np.geomspace(1, 2**27.3, 4000).astype(np.int64))
    x = (whole * (np.pi / 2)).astype(np.float32)
    x = np.resize(np.concatenate([x, -x, np.nextafter(x, np.float32(0)), np.linspace(-8, 8, 5000)]), 16000)
    x = x.astype(np.float32)
    y, _ = mapped(level, functions.OWN[FLOAT][name], FLOAT, FLOAT, x)
    want = getattr(np, name)(x.astype(np.float64))
    error = np.abs(y.view(np.float32) - want) / np.spacing(np.abs(want).astype(np.float32))
    assert error.max() <= 1.5


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64"])
def test_programs_have_their_values(level, monkeypatch):
    """Programs compiled for a level, run here, beside the interpreter; none falls back to it."""
    monkeypatch.setattr(Target, "host", staticmethod(lambda: Target.from_name(level)))
    rng = np.random.default_rng(0)
    for dtype in ("float32", "float16"):
        x, w = rng.standard_normal((33, 75)).astype(dtype), rng.standard_normal(75).astype(dtype)
        executable = check(lambda x, w: row_work(x, w), x, w)
        assert not executable.report().get("fallback")
    a, b = rng.standard_normal((37, 301)), rng.standard_normal((301, 75))
    contract = {"lhs_contract": (1,), "rhs_contract": (0,), "lhs_batch": (), "rhs_batch": (), "accumulate": ""}
    for dtype in ("float32", "float64", "float16"):
        executable = check(lambda a, b: prim.dot_general(a, b, **contract), a.astype(dtype), b.astype(dtype), scale=20)
        assert not executable.report().get("fallback")
