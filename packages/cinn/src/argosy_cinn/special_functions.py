"""Special functions whose code is long: in double precision, by the formulas of the reference kernels."""

from __future__ import annotations

from math import inf, nan, pi

from argosy_cinn.math import library
from argosy_cinn.printers.instructions import Instructions
from argosy_cinn.printers.types import DOUBLE, FLOAT, Value, constant, element_of

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
    other = b.fsub(value, b.fdiv(pi, library(b, "tan", b.fmul(fraction, pi))))
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
    main = b.fsub(library(b, "log", x), b.fdiv(0.5, x))
    return b.fsub(b.fsub(main, b.fmul(inverse, series)), shift)
