"""Special functions whose code is long: in double precision, by the formulas of the reference kernels."""

from __future__ import annotations

from math import inf, nan, pi
from math import log as natural_logarithm

from argosy_cinn.double_double import two_product
from argosy_cinn.elementary import exponential, log
from argosy_cinn.math import horner, scale, with_sign_of
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


# log gamma(x) ~ (x - 1/2) log x - x + log(2 pi) / 2 + sum B_2k / (2k (2k - 1) x^(2k - 1)) (6.1.41), from x = 8.5 on
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
# log gamma(2 + t) = t P(t) on [-1/2, 1/2], relative minimax, 1e-18
_LGAMMA = (
    0.42278433509846713, 0.32246703342411326, -0.06735230105319831, 0.02058080842778057, -0.0073855510286497126,
    0.0028905103310235777, -0.0011927539127581407, 0.0005096695156799135, -0.00022315473517258095,
    9.945766998420326e-05, -4.492653103564201e-05, 2.0505617761049998e-05, -9.437237451641548e-06,
    4.384588175066519e-06, -2.049751249371297e-06, 9.203182569564092e-07, -4.2004998717695705e-07,
    2.784911187808705e-07, -1.4328865144069492e-07,
)  # fmt: skip


def lgamma(b: Instructions, x: Value) -> Value:
    """log |gamma(x)|, 1 ulp (double: 6; beside zeros at negative numbers 1e-15); infinite at zero and at negative whole
    numbers."""
    if element_of(x.type) == FLOAT:
        return b.convert("fptrunc", lgamma(b, b.convert("fpext", x, DOUBLE)), FLOAT)
    size = b.unary("fabs", x)
    positive = _lgamma_positive(b, size)
    # gamma(-a) gamma(a) = -pi / (a sin(pi a)); beside zero, where this is as good as -1 / a^2, they are as large
    negative = b.fcmp("olt", x, -(2.0**-60))
    wave = b.unary("fabs", sin(b, b.fmul(b.fsub(size, b.unary("roundeven", size)), pi)))
    both = log(b, b.fdiv(pi, b.fmul(size, wave)))
    pole = b.binary("or", b.fcmp("oeq", size, inf), b.binary("and", negative, b.fcmp("oeq", wave, 0.0)))
    return b.select(pole, inf, b.select(negative, b.fsub(both, positive), positive))


def _lgamma_positive(b: Instructions, x: Value) -> Value:
    """By gamma(x + 1) = x gamma(x) from [1.5, 2.5], or by the asymptotic series."""
    far = b.fcmp("oge", x, 8.5)
    near = b.select(far, constant(x.type, 2.0), x)
    steps = b.unary("floor", b.fadd(near, 0.5))
    t = b.fsub(near, steps)
    below = b.fcmp("olt", near, 1.5)
    factor = b.select(below, near, 1.0)
    factor = b.select(b.fcmp("olt", near, 0.5), b.fmul(near, b.fadd(near, 1.0)), factor)
    for i in range(1, 7):
        factor = b.select(b.fcmp("oge", steps, 2.0 + i), b.fmul(factor, b.fsub(near, float(i))), factor)
    logarithm = log(b, b.select(far, x, factor))
    inner = b.fma(t, horner(b, _LGAMMA, t), b.select(below, b.fneg(logarithm), logarithm))
    inverse = b.fdiv(1.0, x)
    series = b.fma(horner(b, _STIRLING, b.fmul(inverse, inverse)), inverse, natural_logarithm(2 * pi) / 2 - 0.5)
    return b.select(far, b.fma(b.fsub(x, 0.5), b.fsub(logarithm, 1.0), series), inner)


# erf(x) = x + x P(x^2) on [-1, 1], 1e-19
_ERF = (
    0.1283791670955126, -0.3761263890318375, 0.11283791670954885, -0.02686617064507787, 0.0052239776248283985,
    -0.0008548326981424113, 0.00012055331132916607, -1.4925595771510586e-05, 1.6461008470897266e-06,
    -1.6350396185651564e-07, 1.466032868532933e-08, -1.1374956310598293e-09, 5.960687365484333e-11,
)  # fmt: skip
# (1 + 2 x) e^x^2 erfc(x) = P((x - 4) / (x + 4)) on [0.5, 28] (Shepherd and Laframboise, 1981), relative minimax, 3e-17
_ERFC = (
    1.2329951186255526, -0.13962111684056167, 0.015379652102614078, 0.06809705425458362, -0.10103906603594681,
    0.09373283500242025, -0.06633036582093353, 0.03716751546766298, -0.01619773395002697, 0.005031970637977794,
    -0.0007577740558416523, -0.00019926045755174875, 0.00015062502711906124, -2.4385701657336092e-05,
    -1.1231242357976003e-05, 5.6788529625202224e-06, 3.096398601376691e-07, -7.815435786368358e-07,
    5.8404791988696814e-08, 7.403472567757247e-08, -9.099692806312219e-09,
)  # fmt: skip


def erf(b: Instructions, x: Value) -> Value:
    """Error function of doubles, 1.5 ulp."""
    size = b.unary("fabs", x)
    far = b.fsub(1.0, _erfc_far(b, size))
    return b.select(b.fcmp("ogt", size, 1.0), with_sign_of(b, far, x), _erf_near(b, x))


def erfc(b: Instructions, x: Value) -> Value:
    """1 - erf(x) of doubles, 3 ulp."""
    size = b.unary("fabs", x)
    far = _erfc_far(b, size)
    far = b.select(b.fcmp("olt", x, 0.0), b.fsub(2.0, far), far)
    return b.select(b.fcmp("ogt", size, 0.5), far, b.fsub(1.0, _erf_near(b, x)))


def _erf_near(b: Instructions, x: Value) -> Value:
    return b.fma(x, horner(b, _ERF, b.fmul(x, x)), x)


def _erfc_far(b: Instructions, x: Value) -> Value:
    """Of positive numbers from 0.5 on; e^-x^2 by the square and what rounding takes of it."""
    x = b.select(b.fcmp("ogt", x, 28.0), 28.0, x)
    square, rest = two_product(b, x, x)
    n, beyond_one = exponential(b, b.fneg(square), b.fneg(rest))
    quotient = b.fdiv(horner(b, _ERFC, b.fdiv(b.fsub(x, 4.0), b.fadd(x, 4.0))), b.fma(x, 2.0, constant(x.type, 1.0)))
    return scale(b, b.fma(quotient, beyond_one, quotient), n)
