"""Elementwise primitives: what an expression may compute of elements at one position."""

from __future__ import annotations

from argosy_cinn.forms.dtypes import DTYPES, PARTS

#: The primitives that every emitter of expressions has code for.
OPERATIONS = frozenset(
    """
    abs acos acosh add asin asinh atan atan2 atanh bitcast bitwise_and bitwise_not bitwise_or bitwise_xor cast
    ceil cos cosh digamma div eq erf erfc erfinv exp expm1 floor floor_div floor_mod ge gt is_finite is_inf
    is_nan le lgamma log log1p logical_and logical_not logical_or logical_xor logistic lt maximum minimum mul ne
    neg nextafter pow rem round rsqrt select shift_left shift_right sign sin sinh sqrt sub tan tanh trunc
    """.split()
)
#: What does not compute: moves, and what takes pairs apart and puts them together.
_ON_PAIRS = frozenset({"copy", "stop_gradient", "real", "imag", "complex"})


def supports(name: str, dtype: str) -> bool:
    """Whether expressions may hold a primitive on values of this dtype."""
    if dtype in PARTS:
        return name in _ON_PAIRS
    return dtype in DTYPES and (name in OPERATIONS or name in _ON_PAIRS)
