"""LLVM types, values and constants as text.

A type is LLVM's own spelling (``"float"``, ``"i64"``, ``"<16 x float>"``, ``"ptr"``), so that what a kernel
builder writes is what one reads in the printed IR. A `Value` is an SSA name or a constant together with its
type.
"""

from __future__ import annotations

import math
import struct
from functools import cache

from argosy_pir.dims import SymExpr

VOID, PTR, I1, I8, I16, I32, I64 = "void", "ptr", "i1", "i8", "i16", "i32", "i64"
HALF, BFLOAT, FLOAT, DOUBLE = "half", "bfloat", "float", "double"

#: Element type in memory of every dtype name; a bool occupies one byte and is 0 or 1.
LLVM_TYPES = {
    "bool": I8,
    "int8": I8,
    "uint8": I8,
    "int16": I16,
    "uint16": I16,
    "int32": I32,
    "uint32": I32,
    "int64": I64,
    "uint64": I64,
    "float8_e4m3fn": I8,
    "float8_e5m2": I8,
    "float16": HALF,
    "bfloat16": BFLOAT,
    "float32": FLOAT,
    "float64": DOUBLE,
}

_BITS = {HALF: 16, BFLOAT: 16, FLOAT: 32, DOUBLE: 64, PTR: 64}
_MANGLED = {HALF: "f16", BFLOAT: "bf16", FLOAT: "f32", DOUBLE: "f64", PTR: "p0"}


class Value:
    """An SSA value or constant: ``type`` and ``name`` as LLVM prints them; ``str`` gives the operand ``float
    %x``.
    """

    __slots__ = ("name", "type")

    def __init__(self, type: str, name: str) -> None:
        self.type = type
        self.name = name

    def __str__(self) -> str:
        return f"{self.type} {self.name}"

    __repr__ = __str__


#: A 64-bit index: a Python integer (folded while building), an ``i64`` value, or the formula of a size, which the
#: function computes at its start.
Index = int | Value | SymExpr
#: What arithmetic accepts: a value, or a Python number that takes the type of the other operand.
Operand = Value | int | float | bool | SymExpr


@cache
def vector(element: str, lanes: int) -> str:
    """The vector type of ``lanes`` elements; one lane is the scalar type itself."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


@cache
def element_of(type: str) -> str:
    """The element type of a vector type, or the scalar type itself."""
    return type[type.index("x") + 2 : -1] if type[0] == "<" else type


@cache
def lanes_of(type: str) -> int:
    """Number of lanes: 1 for a scalar type."""
    return int(type[1 : type.index(" ")]) if type[0] == "<" else 1


@cache
def bits_of(type: str) -> int:
    """Bits of one element of the type."""
    element = element_of(type)
    return _BITS[element] if element in _BITS else int(element[1:])


@cache
def bytes_of(type: str) -> int:
    """Bytes of one element in memory (``i1`` takes one byte)."""
    return max(bits_of(type) // 8, 1)


@cache
def mangle(type: str) -> str:
    """The suffix of an overloaded intrinsic: ``v16f32``, ``i64``, ``p0``."""
    element = element_of(type)
    name = _MANGLED.get(element, element)
    return name if type[0] != "<" else f"v{lanes_of(type)}{name}"


@cache
def is_float(type: str) -> bool:
    """Whether the element type is a floating-point type."""
    return element_of(type) in (HALF, BFLOAT, FLOAT, DOUBLE)


def constant(type: str, value: int | float | bool) -> Value:
    """A constant of a scalar type, or its splat for a vector type. Floats round to nearest even, integers
    wrap.
    """
    element = element_of(type)
    if element == PTR:
        return Value(type, "null" if not value else f"inttoptr (i64 {int(value)} to ptr)")
    text = _float_text(element, float(value)) if is_float(element) else _integer_text(element, int(value))
    return Value(type, text if type[0] != "<" else f"splat ({element} {text})")


def vector_constant(element: str, values: list[int] | list[float] | list[bool]) -> Value:
    """A vector constant with the given lanes."""
    lanes = ", ".join(str(constant(element, v)) for v in values)
    return Value(vector(element, len(values)), f"<{lanes}>")


def _integer_text(type: str, value: int) -> str:
    bits = int(type[1:])
    if bits == 1:
        return "true" if value else "false"
    value &= (1 << bits) - 1
    return str(value - (1 << bits) if value >> (bits - 1) else value)


def _float_text(type: str, value: float) -> str:
    if type == DOUBLE:
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    if type == HALF:
        return f"0xH{_half_bits(value):04X}"
    if type == BFLOAT:
        return f"0xR{_bfloat_bits(value):04X}"
    # LLVM writes a float constant as the double of the same value.
    single = struct.unpack("<f", struct.pack("<I", _single_bits(value)))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', single))[0]:016X}"


def _single_bits(value: float) -> int:
    try:
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    except OverflowError:
        return 0x7F800000 | (0x80000000 if value < 0 else 0)


def _half_bits(value: float) -> int:
    try:
        return int(struct.unpack("<H", struct.pack("<e", value))[0])
    except OverflowError:
        return 0x7C00 | (0x8000 if value < 0 else 0)


def _bfloat_bits(value: float) -> int:
    bits = _single_bits(value)
    if math.isnan(value):
        return (bits >> 16) | 0x40
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
