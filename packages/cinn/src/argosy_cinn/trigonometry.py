"""Sine, cosine and tangent of float and double vectors, of any magnitude: what is left of quarters of a turn, and
polynomials there (minimax, by Remez' algorithm).

Bounds are the largest errors found against more digits over all magnitudes, in units in the last place. Numbers below
2^28 (doubles: below 2^20) are reduced by parts of pi / 2 (Cody and Waite, 1980), others by the bits of 2 / pi that
matter for their exponent (Payne and Hanek, 1983).
"""

from __future__ import annotations

from argosy_cinn.double_double import two_product, two_sum
from argosy_cinn.math import horner
from argosy_cinn.printers.instructions import Instructions
from argosy_cinn.printers.types import DOUBLE, FLOAT, I32, I64, Value, constant, element_of, lanes_of, vector

# sin(r) = r + r z S(z) and cos(r) = 1 - z / 2 + z^2 C(z) of z = r^2 on [-pi/4, pi/4]: Cephes sinf and cosf; relative
# minimax, 4e-18 and 5e-20
_SIN = {
    FLOAT: (-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4),
    DOUBLE: (-0.1666666666666663, 0.008333333333322063, -0.00019841269829542625, 2.7557313604517044e-06,
             -2.5050745035010302e-08, 1.5896067298881955e-10),
}  # fmt: skip
_COS = {
    FLOAT: (4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5),
    DOUBLE: (0.0416666666666666, -0.0013888888888874066, 2.4801587289443638e-05, -2.7557314340700875e-07,
             2.0875721629033375e-09, -1.1359559595693969e-11),
}  # fmt: skip
_TWO_OVER_PI = 0.6366197723675814
# pi / 2 in parts: for products with one rounding, and of 25 bits each, whose products with whole numbers below 2^28 are
# exact, and a rest
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
_HALF_PI_SHORT = (1.5707963109016418, 1.5893254712295857e-08, 6.123233995736766e-17)
# The same in parts of 33 bits, whose products with whole numbers below 2^20 are exact, and a rest (fdlibm)
_HALF_PI_33 = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32)
_LIMIT = {FLOAT: 2.0**28, DOUBLE: 2.0**20}
#: 2 / pi, 24 bits each.
_TWO_OVER_PI_BITS = (
    0xA2F983, 0x6E4E44, 0x1529FC, 0x2757D1, 0xF534DD, 0xC0DB62, 0x95993C, 0x439041, 0xFE5163, 0xABDEBB, 0xC561B7,
    0x246E3A, 0x424DD2, 0xE00649, 0x2EEA09, 0xD1921C, 0xFE1DEB, 0x1CB129, 0xA73EE8, 0x8235F5, 0x2EBB44, 0x84E99C,
    0x7026B4, 0x5F7E41, 0x3991D6, 0x398353, 0x39F49C, 0x845F8B, 0xBDF928, 0x3B1FF8, 0x97FFDE, 0x5980F, 0xEF2F11,
    0x8B5A0A, 0x6D1F6D, 0x367ECF, 0x27CB09, 0xB74F46, 0x3F669E, 0x5FEA2D, 0x7527BA, 0xC7EBE5, 0xF17B3D, 0x739F7,
    0x8A5292, 0xEA6BFB, 0x5FB11F, 0x8D5D08, 0x560330, 0x46FC7B, 0x6BABF0, 0xCFBC20,
)  # fmt: skip
_PARTS = 8  # of these: 192 bits, of which 77 may be above the point, and 62 zeros behind it


def sin(b: Instructions, x: Value) -> Value:
    """Sine, 1.6 ulp (double: 1.5)."""
    return b.select(b.fcmp("oeq", x, 0.0), x, _sine_or_cosine(b, x, 0))


def cos(b: Instructions, x: Value) -> Value:
    """Cosine, 1.6 ulp (double: 1.5)."""
    return _sine_or_cosine(b, x, 1)


def tan(b: Instructions, x: Value) -> Value:
    """Tangent, 3.5 ulp (double: 2.6)."""
    angle, turn = _reduce(b, x)
    sine, cosine = _sine(b, *angle), _cosine(b, *angle)
    odd = _bit(b, turn, 1)
    quotient = b.fdiv(b.select(odd, b.fneg(cosine), sine), b.select(odd, sine, cosine))
    return b.select(b.fcmp("oeq", x, 0.0), x, quotient)


def _sine_or_cosine(b: Instructions, x: Value, quadrant: int) -> Value:
    angle, turn = _reduce(b, x)
    turn = b.binary("add", turn, quadrant) if quadrant else turn
    value = b.select(_bit(b, turn, 1), _cosine(b, *angle), _sine(b, *angle))
    return b.select(_bit(b, turn, 2), b.fneg(value), value)


def _bit(b: Instructions, whole: Value, bit: int) -> Value:
    return b.icmp("ne", b.binary("and", whole, bit), 0)


def _sine(b: Instructions, r: Value, low: Value | None) -> Value:
    z, (first, *rest) = b.fmul(r, r), _SIN[element_of(r.type)]
    if low is None:
        return b.fma(b.fmul(horner(b, (first, *rest), z), z), r, r)
    cube = b.fmul(z, r)
    turned = b.fma(z, b.fsub(b.fmul(low, 0.5), b.fmul(cube, horner(b, rest, z))), b.fneg(low))
    return b.fsub(r, b.fsub(turned, b.fmul(cube, first)))


def _cosine(b: Instructions, r: Value, low: Value | None) -> Value:
    z = b.fmul(r, r)
    beyond = b.fmul(horner(b, _COS[element_of(r.type)], z), z)
    if low is None:
        return b.fma(beyond, z, b.fma(z, -0.5, constant(r.type, 1.0)))
    half = b.fmul(z, 0.5)
    near_one = b.fsub(1.0, half)
    rounding = b.fsub(b.fsub(1.0, near_one), half)
    return b.fadd(near_one, b.fadd(rounding, b.fsub(b.fmul(beyond, z), b.fmul(r, low))))


def _reduce(b: Instructions, x: Value) -> tuple[tuple[Value, Value | None], Value]:
    """r in [-pi/4, pi/4], of doubles with what it lacks, and the number of quarters of a turn that x is beyond it.

    Infinities and NaN give NaN. Each lane is reduced by its own size, whatever lies beside it.
    """
    single = element_of(x.type) == FLOAT
    size = b.unary("fabs", x)
    large = b.fcmp("oge", size, _LIMIT[element_of(x.type)])
    wide = b.convert("fpext", b.select(large, 0.0, x), DOUBLE)
    high, low, turn = _by_parts(b, wide) if single else _by_long_parts(b, wide)

    def all_ways() -> list[Value]:
        # of the infinities the sine of NaN is left
        finite = b.fcmp("one", size, float("inf"))
        tame = b.convert("fpext", b.select(b.binary("and", large, finite), x, _LIMIT[element_of(x.type)]), DOUBLE)
        others = _by_bits(b, tame)
        far = b.select(finite, others[0], constant(high.type, float("nan")))
        return [b.select(large, y, z) for y, z in zip((far, *others[1:]), (high, low, turn), strict=True)]

    some = large
    if lanes_of(x.type) > 1:
        some = b.intrinsic("llvm.vector.reduce.or", "i1", large, overloads=(large.type,))
    high, low, turn = b.either(some, all_ways, lambda: [high, low, turn])
    if single:
        return (b.convert("fptrunc", b.fadd(high, low), FLOAT), None), turn
    return (high, low), turn


def _nearest(b: Instructions, n: Value) -> Value:
    return b.convert("fptosi", b.select(b.fcmp("ord", n, n), n, 0.0), I32)


def _by_parts(b: Instructions, x: Value) -> tuple[Value, Value, Value]:
    """Of floats as doubles: one number is enough."""
    n, r = b.unary("roundeven", b.fmul(x, _TWO_OVER_PI)), x
    for part in _HALF_PI if b.module.target.has_fma else _HALF_PI_SHORT:
        r = b.fma(n, -part, r)
    return r, constant(x.type, -0.0), _nearest(b, n)


def _by_long_parts(b: Instructions, x: Value) -> tuple[Value, Value, Value]:
    n = b.unary("roundeven", b.fmul(x, _TWO_OVER_PI))
    first, second, third, last = (b.fmul(n, part) for part in _HALF_PI_33)
    high, low = two_sum(b, b.fsub(x, first), b.fneg(second))
    high, lower = two_sum(b, high, b.fneg(third))
    high, low = two_sum(b, high, b.fsub(b.fadd(low, lower), last))
    return high, low, _nearest(b, n)


def _by_bits(b: Instructions, x: Value) -> tuple[Value, Value, Value]:
    """Of doubles from 2^20 on. The number is m 2^e with whole m, in two halves whose products with 24 bits are exact;
    of each product what is left of four quarters is added. Bits of 2 / pi that give multiples of four are left out."""
    lanes = lanes_of(x.type)
    integers = vector(I64, lanes)
    bits = b.bitcast(x, integers)
    exponent = b.binary("sub", b.binary("and", b.binary("lshr", bits, 52), 0x7FF), 1075)
    mantissa = b.binary("or", b.binary("and", bits, (1 << 52) - 1), 1075 << 52)
    whole = b.bitcast(mantissa, x.type)
    head = b.bitcast(b.binary("and", mantissa, -(1 << 27)), x.type)
    narrow = b.convert("trunc", exponent, I32)
    start = b.binary("sdiv", b.binary("sub", narrow, 2), 24)
    start = b.select(b.icmp("slt", narrow, 2), b.zero(start.type), start)
    start = b.convert("sext", start, I64)
    power = b.binary("sub", exponent, b.binary("mul", b.binary("add", start, 1), 24))
    scale = b.bitcast(b.binary("shl", b.binary("add", power, 1023), 52), x.type)
    table, halves = b.constant_table("two_over_pi", I32, _TWO_OVER_PI_BITS), (head, b.fsub(whole, head))
    with b.loop(0, _PARTS, carry=[b.zero(x.type), b.zero(x.type), scale, start]) as loop:
        total, low, scale, place = loop.carry
        part = b.fmul(b.convert("sitofp", b.gather(vector(I32, lanes), table, place), DOUBLE), scale)
        for half in halves:
            term = b.fmul(half, part)
            term = b.fsub(term, b.fmul(b.unary("roundeven", b.fmul(term, 0.25)), 4.0))
            total, rounding = two_sum(b, total, term)
            low = b.fadd(low, rounding)
        loop.yield_values(total, low, b.fmul(scale, 2.0**-24), b.binary("add", place, 1))
    total, low = loop.results[:2]
    n = b.unary("roundeven", total)
    rest, low = two_sum(b, b.fsub(total, n), low)
    high, rounding = two_product(b, rest, constant(x.type, _HALF_PI[0]))
    lower = b.fadd(rounding, b.fadd(b.fmul(rest, _HALF_PI[1]), b.fmul(low, _HALF_PI[0])))
    sign = b.fcmp("olt", x, 0.0)
    turn = _nearest(b, n)
    return (b.select(sign, b.fneg(high), high), b.select(sign, b.fneg(lower), lower),
            b.select(sign, b.binary("sub", b.zero(turn.type), turn), turn))  # fmt: skip
