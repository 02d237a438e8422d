"""Functions of two and more tensors, elementwise, with broadcasting, promotion and scalars."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call
from parity.inputs import given
from parity.inputs import tensor as t

NAN, INF = float("nan"), float("inf")

BINARY = (
    "add", "subtract", "multiply", "divide", "pow", "floor_divide", "remainder", "mod", "floor_mod", "maximum",
    "minimum", "fmax", "fmin", "atan2", "hypot", "logaddexp", "copysign", "heaviside", "nextafter",
)  # fmt: skip
INTEGRAL = (
    "add", "subtract", "multiply", "divide", "pow", "floor_divide", "remainder", "maximum", "minimum", "fmax", "fmin",
    "gcd", "lcm", "heaviside", "atan2", "logaddexp", "copysign",
)  # fmt: skip
SHAPES = (((), ()), ((3,), ()), ((2, 1), (3,)), ((2, 1, 4), (3, 1)), ((0, 3), (3,)), ((0, 3), (1,)), ((1,), (4, 1)))
OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")


def cases() -> Iterator[Case]:
    for name in BINARY:
        for dtype in ("float32", "float64"):
            yield call(name, t(2, 3, low=0.5, high=3, dtype=dtype), t(2, 3, low=0.5, high=3, dtype=dtype))
        for x, y in SHAPES:
            yield call(name, t(*x, low=0.5, high=3), t(*y, low=0.5, high=3))
        yield call(name, t(3, 4, low=0.5, high=3, layout="T"), t(3, 4, low=0.5, high=3, layout="step"))
        yield call(name, t(2, 3), t(2, 4))
    for name in INTEGRAL:
        for dtype in ("int32", "int64"):
            yield call(name, t(6, dtype=dtype, low=-9, high=10), t(6, dtype=dtype, low=1, high=5))
        yield call(name, t(2, 1, dtype="int64", low=1, high=9), t(3, dtype="int64", low=1, high=5))
    yield from _complex_and_special()
    yield from _promotion()
    yield from _scalars()
    yield from _operators()
    yield from _others()


def _complex_and_special() -> Iterator[Case]:
    for name in ("add", "subtract", "multiply", "divide", "pow"):
        yield call(name, t(2, 3, dtype="complex64"), t(3, dtype="complex64"))
        yield call(name, t(3, dtype="complex64"), t(3))
    for name in ("add", "subtract", "multiply", "divide"):
        yield call(name, t(3, dtype="complex64"), t(dtype="float64"))
        yield call(name, t(3), t(dtype="complex128"))
    for name in ("maximum", "minimum", "fmax", "fmin", "add", "divide", "remainder", "atan2", "logaddexp", "copysign"):
        special = given([NAN, INF, -INF, 0.0, 1.0, -0.0], grad=False)
        yield call(name, special, given([1.0, INF, INF, -0.0, NAN, 0.0], grad=False))
    yield call("remainder", given([5.0, -5.0, 5.0, -5.0]), given([3.0, 3.0, -3.0, -3.0]))
    yield call("floor_divide", given([5.0, -5.0, 5.0, -5.0]), given([3.0, 3.0, -3.0, -3.0]))
    yield call("remainder", given([5, -5, 5, -5], "int64"), given([3, 3, -3, -3], "int64"))
    yield call("floor_divide", given([5, -5, 5, -5], "int64"), given([3, 3, -3, -3], "int64"))
    yield call("floor_divide", given([5, -5, 5, -5], "int32"), given([3, 3, -3, -3], "int32"))
    yield call("heaviside", given([-1.0, 0.0, 2.0]), given([0.5, 0.5, 0.5]))
    yield call("copysign", given([-1.0, 0.0, 2.0]), given([0.5, -0.5, -0.0]))
    yield call("maximum", given([1.0, 2.0, 3.0]), given([1.0, 1.0, 4.0]))
    yield call("minimum", given([1.0, 2.0, 3.0]), given([1.0, 1.0, 4.0]))
    yield call("fmax", given([1.0, 2.0, 3.0]), given([1.0, 1.0, 4.0]))
    yield call("fmin", given([1.0, 2.0, 3.0]), given([1.0, 1.0, 4.0]))
    yield call("ldexp", t(3), given([1, 2, -1], "int32"))
    yield call("frexp", t(3))


def _promotion() -> Iterator[Case]:
    dtypes = ("bool", "int32", "int64", "float32", "float64", "complex64")
    for name in ("add", "multiply", "divide"):
        for left in dtypes:
            for right in dtypes:
                if left != right:
                    yield call(name, t(3, dtype=left, low=1, high=4), t(3, dtype=right, low=1, high=4))
    for name in ("subtract", "pow", "floor_divide", "remainder", "maximum", "atan2"):
        for left, right in (("int32", "float32"), ("float32", "float64"), ("int32", "int64"), ("bool", "int32")):
            yield call(name, t(3, dtype=left, low=1, high=4), t(3, dtype=right, low=1, high=4))
    for name in ("add", "multiply", "subtract", "divide", "pow"):
        yield call(name, t(3, dtype="bool"), t(3, dtype="bool"))
    for left, right in (("float32", "float64"), ("int64", "float32"), ("int32", "int64"), ("float64", "float32")):
        yield call("add", t(3, dtype=left), t(dtype=right))
        yield call("multiply", t(dtype=left), t(3, dtype=right))


def _scalars() -> Iterator[Case]:
    for exponent in (2, 0.5, -1, 0, 3, 1.0, 2.5):
        yield call("pow", t(4, low=0.5, high=3), exponent)
    for exponent in (2, 0.5, 3):
        yield call("pow", t(4, dtype="int64", low=1, high=5), exponent)
    yield call("pow", t(4, low=0.5, high=3, dtype="float64"), 2)
    for dtype in ("float32", "float64", "int32", "int64", "bool", "complex64"):
        x = t(3, dtype=dtype, low=1, high=6)
        for number in (2, 2.5, True, 1 + 2j):
            for name in OPERATORS:
                if name not in ("mod", "floordiv") or not (isinstance(number, complex) or dtype == "complex64"):
                    yield call(f"Tensor.__{name}__", x, number)
    yield call("Tensor.__mod__", t(3, low=1, high=6), 1 + 2j)
    for dtype in ("float32", "int64", "bool"):
        for name in ("radd", "rsub", "rmul", "rtruediv", "rpow", "rfloordiv", "rmod"):
            for number in (3, 3.5):
                yield call(f"Tensor.__{name}__", t(3, dtype=dtype, low=1, high=6), number)


def _operators() -> Iterator[Case]:
    for name in (*OPERATORS, "matmul"):
        yield call(f"Tensor.__{name}__", t(2, 2, low=1, high=4), t(2, 2, low=1, high=4))
    for name in ("add", "subtract", "multiply", "divide", "remainder", "pow"):
        yield call(f"Tensor.{name}", t(2, 3, low=1, high=3), t(3, low=1, high=3))
        yield call(f"Tensor.{name}_", t(2, 3, low=1, high=3), t(3, low=1, high=3))
    yield call("Tensor.add_", t(3, low=1, high=3), t(2, 3, low=1, high=3))
    yield call("Tensor.add_", t(3, dtype="int64"), t(3, dtype="float32"))
    yield call("Tensor.add_", t(3), 2.0)
    yield call("Tensor.multiply_", t(3, layout="T"), t(3))
    yield call("Tensor.scale_", t(3), 2.0)
    yield call("Tensor.clip_", t(3), -0.5, 0.5)
    yield call("Tensor.__neg__", t(3))
    yield call("Tensor.__abs__", t(3))
    yield call("Tensor.__pos__", t(3))


def _others() -> Iterator[Case]:
    for dtype in ("float32", "float64", "int32", "int64"):
        yield call("clip", t(6, dtype=dtype, low=-5, high=6), -2, 3)
        yield call("scale", t(4, dtype=dtype, low=-5, high=6), 2.0, 1.0)
        yield call("add_n", [t(2, 2, dtype=dtype), t(2, 2, dtype=dtype), t(2, 2, dtype=dtype)])
    yield call("clip", t(6), min=0.5)
    yield call("clip", t(6), max=0.5)
    yield call("clip", t(6))
    yield call("clip", t(2, 3, layout="T"), -0.5, 0.5)
    yield call("clip", t(6), given(-0.5, grad=False), given(0.5, grad=False))
    yield call("clip", t(0, 3), -1.0, 1.0)
    yield call("clip", t(), -1.0, 1.0)
    yield call("clip", t(6, dtype="int64", low=-5, high=6), -1.5, 2.5)
    yield call("scale", t(4), 2.0, 1.0, False)
    yield call("scale", t(4), scale=3.0, bias=-1.0, bias_after_scale=False)
    yield call("scale", t(4), 0.5, act="relu")
    yield call("scale", t(4), given(2.0, grad=False), 1.0)
    yield call("scale", t(), 2.0)
    yield call("add_n", t(2, 3))
    yield call("add_n", [t(3)])
    yield call("lerp", t(2, 3), t(2, 3), 0.3)
    yield call("lerp", t(2, 3), t(3), t(2, 3, low=0, high=1))
    yield call("lerp", t(2, 3, dtype="float64"), t(2, 3, dtype="float64"), t(1, dtype="float64"))
    yield call("lerp", t(), t(), 0.5)
    yield call("multiplex", [t(3, 2), t(3, 2)], given([[0], [1], [0]], "int32"))
