"""Bytes of one element: Python numbers to little-endian bytes of a dtype and back, without numpy."""

from __future__ import annotations

from struct import error, pack, unpack

_CODES = {
    "bool": "<?", "int8": "<b", "uint8": "<B", "int16": "<h", "uint16": "<H", "int32": "<i", "uint32": "<I",
    "int64": "<q", "uint64": "<Q", "float16": "<e", "float32": "<f", "float64": "<d",
}  # fmt: skip
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
    if dtype not in _CODES:
        raise NotImplementedError(f"encoding of numbers as {dtype} is not implemented; pass the bytes")
    return _encode_real(value, dtype)


def decode_scalar(data: bytes, dtype: str) -> bool | int | float | complex:
    """The number in one element of ``dtype``; the inverse of :func:`encode_scalar`."""
    if dtype in _COMPLEX:
        return complex(*unpack(_COMPLEX[dtype], data))
    if dtype == "bfloat16":
        return float(unpack("<f", b"\0\0" + data)[0])
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
