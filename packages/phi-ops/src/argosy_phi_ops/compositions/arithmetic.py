"""Arithmetic: the sign plus, division, and powers by name, whose whole exponents may be written as floats."""

# mypy: disable-error-code="no-any-return,index,operator"

from __future__ import annotations

from typing import Any

from argosy_phi_ops.declare.composition import compose
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.tensor import Tensor


@compose(out=True)
def positive(x: Tensor) -> Tensor:
    """``x`` itself; refuses booleans as Python's numbers in disguise."""
    if x.dtype.kind == "b":
        raise TypeError("positive: the tensor of dtype bool has no sign")
    return x


@compose(inplace=True, out=True, aliases={"input": "x", "other": "y", "exponent": "y"})
def pow(x: Tensor, y: Any) -> Tensor:
    """``x`` to the power ``y`` with broadcasting. Integers to a whole power stay integers, though it be a float such as
    2.0; by the operator ``x ** 2.0`` they become floats, as in Paddle."""
    whole = type(y) is float and 0 <= y < 2**31 and y.is_integer() and x.is_integer()
    return op("pow")(x, int(y) if whole else y)


@compose(out=True)
def true_divide(input: Tensor, other: Tensor) -> Tensor:
    """``input / other`` elementwise."""
    return get_operator("divide")(input, other)
