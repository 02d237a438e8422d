"""Keys of sorts as unsigned integers in the same order."""

from __future__ import annotations

from argosy_cinn.forms.dtypes import FLOATS, NARROW, SIGNED
from argosy_cinn.printers.instructions import Instructions
from argosy_cinn.printers.types import FLOAT, Value, bits_of, constant, element_of, lanes_of, vector

__all__ = ["key_bits", "ordered_bits"]


def key_bits(dtype: str) -> int:
    """Bits of the integers for a dtype."""
    return 64 if dtype in ("float64", "int64", "uint64") else 32


def ordered_bits(b: Instructions, x: Value, dtype: str) -> Value:
    """An unsigned integer that compares as ``x`` does: zeros of both signs are equal, and every NaN is the largest."""
    integer = vector(f"i{key_bits(dtype)}", lanes_of(x.type))
    if dtype not in FLOATS:
        wide = x if x.type == integer else b.convert("sext" if dtype in SIGNED else "zext", x, element_of(integer))
        return b.binary("xor", wide, 1 << (bits_of(integer) - 1)) if dtype in SIGNED else wide
    assert element_of(x.type) == FLOAT or dtype not in NARROW
    bits = b.bitcast(b.fadd(x, 0.0), integer)  # -0.0 + 0.0 is 0.0
    top = constant(integer, 1 << (bits_of(integer) - 1))
    negative = b.binary("ashr", bits, bits_of(integer) - 1)
    return b.select(b.fcmp("uno", x, x), constant(integer, -1), b.binary("xor", bits, b.binary("or", negative, top)))
