"""Types and constants of LLVM in OpenCL C."""

from __future__ import annotations

import re
import struct

from argosy_cinn.printers.types import (
    BFLOAT,
    DOUBLE,
    FLOAT,
    HALF,
    I1,
    I32,
    I64,
    Value,
    bits_of,
    element_of,
    is_float,
    lanes_of,
)

__all__ = ["C_TYPES", "c_constant", "c_type"]

#: Of scalars; truth values are 0 and 1, and narrow floats are their bits: arithmetic is that of wider ones.
C_TYPES = {I1: "int", "i8": "char", "i16": "short", I32: "int", I64: "long", FLOAT: "float", DOUBLE: "double",
           HALF: "short", BFLOAT: "short"}  # fmt: skip
_SPLAT = re.compile(r"splat \(\w+ (.*)\)")


def c_type(type: str) -> str:
    """A scalar or vector type: ``float``, ``long16``. Raises KeyError for elements that OpenCL C has none for."""
    lanes = lanes_of(type)
    return C_TYPES[element_of(type)] + (str(lanes) if lanes > 1 else "")


def c_constant(value: Value) -> str:
    """A constant; a vector of truth values has 0 and -1."""
    element, lanes, text = element_of(value.type), lanes_of(value.type), value.name
    if lanes == 1:
        return _scalar_literal(element, text)
    minus = "-" if element == I1 else ""
    if text[0] == "<":
        parts = [minus + _scalar_literal(element, part.split()[1]) for part in text[1:-1].split(", ")]
    else:
        parts = [minus + _scalar_literal(element, _SPLAT.sub(r"\1", text))]
    return f"({c_type(value.type)})({', '.join(parts)})"


def _scalar_literal(type: str, text: str) -> str:
    if type == I1:
        return "1" if text == "true" else "0"
    if type in (HALF, BFLOAT):
        return f"(short)0x{text[3:]}"
    if not is_float(type):
        return _integer(int(text), bits_of(type), C_TYPES[type])
    if type == DOUBLE:
        return f"as_double({text}UL)"
    (number,) = struct.unpack("<d", int(text, 16).to_bytes(8, "little"))
    (bits,) = struct.unpack("<I", struct.pack("<f", number))
    return f"as_float(0x{bits:08X}u)"


def _integer(number: int, bits: int, type: str) -> str:
    if number == -(1 << 63):
        return "(-0x7FFFFFFFFFFFFFFFL - 1)"
    if number == -(1 << 31) and bits == 32:
        return "(-2147483647 - 1)"
    return f"{number}L" if bits == 64 else f"({type}){number}" if bits < 32 else str(number)
