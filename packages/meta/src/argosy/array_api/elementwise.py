"""Elementwise functions of the array API standard."""

from __future__ import annotations

from typing import Any

from argosy.array_api.complex_elementwise import FUNCTIONS
from argosy.array_api.promotion import Operand, apply, as_tensor, promote_operands
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]  # fmt: skip


def _binary(operator: str, x1: Operand, x2: Operand) -> Tensor:
    found: Tensor = apply(operator, *promote_operands(operator, x1, x2))
    return found


def _smooth_function(operator: str, x: Tensor) -> Tensor:
    return FUNCTIONS[operator](x) if x.dtype.kind == "c" else _one(apply(operator, x))


def _is_whole(x: Tensor) -> bool:
    return x.dtype.kind in "iub"


def abs(x: Tensor, /) -> Tensor:
    """The size of each element; real for complex ones."""
    return _one(apply("abs", x))


def acos(x: Tensor, /) -> Tensor:
    """The angle in [0, pi] whose cosine is each element."""
    return _smooth_function("acos", x)


def acosh(x: Tensor, /) -> Tensor:
    """The inverse of the hyperbolic cosine."""
    return _smooth_function("acosh", x)


def asin(x: Tensor, /) -> Tensor:
    """The angle in [-pi/2, pi/2] whose sine is each element."""
    return _one(apply("asin", x))


def asinh(x: Tensor, /) -> Tensor:
    """The inverse of the hyperbolic sine."""
    return _smooth_function("asinh", x)


def atan(x: Tensor, /) -> Tensor:
    """The angle in [-pi/2, pi/2] whose tangent is each element."""
    return _one(apply("atan", x))


def atanh(x: Tensor, /) -> Tensor:
    """The inverse of the hyperbolic tangent."""
    return _smooth_function("atanh", x)


def bitwise_invert(x: Tensor, /) -> Tensor:
    """``~x`` of integers; negation of booleans."""
    return _one(apply("bitwise_not", x))


def ceil(x: Tensor, /) -> Tensor:
    """The smallest whole number not below each element."""
    return _one(apply("assign" if _is_whole(x) else "ceil", x))


def conj(x: Tensor, /) -> Tensor:
    """The complex conjugate of each element."""
    return _one(apply("conj", x))


def cos(x: Tensor, /) -> Tensor:
    """The cosine of each element."""
    return _one(apply("cos", x))


def cosh(x: Tensor, /) -> Tensor:
    """The hyperbolic cosine of each element."""
    return _smooth_function("cosh", x)


def exp(x: Tensor, /) -> Tensor:
    """``e ** x``."""
    return _smooth_function("exp", x)


def expm1(x: Tensor, /) -> Tensor:
    """``e ** x - 1``, accurate near 0."""
    return _smooth_function("expm1", x)


def floor(x: Tensor, /) -> Tensor:
    """The largest whole number not above each element."""
    return _one(apply("assign" if _is_whole(x) else "floor", x))


def isfinite(x: Tensor, /) -> Tensor:
    """Whether each element is neither infinite nor NaN."""
    return _one(apply("isfinite", x))


def isinf(x: Tensor, /) -> Tensor:
    """Whether each element is infinite."""
    return _one(apply("isinf", x))


def isnan(x: Tensor, /) -> Tensor:
    """Whether each element is NaN."""
    return _one(apply("isnan", x))


def log(x: Tensor, /) -> Tensor:
    """The natural logarithm."""
    return _one(apply("log", x))


def log10(x: Tensor, /) -> Tensor:
    """The logarithm to base 10."""
    return _one(apply("log10", x))


def log1p(x: Tensor, /) -> Tensor:
    """``log(1 + x)``, accurate near 0."""
    return _one(apply("log1p", x))


def log2(x: Tensor, /) -> Tensor:
    """The logarithm to base 2."""
    return _one(apply("log2", x))


def logical_not(x: Tensor, /) -> Tensor:
    """Whether each element is false."""
    return _one(apply("logical_not", x))


def negative(x: Tensor, /) -> Tensor:
    """``-x``."""
    return _one(apply("neg", x))


def positive(x: Tensor, /) -> Tensor:
    """A copy of ``x``."""
    return _one(apply("assign", x))


def reciprocal(x: Tensor, /) -> Tensor:
    """``1 / x``."""
    return _one(apply("reciprocal", x))


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1 by the sign of each element; ``x / |x|`` of complex ones."""
    return _smooth_function("sign", x)


def signbit(x: Tensor, /) -> Tensor:
    """Whether the sign bit is set: for negative numbers and -0.0."""
    return _one(apply("signbit", x))


def sin(x: Tensor, /) -> Tensor:
    """The sine of each element."""
    return _one(apply("sin", x))


def sinh(x: Tensor, /) -> Tensor:
    """The hyperbolic sine of each element."""
    return _smooth_function("sinh", x)


def sqrt(x: Tensor, /) -> Tensor:
    """The square root of each element."""
    return _one(apply("sqrt", x))


def square(x: Tensor, /) -> Tensor:
    """``x * x``."""
    return _one(apply("square", x))


def tan(x: Tensor, /) -> Tensor:
    """The tangent of each element."""
    return _one(apply("tan", x))


def tanh(x: Tensor, /) -> Tensor:
    """The hyperbolic tangent of each element."""
    return _smooth_function("tanh", x)


def trunc(x: Tensor, /) -> Tensor:
    """Each element without its fraction."""
    return _one(apply("assign" if _is_whole(x) else "trunc", x))


def add(x1: Operand, x2: Operand, /) -> Tensor:
    """``x1 + x2``."""
    return _binary("add", x1, x2)


def atan2(x1: Operand, x2: Operand, /) -> Tensor:
    """The angle of the point (x2, x1)."""
    return _binary("atan2", x1, x2)


def bitwise_and(x1: Operand, x2: Operand, /) -> Tensor:
    """``x1 & x2`` of integers or booleans."""
    return _binary("bitwise_and", x1, x2)


def bitwise_left_shift(x1: Operand, x2: Operand, /) -> Tensor:
    """``x1 << x2``."""
    return _binary("bitwise_left_shift", x1, x2)


def bitwise_or(x1: Operand, x2: Operand, /) -> Tensor:
    """``x1 | x2`` of integers or booleans."""
    return _binary("bitwise_or", x1, x2)


def bitwise_right_shift(x1: Operand, x2: Operand, /) -> Tensor:
    """``x1 >> x2``, keeping the sign."""
    return _binary("bitwise_right_shift", x1, x2)


def bitwise_xor(x1: Operand, x2: Operand, /) -> Tensor:
    """``x1 ^ x2`` of integers or booleans."""
    return _binary("bitwise_xor", x1, x2)


def copysign(x1: Operand, x2: Operand, /) -> Tensor:
    """The size of ``x1`` with the sign of ``x2``."""
    return _binary("copysign", x1, x2)


def divide(x1: Operand, x2: Operand, /) -> Tensor:
    """``x1 / x2`` of floating-point numbers."""
    return _binary("divide", x1, x2)


def equal(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether ``x1 == x2``."""
    return _binary("equal", x1, x2)


def floor_divide(x1: Operand, x2: Operand, /) -> Tensor:
    """``x1 / x2`` rounded down."""
    return _binary("floor_divide", x1, x2)


def greater(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether ``x1 > x2``."""
    return _binary("greater_than", x1, x2)


def greater_equal(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether ``x1 >= x2``."""
    return _binary("greater_equal", x1, x2)


def hypot(x1: Operand, x2: Operand, /) -> Tensor:
    """``sqrt(x1**2 + x2**2)`` without overflow."""
    return _binary("hypot", x1, x2)


def less(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether ``x1 < x2``."""
    return _binary("less_than", x1, x2)


def less_equal(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether ``x1 <= x2``."""
    return _binary("less_equal", x1, x2)


def logaddexp(x1: Operand, x2: Operand, /) -> Tensor:
    """``log(exp(x1) + exp(x2))`` without overflow."""
    return _binary("logaddexp", x1, x2)


def logical_and(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether both hold."""
    return _binary("logical_and", x1, x2)


def logical_or(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether one holds."""
    return _binary("logical_or", x1, x2)


def logical_xor(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether exactly one holds."""
    return _binary("logical_xor", x1, x2)


def maximum(x1: Operand, x2: Operand, /) -> Tensor:
    """The larger element; NaN where either is."""
    return _binary("maximum", x1, x2)


def minimum(x1: Operand, x2: Operand, /) -> Tensor:
    """The smaller element; NaN where either is."""
    return _binary("minimum", x1, x2)


def multiply(x1: Operand, x2: Operand, /) -> Tensor:
    """``x1 * x2``."""
    return _binary("multiply", x1, x2)


def nextafter(x1: Operand, x2: Operand, /) -> Tensor:
    """The next number after ``x1`` towards ``x2``."""
    return _binary("nextafter", x1, x2)


def not_equal(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether ``x1 != x2``."""
    return _binary("not_equal", x1, x2)


def pow(x1: Operand, x2: Operand, /) -> Tensor:
    """``x1 ** x2``."""
    return _binary("pow", x1, x2)


def remainder(x1: Operand, x2: Operand, /) -> Tensor:
    """``x1 - x2 * floor(x1 / x2)``: it has the sign of ``x2``."""
    return _binary("remainder", x1, x2)


def subtract(x1: Operand, x2: Operand, /) -> Tensor:
    """``x1 - x2``."""
    return _binary("subtract", x1, x2)


def clip(x: Tensor, /, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """``x`` moved into [min, max]; either bound may be missing, and is taken in the dtype of ``x``."""
    low, high = (None if bound is None else as_tensor(bound, x.dtype) for bound in (min, max))
    found = x if low is None else apply("maximum", x, low)
    if high is not None:
        found = apply("minimum", found, high)
    return apply("assign", found) if found is x else found


def imag(x: Tensor, /) -> Tensor:
    """The imaginary part of each element; zeros of real ones."""
    return _one(apply("imag", x) if x.dtype.kind == "c" else apply("zeros_like", x))


def real(x: Tensor, /) -> Tensor:
    """The real part of each element."""
    return _one(apply("real", x) if x.dtype.kind == "c" else apply("assign", x))


def round(x: Tensor, /) -> Tensor:
    """The nearest whole number, halves to the even one; of complex numbers each part."""
    if x.dtype.kind == "c":
        return _one(apply("complex", round(real(x)), round(imag(x))))
    return _one(apply("assign" if _is_whole(x) else "round", x))


def _one(found: Any) -> Tensor:
    tensor: Tensor = found
    return tensor
