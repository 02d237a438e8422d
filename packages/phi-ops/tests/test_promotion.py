"""Promotion follows Paddle's table."""

import numpy as np
import pytest

from argosy_phi_ops.declare.composition import find_function
from argosy_phi_ops.declare.promotion import promote
from argosy_phi_ops.errors import DTypeError
from argosy_tensorcore.tensor import Tensor


def common(x, y, policy="binary"):
    return promote(policy, "add", [x, y])[0]


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (("float16", True), ("bfloat16", True), "float32"),
        (("float32", True), ("float64", True), "float64"),
        (("complex64", True), ("float64", True), "complex128"),
        (("complex64", True), ("int64", True), "complex64"),
        (("float32", True), ("float64", False), "float32"),
        (("int32", True), ("int64", False), "int32"),
        (("int64", True), ("float32", False), "float32"),
        (("int64", False), ("float32", False), "float32"),
        (("int32", True), ("python int", False), "int32"),
        (("int32", True), ("python float", False), "float32"),
        (("bool", True), ("python int", False), "int64"),
        (("float64", True), ("python complex", False), "complex128"),
        (("python int", False), ("float16", True), "float16"),
    ],
)
def test_pairs_promote_as_in_paddle(x, y, expected):
    assert common(x, y) == expected
    assert common(y, x) == expected


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (("float32", True), ("float64", False), "float64"),
        (("float64", True), ("float32", False), "float64"),
        (("float16", True), ("float32", False), "float32"),
        (("int32", True), ("int64", False), "int64"),
        (("int64", True), ("float64", False), "float64"),
        (("float32", True), ("int64", False), "float32"),
        (("float32", True), ("python float", False), "float32"),
    ],
)
def test_some_operators_count_the_width_of_tensors_without_axes(x, y, expected):
    for policy, result in (("widest", expected), ("widest float", "float32" if expected == "int64" else expected)):
        assert common(x, y, policy) == result
        assert common(y, x, policy) == result
    assert promote("where", "where", [("bool", True), x, y])[1:] == (expected, expected)


@pytest.mark.parametrize(("x", "y"), [("int64", "float32"), ("int32", "int64"), ("bool", "int32")])
def test_tensors_with_axes_do_not_promote_across_kinds(x, y):
    with pytest.raises(DTypeError, match=f"add: no promotion of {x} and {y}"):
        common((x, True), (y, True))


def test_policies():
    assert promote("float", "exp", [("int32", True)]) == ("float32",)
    assert promote("divide", "divide", [("int64", True), ("int64", True)]) == ("float32", "float32")
    assert promote("where", "where", [("bool", True), ("float32", True), ("python float", False)]) == (
        "bool", "float32", "float32",
    )  # fmt: skip
    with pytest.raises(DTypeError, match=r"no promotion|must agree"):
        promote("same", "matmul", [("float32", True), ("float64", True)])


def integers(dtype):
    return Tensor(np.array([1, 2, 3], dtype))


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_integers_to_a_whole_power_by_name_stay_integers(dtype):
    pow, x = find_function("pow"), integers(dtype)
    in_place = integers(dtype)
    in_place.pow_(2.0)
    for y in (pow(x, 2.0), x.pow(2.0), pow(input=x, exponent=2.0), in_place):
        assert (y.dtype.name, y.tolist()) == (dtype, [1, 4, 9])
    assert ((x**2.0).dtype.name, (x**2.0).tolist()) == ("float32", [1, 4, 9])


def test_other_powers_of_integers_are_floats():
    pow, x = find_function("pow"), integers("int64")
    for exponent in (0.5, -1.0, float("inf"), 2.0**31):
        assert pow(x, exponent).dtype.name == "float32"
    assert (pow(2.0, x).dtype.name, pow(2.0, x).tolist()) == ("float32", [2, 4, 8])
    assert pow(integers("float64"), 2.0).dtype.name == "float64"
    with pytest.raises(TypeError, match=r"pow\(\): argument 'y' must be a Tensor or a number, got str"):
        pow(x, "two")
