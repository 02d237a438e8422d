"""Elementwise kernels: most are one numpy function, called quietly.

numpy (and ml_dtypes for its formats) computes narrow floats in float32 and rounds once, as the primitives
ask. Integers wrap around; dividing them by zero gives 0 (quotient and remainder, as
numpy has it): compiled code cannot raise for one element of many, and both must agree.
"""

from typing import Any

import numpy as np

from argosy_phi_ops.reference.kernels.registry import (
    Array,
    Kernel,
    as_array,
    ieee,
    is_narrow_float,
    kernel,
    numpy_dtype,
    quiet,
    widen,
)

UFUNCS: dict[str, Any] = {
    "neg": np.negative,
    "abs": np.absolute,
    "sign": np.sign,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "bitwise_not": np.invert,
    "logical_not": np.logical_not,
    "is_finite": np.isfinite,
    "is_nan": np.isnan,
    "is_inf": np.isinf,
    "conj": np.conjugate,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "atan2": np.arctan2,
    "nextafter": np.nextafter,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}


def _kernel_of(ufunc: Any) -> Kernel:
    def call(*operands: Array) -> Array:
        result = quiet.run(ufunc, *operands)
        return result if type(result) is np.ndarray else np.asarray(result)

    call.__name__ = call.__qualname__ = ufunc.__name__
    call.ufunc = ufunc  # type: ignore[attr-defined]  # for callers that know that the result has axes
    return call


for _name, _ufunc in UFUNCS.items():
    kernel(_name)(_kernel_of(_ufunc))

_ROUNDINGS = {"floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc}


def _rounding_of(ufunc: Any) -> Kernel:
    def call(x: Array) -> Array:
        if x.dtype.kind in "iub":  # integers are whole already; older numpy would answer float64
            return x
        return as_array(quiet.run(ufunc, x))

    return call


for _name, _ufunc in _ROUNDINGS.items():
    kernel(_name)(_rounding_of(_ufunc))


@kernel("rsqrt")
@ieee
def rsqrt(x: Array) -> Array:
    """``1 / sqrt(x)``, of narrow floats rounded once."""
    return as_array(1 / np.sqrt(widen(x))).astype(x.dtype, copy=False)


@kernel("logistic")
@ieee
def logistic(x: Array) -> Array:
    """``1 / (1 + exp(-x))`` without overflow: exp is taken of ``-|x|`` only."""
    wide = widen(x)
    if x.dtype.kind == "c":
        return as_array(1 / (1 + np.exp(-wide))).astype(x.dtype, copy=False)
    small = np.exp(-np.abs(wide))
    return as_array(np.where(wide >= 0, 1, small) / (1 + small)).astype(x.dtype, copy=False)


@kernel("real")
def real(x: Array) -> Array:
    """The real part, as a float half as wide; a real operand itself."""
    return x.real


@kernel("imag")
def imag(x: Array) -> Array:
    """The imaginary part; zeros of a real operand."""
    return x.imag


@kernel("complex")
def complex_(re: Array, im: Array) -> Array:
    """``re + i im``: complex64 of float32 parts, complex128 of float64 ones."""
    result = np.empty(re.shape, np.complex128 if re.dtype == np.float64 else np.complex64)
    result.real, result.imag = re, im
    return result


@kernel("cast")
@ieee
def cast(x: Array, *, dtype: str) -> Array:
    """Convert to `dtype`: floats truncate towards zero to integers, complex numbers lose their imaginary
    part.

    The operand itself where the dtype is the same already.
    """
    target = numpy_dtype(dtype)
    if x.dtype == target:
        return x
    if x.dtype.kind == "c" and target.kind not in "cb":
        x = x.real
    if target.kind == "b":
        return as_array(x != 0)
    if is_narrow_float(target) and x.dtype.kind == "V":  # ml_dtypes has no direct cast between some of its formats
        x = x.astype(np.float32)
    return x.astype(target)


@kernel("bitcast")
def bitcast(x: Array, *, dtype: str) -> Array:
    """The same bits read as another dtype of the same width."""
    return np.ascontiguousarray(x).reshape(x.shape).view(numpy_dtype(dtype))


@kernel("stop_gradient")
def stop_gradient(x: Array) -> Array:
    """The operand: only differentiation looks at this primitive."""
    return x


@kernel("copy")
def copy(x: Array) -> Array:
    """A C-contiguous array of its own."""
    return x.copy()


@kernel("div")
def div(x: Array, y: Array) -> Array:
    """True division of floats and complex numbers; of integers, rounded towards zero."""
    if y.dtype.kind not in "iub":
        return as_array(quiet.run(np.true_divide, x, y))
    quotient = quiet.run(np.floor_divide, x, y)
    if y.dtype.kind == "i":
        inexact_and_negative = ((x < 0) != (y < 0)) & (quiet.run(np.fmod, x, y) != 0)
        quotient = quotient + inexact_and_negative
    return as_array(quotient).astype(x.dtype, copy=False)


@kernel("rem")
def rem(x: Array, y: Array) -> Array:
    """C's remainder: it has the sign of the dividend."""
    return as_array(quiet.run(np.fmod, x, y))


@kernel("floor_div")
def floor_div(x: Array, y: Array) -> Array:
    """The quotient rounded down, for floats too."""
    return as_array(quiet.run(np.floor_divide, x, y))


@kernel("floor_mod")
def floor_mod(x: Array, y: Array) -> Array:
    """The remainder with the sign of the divisor, for floats too."""
    return as_array(quiet.run(np.remainder, x, y))


@kernel("pow")
def pow_(x: Array, y: Array) -> Array:
    """``x ** y``. Of integers with a negative exponent: the reciprocal rounded towards zero, that of 0 being 0."""
    if y.dtype.kind != "i" or not (y < 0).any():
        return as_array(quiet.run(np.power, x, y))
    power = quiet.run(np.power, x, np.maximum(y, 0))
    unit = np.where(x == 1, 1, np.where(x == -1, np.where(y % 2 == 0, 1, -1), 0))
    return as_array(np.where(y < 0, unit, power)).astype(x.dtype, copy=False)


def _shift_amount(x: Array, y: Array) -> tuple[Array, Array]:
    bits = 8 * x.dtype.itemsize
    return as_array((y < 0) | (y >= bits)), as_array(np.clip(y, 0, bits - 1))


@kernel("shift_left")
def shift_left(x: Array, y: Array) -> Array:
    """``x << y``; a shift by the width or more (or by less than zero) leaves zero."""
    beyond, amount = _shift_amount(x, y)
    return as_array(np.where(beyond, x.dtype.type(0), np.left_shift(x, amount)))


@kernel("shift_right")
def shift_right(x: Array, y: Array) -> Array:
    """``x >> y``: of signed integers arithmetic, so that a shift by the width or more leaves the sign."""
    beyond, amount = _shift_amount(x, y)
    last = np.right_shift(x, x.dtype.type(8 * x.dtype.itemsize - 1)) if x.dtype.kind == "i" else x.dtype.type(0)
    return as_array(np.where(beyond, last, np.right_shift(x, amount)))


@kernel("select")
def select(condition: Array, x: Array, y: Array) -> Array:
    """`x` where `condition` holds, else `y`."""
    return as_array(np.where(condition, x, y))
