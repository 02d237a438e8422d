"""Rounding to whole numbers by arithmetic, for processors without instructions for it (x86-64 before SSE 4.1).

A number that is added to the power of two whose last bit counts ones, and that is taken away again, is rounded to
nearest even. Numbers from that power on, infinities and NaN are whole as they are; zeros keep their sign.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from argosy_cinn.printers.types import FLOAT, Value, constant, element_of

if TYPE_CHECKING:
    from argosy_cinn.printers.arithmetic import Arithmetic


def _with_sign_of(b: Arithmetic, magnitude: Value, x: Value) -> Value:
    return b.intrinsic("llvm.copysign", x.type, magnitude, x)


def _nearest(b: Arithmetic, x: Value) -> Value:
    """The nearest whole number, without the sign of zero, and of large numbers themselves."""
    limit = 2.0**23 if element_of(x.type) == FLOAT else 2.0**52
    magnitude = b.unary("fabs", x)
    whole = _with_sign_of(b, b.fsub(b.fadd(magnitude, limit), limit), x)
    return b.select(b.fcmp("olt", magnitude, limit), whole, x)


def _floor(b: Arithmetic, x: Value) -> Value:
    """The largest whole number that is not above x."""
    nearest = _nearest(b, x)
    above = b.fcmp("ogt", nearest, x)
    return b.select(above, b.fsub(nearest, constant(x.type, 1.0)), nearest)


def _ceil(b: Arithmetic, x: Value) -> Value:
    """The smallest whole number that is not below x."""
    return b.fneg(_floor(b, b.fneg(x)))


def _trunc(b: Arithmetic, x: Value) -> Value:
    """The whole number next to x towards zero."""
    return _with_sign_of(b, _floor(b, b.unary("fabs", x)), x)


#: Short name of an LLVM intrinsic -> what stands in for it.
BY_ARITHMETIC: Mapping[str, Callable[[Arithmetic, Value], Value]] = {
    "ceil": _ceil,
    "floor": _floor,
    "nearbyint": _nearest,
    "rint": _nearest,
    "roundeven": _nearest,
    "trunc": _trunc,
}
