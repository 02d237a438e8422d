"""Mathematical functions on float vectors as straight-line code, for any number of lanes.

Each takes the function being built and a ``float`` scalar or vector. Bounds are the largest errors found against
double precision over all magnitudes, in units in the last place; infinities, NaN and denormal numbers behave as IEEE
754 and C ask. Multiply-adds are fused, where the target has them, except in `erfinv`, whose bits must not depend
on the machine.
`elementary`, `trigonometry` and `special_functions` have those of doubles, too. The remainder alone calls the C
library, lane by lane (`library`): it is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log as _natural_logarithm

from argosy_cinn.printers.instructions import Instructions
from argosy_cinn.printers.types import (
    DOUBLE,
    FLOAT,
    I32,
    I64,
    Value,
    constant,
    element_of,
    lanes_of,
    vector,
)
from argosy_tensorcore.erfinv import GILES_FLOAT32, GILES_FLOAT64, LOG_TERMS

LN2 = _natural_logarithm(2.0)

_LOG2E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
_LN2 = 0.693147182464599609375  # as float32
# e^r on [-ln2/2, ln2/2], minimax for the relative error (3.1e-9) beside 1 + r, by Lawson's iteration
_EXP = (1.0, 1.0, 0.49999994, 0.16666521, 0.04166839, 0.0083687454, 0.0013814541)
# Added to a number below 2^22, it leaves the nearest whole one, whose last bits are those of the sum.
_ROUND_TO_WHOLE = 1.5 * 2.0**23
# log(1 + m) = m - m^2/2 + m^3 P(m) on [sqrt(1/2) - 1, sqrt(2) - 1] (Cephes logf)
_LOG = (3.3333331174e-1, -2.4999993993e-1, 2.0000714765e-1, -1.6668057665e-1, 1.4249322787e-1, -1.2420140846e-1,
        1.1676998740e-1, -1.1514610310e-1, 7.0376836292e-2)  # fmt: skip
# tanh(x) = x P(x^2) / Q(x^2) on [-8.1, 8.1], relative minimax, among roundings of whose coefficients these were the
# best of some thousands by measured error; P(0) = Q(0) = 1, so that small numbers stay themselves. At the limit, before
# it is above 1 for the first time, the quotient is exactly 1, fused or not: what is beyond saturates there.
_TANH_P = (1.0, 0.13440126180648804, 0.003566262312233448, 2.1799383830511943e-05, 1.5078851944849703e-08)
_TANH_Q = (1.0, 0.46773454546928406, 0.02614453062415123, 0.0003402270667720586, 8.46490934236499e-07)
_TANH_LIMIT = 8.099108695983887
# erf(x) = x P(x^2) / Q(x^2) on [-4, 4] (the rational minimax approximation that Eigen used); Q(0) = 1, so that denormal
# numbers are rounded once
_ERF_P = (1.128379094, 0.2071261029, 0.05152499654, 0.00399061376, 0.0001472879394, -1.942328854e-06, 1.911105593e-08)
_ERF_Q = (1.0, 0.5168919768, 0.1179711012, 0.01495814641, 0.001021124312)
_ERF_LIMIT = 3.8999996  # where the quotient is 1 at least, fused or not
# exp(x^2) erfc(x) = P(x) / Q(x) on [0, 10.3] up to powers of the difference of _LN2 and the logarithm of 2, minimax for
# the relative error (6e-9), among roundings of whose coefficients these were the best of some thousands by measured
# error; P(0) = Q(0) = 1
_ERFC_P = (1.0, 1.243910789489746, 0.7372509241104126, 0.23187358677387238, 0.03334192559123039)
_ERFC_Q = (1.0, 2.3722901344299316, 2.414083957672119, 1.3359018564224243, 0.4110076129436493, 0.05909651145339012)
# e^r = 1 + r + a r^2 ((r + b) (r^2 + c) + d) on [-ln2/2, ln2/2], minimax for the relative error (1.0e-7), rounded with
# them
_ERFC_EXP = (0.008313002064824104, 5.0389933586120605, 20.049381256103516, -40.8829345703125)
_ERFC_LIMIT = 10.25  # from where on the result is 0


def horner(b: Instructions, coefficients: Sequence[float], x: Value) -> Value:
    """Horner's rule with fused multiply-adds; coefficients ascend."""
    result = constant(x.type, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result = b.fma(result, x, c)
    return result


def _in_pairs(b: Instructions, coefficients: Sequence[float], x: Value) -> Value:
    """The same, half as long a chain: linear parts first, then Horner's rule in the square (Estrin)."""
    parts = [constant(x.type, c) for c in coefficients[::2]]
    parts[: len(coefficients) // 2] = [b.fma(x, c, p) for c, p in zip(coefficients[1::2], parts, strict=False)]
    square, result = b.fmul(x, x), parts[-1]
    for part in reversed(parts[:-1]):
        result = b.fma(result, square, part)
    return result


def _integers(x: Value) -> str:
    return vector(I32, lanes_of(x.type))


def _absolute(b: Instructions, x: Value) -> Value:
    return b.unary("fabs", x)


def with_sign_of(b: Instructions, magnitude: Value, sign: Value) -> Value:
    return b.intrinsic("llvm.copysign", magnitude.type, magnitude, sign)


def scale(b: Instructions, p: Value, n: Value) -> Value:
    """``p * 2^n`` for a whole float n with |n| < 300 (doubles: 2000), or any where p is NaN; rounds once more where the
    result is denormal."""
    double = element_of(p.type) == DOUBLE
    if b.module.target.has("avx512f") and lanes_of(p.type) == (8 if double else 16):
        everywhere, rounding = constant("i8" if double else "i16", -1), constant(I32, 4)
        name = f"llvm.x86.avx512.mask.scalef.p{'d' if double else 's'}.512"
        return b.call(name, p.type, p, n, b.zero(p.type), everywhere, rounding)
    integer, fraction, bias = (I64, 52, 1023) if double else (I32, 23, 127)
    round_to_whole = constant(p.type, 1.5 * 2.0**52 if double else _ROUND_TO_WHOLE)
    integers = vector(integer, lanes_of(p.type))
    whole = b.binary("sub", b.bitcast(b.fadd(n, round_to_whole), integers), b.bitcast(round_to_whole, integers))
    half = b.binary("ashr", whole, 1)
    for part in (half, b.binary("sub", whole, half)):
        factor = b.bitcast(b.binary("shl", b.binary("add", part, bias), fraction), p.type)
        p = b.fmul(p, factor)
    return p


def _reduce(b: Instructions, x: Value, limit: float = 89.0) -> tuple[Value, Value]:
    """A whole number n as a float and r in [-ln2/2, ln2/2] with ``x = n ln2 + r``.

    Of a number whose power of e is out of range, r is any number there, and n has the sign and about the size of x; NaN
    gives NaN in both.
    """
    x = b.select(b.fcmp("olt", x, -105.0), constant(x.type, -105.0), x)
    x = b.select(b.fcmp("ogt", x, limit), constant(x.type, limit), x)
    n = b.fsub(b.fma(x, _LOG2E, constant(x.type, _ROUND_TO_WHOLE)), _ROUND_TO_WHOLE)
    return n, _remainder(b, x, n)


def _remainder(b: Instructions, x: Value, n: Value) -> Value:
    return b.fma(n, -_LN2_LOW, b.fma(n, -_LN2_HIGH, x))


def exp(b: Instructions, x: Value) -> Value:
    """e^x, 1.2 ulp."""
    n, r = _reduce(b, x)
    return scale(b, horner(b, _EXP, r), n)


def _split(b: Instructions, x: Value) -> tuple[Value, Value]:
    """(exponent as float, mantissa in [sqrt(1/2), sqrt(2))) of a positive finite number, denormal or not."""
    integers = _integers(x)
    tiny = b.fcmp("olt", x, 1.17549435e-38)
    bits = b.bitcast(b.select(tiny, b.fmul(x, 8388608.0), x), integers)
    # Subtracting the bits of sqrt(1/2) puts the exponent's step there.
    shifted = b.binary("sub", bits, 0x3F3504F3)
    exponent = b.binary("ashr", shifted, 23)
    mantissa = b.binary("add", b.binary("and", shifted, 0x7FFFFF), 0x3F3504F3)
    adjusted = b.select(tiny, b.binary("sub", exponent, 23), exponent)
    return b.convert("sitofp", adjusted, FLOAT), b.bitcast(mantissa, x.type)


def _log_limits(b: Instructions, x: Value, finite: Value) -> Value:
    result = b.select(b.fcmp("oeq", x, float("inf")), x, finite)
    result = b.select(b.fcmp("oeq", x, 0.0), constant(x.type, float("-inf")), result)
    return b.select(b.fcmp("ult", x, 0.0), constant(x.type, float("nan")), result)


def log(b: Instructions, x: Value) -> Value:
    """Natural logarithm, 0.9 ulp."""
    exponent, mantissa = _split(b, x)
    m = b.fsub(mantissa, 1.0)
    square = b.fmul(m, m)
    y = b.fmul(b.fmul(horner(b, _LOG, m), m), square)
    y = b.fma(exponent, _LN2_LOW, y)
    y = b.fma(square, -0.5, y)
    return _log_limits(b, x, b.fma(exponent, _LN2_HIGH, b.fadd(m, y)))


def tanh(b: Instructions, x: Value) -> Value:
    """Hyperbolic tangent, 5 ulp (6 where no multiply-add is fused); never above 1, and 1 from 8.1 on."""
    t = _clamp(b, x, _TANH_LIMIT)
    square = b.fmul(t, t)
    return b.fdiv(b.fmul(t, horner(b, _TANH_P, square)), horner(b, _TANH_Q, square))


def logistic(b: Instructions, x: Value) -> Value:
    """1 / (1 + e^-x), 2.5 ulp: 2^n / (2^n + e^-r) with ``x = n ln2 + r``, where nothing overflows below a limit from
    which on the result is 1."""
    n, r = _reduce(b, x, 30.0)
    power = scale(b, constant(x.type, 1.0), n)
    return b.fdiv(power, b.fadd(power, horner(b, _EXP, b.fneg(r))))


def erf(b: Instructions, x: Value) -> Value:
    """Error function, 6 ulp; never above 1, and 1 from 3.9 on."""
    t = _clamp(b, x, _ERF_LIMIT)
    square = b.fmul(t, t)
    y = b.fdiv(b.fmul(t, horner(b, _ERF_P, square)), horner(b, _ERF_Q, square))
    return _clamp(b, y, 1.0)


def _clamp(b: Instructions, x: Value, limit: float) -> Value:
    """x moved into [-limit, limit]; NaN stays."""
    x = b.select(b.fcmp("olt", x, -limit), constant(x.type, -limit), x)
    return b.select(b.fcmp("ogt", x, limit), constant(x.type, limit), x)


def erfc(b: Instructions, x: Value) -> Value:
    """1 - erf(x), 6 ulp (7.5 where no multiply-add is fused): e^-x^2, corrected by the rounding error of the square,
    times a quotient that falls slowly, from 2 where x is negative: the power has a sign then, by a 256 in its exponent.
    It is 2^64 times too large, and the quotient as much too small, so that only their product is denormal. Neither
    waits for the other: what counts are instructions and the longest chain of them."""
    negative = b.icmp("slt", b.bitcast(x, _integers(x)), 0)
    size = _absolute(b, x)
    size = b.select(b.fcmp("ogt", size, _ERFC_LIMIT), constant(x.type, _ERFC_LIMIT), size)
    square = b.fmul(size, size)
    round_to_whole = constant(x.type, _ROUND_TO_WHOLE + 64)
    round_to_whole = b.select(negative, constant(x.type, _ROUND_TO_WHOLE + 64 + 256), round_to_whole)
    shifted = b.fma(square, -_LOG2E, round_to_whole)
    r = _remainder_of_square(b, size, square, b.fsub(shifted, round_to_whole))
    leading, first, second, last = _ERFC_EXP
    square = b.fmul(r, r)
    cubic = b.fma(b.fadd(r, first), b.fadd(square, second), constant(x.type, last))
    near_one = b.fma(b.fmul(square, leading), cubic, b.fadd(r, 1.0))
    exponent = b.binary("shl", b.bitcast(shifted, _integers(x)), 23)
    power = b.bitcast(b.binary("add", b.bitcast(near_one, _integers(x)), exponent), x.type)
    quotient = b.fdiv(_in_pairs(b, _ERFC_P, size), _in_pairs(b, [c * 2.0**64 for c in _ERFC_Q], size))
    return b.fma(power, quotient, b.select(negative, constant(x.type, 2.0), b.zero(x.type)))


def _remainder_of_square(b: Instructions, x: Value, square: Value, n: Value) -> Value:
    """``-x^2 - n _LN2`` of x and its rounded square; where products are rounded, by parts whose products are exact."""
    if b.module.target.has_fma:
        return b.fsub(b.fma(n, -_LN2, b.fneg(square)), b.fma(x, x, b.fneg(square)))
    head = b.bitcast(b.binary("and", b.bitcast(x, _integers(x)), -4096), x.type)
    rounding = b.fadd(b.fsub(b.fmul(head, head), square), b.fmul(b.fsub(x, head), b.fadd(x, head)))
    return b.fsub(b.fma(n, -_LN2_HIGH, b.fneg(square)), b.fma(n, _LN2 - _LN2_HIGH, rounding))


def erfinv(b: Instructions, x: Value) -> Value:
    """Inverse error function of float or double, bit for bit as `argosy_tensorcore.erfinv` does it.

    Nothing is contracted, since normal random numbers are made of it.
    """
    inside = b.fcmp("olt", _absolute(b, x), 1.0)
    result = _emit_erfinv(b, b.select(inside, x, 0.0))
    limit = with_sign_of(b, constant(x.type, float("inf")), x)
    edge = b.select(b.fcmp("oeq", _absolute(b, x), 1.0), limit, constant(x.type, float("nan")))
    return b.select(inside, result, edge)


def _emit_erfinv(b: Instructions, x: Value) -> Value:
    one = constant(x.type, 1.0)
    w = b.fneg(_log_exact(b, b.fmul(b.fsub(one, x), b.fadd(one, x))))
    root = b.unary("sqrt", b.select(b.fcmp("ogt", w, 0.0), w, 0.0))
    result: Value | None = None
    for end, variable, centre, coefficients in reversed(
        GILES_FLOAT32 if element_of(x.type) == FLOAT else GILES_FLOAT64
    ):
        p = _separate(b, coefficients, b.fsub(w if variable == "w" else root, centre))
        result = p if result is None else b.select(b.fcmp("olt", w, end), p, result)
    assert result is not None
    return b.fmul(result, x)


def _log_exact(b: Instructions, x: Value) -> Value:
    """`argosy_tensorcore.erfinv.log_positive`."""
    single = element_of(x.type) == FLOAT
    integer, fraction, root_half = (I32, 23, 0x3F3504F3) if single else (I64, 52, 0x3FE6A09E667F3BCD)
    bits = b.bitcast(x, vector(integer, lanes_of(x.type)))
    exponent = b.binary("ashr", b.binary("sub", bits, root_half), fraction)
    m = b.bitcast(b.binary("sub", bits, b.binary("shl", exponent, fraction)), x.type)
    s = b.fdiv(b.fsub(m, 1.0), b.fadd(m, 1.0))
    z = b.fmul(s, s)
    terms = LOG_TERMS["float32" if single else "float64"]
    rest = _separate(b, [2.0 / (2 * k + 1) for k in range(terms, 0, -1)], z)
    scaled = b.fmul(b.convert("sitofp", exponent, element_of(x.type)), constant(x.type, LN2))
    return b.fadd(scaled, b.fadd(b.fmul(s, 2.0), b.fmul(b.fmul(s, z), rest)))


def _separate(b: Instructions, coefficients: Sequence[float], x: Value) -> Value:
    """Horner's rule, each multiplication and addition rounded; coefficients descend."""
    result = constant(x.type, coefficients[0])
    for c in coefficients[1:]:
        result = b.fadd(b.fmul(result, x), c)
    return result


def library(b: Instructions, name: str, *operands: Value) -> Value:
    """A function of the C library, called for each lane."""
    type = operands[0].type
    element, lanes = element_of(type), lanes_of(type)
    if lanes == 1 or b.has_vector_library:
        return b.call(name, type, *operands)
    result = Value(type, "poison")
    for lane in range(lanes):
        scalar = b.call(name, element, *(b.extract(x, lane) for x in operands))
        result = b.insert(result, scalar, lane)
    return result
