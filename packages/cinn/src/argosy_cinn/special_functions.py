"""Special functions whose code is long: in double precision, by the formulas of the reference kernels."""

from __future__ import annotations

from math import inf, nan, pi
from math import log as natural_logarithm

from argosy_cinn.elementary import log
from argosy_cinn.printers.instructions import Instructions
from argosy_cinn.printers.types import DOUBLE, FLOAT, Value, constant, element_of
from argosy_cinn.trigonometry import sin, tan

# digamma(x) ~ log x - 1/(2x) - sum B_2k / (2k x^2k) (Abramowitz and Stegun 6.3.18), from x = 10 on.
_DIGAMMA_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
_LARGE = 10


def digamma(b: Instructions, x: Value) -> Value:
    """The derivative of lgamma, of float or double: an infinity of the opposite sign at zero, NaN at negative whole
    numbers."""
    if element_of(x.type) == FLOAT:
        return b.convert("fptrunc", digamma(b, b.convert("fpext", x, DOUBLE)), FLOAT)
    reflected = b.fcmp("olt", x, 0.0)
    zero = b.fcmp("oeq", x, 0.0)
    value = _digamma_positive(b, b.select(reflected, b.fsub(1.0, x), b.select(zero, 1.0, x)))
    fraction = b.fsub(x, b.unary("roundeven", x))
    other = b.fsub(value, b.fdiv(pi, tan(b, b.fmul(fraction, pi))))
    value = b.select(reflected, b.select(b.fcmp("oeq", fraction, 0.0), nan, other), value)
    pole = b.fneg(b.intrinsic("llvm.copysign", x.type, constant(x.type, inf), x))
    return b.select(b.fcmp("oeq", x, -inf), nan, b.select(zero, pole, value))


def _digamma_positive(b: Instructions, x: Value) -> Value:
    """By digamma(x) = digamma(x + 1) - 1/x until the series converges."""
    shift = b.zero(x.type)
    for _ in range(_LARGE):
        small = b.fcmp("olt", x, float(_LARGE))
        shift = b.select(small, b.fadd(shift, b.fdiv(1.0, x)), shift)
        x = b.select(small, b.fadd(x, 1.0), x)
    inverse = b.fdiv(1.0, b.fmul(x, x))
    series = constant(x.type, _DIGAMMA_SERIES[-1])
    for c in reversed(_DIGAMMA_SERIES[:-1]):
        series = b.fadd(b.fmul(series, inverse), c)
    main = b.fsub(log(b, x), b.fdiv(0.5, x))
    return b.fsub(b.fsub(main, b.fmul(inverse, series)), shift)


# log gamma(x) ~ (x - 1/2) log x - x + log(2 pi) / 2 + sum B_2k / (2k (2k - 1) x^(2k - 1)) (6.1.41), from x = 8 on.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_STIRLING_FROM = 8


def lgamma_float(b: Instructions, x: Value) -> Value:
    """log |gamma(x)| of floats, 2 ulp (1e-14 beside its negative zeros); infinite at zero and at negative whole
    numbers."""
    wide = b.convert("fpext", x, DOUBLE)
    size = b.unary("fabs", wide)
    product, a = constant(wide.type, 1.0), size
    for _ in range(_STIRLING_FROM):
        small = b.fcmp("olt", a, float(_STIRLING_FROM))
        product = b.select(small, b.fmul(product, a), product)
        a = b.select(small, b.fadd(a, 1.0), a)
    inverse = b.fdiv(1.0, a)
    square = b.fmul(inverse, inverse)
    series = constant(a.type, _STIRLING[-1])
    for c in reversed(_STIRLING[:-1]):
        series = b.fadd(b.fmul(series, square), c)
    main = b.fsub(b.fmul(b.fsub(a, 0.5), log(b, a)), b.fsub(a, natural_logarithm(2 * pi) / 2))
    main = b.fadd(main, b.fmul(series, inverse))
    # gamma(-a) gamma(a) = -pi / (a sin(pi a))
    negative = b.fcmp("olt", wide, 0.0)
    wave = b.unary("fabs", sin(b, b.fmul(b.fsub(size, b.unary("roundeven", size)), pi)))
    rest = log(b, b.select(negative, b.fdiv(b.fmul(product, pi), b.fmul(size, wave)), product))
    value = b.fsub(main, rest)
    value = b.select(negative, b.fneg(value), value)
    return b.convert("fptrunc", b.select(b.fcmp("oeq", size, inf), inf, value), FLOAT)
