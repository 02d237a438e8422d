"""Functions that are one text for floats and doubles, on every magnitude: bounds, zeros, infinities, NaN, and arguments
that reductions are hard for."""

import ctypes
import math

import numpy as np
import pytest

from argosy_cinn import functions
from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import DOUBLE, FLOAT, vector
from argosy_cinn.runtime import load
from argosy_cinn.target import Target

#: numpy's name, and the bounds that docstrings state for floats and doubles.
BOUNDS = {
    "expm1": ("expm1", 2, 2), "sinh": ("sinh", 3, 3), "cosh": ("cosh", 2, 2), "log1p": ("log1p", 1.5, 1.5),
    "asinh": ("arcsinh", 2, 2), "acosh": ("arccosh", 2, 2), "atanh": ("arctanh", 2, 2), "asin": ("arcsin", 3, 3),
    "acos": ("arccos", 2, 2), "atan": ("arctan", 2.5, 2.5), "sin": ("sin", 1.6, 1.5), "cos": ("cos", 1.6, 1.5),
    "tan": ("tan", 3.5, 2.6), "exp": ("exp", 1.2, 1), "log": ("log", 0.9, 1), "tanh": ("tanh", 5, 3),
}  # fmt: skip
BINARY = {"atan2": ("arctan2", 2.5, 2.5), "pow": ("power", 0.6, 1.2)}
SPECIAL = {"erf": 1.5, "erfc": 3, "lgamma": 6}  # of doubles
TYPES = {FLOAT: (np.float32, np.uint32), DOUBLE: (np.float64, np.uint64)}
ODD = ("expm1", "sinh", "log1p", "asinh", "atanh", "asin", "atan", "sin", "tan", "tanh")


@pytest.fixture(scope="module", params=["host", "x86-64"])
def code(request):
    """Calls of all functions, compiled once for a processor."""
    if request.param != "host" and not Target.host().is_x86:
        pytest.skip("an x86 level")
    module = Module(Target.host() if request.param == "host" else Target.from_name(request.param))
    for element in TYPES:
        lanes = module.target.lanes(element)
        type = vector(element, lanes)
        for name in (*BOUNDS, *BINARY, *SPECIAL):
            parameters = [("ptr", "x"), ("ptr", "other"), ("ptr", "y"), ("i64", "n")]
            with module.function(f"{name}_{element}", parameters) as b:
                *sources, target, n = b.arguments
                with b.loop(0, n, lanes) as loop:
                    given = [b.load(type, b.gep(x, loop.index, element)) for x in sources[: 1 + (name in BINARY)]]
                    b.store(functions.apply(b, name, *given), b.gep(target, loop.index, element))
    library = load(module.text(), module.exports, module.target)

    def call(name, x, other=None):
        size = x.size
        x = np.resize(x, -(-size // 16) * 16)
        other = x if other is None else np.resize(other, x.size)
        y = np.empty_like(x)
        address = library.address(f"{name}_{FLOAT if x.dtype == np.float32 else DOUBLE}")
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(address)
        function(x.ctypes.data, other.ctypes.data, y.ctypes.data, x.size)
        return y[:size]

    return call


def every_magnitude(element):
    """All exponents, denormal numbers among them, and more where functions bend, of both signs."""
    dtype, bits = TYPES[element]
    last = int(np.array(np.inf, dtype).view(bits))
    spread = np.linspace(1, last - 1, 20_011).astype(bits).view(dtype)
    near = np.concatenate([np.linspace(0, 2, 4001), np.linspace(2, 800, 9001)])
    x = np.concatenate([spread, near.astype(dtype), [np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max]])
    return np.concatenate([x, -x]).astype(dtype)


def assert_close(got, want, dtype, bound, message):
    """As many units in the last place; what has none or is infinite is so."""
    with np.errstate(all="ignore"):
        nearest = want.astype(dtype)
    finite = np.isfinite(nearest)
    np.testing.assert_array_equal(got[~finite], nearest[~finite], err_msg=message)
    error = np.abs(got[finite] - want[finite]) / np.spacing(np.abs(nearest[finite]))
    assert error.max() <= bound, f"{message}: {error.max()} at {np.flatnonzero(finite)[error.argmax()]}"


@pytest.mark.parametrize("element", TYPES)
def test_bounds_hold_for_every_magnitude(code, element):
    dtype, _ = TYPES[element]
    x = every_magnitude(element)
    wide = x.astype(np.float64 if element == FLOAT else np.longdouble)
    if np.finfo(wide.dtype).nmant <= np.finfo(dtype).nmant:
        pytest.skip("numpy has no longer numbers here")
    for name, (numpys, *bounds) in BOUNDS.items():
        with np.errstate(all="ignore"):
            want = getattr(np, numpys)(wide)
        assert_close(code(name, x), want, dtype, bounds[element == DOUBLE], name)


@pytest.mark.parametrize("element", TYPES)
def test_zeros_keep_their_sign_and_small_numbers_are_themselves(code, element):
    dtype, _ = TYPES[element]
    x = every_magnitude(element)
    x = np.append(x[np.abs(x) < np.finfo(dtype).eps / 4], [0.0, -0.0]).astype(dtype)
    for name in ODD:
        got = code(name, x)
        np.testing.assert_array_equal(got, x, err_msg=name)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(x), err_msg=name)
    for name in BOUNDS:
        got = code(name, np.array([np.nan, 0.5, -np.nan], dtype))
        assert np.isnan(got).tolist() == [True, name == "acosh", True], name


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers(code, name, element):
    numpys, *bounds = BINARY[name]
    dtype, _ = TYPES[element]
    longer = np.float64 if element == FLOAT else np.longdouble
    if np.finfo(longer).nmant <= np.finfo(dtype).nmant:
        pytest.skip("numpy has no longer numbers here")
    rng = np.random.default_rng(0)
    special = [0.0, 1.0, np.inf, np.nan, 0.5, 2.0, 3.0, 1.5, np.finfo(dtype).smallest_subnormal, 3e38, 16777217.0]
    a, b = (v.ravel() for v in np.meshgrid(*[np.array([*special, *(-v for v in special)], dtype)] * 2))
    largest = np.log(float(np.finfo(dtype).max))
    x = np.exp(rng.uniform(-0.9, 0.9, 20_000) * largest).astype(dtype)
    y = rng.uniform(-1.1, 1.1, x.size) * largest / np.maximum(np.abs(np.log(x)), 1e-3)
    y = (y if name == "pow" else x * rng.uniform(-3, 3, x.size)).astype(dtype)
    y[::3], x[::6] = np.round(y[::3]), -x[::6]
    a, b = np.append(a, x), np.append(b, y)
    with np.errstate(all="ignore"):
        want = getattr(np, numpys)(a.astype(longer), b.astype(longer))
        nearest = want.astype(dtype)
    got = code(name, a, b)
    assert_close(got, want, dtype, bounds[element == DOUBLE], name)
    known = ~np.isnan(nearest)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(nearest[known]))


def test_special_functions_of_doubles(code):
    mp = pytest.importorskip("mpmath")
    x = np.concatenate(
        [np.linspace(0.01, 12, 120), 2.0 ** np.linspace(-1060, -8, 20), 1 + np.geomspace(1e-15, 1e-3, 9)]
    )
    tail, several = (
        np.linspace(12.5, 26.5, 15),
        np.append(np.geomspace(13, 1e300, 20), 2 + np.geomspace(1e-15, 1e-3, 9)),
    )
    given = {"erf": np.append(x, -x), "erfc": np.concatenate([x, -x, tail]), "lgamma": np.append(x, several)}
    with mp.workdps(40):
        for name, bound in SPECIAL.items():
            exact = {"erf": mp.erf, "erfc": mp.erfc, "lgamma": mp.loggamma}[name]
            got = code(name, given[name])
            want = [exact(mp.mpf(v)) for v in given[name].tolist()]
            unit = np.spacing(np.abs(np.array(want, np.float64)))
            error = [float(abs(mp.mpf(g) - w) / u) for g, w, u in zip(got.tolist(), want, unit.tolist(), strict=True)]
            assert max(error) <= bound, f"{name}: {max(error)} at {given[name][np.argmax(error)]}"
    ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(code("erf", ends), [0, -0.0, 1, -1, np.nan])
    np.testing.assert_array_equal(code("erfc", ends), [1, 1, 0, 2, np.nan])
    np.testing.assert_array_equal(
        code("lgamma", np.append(ends, [-1.0, -1e300])), [*[np.inf] * 4, np.nan, np.inf, np.inf]
    )
    assert np.signbit(code("erf", ends)[1])
    negative = -np.random.default_rng(0).uniform(0, 30, 2000)
    want = np.array([math.lgamma(v) for v in negative])
    np.testing.assert_allclose(code("lgamma", negative), want, rtol=2e-15, atol=2e-15)


def test_arguments_beside_multiples_of_a_quarter_turn(code):
    """Of the first the double's reduction cancels 61 bits; what is wanted is mpmath's."""
    hard = [6381956970095103 * 2.0**797, 5.319372648326541e255, 1e22, math.pi, 1e5 * math.pi, 667544 * math.pi / 2]
    x = np.array([*hard, *(-v for v in hard)])
    sines = [4.6871659242546276e-19, 1.0, -0.8522008497671888, 1.2246467991473532e-16, -3.3960589645353685e-12]
    got, cosines = code("sin", x), code("cos", x)
    np.testing.assert_allclose(np.abs(cosines[:2]), sines[0], rtol=4e-16)
    np.testing.assert_allclose(got[2:4], sines[2:4], rtol=4e-16)
    np.testing.assert_array_equal(got[:6], -got[6:])
    np.testing.assert_allclose(got * got + cosines * cosines, 1, rtol=1e-15)
    np.testing.assert_allclose(code("tan", x), got / cosines, rtol=1e-15)
    several = np.array([16367173.0 * 2**72, 1.6e38, 0.5, 3.1415927], np.float32)
    np.testing.assert_allclose(code("sin", several), np.sin(several.astype(np.float64)), rtol=1.2e-7)
    np.testing.assert_array_equal(code("sin", several)[2:], code("sin", several[2:]), "beside large numbers or not")


def test_lgamma_of_floats(code):
    x = every_magnitude(FLOAT)
    x = x[(x > -1e5) & (x < 1e30)]
    want = np.array([math.inf if v <= 0 and v == np.floor(v) else math.lgamma(v) for v in x.astype(float)])
    away = np.abs(want) > 1e-3 * (x < 0)
    assert_close(code("lgamma", x)[away], want[away], np.float32, 1, "lgamma")
    np.testing.assert_array_equal(code("lgamma", np.array([0, -0.0, -3, np.inf, -np.inf], np.float32)), np.inf)
