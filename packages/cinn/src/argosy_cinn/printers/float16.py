"""Conversions between float16 and float32 by arithmetic on their bits, for processors that have no instructions.

After Giesen's half-to-float and float-to-half: every number is exact or rounded to nearest even, subnormal ones
included, infinities stay, and NaN stays NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from argosy_cinn.printers.types import FLOAT, HALF, I16, I32, Value, constant, lanes_of, vector

if TYPE_CHECKING:
    from argosy_cinn.printers.arithmetic import Arithmetic

_SHIFT = 23 - 10  # between the lowest bits of both significands
_REBIAS = (127 - 15) << 23
_HALF_INFINITY, _FLOAT_INFINITY = 0x7C00, 0x7F800000
#: The least power of two that float16 holds as a normal number, and the first one beyond its range, as bits of float32.
_SMALLEST_NORMAL, _BEYOND = (127 - 14) << 23, (127 + 16) << 23
#: Adding this number leaves a subnormal float16 in the last bits of a float32, rounded.
_SUBNORMAL = (127 - 15 + _SHIFT + 1) << 23


def widen(b: Arithmetic, x: Value) -> Value:
    """Halves as floats."""
    lanes = lanes_of(x.type)
    integers, floats = vector(I32, lanes), vector(FLOAT, lanes)
    bits = b.convert("zext", b.bitcast(x, vector(I16, lanes)), I32)
    magnitude = b.binary("shl", b.binary("and", bits, 0x7FFF), _SHIFT)
    exponent = b.binary("and", magnitude, _HALF_INFINITY << _SHIFT)
    normal = b.binary("add", magnitude, _REBIAS)
    beyond = b.binary("add", normal, _REBIAS)
    smallest = b.bitcast(constant(integers, _SMALLEST_NORMAL), floats)
    tiny = b.fsub(b.bitcast(b.binary("add", normal, 1 << 23), floats), smallest)
    finite = b.select(b.icmp("eq", exponent, 0), b.bitcast(tiny, integers), normal)
    result = b.select(b.icmp("eq", exponent, _HALF_INFINITY << _SHIFT), beyond, finite)
    return b.bitcast(b.binary("or", result, b.binary("shl", b.binary("and", bits, 0x8000), 16)), floats)


def round_to_halves(b: Arithmetic, x: Value) -> Value:
    """Floats rounded to halves."""
    lanes = lanes_of(x.type)
    integers, floats = vector(I32, lanes), vector(FLOAT, lanes)
    bits = b.bitcast(x, integers)
    magnitude = b.binary("and", bits, 0x7FFFFFFF)
    odd = b.binary("and", b.binary("lshr", magnitude, _SHIFT), 1)
    to_even = b.binary("add", odd, (1 << _SHIFT - 1) - 1)
    normal = b.binary("lshr", b.binary("add", b.binary("sub", magnitude, _REBIAS), to_even), _SHIFT)
    shifted = b.fadd(b.bitcast(magnitude, floats), b.bitcast(constant(integers, _SUBNORMAL), floats))
    tiny = b.binary("sub", b.bitcast(shifted, integers), _SUBNORMAL)
    finite = b.select(b.icmp("ult", magnitude, _SMALLEST_NORMAL), tiny, normal)
    quiet = constant(integers, _HALF_INFINITY | 0x200)
    beyond = b.select(b.icmp("ugt", magnitude, _FLOAT_INFINITY), quiet, _HALF_INFINITY)
    result = b.select(b.icmp("uge", magnitude, _BEYOND), beyond, finite)
    signed = b.binary("or", result, b.binary("and", b.binary("lshr", bits, 16), 0x8000))
    return b.bitcast(b.convert("trunc", signed, I16), vector(HALF, lanes))
