"""Elementwise arithmetic."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

from argosy_infer.onnx.document import dtype_name
from argosy_infer.onnx.registry import Like, onnx_operator
from argosy_infer.onnx.tensors import phi, prim, shape_of

_UNARY = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan", "Atanh": "atanh",
    "BitwiseNot": "bitwise_not", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Erf": "erf", "Exp": "exp",
    "Floor": "floor", "IsNaN": "is_nan", "Log": "log", "Neg": "neg", "Not": "logical_not", "Round": "round",
    "Sigmoid": "logistic", "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh",
}  # fmt: skip
_BINARY = {
    "Add": "add", "And": "logical_and", "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor", "Div": "div", "Equal": "eq", "Greater": "gt", "GreaterOrEqual": "ge", "Less": "lt",
    "LessOrEqual": "le", "Mul": "mul", "Or": "logical_or", "Sub": "sub", "Xor": "logical_xor",
}  # fmt: skip
"""Operators that are one primitive, broadcast as numpy does."""


def _declare(name: str, primitive: str, operands: int) -> None:
    function = getattr(prim, primitive)

    def unary(x: Any) -> Any:
        return function(x)

    def binary(x: Any, y: Any) -> Any:
        return function(x, y)

    def aligned(x: Any, y: Any, *, broadcast: int = 0, axis: int | None = None) -> Any:
        """With `axis`, the axes of ``y`` are those of ``x`` from there on."""
        missing = 0 if axis is None else len(shape_of(x)) - axis % len(shape_of(x)) - len(shape_of(y))
        return function(x, phi.reshape(y, [*shape_of(y), *[1] * missing]) if missing else y)

    if operands == 1:
        onnx_operator(name)(unary)
    else:
        onnx_operator(name, since=7)(binary)
        onnx_operator(name)(aligned)


for _operands, _names in ((1, _UNARY), (2, _BINARY)):
    for _name, _primitive in _names.items():
        _declare(_name, _primitive, _operands)


@onnx_operator("Identity")
def identity(x: Any) -> Any:
    """``x``."""
    return x


@onnx_operator("Reciprocal")
def reciprocal(x: Any) -> Any:
    """``1 / x``."""
    return phi.reciprocal(x)


@onnx_operator("Pow")
def power(x: Any, y: Any) -> Any:
    """``x ** y`` in the dtype of ``x``."""
    dtype = x.payload.dtype
    if dtype.kind != "f" and y.payload.dtype.kind == "f":
        return prim.cast(prim.pow(prim.cast(x, dtype=y.payload.dtype.name), y), dtype=dtype.name)
    return prim.pow(x, prim.cast(y, dtype=dtype.name))


@onnx_operator("Mod")
def modulo(x: Any, y: Any, *, fmod: int = 0) -> Any:
    """The remainder with the sign of ``y``, or of ``x`` with `fmod`."""
    return prim.rem(x, y) if fmod else prim.floor_mod(x, y)


@onnx_operator("BitShift")
def bit_shift(x: Any, y: Any, *, direction: str) -> Any:
    """``x`` shifted by ``y`` bits; nothing is left of it beyond its width."""
    width = 8 * x.payload.dtype.itemsize
    shifted = (prim.shift_left if direction == "LEFT" else prim.shift_right)(x, prim.minimum(y, width - 1))
    return prim.select(prim.ge(y, width), prim.bitwise_xor(shifted, shifted), shifted)


def _combine(name: str, function: Any) -> None:
    @onnx_operator(name)
    def combine(*xs: Any) -> Any:
        return reduce(function, xs)


for _name, _primitive in (("Sum", "add"), ("Max", "maximum"), ("Min", "minimum")):
    _combine(_name, getattr(prim, _primitive))


@onnx_operator("Mean")
def mean(*xs: Any) -> Any:
    """The mean of all inputs, element by element."""
    return prim.div(reduce(prim.add, xs), len(xs))


@onnx_operator("Clip")
def clip(x: Any, min: Any = None, max: Any = None) -> Any:
    """``x`` between the bounds; ``max`` where they are exchanged."""
    lower = x if min is None else prim.maximum(x, min)
    return lower if max is None else prim.minimum(lower, max)


@onnx_operator("IsInf")
def is_inf(x: Any, *, detect_negative: int = 1, detect_positive: int = 1) -> Any:
    """Whether ``x`` is one of the infinities asked for."""
    found = prim.is_inf(x)
    if not detect_negative:
        found = prim.logical_and(found, prim.gt(x, 0))
    return found if detect_positive else prim.logical_and(found, prim.lt(x, 0))


@onnx_operator("Where")
def where(condition: Any, x: Any, y: Any) -> Any:
    """``x`` where the condition holds, ``y`` elsewhere."""
    return prim.select(condition, x, y)


@onnx_operator("Cast")
def cast(x: Any, *, to: int, saturate: int = 1, round_mode: str = "up") -> Any:
    """``x`` as another dtype; integers wrap around, floats lose what they have after the point."""
    return convert(x, dtype_name(to, "Cast"), saturate)


@onnx_operator("CastLike")
def cast_like(x: Any, target: Like, *, saturate: int = 1, round_mode: str = "up") -> Any:
    """``x`` in the dtype of ``target``."""
    return convert(x, target.payload.dtype.name, saturate)


_GREATEST = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}


def convert(x: Any, dtype: str, saturate: int = 1) -> Any:
    """``x`` as ``dtype``; what is beyond floats of 8 bits is their greatest number where it saturates."""
    if saturate and dtype in _GREATEST and x.payload.dtype.kind == "f":
        bound = _GREATEST[dtype]
        x = prim.maximum(prim.minimum(x, bound), -bound)
    return prim.cast(x, dtype=dtype)


def keep_dtype(function: Any, x: Any, *arguments: Any, **keywords: Any) -> Any:
    """What ``function`` makes of ``x``, in the dtype of ``x``."""
    result = function(x, *arguments, **keywords)
    dtype = x.payload.dtype
    return result if result.payload.dtype is dtype else prim.cast(result, dtype=dtype.name)


in_float32 = partial(prim.cast, dtype="float32")
"""A tensor in float32."""
