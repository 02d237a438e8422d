"""Exponentials, logarithms, hyperbolic and inverse functions and powers on float and double vectors, as straight-line
code of one text for both: coefficients and the layout of numbers go by the type.

Bounds are the largest errors found against more digits over all magnitudes, in units in the last place; infinities,
NaN, zeros with their signs and denormal numbers behave as IEEE 754 and C ask. Polynomials are minimax, by Remez'
algorithm; reductions are those of fdlibm (Sun Microsystems, 1993).
"""

from __future__ import annotations

from math import inf, nan, pi
from typing import NamedTuple

from argosy_cinn.double_double import Pair, two_product, two_sum
from argosy_cinn.math import horner, scale, with_sign_of
from argosy_cinn.printers.instructions import Instructions
from argosy_cinn.printers.types import DOUBLE, FLOAT, I32, I64, Value, constant, element_of, lanes_of, vector


class _Format(NamedTuple):
    """Integers of the same width, bits of the fraction, the bias of exponents, the bits of sqrt(1/2), the logarithm of
    2 as a number with few bits and a rest, the largest arguments of exp and of sinh, and a size from where on
    x + 1/x is x."""

    integer: str
    fraction: int
    bias: int
    root_half: int
    ln2: tuple[float, float]
    exp_limit: float
    sinh_limit: float
    large: float

    @property
    def unit(self) -> float:
        """The rounding error of 1."""
        return 2.0 ** -(self.fraction + 1)


_FORMATS = {
    FLOAT: _Format(I32, 23, 127, 0x3F3504F3, (0.693359375, -2.12194440e-4), 89.0, 89.41598510742188, 2.0**14),
    DOUBLE: _Format(I64, 52, 1023, 0x3FE6A09E667F3BCD, (6.93147180369123816490e-01, 1.90821492927058770002e-10),
                    710.0, 710.4758600739439, 2.0**28),
}  # fmt: skip
_LOG2E = 1.4426950408889634
# e^r = 1 + r + r^2 P(r) on [-ln2/2, ln2/2]: 7e-9, 2e-19
_EXP = {
    FLOAT: (0.5, 0.16666576, 0.041666374, 0.008363197, 0.0013941152),
    DOUBLE: (0.5, 0.1666666666666667, 0.041666666666666685, 0.008333333333326119, 0.0013888888888874372,
             0.000198412698748757, 2.480158734740955e-05, 2.755725533078759e-06, 2.7557252839982076e-07,
             2.5105245787377705e-08, 2.092161530817127e-09),
}  # fmt: skip
# log((1 + s) / (1 - s)) = 2 s + s z P(z) of z = s^2 for (1 + s) / (1 - s) in [sqrt(1/2), sqrt(2)]: 8e-10, 1e-18
_LOG = {
    FLOAT: (0.66666776, 0.3997752, 0.29872316),
    DOUBLE: (0.6666666666666735, 0.39999999999413105, 0.2857142874277024, 0.2222219853077424, 0.18183566685734037,
             0.1531398638013056, 0.1479662830239139),
}  # fmt: skip
# The same as s z (2/3 + z P(z)): 1e-22
_LONG_LOG = (0.3999999999999998, 0.2857142857144515, 0.22222222217527085, 0.1818181887146988, 0.1538455679192335,
             0.13336320470563456, 0.11674756384981425, 0.11989531946613305)  # fmt: skip
_THIRD_REST = 3.700743415417188e-17
# atan(r) = r + r z P(z) of z = r^2 for r in [0, tan(pi/8)]: 7e-10, 1e-18
_ATAN = {
    FLOAT: (-0.33333316, 0.19998471, -0.14243521, 0.10593723, -0.060779806),
    DOUBLE: (-0.333333333333332, 0.1999999999995321, -0.14285714280162434, 0.11111110781936845, -0.0909089771868785,
             0.07692059596098622, -0.06663097777699992, 0.05847848585296026, -0.0503914097301105, 0.03806085288970452,
             -0.01790359879573332),
}  # fmt: skip
# asin(r) = r + r z P(z) of z = r^2 for r in [0, 1/2]: 5e-9, 1e-18
_ASIN = {
    FLOAT: (0.16666752, 0.074952886, 0.04547161, 0.024172941, 0.042178247),
    DOUBLE: (0.1666666666666676, 0.07499999999970638, 0.044642857174774696, 0.030381942699578945, 0.02237221522918581,
             0.017351607498704884, 0.013980876685465425, 0.011398437067635795, 0.010783001876964274,
             0.003695709663011445, 0.021734226011176135, -0.021037991573500565, 0.03265360095418842),
}  # fmt: skip
# What pi / 2 lacks beside its nearest number
_HALF_PI = {FLOAT: (1.5707963705062866, -4.371139000186241e-08), DOUBLE: (pi / 2, 6.123233995736766e-17)}


def _format(x: Value) -> _Format:
    return _FORMATS[element_of(x.type)]


def _integers(x: Value) -> str:
    return vector(_format(x).integer, lanes_of(x.type))


def _size(b: Instructions, x: Value) -> Value:
    return b.unary("fabs", x)


def _is_negative(b: Instructions, x: Value) -> Value:
    """Of zeros, too."""
    return b.icmp("slt", b.bitcast(x, _integers(x)), 0)


def _at_most(b: Instructions, x: Value, limit: float) -> Value:
    return b.select(b.fcmp("ogt", x, limit), limit, x)


def _at_least(b: Instructions, x: Value, limit: float) -> Value:
    return b.select(b.fcmp("olt", x, limit), limit, x)


def _small_as_it_is(b: Instructions, x: Value, result: Value) -> Value:
    """The result of an odd function with slope 1, which of small numbers, denormal ones and zeros among them, is x."""
    return b.select(b.fcmp("olt", _size(b, x), _format(x).unit), x, with_sign_of(b, result, x))


# -- exponentials


def exponential(b: Instructions, x: Value, rest: Value | None = None) -> tuple[Value, Value]:
    """A whole number n as a float, and e^r - 1 of ``r = x + rest - n ln2`` in [-ln2/2, ln2/2]."""
    high, low = _format(x).ln2
    n = b.unary("roundeven", b.fmul(x, _LOG2E))
    r = b.fma(n, -low, b.fma(n, -high, x))
    r = r if rest is None else b.fadd(r, rest)
    return n, b.fma(b.fmul(r, r), horner(b, _EXP[element_of(x.type)], r), r)


def _power_of_two(b: Instructions, n: Value) -> Value:
    """2^n of a whole float that gives a normal number."""
    form = _format(n)
    whole = b.convert("fptosi", b.select(b.fcmp("ord", n, n), n, 0.0), I32)
    biased = b.binary("add", b.convert("sext", whole, form.integer), form.bias)
    return b.bitcast(b.binary("shl", biased, form.fraction), n.type)


def exp(b: Instructions, x: Value) -> Value:
    """e^x of doubles, 1 ulp."""
    x = _at_most(b, _at_least(b, x, -750.0), _format(x).exp_limit)
    n, beyond_one = exponential(b, x)
    return scale(b, b.fadd(beyond_one, 1.0), n)


def expm1(b: Instructions, x: Value) -> Value:
    """e^x - 1, 2 ulp: 2^n (e^r - 1) + (2^n - 1), halved until the end."""
    n, beyond_one = exponential(b, _at_most(b, _at_least(b, x, -40.0), _format(x).exp_limit))
    half = _power_of_two(b, b.fsub(n, 1.0))
    result = b.fmul(b.fma(half, beyond_one, b.fsub(half, 0.5)), 2.0)
    return b.select(b.fcmp("olt", _size(b, x), _format(x).unit), x, result)


def sinh(b: Instructions, x: Value) -> Value:
    """Hyperbolic sine, 3 ulp: u + u / (2 u + 1) of ``u = (e^|x| - 1) / 2``."""
    limit = _format(x).sinh_limit
    size = _size(b, x)
    n, beyond_one = exponential(b, _at_most(b, size, limit))
    quarter = _power_of_two(b, b.fsub(n, 2.0))
    u = b.fmul(b.fma(quarter, beyond_one, b.fsub(quarter, 0.25)), 2.0)
    result = b.fadd(u, b.fdiv(u, b.fadd(b.fmul(u, 2.0), 1.0)))
    return _small_as_it_is(b, x, b.select(b.fcmp("ogt", size, limit), inf, result))


def cosh(b: Instructions, x: Value) -> Value:
    """Hyperbolic cosine, 2 ulp: u + 1 / (4 u) of ``u = e^|x| / 2``."""
    limit = _format(x).sinh_limit
    size = _size(b, x)
    n, beyond_one = exponential(b, _at_most(b, size, limit))
    quarter = _power_of_two(b, b.fsub(n, 2.0))
    u = b.fmul(b.fma(quarter, beyond_one, quarter), 2.0)
    return b.select(b.fcmp("ogt", size, limit), inf, b.fadd(u, b.fdiv(0.25, u)))


def tanh(b: Instructions, x: Value) -> Value:
    """Hyperbolic tangent of doubles, 3 ulp: -u / (u + 1) of ``u = (e^(-2 |x|) - 1) / 2``; never above 1, and 1 from 20
    on."""
    n, beyond_one = exponential(b, _at_least(b, b.fmul(_size(b, x), -2.0), -40.0))
    half = _power_of_two(b, b.fsub(n, 1.0))
    u = b.fma(half, beyond_one, b.fsub(half, 0.5))
    return _small_as_it_is(b, x, b.fdiv(b.fneg(u), b.fadd(u, 1.0)))


def logistic(b: Instructions, x: Value) -> Value:
    """1 / (1 + e^-x) of doubles, 2.5 ulp."""
    power = exp(b, b.fneg(_size(b, x)))
    return b.fdiv(b.select(b.fcmp("oge", x, 0.0), 1.0, power), b.fadd(power, 1.0))


# -- logarithms


def _split(b: Instructions, x: Value) -> tuple[Value, Value]:
    """(exponent as a float, mantissa in [sqrt(1/2), sqrt(2))) of a positive finite number, denormal or not."""
    form = _format(x)
    tiny = b.fcmp("olt", x, 2.0 ** (1 - form.bias))
    bits = b.bitcast(b.select(tiny, b.fmul(x, 2.0**form.fraction), x), _integers(x))
    # Subtracting the bits of sqrt(1/2) puts the exponent's step there.
    shifted = b.binary("sub", bits, form.root_half)
    exponent = b.convert("trunc", b.binary("ashr", shifted, form.fraction), I32)
    mantissa = b.binary("add", b.binary("and", shifted, (1 << form.fraction) - 1), form.root_half)
    adjusted = b.select(tiny, b.binary("sub", exponent, form.fraction), exponent)
    return b.convert("sitofp", adjusted, element_of(x.type)), b.bitcast(mantissa, x.type)


def _log_of_sum(b: Instructions, x: Value, low: Value | None = None, more: Value | None = None) -> Value:
    """log((x + low) 2^more), where ``low`` is what x lost in rounding."""
    high_ln2, low_ln2 = _format(x).ln2
    k, mantissa = _split(b, x)
    k = k if more is None else b.fadd(k, more)
    f = b.fsub(mantissa, 1.0)
    s = b.fdiv(f, b.fadd(f, 2.0))
    z, half = b.fmul(s, s), b.fmul(b.fmul(f, f), 0.5)
    rest = b.fmul(k, low_ln2)
    rest = rest if low is None else b.fadd(rest, b.fdiv(low, x))
    beyond = b.fma(s, b.fma(z, horner(b, _LOG[element_of(x.type)], z), half), rest)
    result = b.fma(k, high_ln2, b.fsub(f, b.fsub(half, beyond)))
    result = b.select(b.fcmp("oeq", x, inf), inf, result)
    return b.select(b.fcmp("oeq", x, 0.0), -inf, b.select(b.fcmp("ult", x, 0.0), nan, result))


def log(b: Instructions, x: Value) -> Value:
    """Natural logarithm of doubles, 1 ulp."""
    return _log_of_sum(b, x)


def log1p(b: Instructions, x: Value) -> Value:
    """log(1 + x), 1.5 ulp."""
    result = _log_of_sum(b, *two_sum(b, x, 1.0))
    return b.select(b.fcmp("olt", _size(b, x), _format(x).unit), x, result)


def _log_of_root(b: Instructions, x: Value, beyond_one: Value) -> Value:
    """log(1 + ``beyond_one``), which of large x is log(2 x)."""
    large = b.fcmp("ogt", x, _format(x).large)
    total, low = two_sum(b, b.select(large, 1.0, beyond_one), 1.0)
    more = b.select(large, constant(x.type, 1.0), b.zero(x.type))
    return _log_of_sum(b, b.select(large, x, total), b.select(large, 0.0, low), more)


def asinh(b: Instructions, x: Value) -> Value:
    """Inverse hyperbolic sine, 2 ulp: log(|x| + sqrt(x^2 + 1))."""
    size = _size(b, x)
    a = _at_most(b, size, _format(x).large)
    square = b.fmul(a, a)
    root = b.unary("sqrt", b.fadd(square, 1.0))
    return _small_as_it_is(b, x, _log_of_root(b, size, b.fadd(a, b.fdiv(square, b.fadd(root, 1.0)))))


def acosh(b: Instructions, x: Value) -> Value:
    """Inverse hyperbolic cosine, 2 ulp: log(x + sqrt(x^2 - 1)); NaN below 1."""
    a = b.fsub(_at_most(b, x, _format(x).large), 1.0)
    root = b.unary("sqrt", b.fma(a, a, b.fmul(a, 2.0)))
    return b.select(b.fcmp("olt", x, 1.0), nan, _log_of_root(b, x, b.fadd(a, root)))


def atanh(b: Instructions, x: Value) -> Value:
    """Inverse hyperbolic tangent, 2 ulp: log(1 + 2 |x| / (1 - |x|)) / 2; NaN beyond 1."""
    size = _size(b, x)
    quotient = b.fdiv(b.fmul(size, 2.0), b.fsub(1.0, size))
    return _small_as_it_is(b, x, b.fmul(_log_of_sum(b, *two_sum(b, quotient, 1.0)), 0.5))


# -- inverse trigonometric functions


def _arctangent(b: Instructions, y: Value, x: Value) -> tuple[Value, Value]:
    """atan(y / x) for y and x that are not negative, as eighths of a turn and an angle beyond them."""
    steep, middle = b.fcmp("ogt", y, b.fmul(x, 2.414213562373095)), b.fcmp("ogt", y, b.fmul(x, 0.4142135623730950))
    over = b.select(steep, b.fneg(x), b.select(middle, b.fsub(y, x), y))
    under = b.select(steep, y, b.select(middle, b.fadd(y, x), x))
    r = b.fdiv(over, under)
    z = b.fmul(r, r)
    angle = b.fma(b.fmul(r, z), horner(b, _ATAN[element_of(x.type)], z), r)
    return b.select(steep, constant(x.type, 2.0), b.select(middle, constant(x.type, 1.0), b.zero(x.type))), angle


def _add_eighths(b: Instructions, eighths: Value, angle: Value) -> Value:
    high, low = _HALF_PI[element_of(angle.type)]
    return b.fma(eighths, high / 2, b.fma(eighths, low / 2, angle))


def atan(b: Instructions, x: Value) -> Value:
    """Inverse tangent, 2.5 ulp."""
    return _small_as_it_is(b, x, _add_eighths(b, *_arctangent(b, _size(b, x), constant(x.type, 1.0))))


def atan2(b: Instructions, y: Value, x: Value) -> Value:
    """The angle of (x, y), 2.5 ulp."""
    a, c = _size(b, y), _size(b, x)
    # Of large numbers the sum would be infinite, of two infinities or zeros there is no quotient.
    large = b.fcmp("ogt", b.fmax(a, c), 2.0 ** (_format(x).bias - 2))
    both = b.binary("and", b.fcmp("oeq", a, c), b.binary("or", b.fcmp("oeq", a, inf), b.fcmp("oeq", a, 0.0)))
    factor = b.select(large, constant(x.type, 0.125), constant(x.type, 1.0))
    one, zero = constant(x.type, 1.0), b.fcmp("oeq", a, 0.0)
    a, c = (b.select(both, b.select(zero, top, one), b.fmul(v, factor)) for v, top in ((a, b.zero(x.type)), (c, one)))
    eighths, angle = _arctangent(b, a, c)
    left = _is_negative(b, x)
    eighths = b.select(left, b.fsub(4.0, eighths), eighths)
    result = _add_eighths(b, eighths, b.select(left, b.fneg(angle), angle))
    result = b.select(b.fcmp("uno", x, y), nan, result)
    return with_sign_of(b, result, y)


def _arcsine(b: Instructions, r: Value, z: Value) -> Value:
    """asin(r) - r of ``z = r^2`` up to 1/4."""
    return b.fmul(b.fmul(r, z), horner(b, _ASIN[element_of(r.type)], z))


def _near_one(b: Instructions, size: Value) -> tuple[Value, Value, Value]:
    """Whether |x| is above 1/2, and where the polynomial is read: sqrt((1 - |x|) / 2) there, of twice whose inverse
    sine the inverse cosine of |x| is."""
    far = b.fcmp("ogt", size, 0.5)
    z = b.select(far, b.fmul(b.fsub(1.0, size), 0.5), b.fmul(size, size))
    return far, b.select(far, b.unary("sqrt", z), size), z


def asin(b: Instructions, x: Value) -> Value:
    """Inverse sine, 3 ulp; NaN beyond 1."""
    high, low = _HALF_PI[element_of(x.type)]
    far, r, z = _near_one(b, _size(b, x))
    beyond = _arcsine(b, r, z)
    other = b.fsub(high, b.fsub(b.fmul(b.fadd(r, beyond), 2.0), low))
    return _small_as_it_is(b, x, b.select(far, other, b.fadd(r, beyond)))


def acos(b: Instructions, x: Value) -> Value:
    """Inverse cosine, 2 ulp; NaN beyond 1."""
    high, low = _HALF_PI[element_of(x.type)]
    far, r, z = _near_one(b, _size(b, x))
    beyond = _arcsine(b, r, z)
    negative = _is_negative(b, x)
    twice = b.fmul(b.fadd(r, beyond), 2.0)
    opposite = b.fsub(2 * high, b.fsub(twice, 2 * low))
    signed = b.fsub(with_sign_of(b, r, x), b.fsub(low, with_sign_of(b, beyond, x)))
    return b.select(far, b.select(negative, opposite, twice), b.fsub(high, signed))


# -- powers


def power(b: Instructions, x: Value, y: Value) -> Value:
    """x^y, 0.6 ulp (double: 1.2): e^(y log |x|) in double or twice the precision, with the sign of odd powers."""
    whole = b.fcmp("oeq", b.unary("roundeven", y), y)
    half = b.fmul(y, 0.5)
    odd = b.binary("and", whole, b.fcmp("une", b.unary("roundeven", half), half))
    size = _size(b, x)
    power = _power_of_float(b, size, y) if element_of(x.type) == FLOAT else _power_of_double(b, size, y)
    power = b.select(b.binary("and", b.fcmp("oeq", size, 1.0), b.fcmp("ord", y, y)), 1.0, power)
    signed = b.select(b.binary("and", odd, _is_negative(b, x)), b.fneg(power), power)
    rational = b.select(whole, b.zero(x.type), x)  # where no whole power is asked of a negative number
    finite = b.binary("and", b.fcmp("olt", rational, 0.0), b.fcmp("one", rational, -inf))
    result = b.select(finite, nan, signed)
    return b.select(b.binary("or", b.fcmp("oeq", y, 0.0), b.fcmp("oeq", x, 1.0)), 1.0, result)


def _power_of_float(b: Instructions, x: Value, y: Value) -> Value:
    wide, exponent = (b.convert("fpext", v, DOUBLE) for v in (x, y))
    return b.convert("fptrunc", exp(b, b.fmul(exponent, log(b, wide))), FLOAT)


def _power_of_double(b: Instructions, x: Value, y: Value) -> Value:
    high, low = _long_log(b, x)
    product, rest = two_product(b, y, high)
    rest = b.fadd(rest, b.fmul(y, low))
    inside = b.fcmp("olt", _size(b, product), 800.0)
    product = _at_most(b, _at_least(b, product, -800.0), 800.0)
    n, beyond_one = exponential(b, product, b.select(inside, rest, 0.0))
    return scale(b, b.fadd(beyond_one, 1.0), n)


def _long_log(b: Instructions, x: Value) -> Pair:
    """log(x) of doubles that are not negative, with 12 more bits: ``2 s + s z (2/3 + z P(z))`` of ``s = f / (2 + f)``,
    where all terms but the last are taken with their rests."""
    k, mantissa = _split(b, x)
    f = b.fsub(mantissa, 1.0)
    under, under_rest = two_sum(b, mantissa, 1.0)
    s = b.fdiv(f, under)
    product, product_rest = two_product(b, s, under)
    missing = b.fsub(b.fsub(b.fsub(f, product), product_rest), b.fmul(s, under_rest))
    s_rest = b.fdiv(missing, under)
    z, z_rest = two_product(b, s, s)
    z_rest = b.fma(b.fmul(s, 2.0), s_rest, z_rest)
    third = constant(x.type, 2 / 3)
    head, rest = two_product(b, z, third)
    rest = b.fadd(rest, b.fma(z, _THIRD_REST, b.fmul(z_rest, third)))
    head, rest = two_sum(b, head, b.fma(b.fmul(z, z), horner(b, _LONG_LOG, z), rest))
    cubic, cubic_rest = two_product(b, s, head)
    cubic_rest = b.fadd(cubic_rest, b.fma(s, rest, b.fmul(s_rest, head)))
    high, low = two_sum(b, b.fmul(s, 2.0), cubic)
    low = b.fadd(low, b.fma(s_rest, 2.0, cubic_rest))
    high_ln2, low_ln2 = _format(x).ln2
    total, rest = two_sum(b, b.fmul(k, high_ln2), high)
    low = b.fadd(rest, b.fma(k, low_ln2, low))
    high, low = two_sum(b, total, low)
    ends = b.select(b.fcmp("oeq", x, 0.0), constant(x.type, -inf), x)
    end = b.binary("or", b.fcmp("oeq", x, 0.0), b.fcmp("ueq", x, inf))
    return b.select(end, ends, high), b.select(end, 0.0, low)
