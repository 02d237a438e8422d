"""The 8-bit floats as bytes: widened exactly, and rounded to nearest even as ml_dtypes does it.

Arithmetic is float32's. What is too large becomes an infinity in float8_e5m2 and NaN in float8_e4m3fn, which has no
infinities.
"""

from __future__ import annotations

from dataclasses import dataclass

from argosy_cinn.printers.instructions import Instructions
from argosy_cinn.printers.types import FLOAT, I8, I32, Value, constant, lanes_of, vector

_FRACTION, _BIAS = 23, 127  # of float32


@dataclass(frozen=True, slots=True)
class Format:
    """``fraction`` bits, exponent ``bias``, and the bytes (without sign) of what is too large, and of NaN."""

    fraction: int
    bias: int
    beyond: int
    nan: int


FORMATS = {"float8_e4m3fn": Format(3, 7, 0x7F, 0x7F), "float8_e5m2": Format(2, 15, 0x7C, 0x7E)}


def widen(b: Instructions, x: Value, dtype: str) -> Value:
    """Bytes as floats: the bits moved into place, and scaled by a power of two, which denormal numbers survive."""
    f, lanes = FORMATS[dtype], lanes_of(x.type)
    wide = b.convert("zext", x, I32)
    magnitude = b.binary("and", wide, 0x7F)
    bits = b.binary("shl", magnitude, _FRACTION - f.fraction)
    value = b.fmul(b.bitcast(bits, vector(FLOAT, lanes)), 2.0 ** (_BIAS - f.bias))
    if f.beyond != f.nan:
        value = b.select(b.icmp("eq", magnitude, f.beyond), float("inf"), value)
    value = b.select(b.icmp("ugt", magnitude, f.nan - 1 if f.beyond == f.nan else f.beyond), float("nan"), value)
    sign = b.binary("shl", b.binary("and", wide, 0x80), 24)
    return b.bitcast(b.binary("or", b.bitcast(value, vector(I32, lanes)), sign), vector(FLOAT, lanes))


def round_to_bytes(b: Instructions, x: Value, dtype: str) -> Value:
    """Floats rounded to bytes."""
    f, lanes = FORMATS[dtype], lanes_of(x.type)
    bits = b.bitcast(x, vector(I32, lanes))
    magnitude = b.binary("and", bits, 0x7FFFFFFF)
    rounded = b.select(
        b.icmp("ult", magnitude, _least_normal(f)), _denormal(b, magnitude, f), _round_normal(b, magnitude, f)
    )
    rounded = b.select(b.icmp("ugt", rounded, f.beyond), constant(rounded.type, f.beyond), rounded)
    rounded = b.select(b.fcmp("uno", x, x), constant(rounded.type, f.nan), rounded)
    sign = b.binary("and", b.binary("lshr", bits, 24), 0x80)
    return b.convert("trunc", b.binary("or", rounded, sign), I8)


def _least_normal(f: Format) -> int:
    """The bits, as a float32, of the least number that is not denormal."""
    return (_BIAS + 1 - f.bias) << _FRACTION


def _round_normal(b: Instructions, magnitude: Value, f: Format) -> Value:
    cut = _FRACTION - f.fraction
    odd = b.binary("and", b.binary("lshr", magnitude, cut), 1)
    moved = b.binary("add", b.binary("add", magnitude, (1 << (cut - 1)) - 1), odd)
    return b.binary("sub", b.binary("lshr", moved, cut), (_BIAS - f.bias) << f.fraction)


def _denormal(b: Instructions, magnitude: Value, f: Format) -> Value:
    """Added to a number whose last bit is the least denormal one, a float is rounded by the addition."""
    lanes = lanes_of(magnitude.type)
    anchor = (_BIAS + 1 - f.bias - f.fraction + _FRACTION) << _FRACTION
    base = b.bitcast(constant(vector(I32, lanes), anchor), vector(FLOAT, lanes))
    total = b.fadd(b.bitcast(magnitude, vector(FLOAT, lanes)), base)
    return b.binary("sub", b.bitcast(total, vector(I32, lanes)), anchor)


__all__ = ["FORMATS", "round_to_bytes", "widen"]
