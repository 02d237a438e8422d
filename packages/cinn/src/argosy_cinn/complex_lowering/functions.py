"""Functions of a complex variable in terms of real ones: what each computes from the parts x + iy.

Branch cuts are those of C99; formulas that would cancel or overflow are Kahan's ("Branch cuts for complex elementary
functions", 1987). Signs of zeros and infinities are kept where numpy keeps them in a product or quotient; elsewhere an
infinite part may come out as NaN where C99 asks for an infinity.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from argosy_phi_ops import prim
from argosy_pir.values import Value

Pair = tuple[Value, Value]
#: From here on, exp(-2|x|) vanishes beside 1 in double precision.
_FLAT = 20.0


def is_complex(value: Value) -> bool:
    """Whether a value is a tensor of complex numbers."""
    return getattr(value.type, "dtype", "").startswith("complex")


def number(like: Value, value: float) -> Value:
    """A constant of the shape and dtype of ``like``."""
    result: Value = prim.constant(value, like.dtype, like.shape)
    return result


def _square(x: Value) -> Value:
    result: Value = prim.mul(x, x)
    return result


def _copysign(magnitude: Value, sign: Value) -> Value:
    bits = prim.bitcast(sign, dtype="int32" if sign.dtype == "float32" else "int64")  # tells -0.0 from 0.0
    negative = prim.lt(bits, 0)
    result: Value = prim.select(negative, prim.neg(prim.abs(magnitude)), prim.abs(magnitude))
    return result


def negate(z: Pair) -> Pair:
    """-z."""
    return prim.neg(z[0]), prim.neg(z[1])


def conjugate(z: Pair) -> Pair:
    """x - iy."""
    return z[0], prim.neg(z[1])


def _turn(z: Pair) -> Pair:
    """i z."""
    return prim.neg(z[1]), z[0]


def _turned_back(z: Pair) -> Pair:
    """-i z."""
    return z[1], prim.neg(z[0])


def add_pairs(z: Pair, w: Pair) -> Pair:
    """z + w."""
    return prim.add(z[0], w[0]), prim.add(z[1], w[1])


def subtract(z: Pair, w: Pair) -> Pair:
    """z - w."""
    return prim.sub(z[0], w[0]), prim.sub(z[1], w[1])


def multiply(z: Pair, w: Pair) -> Pair:
    """z w, by four products as numpy has it."""
    re = prim.sub(prim.mul(z[0], w[0]), prim.mul(z[1], w[1]))
    return re, prim.add(prim.mul(z[0], w[1]), prim.mul(z[1], w[0]))


def divide(z: Pair, w: Pair) -> Pair:
    """z / w by Smith's method (1962), which scales by the larger part of the divisor."""
    (a, b), (c, d) = z, w
    steep = prim.lt(prim.abs(c), prim.abs(d))
    large, small = prim.select(steep, d, c), prim.select(steep, c, d)
    p, q = prim.select(steep, b, a), prim.select(steep, a, b)
    ratio = prim.div(small, large)
    scale = prim.div(1.0, prim.add(large, prim.mul(small, ratio)))
    re = prim.mul(prim.add(p, prim.mul(q, ratio)), scale)
    im = prim.mul(prim.sub(q, prim.mul(p, ratio)), scale)
    im = prim.select(steep, prim.neg(im), im)
    zero = prim.eq(large, 0.0)
    nothing = prim.abs(large)
    return prim.select(zero, prim.div(a, nothing), re), prim.select(zero, prim.div(b, nothing), im)


def modulus(z: Pair) -> Value:
    """|z| without overflow: the larger part times sqrt(1 + ratio^2)."""
    x, y = prim.abs(z[0]), prim.abs(z[1])
    large, small = prim.maximum(x, y), prim.minimum(x, y)
    ratio = prim.div(small, large)
    long = prim.mul(large, prim.sqrt(prim.add(_square(ratio), 1.0)))
    long = prim.select(prim.eq(large, 0.0), large, long)
    endless = prim.logical_or(prim.is_inf(x), prim.is_inf(y))
    result: Value = prim.select(endless, number(x, inf), long)
    return result


def angle(z: Pair) -> Value:
    """The argument of z in (-pi, pi]."""
    result: Value = prim.atan2(z[1], z[0])
    return result


def sign(z: Pair) -> Pair:
    """z / |z|; 0 at 0."""
    length = modulus(z)
    zero = prim.eq(length, 0.0)
    divisor = prim.select(zero, number(length, 1.0), length)
    return prim.div(z[0], divisor), prim.div(z[1], divisor)


def exp(z: Pair) -> Pair:
    """e^x (cos y + i sin y)."""
    scale = prim.exp(z[0])
    real = prim.eq(z[1], 0.0)
    im = prim.select(real, z[1], prim.mul(scale, prim.sin(z[1])))
    return prim.mul(scale, prim.cos(z[1])), im


def expm1(z: Pair) -> Pair:
    """exp(z) - 1: expm1(x) cos y - 2 sin(y/2)^2 for the real part."""
    half = prim.sin(prim.mul(z[1], 0.5))
    re = prim.sub(prim.mul(prim.expm1(z[0]), prim.cos(z[1])), prim.mul(2.0, _square(half)))
    return re, prim.mul(prim.exp(z[0]), prim.sin(z[1]))


def log(z: Pair) -> Pair:
    """log|z| + i angle(z); near the unit circle by log1p of |z|^2 - 1."""
    x, y = prim.abs(z[0]), prim.abs(z[1])
    large, small = prim.maximum(x, y), prim.minimum(x, y)
    one = number(x, 1.0)
    beyond = prim.add(prim.mul(prim.sub(large, one), prim.add(large, one)), _square(small))
    near = prim.mul(0.5, prim.log1p(beyond))
    close = prim.logical_and(prim.gt(large, 0.5), prim.lt(large, 2.0))
    return prim.select(close, near, prim.log(modulus(z))), angle(z)


def log1p(z: Pair) -> Pair:
    """log(1 + z)."""
    x, y = z
    inner = prim.add(prim.mul(x, prim.add(x, 2.0)), _square(y))
    one = number(x, 1.0)
    moved = (prim.add(x, one), y)
    small = prim.lt(prim.abs(inner), 0.5)
    near = prim.mul(0.5, prim.log1p(prim.select(small, inner, 0.0)))
    return prim.select(small, near, log(moved)[0]), angle(moved)


def sqrt(z: Pair) -> Pair:
    """The root with a real part that is not negative."""
    x, y = z
    t = prim.sqrt(prim.mul(0.5, prim.add(prim.abs(x), modulus(z))))
    zero = prim.eq(t, 0.0)
    other = prim.div(y, prim.mul(2.0, prim.select(zero, 1.0, t)))
    right = prim.ge(x, 0.0)
    return prim.select(right, t, prim.abs(other)), prim.select(right, other, _copysign(t, y))


def rsqrt(z: Pair) -> Pair:
    """1 / sqrt(z)."""
    return divide((number(z[0], 1.0), number(z[0], 0.0)), sqrt(z))


def logistic(z: Pair) -> Pair:
    """1 / (1 + exp(-z))."""
    one, zero = number(z[0], 1.0), number(z[0], 0.0)
    return divide((one, zero), add_pairs((one, zero), exp(negate(z))))


def sinh(z: Pair) -> Pair:
    """sinh x cos y + i cosh x sin y."""
    return prim.mul(prim.sinh(z[0]), prim.cos(z[1])), prim.mul(prim.cosh(z[0]), prim.sin(z[1]))


def cosh(z: Pair) -> Pair:
    """cosh x cos y + i sinh x sin y."""
    return prim.mul(prim.cosh(z[0]), prim.cos(z[1])), prim.mul(prim.sinh(z[0]), prim.sin(z[1]))


def tanh(z: Pair) -> Pair:
    """Kahan's formula in tan y and sinh x; where tanh x is flat, by the exponential."""
    x, y = z
    one = number(x, 1.0)
    flat = prim.gt(prim.abs(x), _FLAT)
    inside = prim.select(flat, number(x, 0.0), x)
    s, t = prim.sinh(inside), prim.tan(y)
    beta = prim.add(one, _square(t))
    below = prim.add(one, prim.mul(beta, _square(s)))
    rho = prim.sqrt(prim.add(one, _square(s)))
    re = prim.div(prim.mul(prim.mul(beta, rho), s), below)
    tail = prim.mul(4.0, prim.exp(prim.mul(-2.0, prim.abs(x))))
    im = prim.mul(prim.mul(prim.sin(y), prim.cos(y)), tail)
    return prim.select(flat, prim.sign(x), re), prim.select(flat, im, prim.div(t, below))


def asinh(z: Pair) -> Pair:
    """i asin(-i z)."""
    return _turn(asin(_turned_back(z)))


def _roots(z: Pair) -> tuple[Pair, Pair]:
    """sqrt(1 - z) and sqrt(1 + z)."""
    one = number(z[0], 1.0)
    return sqrt((prim.sub(one, z[0]), prim.neg(z[1]))), sqrt((prim.add(one, z[0]), z[1]))


def asin(z: Pair) -> Pair:
    """atan2(x, Re(sqrt(1-z) sqrt(1+z))) + i asinh(Im(conj(sqrt(1-z)) sqrt(1+z)))."""
    less, more = _roots(z)
    im = prim.asinh(multiply(conjugate(less), more)[1])
    return prim.atan2(z[0], multiply(less, more)[0]), im


def acos(z: Pair) -> Pair:
    """2 atan2(Re sqrt(1-z), Re sqrt(1+z)) + i asinh(Im(conj(sqrt(1+z)) sqrt(1-z)))."""
    less, more = _roots(z)
    re = prim.mul(2.0, prim.atan2(less[0], more[0]))
    return re, prim.asinh(multiply(conjugate(more), less)[1])


def acosh(z: Pair) -> Pair:
    """asinh(Re(conj(sqrt(z-1)) sqrt(z+1))) + 2i atan2(Im sqrt(z-1), Re sqrt(z+1))."""
    one = number(z[0], 1.0)
    less, more = sqrt((prim.sub(z[0], one), z[1])), sqrt((prim.add(z[0], one), z[1]))
    im = prim.mul(2.0, prim.atan2(less[1], more[0]))
    return prim.asinh(multiply(conjugate(less), more)[0]), im


def atanh(z: Pair) -> Pair:
    """log1p(4x / ((1-x)^2 + y^2)) / 4 + i atan2(2y, (1-x)(1+x) - y^2) / 2."""
    x, y = z
    one = number(x, 1.0)
    apart = prim.add(_square(prim.sub(one, x)), _square(y))
    re = prim.mul(0.25, prim.log1p(prim.div(prim.mul(4.0, x), apart)))
    across = prim.sub(prim.mul(prim.sub(one, x), prim.add(one, x)), _square(y))
    return re, prim.mul(0.5, prim.atan2(prim.mul(2.0, y), across))


def power(z: Pair, w: Pair) -> Pair:
    """exp(w log z); 1 where w is 0, and 0 where z is 0 and w is real and positive (NaN for other w)."""
    zero = number(z[0], 0.0)
    general = exp(multiply(w, log(z)))
    flat = prim.eq(w[1], zero)
    nothing = prim.logical_and(prim.eq(z[0], zero), prim.eq(z[1], zero))
    vanishes = prim.logical_and(flat, prim.gt(w[0], zero))
    at_zero = prim.select(vanishes, zero, number(zero, float("nan")))
    re, im = (prim.select(nothing, at_zero, part) for part in general)
    whole = prim.logical_and(flat, prim.eq(w[0], zero))
    return prim.select(whole, number(zero, 1.0), re), prim.select(whole, zero, im)


def _sin(z: Pair) -> Pair:
    return _turned_back(sinh(_turn(z)))


def _cos(z: Pair) -> Pair:
    return cosh(_turn(z))


def _tan(z: Pair) -> Pair:
    return _turned_back(tanh(_turn(z)))


def _atan(z: Pair) -> Pair:
    return _turned_back(atanh(_turn(z)))


UNARY: dict[str, Callable[[Pair], Pair]] = {
    "neg": negate, "conj": conjugate, "sign": sign, "exp": exp, "expm1": expm1, "log": log, "log1p": log1p,
    "sqrt": sqrt, "rsqrt": rsqrt, "logistic": logistic, "sinh": sinh, "cosh": cosh, "tanh": tanh, "sin": _sin,
    "cos": _cos, "tan": _tan, "asinh": asinh, "acosh": acosh, "atanh": atanh, "asin": asin, "acos": acos,
    "atan": _atan,
}  # fmt: skip
BINARY: dict[str, Callable[[Pair, Pair], Pair]] = {
    "add": add_pairs, "sub": subtract, "mul": multiply, "div": divide, "pow": power,
}  # fmt: skip

__all__ = ["BINARY", "UNARY", "Pair", "is_complex", "modulus", "multiply", "number"]
