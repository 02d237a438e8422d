"""Special functions against the C library's, known values and identities."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy_phi_ops.reference.kernels import KERNELS


def ulps(value: np.ndarray, expected: np.ndarray) -> float:
    """The largest distance in units in the last place of what is expected."""
    return float(np.max(np.abs(value - expected) / np.spacing(np.abs(expected))))


def grid(low: float, high: float) -> np.ndarray:
    return np.random.default_rng(0).uniform(low, high, 5000)


@pytest.mark.parametrize("name", ["erf", "erfc"])
@pytest.mark.parametrize("scale", [1e-300, 1e-3, 1, 3, 7, 26])
def test_erf_and_erfc_agree_with_the_c_library_to_4_ulp(name, scale):
    x = grid(-scale, scale)
    expected = np.array([getattr(math, name)(v) for v in x])
    assert ulps(KERNELS[name](x), expected) <= 4


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_float32_erf_is_the_rounded_float64_one(name):
    x = grid(-5, 5).astype(np.float32)
    expected = np.array([getattr(math, name)(float(v)) for v in x])
    result = KERNELS[name](x)
    assert result.dtype == np.float32
    assert ulps(result.astype(np.float64), expected) / 2**29 <= 0.51


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("erf", [0.0, -0.0, np.inf, -np.inf, np.nan], [0.0, -0.0, 1, -1, np.nan]),
        ("erfc", [0.0, np.inf, -np.inf, np.nan], [1, 0, 2, np.nan]),
        ("erfinv", [0.0, 1, -1, 1.5, np.nan], [0, np.inf, -np.inf, np.nan, np.nan]),
        ("lgamma", [1, 2, 0.0, -1, -7, np.inf, -np.inf, np.nan], [0, 0, *[np.inf] * 5, np.nan]),
        (
            "digamma",
            [0.0, -0.0, -1, np.inf, -np.inf, np.nan],
            [-np.inf, np.inf, np.nan, np.inf, np.nan, np.nan],
        ),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_at_poles_and_ends(name, x, expected, dtype):
    result = KERNELS[name](np.array(x, dtype))
    np.testing.assert_array_equal(result, np.array(expected, dtype))
    numbers = ~np.isnan(result)
    np.testing.assert_array_equal(np.signbit(result[numbers]), np.signbit(np.array(expected)[numbers]))


@given(st.floats(-0.9999999, 0.9999999))
@settings(deadline=None)
def test_erf_undoes_erfinv(x):
    y = KERNELS["erfinv"](np.array([x]))
    assert abs(KERNELS["erf"](y)[0] - x) <= 4 * np.spacing(max(abs(x), 1e-300))


@pytest.mark.parametrize("tail", [1e-3, 1e-8, 1e-12, 1e-15])
def test_erfinv_keeps_its_digits_in_the_tail(tail):
    x = 1 - tail
    y = KERNELS["erfinv"](np.array([x]))[0]
    assert math.erfc(y) == pytest.approx(1 - x, rel=1e-13)


def test_float32_erfinv_follows_giles_to_its_stated_accuracy():
    x = grid(-1, 1).astype(np.float32)
    exact = KERNELS["erfinv"](x.astype(np.float64))
    assert np.max(np.abs(KERNELS["erfinv"](x) / exact - 1)) < 1e-6


@pytest.mark.parametrize(("low", "high"), [(1e-9, 1), (0.8, 2.2), (1.9, 9), (8, 1e5), (1e5, 1e300)])
def test_lgamma_agrees_with_the_c_library(low, high):
    x = grid(low, high)
    expected = np.array([math.lgamma(v) for v in x])
    np.testing.assert_allclose(KERNELS["lgamma"](x), expected, rtol=1e-15, atol=2e-15)


@pytest.mark.parametrize("zero", [1, 2])
def test_lgamma_keeps_its_digits_around_its_zeros(zero):
    s = np.ldexp(1.0, -np.arange(24, 40)) * np.array([[1], [-1]])  # exactly representable next to 1 and 2
    euler, curvature = 0.5772156649015329, np.pi**2 / 6
    slope, curvature = (-euler, curvature) if zero == 1 else (1 - euler, curvature - 1)
    np.testing.assert_allclose(KERNELS["lgamma"](zero + s), slope * s + curvature * s * s / 2, rtol=1e-13)


def test_lgamma_of_negative_numbers_reflects():
    x = grid(-20, 0)
    expected = np.array([math.lgamma(v) for v in x])
    np.testing.assert_allclose(KERNELS["lgamma"](x), expected, rtol=1e-13, atol=1e-13)


@given(st.floats(-30, 60).filter(lambda x: abs(x - round(x)) > 1e-3))
@settings(deadline=None)
def test_digamma_satisfies_its_recurrence(x):
    lower, upper = KERNELS["digamma"](np.array([x, x + 1]))
    assert upper - lower == pytest.approx(1 / x, abs=1e-11 * (1 + abs(lower)))


def test_digamma_has_the_known_values():
    euler = 0.5772156649015329
    result = KERNELS["digamma"](np.array([1.0, 0.5, 2.0, 10.0]))
    expected = [-euler, -euler - 2 * math.log(2), 1 - euler, 2.251752589066721]
    np.testing.assert_allclose(result, expected, rtol=1e-15)
