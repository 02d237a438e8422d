"""Bytes of one element: Python numbers to little-endian bytes of a dtype and back, without numpy."""

from __future__ import annotations

from struct import error, pack, unpack

_CODES = {
    "bool": "<?", "int8": "<b", "uint8": "<B", "int16": "<h", "uint16": "<H", "int32": "<i", "uint32": "<I",
    "int64": "<q", "uint64": "<Q", "float16": "<e", "float32": "<f", "float64": "<d",
}  # fmt: skip
_FLOAT8 = {"float8_e4m3fn": (4, 0x7F), "float8_e5m2": (5, 0x7C)}
"""Exponent bits, and the first positive code that is no finite number: NaN, and infinity."""
_COMPLEX = {"complex64": "<ff", "complex128": "<dd"}


def encode_scalar(value: bool | int | float | complex, dtype: str) -> bytes:
    """One element of ``dtype`` holding ``value``, rounded to nearest even where the dtype is coarser.

    Raises ``ValueError`` where the number does not fit (an integer out of range, a fraction in an integer
    dtype) and ``NotImplementedError`` for dtypes whose encoding is not implemented.
    """
    if dtype in _COMPLEX:
        number = complex(value)
        return pack(_COMPLEX[dtype], number.real, number.imag)
    if dtype == "bfloat16":
        return _encode_bfloat16(float(value))  # type: ignore[arg-type]
    if dtype in _FLOAT8:
        return _encode_float8(float(value), dtype)  # type: ignore[arg-type]
    if dtype not in _CODES:
        raise NotImplementedError(f"encoding of numbers as {dtype} is not implemented; pass the bytes")
    return _encode_real(value, dtype)


def decode_scalar(data: bytes, dtype: str) -> bool | int | float | complex:
    """The number in one element of ``dtype``; the inverse of :func:`encode_scalar`."""
    if dtype in _COMPLEX:
        return complex(*unpack(_COMPLEX[dtype], data))
    if dtype == "bfloat16":
        return float(unpack("<f", b"\0\0" + data)[0])
    if dtype in _FLOAT8:
        return _decode_float8(data[0], dtype)
    if dtype not in _CODES:
        raise NotImplementedError(f"decoding of {dtype} elements is not implemented")
    return unpack(_CODES[dtype], data)[0]  # type: ignore[no-any-return]


def _encode_real(value: bool | int | float | complex, dtype: str) -> bytes:
    try:
        if dtype == "bool":
            return pack("<?", bool(value))
        if dtype.startswith("float"):
            return _encode_float(float(value), dtype)  # type: ignore[arg-type]
        if isinstance(value, float) and value == int(value):
            value = int(value)
        return pack(_CODES[dtype], value)
    except (error, OverflowError, TypeError, ValueError) as cause:  # float(complex) is a TypeError
        raise ValueError(f"{value!r} is not a number of dtype {dtype}") from cause


def _encode_float(value: float, dtype: str) -> bytes:
    try:
        return pack(_CODES[dtype], value)
    except OverflowError:  # struct refuses what rounds to infinity; IEEE 754 does not
        return pack(_CODES[dtype], float("inf") if value > 0 else float("-inf"))


def _encode_bfloat16(value: float) -> bytes:
    """The upper half of a float32, rounded to nearest even."""
    if value != value:
        return b"\xc0\x7f"
    bits = int.from_bytes(_encode_float(value, "float32"), "little")
    bits += 0x7FFF + ((bits >> 16) & 1)
    return (bits >> 16).to_bytes(2, "little")


def _decode_float8(code: int, dtype: str) -> float:
    """The number a byte stands for (Micikevicius et al., 2022): E4M3FN has one NaN a sign, E5M2 is as IEEE
    754."""
    exponent_bits, special = _FLOAT8[dtype]
    sign, magnitude = (-1.0 if code & 0x80 else 1.0), code & 0x7F
    if magnitude >= special:
        return sign * (float("inf") if dtype == "float8_e5m2" and magnitude == special else float("nan"))
    return sign * _float8_magnitude(magnitude, exponent_bits)


def _float8_magnitude(code: int, exponent_bits: int) -> float:
    """The value of a code as if all exponents stood for finite numbers; grows with the code."""
    mantissa_bits = 7 - exponent_bits
    exponent, mantissa = code >> mantissa_bits, code & (1 << mantissa_bits) - 1
    bias = (1 << exponent_bits - 1) - 1
    if exponent:
        mantissa |= 1 << mantissa_bits
    return float(mantissa) * 2.0 ** (max(exponent, 1) - bias - mantissa_bits)


def _encode_float8(value: float, dtype: str) -> bytes:
    """The nearest code, the even one of two equally near; what rounds beyond the largest is infinity (or
    NaN)."""
    exponent_bits, special = _FLOAT8[dtype]
    sign = 0x80 if pack("<d", value)[7] & 0x80 else 0
    if value != value:
        return bytes([sign | (0x7E if dtype == "float8_e5m2" else 0x7F)])
    size, low, high = abs(value), 0, special
    if size >= _float8_magnitude(high, exponent_bits):
        return bytes([sign | special])
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _float8_magnitude(middle, exponent_bits) <= size else (low, middle)
    below, above = (size - _float8_magnitude(low, exponent_bits), _float8_magnitude(high, exponent_bits) - size)
    nearest = low if below < above or (below == above and low % 2 == 0) else high
    return bytes([sign | nearest])
