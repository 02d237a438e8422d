"""Comparisons, logic and bits."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call
from parity.inputs import given
from parity.inputs import tensor as t

NAN, INF = float("nan"), float("inf")
COMPARISONS = ("equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal")
LOGIC = ("logical_and", "logical_or", "logical_xor")
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")
SHIFTS = ("bitwise_left_shift", "bitwise_right_shift")


def cases() -> Iterator[Case]:
    for name in COMPARISONS:
        for dtype in ("float32", "float64", "int32", "int64", "bool"):
            yield call(name, t(8, dtype=dtype, low=0, high=3), t(8, dtype=dtype, low=0, high=3))
        for x, y in (((), ()), ((2, 1), (3,)), ((0, 3), (3,)), ((3, 2), (2, 2))):
            yield call(name, t(*x, dtype="int64", low=0, high=2), t(*y, dtype="int64", low=0, high=2))
        yield call(name, given([NAN, INF, 1.0, 0.0]), given([NAN, INF, 2.0, -0.0]))
        yield call(name, t(4, dtype="int32", low=0, high=3), t(4, dtype="float32", low=0, high=3))
        yield call(name, t(3, 2, layout="T", dtype="int32", low=0, high=2), t(2, dtype="int32", low=0, high=2))
    for method in ("eq", "ne", "lt", "le", "gt", "ge"):
        for number in (1, 1.5, True):
            yield call(f"Tensor.__{method}__", t(5, dtype="int64", low=0, high=4), number)
            yield call(f"Tensor.__{method}__", t(5), number)
    yield from _logic()
    yield from _bits()
    yield from _close()


def _logic() -> Iterator[Case]:
    for name in LOGIC:
        for dtype in ("bool", "float32", "int64", "complex64"):
            yield call(name, t(6, dtype=dtype, low=0, high=2), t(6, dtype=dtype, low=0, high=2))
        for x, y in (((), ()), ((2, 1), (3,)), ((0, 3), (3,))):
            yield call(name, t(*x, dtype="bool"), t(*y, dtype="bool"))
        yield call(name, t(4, dtype="bool"), t(4, dtype="float32"))
    for dtype in ("bool", "float32", "int32", "complex64"):
        yield call("logical_not", t(6, dtype=dtype, low=0, high=2))
    yield call("logical_not", t(dtype="bool"))
    yield call("logical_not", t(0, 2, dtype="bool"))


def _bits() -> Iterator[Case]:
    for name in BITS:
        for dtype in ("bool", "int32", "int64", "uint8"):
            yield call(name, t(6, dtype=dtype, low=0, high=9), t(6, dtype=dtype, low=0, high=9))
        yield call(name, t(2, 1, dtype="int64", low=-9, high=9), t(3, dtype="int64", low=-9, high=9))
        yield call(name, t(3), t(3))
        yield call(name, t(3, dtype="int32", low=0, high=9), t(3, dtype="int64", low=0, high=9))
    for dtype in ("bool", "int32", "int64", "uint8"):
        yield call("bitwise_not", t(6, dtype=dtype, low=0, high=9))
    yield call("bitwise_not", t(dtype="int64", low=-5, high=5))
    for name in SHIFTS:
        for dtype in ("int32", "int64", "uint8"):
            yield call(name, t(6, dtype=dtype, low=0, high=90), t(6, dtype=dtype, low=0, high=5))
        yield call(name, t(6, dtype="int32", low=-90, high=90), t(6, dtype="int32", low=0, high=5))
        yield call(name, t(6, dtype="int32", low=-90, high=90), t(6, dtype="int32", low=0, high=5), False)
        yield call(name, given([1, 2], "int32"), given([40, 31], "int32"))
    for method in ("and", "or", "xor"):
        yield call(f"Tensor.__{method}__", t(6, dtype="bool"), t(6, dtype="bool"))
        yield call(f"Tensor.__{method}__", t(6, dtype="int64", low=0, high=9), t(6, dtype="int64", low=0, high=9))
    for method in ("lshift", "rshift"):
        yield call(f"Tensor.__{method}__", t(6, dtype="int64", low=0, high=9), t(6, dtype="int64", low=0, high=4))
    yield call("Tensor.__invert__", t(4, dtype="bool"))
    yield call("Tensor.__invert__", t(4, dtype="int32", low=0, high=9))


def _close() -> Iterator[Case]:
    near = given([1.0, 2.0, NAN, INF, 0.0])
    for name in ("isclose", "allclose"):
        yield call(name, near, given([1.0 + 1e-6, 2.1, NAN, INF, 1e-9]))
        yield call(name, near, given([1.0 + 1e-6, 2.1, NAN, INF, 1e-9]), equal_nan=True)
        yield call(name, near, given([1.01, 2.1, NAN, INF, 1e-9]), rtol=0.1, atol=0.1, equal_nan=True)
        yield call(name, t(3, dtype="float64"), t(3, dtype="float64"))
        yield call(name, t(3, dtype="int64"), t(3, dtype="int64"))
        yield call(name, t(), t())
        yield call(name, t(0), t(0))
        yield call(name, t(2, 1), t(3), 1.0)
    yield call("equal_all", t(3), t(3))
    yield call("equal_all", given([1, 2], "int64"), given([1, 2], "int64"))
    yield call("equal_all", given([1, 2], "int64"), given([[1, 2]], "int64"))
    yield call("equal_all", given([1, 2], "int64"), given([1, 2, 3], "int64"))
    yield call("equal_all", t(0), t(0))
    yield call("equal_all", t(dtype="bool"), t(dtype="bool"))
