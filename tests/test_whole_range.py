"""Elementwise functions and their derivatives, eager and compiled, from denormal numbers to the largest ones."""

from __future__ import annotations

import numpy as np
import pytest

import argosy as paddle

mp = pytest.importorskip("mpmath")

from truths import TRUTHS  # noqa: E402  # of mpmath's numbers

PRECISION = {"float32": np.float32, "float64": np.float64}


def points(dtype):
    """Magnitudes evenly in their logarithms, the ends, and more where functions bend and saturate, of both signs."""
    kind = np.finfo(dtype)
    first, last = np.log2(kind.smallest_subnormal.astype(float)), np.log2(kind.max.astype(float))
    spread = 2.0 ** np.linspace(first, last - 1e-3, 40)
    near_one = 1 + np.array([-(2.0**-20), -1e-3, -0.1, 0, 0.1, 1e-3, 2.0**-20])
    ends = [kind.smallest_subnormal, kind.tiny, kind.max / 2]
    x = np.concatenate([spread, near_one, np.linspace(0.07, 13, 31), np.geomspace(14, 800, 30), ends]).astype(dtype)
    return np.concatenate([x, -x])


def slope_and_value(function, x):
    y = function(x)
    return y, paddle.grad(y.sum(), x)[0]


def found(name, dtype, captured):
    """Value and slope at the points of a function."""
    step = lambda x: slope_and_value(TRUTHS[name].ours, x)  # noqa: E731
    step = paddle.jit.to_static(step, full_graph=True) if captured else step
    return [each.numpy() for each in step(paddle.to_tensor(points(dtype), stop_gradient=False))]


def exact(name, x):
    """Value and slope with 40 digits, NaN where there is none."""
    truth, rows = TRUTHS[name], []
    for each in map(float, x):
        try:
            assert truth.first <= each <= truth.last
            rows.append((truth.value(mp.mpf(each)), truth.slope(mp.mpf(each))))
        except (AssertionError, ZeroDivisionError, ValueError):
            rows.append((mp.nan, mp.nan))
    return list(zip(*rows, strict=True))


def errors(got, want, dtype, steps=1):
    """Distances in units of the last place of what is wanted, infinite where one is NaN or infinite and the other not,
    and these units, relative to the precision. Below the normal numbers a unit is that many of their steps."""
    kind = np.finfo(dtype)
    tiny, largest, step = float(kind.tiny) * steps, mp.mpf(float(kind.max)), mp.mpf(float(kind.eps))
    found = []
    for have, true in zip(map(float, got), want, strict=True):
        unit = mp.ldexp(step, mp.frexp(max(min(abs(true), largest), tiny))[1] - 1) if not mp.isnan(true) else mp.mpf(1)
        overflows = abs(true) > largest * (1 - 16 * step)
        if mp.isnan(true) or (overflows and abs(have) >= largest * (1 - 32 * step) and (have > 0) == (true > 0)):
            found.append((0.0, 1.0))
        else:
            wrong = not np.isfinite(have) or abs(true) > largest
            distance = np.inf if wrong else float(min(abs(mp.mpf(have) - true) / unit, mp.mpf(1e300)))
            found.append((distance, float(unit / step)))
    return np.transpose(found)


@pytest.fixture(scope="module")
def wanted():
    """The exact numbers, made once for a function and dtype."""
    made = {}

    def give(name, dtype):
        if (name, dtype) not in made:
            with mp.workdps(40):
                made[name, dtype] = exact(name, points(dtype))
        return made[name, dtype]

    return give


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("captured", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("name", TRUTHS)
def test_values_and_slopes(name, dtype, captured, wanted):
    truth, x = TRUTHS[name], points(dtype)
    (value, slope), (exact_value, exact_slope) = found(name, dtype, captured), wanted(name, dtype)
    worst, _ = errors(value, exact_value, dtype, truth.steps)
    assert worst.max() <= truth.value_ulp, f"{worst.max()} ulp at {x[worst.argmax()]}: {value[worst.argmax()]}"
    worst, unit = errors(slope, exact_slope, dtype, truth.steps)
    with np.errstate(over="ignore"):
        over = worst - truth.slope_ulp - truth.slope_absolute / unit
    k = over.argmax()
    assert over[k] <= 0, f"slope: {worst[k]} ulp at {x[k]}: {slope[k]}, not {exact_slope[k]}"


#: What functions are at zero and at infinity, with its sign.
ENDS = {
    "tanh": (0.0, 1.0), "erf": (0.0, 1.0), "sigmoid": (0.5, 1.0), "expm1": (0.0, np.inf), "sinh": (0.0, np.inf),
    "asinh": (0.0, np.inf), "atan": (0.0, np.pi / 2), "log1p": (0.0, np.inf), "i0": (1.0, np.inf), "i1": (0.0, np.inf),
    "i0e": (1.0, 0.0), "gelu": (0.0, np.inf), "gelu by tanh": (0.0, np.inf), "silu": (0.0, np.inf),
    "mish": (0.0, np.inf), "elu": (0.0, np.inf), "exp": (1.0, np.inf), "cosh": (1.0, np.inf),
    "sqrt": (0.0, np.inf), "log": (-np.inf, np.inf), "rsqrt": (np.inf, 0.0), "lgamma": (np.inf, np.inf),
}  # fmt: skip
ODD = ("tanh", "erf", "expm1", "sinh", "asinh", "atan", "log1p", "i1", "softsign", "sin", "tan", "asin", "atanh")


@pytest.mark.parametrize("captured", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", [*PRECISION, "float16", "bfloat16"])
def test_ends(dtype, captured):
    """Zeros and their signs, infinities, and NaN, which stays."""

    def ends(x):
        return [TRUTHS[name].ours(x) for name in ENDS], [TRUTHS[name].ours(-x) for name in ODD]

    step = paddle.jit.to_static(ends, full_graph=True) if captured else ends
    got, zeros = step(paddle.to_tensor([0.0, np.inf, np.nan], dtype))
    for name, y in zip(ENDS, got, strict=True):
        want = paddle.to_tensor([*ENDS[name], np.nan], dtype).astype("float64").numpy()
        np.testing.assert_array_equal(y.astype("float64").numpy(), want, err_msg=name)
    for name, y in zip(ODD, zeros, strict=True):
        assert np.signbit(y.astype("float64").numpy()[0]), name


@pytest.mark.parametrize("captured", [False, True], ids=["eager", "compiled"])
def test_what_saturates_is_exact(captured):
    """From where on a function is 1, -1 or 0, what is computed of it is what Python says it is."""

    def saturated(x):
        y, sigmoid = paddle.tanh(x), paddle.nn.functional.sigmoid
        ones = [y, paddle.erf(x), sigmoid(x * 2), -paddle.expm1(-3 * x), y.astype("int8").astype("float32")]
        return ones, [sigmoid(-15 * x), paddle.erf(x) - 1, 1 - y * y]

    step = paddle.jit.to_static(saturated, full_graph=True) if captured else saturated
    ones, zeros = step(paddle.to_tensor([12.0, 20.0, 1e8, 3e38, np.inf]))
    for y in ones:
        np.testing.assert_array_equal(y.numpy(), 1)
    for y in zeros:
        np.testing.assert_array_equal(y.numpy(), 0)


NARROW = ("gelu", "gelu by tanh", "silu", "mish", "log_sigmoid", "sinc", "logit", "i0", "i1",
          "i0e", "log2", "log10", "hypot")  # fmt: skip
BITS = {"float16": 11, "bfloat16": 8}


@pytest.mark.parametrize("captured", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", BITS)
def test_narrow_floats_are_rounded_once(dtype, captured):
    """Operators of several steps, values and slopes, within little more than half a unit of float64's."""
    x = paddle.to_tensor(points("float32")).astype(dtype).astype("float64").detach()
    x = x[paddle.abs(x) < float(paddle.finfo(dtype).max)]

    def both(x):
        return [slope_and_value(TRUTHS[name].ours, x) for name in NARROW]

    x.stop_gradient = False
    narrow = x.astype(dtype).detach()
    narrow.stop_gradient = False
    got = (paddle.jit.to_static(both, full_graph=True) if captured else both)(narrow)
    least = float(paddle.finfo(dtype).smallest_normal)
    for name, ours, wide in zip(NARROW, got, both(x), strict=True):
        defined = np.isfinite(wide[0].numpy())
        for have, want in zip(ours, wide, strict=True):
            have, want = have.astype("float64").numpy(), want.numpy()
            inside = defined & (np.abs(want) < 0.99 * float(paddle.finfo(dtype).max))
            unit = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(want[inside]), least))) + 1 - BITS[dtype])
            assert (np.abs(have[inside] - want[inside]) / unit).max() <= 0.6, name
