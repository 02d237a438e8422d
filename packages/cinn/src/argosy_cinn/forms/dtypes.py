"""Dtypes that kernels compute with."""

from __future__ import annotations

SIGNED = frozenset({"int8", "int16", "int32", "int64"})
UNSIGNED = frozenset({"uint8", "uint16", "uint32", "uint64"})
INTEGERS = SIGNED | UNSIGNED
#: Those whose products are summed in int32.
SMALL_INTEGERS = frozenset({"int8", "uint8", "int16", "uint16"})
#: Floats that registers hold as float32.
NARROW = frozenset({"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"})
FLOATS = frozenset({"float32", "float64", *NARROW})
DTYPES = INTEGERS | FLOATS | {"bool"}
#: Dtypes of two numbers side by side in memory, with that of each: registers hold the parts.
PARTS = {"complex64": "float32", "complex128": "float64"}
