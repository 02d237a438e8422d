"""Elementwise kernels against Python's arithmetic and the IEEE rules."""

import math
import operator

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from argosy_phi_ops.reference.kernels import KERNELS, kernel, kernel_for

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NARROW = (np.float16, ml_dtypes.bfloat16)


def wrapped(value: int, dtype: str) -> int:
    info = np.iinfo(dtype)
    return (value - info.min) % (1 << info.bits) + info.min


def integers(dtype: str) -> st.SearchStrategy[int]:
    info = np.iinfo(dtype)
    return st.integers(int(info.min), int(info.max))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(("name", "exact"), [("add", operator.add), ("sub", operator.sub), ("mul", operator.mul)])
@given(data=st.data())
@settings(deadline=None)
def test_integer_arithmetic_wraps_around(dtype, name, exact, data):
    a, b = data.draw(integers(dtype)), data.draw(integers(dtype))
    result = KERNELS[name](np.asarray(a, dtype), np.asarray(b, dtype))
    assert result.dtype == dtype
    assert type(result) is np.ndarray
    assert int(result) == wrapped(exact(a, b), dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
@given(data=st.data())
@settings(deadline=None)
def test_integer_division_comes_in_two_roundings(dtype, data):
    a, b = data.draw(integers(dtype)), data.draw(integers(dtype).filter(bool))
    x, y = np.asarray([a], dtype), np.asarray([b], dtype)
    toward_zero = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    expected = {"div": toward_zero, "rem": a - toward_zero * b, "floor_div": a // b, "floor_mod": a % b}
    for name, value in expected.items():
        result = KERNELS[name](x, y)
        assert result.dtype == dtype
        assert int(result[0]) == wrapped(value, dtype), name


@pytest.mark.parametrize("name", ["div", "rem", "floor_div", "floor_mod"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_an_integer_divided_by_zero_gives_zero(name, dtype):
    found = KERNELS[name](np.array([5, 2, 0], dtype), np.array([5, 0, 0], dtype))
    assert found.dtype == dtype
    assert list(found[1:]) == [0, 0]


@given(st.floats(width=32, allow_nan=False), st.floats(width=32, allow_nan=False))
@settings(deadline=None)
def test_float_remainders_have_the_sign_of_dividend_or_divisor(a, b):
    x, y = np.asarray(a), np.asarray(b)
    if b == 0 or math.isinf(a):
        assert np.isnan(KERNELS["rem"](x, y))
    else:
        assert float(KERNELS["rem"](x, y)) == math.fmod(a, b)
        if not math.isinf(b):
            assert float(KERNELS["floor_mod"](x, y)) == a % b


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "exp", "log", "sqrt", "rsqrt", "tanh", "logistic", "sin"])
@pytest.mark.parametrize("dtype", NARROW)
@settings(deadline=None)
@given(data=st.data())
def test_narrow_floats_compute_in_float32_and_round_once(name, dtype, data):
    values = st.floats(-50, 50, width=16)
    arity = 2 if name in ("add", "sub", "mul", "div") else 1
    operands = [np.asarray([data.draw(values)], dtype) for _ in range(arity)]
    result = KERNELS[name](*operands)
    with np.errstate(over="ignore"):
        expected = KERNELS[name](*(x.astype(np.float32) for x in operands)).astype(dtype)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result.astype(np.float32), expected.astype(np.float32))


def test_ieee_results_come_without_warnings():
    zero, one, big = np.zeros(()), np.ones(()), np.asarray(1e308)
    assert KERNELS["div"](one, zero) == np.inf
    assert np.isnan(KERNELS["div"](zero, zero))
    assert KERNELS["mul"](big, big) == np.inf
    assert KERNELS["log"](zero) == -np.inf
    assert np.isnan(KERNELS["sqrt"](-one))
    assert KERNELS["rsqrt"](zero) == np.inf
    assert KERNELS["logistic"](-big) == 0


@given(hnp.arrays(np.float64, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0)))
@settings(deadline=None)
def test_shapes_pass_through_including_no_axes_and_no_elements(x):
    for name in ("exp", "floor", "neg", "logistic", "erf", "is_nan", "rsqrt", "lgamma"):
        result = KERNELS[name](x)
        assert type(result) is np.ndarray
        assert result.shape == x.shape


def test_integer_powers_of_negative_exponents_are_truncated_reciprocals():
    x, y = np.array([1, -1, -1, 2, 3]), np.array([-3, -3, -4, -1, 2])
    np.testing.assert_array_equal(KERNELS["pow"](x, y), [1, -1, 1, 0, 9])
    assert KERNELS["pow"](np.array([0]), np.array([-1])) == 0


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_shifts_of_the_width_or_more_leave_no_bits_but_the_sign(dtype):
    x = np.array([3, 100], dtype) - np.array([4, 0], dtype)
    amounts = np.array([8, 100], dtype)
    assert not KERNELS["shift_left"](x, amounts).any()
    np.testing.assert_array_equal(KERNELS["shift_right"](x, amounts), [-1 if dtype == "int8" else 0, 0])
    assert KERNELS["shift_left"](np.array([3], dtype), np.array([2], dtype)) == 12


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (np.array([-1.9, 1.9]), "int32", [-1, 1]),
        (np.array([0.0, 0.5, np.nan]), "bool", [False, True, True]),
        (np.array([1 + 2j]), "float32", [1]),
        (np.array([300]), "uint8", [44]),
        (np.array([True, False]), "bfloat16", [1, 0]),
    ],
)
def test_cast_follows_the_c_conversions(source, target, expected):
    result = KERNELS["cast"](source, dtype=target)
    assert result.dtype.name == target
    np.testing.assert_array_equal(result, np.array(expected).astype(result.dtype))


def test_casting_between_narrow_formats_works_both_ways():
    x = np.array([1.5, -2.0]).astype(ml_dtypes.bfloat16)
    for name in ("float8_e4m3fn", "float8_e5m2", "float16"):
        back = KERNELS["cast"](KERNELS["cast"](x, dtype=name), dtype="bfloat16")
        np.testing.assert_array_equal(back.astype(np.float32), [1.5, -2])


def test_complex_numbers_are_taken_apart_and_put_together():
    z = np.array([1 + 2j, -3j], np.complex64)
    np.testing.assert_array_equal(KERNELS["complex"](KERNELS["real"](z), KERNELS["imag"](z)), z)
    assert KERNELS["complex"](z.real, z.imag).dtype == np.complex64
    assert KERNELS["abs"](z).dtype == np.float32


def test_bitcast_keeps_the_bits():
    x = np.array([1.0, -0.0], np.float32)
    np.testing.assert_array_equal(KERNELS["bitcast"](x, dtype="uint32"), [0x3F800000, 0x80000000])


def test_a_second_kernel_for_a_primitive_is_refused():
    with pytest.raises(ValueError, match="already has"):
        kernel("add")(lambda x, y: x)


def test_a_missing_kernel_is_named():
    with pytest.raises(NotImplementedError, match=r"prim\.frobnicate"):
        kernel_for("prim.frobnicate")
    assert kernel_for("prim.add") is KERNELS["add"]
