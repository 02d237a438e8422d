"""Every elementwise primitive gives what its reference kernel gives."""

import numpy as np
import pytest
from programs import DTYPES, build, check, values

from argosy_cinn.assembly.building import assemble_program
from argosy_cinn.fuel import Budget
from argosy_cinn.pipeline import lower_program
from argosy_cinn.target import Target
from argosy_phi_ops import prim
from argosy_phi_ops.passes.primitives import to_primitives
from argosy_phi_ops.primitives import PRIMITIVES

UNARY = {
    "neg": (-3, 3), "abs": (-3, 3), "sign": (-3, 3), "floor": (-3, 3), "ceil": (-3, 3), "round": (-3, 3),
    "trunc": (-3, 3),
    "exp": (-5, 5), "expm1": (-3, 3), "log": (1e-3, 9), "log1p": (-0.9, 9), "sqrt": (0, 9), "rsqrt": (0.01, 9),
    "sin": (-9, 9), "cos": (-9, 9), "tan": (-1.5, 1.5), "asin": (-1, 1), "acos": (-1, 1), "atan": (-9, 9),
    "sinh": (-3, 3),
    "cosh": (-3, 3), "asinh": (-9, 9), "acosh": (1, 9), "atanh": (-0.99, 0.99), "tanh": (-9, 9), "logistic": (-9, 9),
    "erf": (-4, 4), "erfc": (-3, 3), "erfinv": (-0.99, 0.99), "lgamma": (0.1, 9), "digamma": (0.5, 9),
    "is_finite": (-3, 3), "is_nan": (-3, 3), "is_inf": (-3, 3), "copy": (-3, 3), "stop_gradient": (-3, 3),
}  # fmt: skip
BINARY = ("add", "sub", "mul", "div", "rem", "floor_div", "floor_mod", "maximum", "minimum", "atan2", "nextafter")
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")
SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-42, -1e-42, 88.9, -104.5, 3e38, -3e38, 1e-38, 0.5, 5e5]
)


def apply(names, *x):
    return [PRIMITIVES[name](*x) for name in names]


NARROW = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize("dtype", ["float32", "float64", *NARROW])
@pytest.mark.parametrize("shape", [(), (1,), (37,), (3, 17)])
def test_unary_functions_agree_on_their_domains(dtype, shape):
    rng = np.random.default_rng(1)
    operands = [values(rng, shape, dtype, *limits) for limits in UNARY.values()]

    def program(*xs):
        return [PRIMITIVES[name](x) for name, x in zip(UNARY, xs, strict=True)]

    executable = check(program, *operands, scale=2.0)
    assert executable.report()["host_calls"] == {}


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "logistic", "erf", "sin", "cos", "log1p", "expm1",
                                  "sqrt", "rsqrt",
                                  "digamma", "sign", "floor", "round", "is_nan", "is_inf", "is_finite"])  # fmt: skip
def test_limits_infinities_nan_and_denormals_are_the_references(name):
    check(lambda x: apply([name], x), SPECIAL.astype(np.float32))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32", "int64", "uint8", "int8"])
def test_binary_arithmetic_and_comparisons_agree(dtype):
    rng = np.random.default_rng(2)
    x, y = values(rng, (5, 23), dtype), values(rng, (5, 23), dtype)
    y[y == 0] = 1
    names = BINARY if dtype.startswith(("float", "bf")) else BINARY[:-2]
    if dtype == "bfloat16":
        names = tuple(n for n in names if n not in ("rem", "floor_div", "floor_mod"))
    check(lambda a, b: [*apply(names, a, b), *apply(COMPARE, a, b)], x, y)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "int64", "uint8", "uint32"])
def test_bits_and_shifts_agree(dtype):
    rng = np.random.default_rng(3)
    x, y = values(rng, (41,), dtype), values(rng, (41,), dtype)
    names = ["bitwise_and", "bitwise_or", "bitwise_xor"]
    if dtype == "bool":
        names += ["logical_and", "logical_or", "logical_xor", "maximum", "minimum"]
        check(lambda a, b: [*apply(names, a, b), *apply(["bitwise_not", "logical_not"], a)], x, y)
        return
    amount = (np.abs(y.astype(np.int64)) % 70).astype(dtype)
    check(lambda a, b, n: [*apply(names, a, b), *apply(["shift_left", "shift_right"], a, n),
                           PRIMITIVES["bitwise_not"](a)],
          x, y, amount)  # fmt: skip


def test_integer_extremes_do_not_trap():
    least = np.array([np.iinfo(np.int32).min, 7, -7, 9], np.int32)
    check(lambda a, b: apply(["floor_div", "rem"], a, b), least, np.array([1, -1, 2, -4], np.int32))
    check(lambda a: apply(["abs", "neg", "sign"], a), least)


def test_powers_of_floats_and_integers_agree():
    rng = np.random.default_rng(4)
    x, y = values(rng, (33,), "float32", 0.1, 4), values(rng, (33,), "float32")
    n, k = values(rng, (33,), "int64"), rng.integers(0, 7, 33)
    check(lambda x, y, n, k: [PRIMITIVES["pow"](x, y), PRIMITIVES["pow"](n, k), PRIMITIVES["pow"](x, 3.0),
                              PRIMITIVES["pow"](x, -2.0), PRIMITIVES["pow"](x, 0.5)], x, y, n, k)  # fmt: skip


CASTS = ("bool", "int8", "int32", "int64", "uint8", "uint32", "float32", "float64", *NARROW)


@pytest.mark.parametrize("source", CASTS)
def test_casts_between_all_dtypes_agree(source):
    rng = np.random.default_rng(5)
    x = values(rng, (50,), source, 0.0, 90.0) if not source.startswith("int") else values(rng, (50,), source)
    check(lambda x: [PRIMITIVES["cast"](x, dtype=dtype) for dtype in CASTS], x)


@pytest.mark.parametrize("dtype", NARROW)
def test_every_number_of_a_narrow_dtype_is_widened_and_rounded_back(dtype):
    whole = np.arange(256 if dtype.startswith("float8") else 1 << 16)
    x = whole.astype(f"u{1 if dtype.startswith('float8') else 2}").view(DTYPES.get(dtype, dtype))
    with np.errstate(invalid="ignore"):  # some NaN signal
        x = np.append(x[~np.isnan(x)], x.dtype.type(np.nan))
    got = check(lambda x: [PRIMITIVES["cast"](x, dtype="float32"), PRIMITIVES["mul"](x, 1.0)], x, scale=0)
    assert got.report()["host_calls"] == {}


@pytest.mark.parametrize("dtype", NARROW[2:])
def test_floats_are_rounded_to_eight_bits_as_ml_dtypes_does_it(dtype):
    exact = np.arange(256).astype(np.uint8).view(DTYPES[dtype]).astype(np.float64)
    exact = np.unique(exact[np.isfinite(exact)])
    middles = (exact[1:] + exact[:-1]) / 2
    near = np.concatenate([exact, middles, middles * (1 + 1e-6), middles * (1 - 1e-6), 1e6 * np.sign(exact)])
    special = [np.inf, -np.inf, np.nan, 464.0, 464.1, 61440.0, 61439.0, 1e-9]
    x = np.concatenate([near, special]).astype(np.float32)
    check(lambda x: PRIMITIVES["cast"](x, dtype=dtype), x, scale=0)


@pytest.mark.parametrize("dtype", ["float32", "float64", *NARROW])
def test_the_next_number_is_the_references(dtype):
    kind = DTYPES.get(dtype, dtype)
    x = np.array([0, -0.0, 1, -1, 1, -1, np.nan, 2, 448, 0.5, -0.25, 0, 0], np.float64).astype(kind)
    y = np.array([1, 1, 2, 2, -2, -2, 1, 2, 0, np.nan, -0.25, -1, 0], np.float64).astype(kind)
    check(PRIMITIVES["nextafter"], x, y, scale=0)


def test_bitcasts_keep_bits():
    x = np.random.default_rng(6).standard_normal(19).astype(np.float32)
    check(lambda x: [PRIMITIVES["bitcast"](x, dtype=d) for d in ("int32", "uint32")], x)
    check(lambda x: PRIMITIVES["bitcast"](x, dtype="int16"), x.astype(np.float16))


def test_select_and_complex_numbers():
    rng = np.random.default_rng(7)
    c, x, y = values(rng, (6, 5), "bool"), values(rng, (6, 5), "float32"), values(rng, (6, 5), "float32")

    def program(c, x, y):
        z = PRIMITIVES["complex"](x, y)
        return [PRIMITIVES["select"](c, x, y), PRIMITIVES["abs"](z), PRIMITIVES["real"](PRIMITIVES["mul"](z, z))]

    assert check(program, c, x, y).report()["host_calls"] == {}


@pytest.mark.parametrize("name", ["div", "rem", "floor_div", "floor_mod"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32"])
def test_an_integer_divided_by_zero_gives_zero_as_in_the_reference(name, dtype):
    x = np.array([5, 0, 1, 7] * 9, dtype)
    check(PRIMITIVES[name], x, np.array([0, 0, 1, 2] * 9, dtype))


def test_an_integer_zero_to_a_negative_power_gives_zero_as_in_the_reference():
    check(PRIMITIVES["pow"], np.array([0, 2, 1, -1] * 9), np.array([-1, -2, -3, -3] * 9))


@pytest.mark.skipif(Target.host().vector_bits != 512, reason="counts vectors of 512 bits")
@pytest.mark.parametrize(
    ("function", "vectors"), [(prim.exp, 4), (lambda x: prim.reduce_sum(prim.exp(x), axes=(1,)), 2)]
)
def test_vectors_take_turns(function, vectors):
    """Chains of some length are four at a time, or two beside the chain of a sum; a rest of the row is one more."""
    program = build(function, [np.zeros((5, 1040), np.float32)])
    _, assembly = assemble_program(lower_program(to_primitives(program), Target.host()), Target.host(), Budget())
    calls = assembly.module.text().count("= call <16 x float> @llvm.x86.avx512.mask.scalef")
    assert calls == vectors + 1


def test_narrow_results_outlive_choices():
    """A sine has a branch for large operands; what is rounded before it is stored after it."""
    x = np.linspace(-4, 4, 100).astype(DTYPES["bfloat16"])

    def program(x):
        wide = prim.cast(x, dtype="float32")
        return [prim.cast(function(wide), dtype="bfloat16") for function in (prim.tanh, prim.sin, prim.cos)]

    check(program, x)
