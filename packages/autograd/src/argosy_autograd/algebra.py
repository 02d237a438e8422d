"""What many rules share: conjugates, zeros, sums with absent terms, constants behind broadcasts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from argosy_phi_ops import prim
from argosy_pir import Value as IRValue
from argosy_pir import decode_scalar
from argosy_pir.values import OpResult

if TYPE_CHECKING:
    Value: TypeAlias = Any  # the arithmetic of values is installed at run time, where no checker sees it
else:
    Value = IRValue

__all__ = [
    "COMPLEX", "INEXACT", "Value", "adjoint", "argsort", "conj", "constant_number", "is_complex", "matmul",
    "negate", "plus", "round_to", "scale_by", "swap_last", "times", "where", "widen", "zeros", "zeros_like",
]  # fmt: skip

COMPLEX = ("complex64", "complex128")
INEXACT = frozenset({"float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64", *COMPLEX})
"""Dtypes that have gradients."""
NARROW = frozenset({"float8_e4m3fn", "float8_e5m2", "float16", "bfloat16"})
"""Floats whose range or precision intermediate results of a derivative would leave."""


def is_complex(x: Value) -> bool:
    """Whether the elements of ``x`` are complex."""
    return x.dtype in COMPLEX


def conj(x: Value) -> Value:
    """The complex conjugate; ``x`` itself when it is real."""
    return prim.conj(x) if is_complex(x) else x


def zeros(shape: tuple[Any, ...], dtype: str) -> Value:
    """A tensor of zeros (a broadcast constant)."""
    return prim.constant(0, dtype, shape)


def zeros_like(x: Value) -> Value:
    """Zeros of the type of ``x``."""
    return zeros(x.shape, x.dtype)


def where(condition: Value, x: Value | float, y: Value | float) -> Value:
    """``x`` where the condition holds, else ``y``; one of them may be a number."""
    other = x if isinstance(x, IRValue) else y
    assert isinstance(other, IRValue)
    x, y = (v if isinstance(v, IRValue) else prim.constant(v, other.dtype, other.shape) for v in (x, y))
    return prim.select(condition, x, y)


def plus(x: Value | None, y: Value | None) -> Value | None:
    """``x + y`` where None is zero."""
    if x is None or y is None:
        return y if x is None else x
    return prim.add(x, y)


def negate(x: Value | None) -> Value | None:
    """``-x`` where None is zero."""
    return None if x is None else prim.neg(x)


def scale_by(x: Value | None, factor: Value) -> Value | None:
    """``x * factor`` where None is zero."""
    return None if x is None else prim.mul(x, factor)


def argsort(order: Any) -> tuple[int, ...]:
    """The permutation that sorts ``order``."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def constant_number(x: Value) -> Any:
    """The number that every element of ``x`` has, if that can be seen (a splat constant behind broadcasts),
    else None."""
    while isinstance(x, OpResult) and x.op.name in ("prim.broadcast", "prim.reshape"):
        x = x.op.operand(0)
    if isinstance(x, OpResult) and x.op.name == "builtin.constant":
        value = x.op.attributes["value"]
        if value.is_splat:
            return decode_scalar(value.data, value.type.dtype)
    return None


def widen(x: Value) -> Value:
    """Floats narrower than float32 as float32, in which a rule of several steps is computed; others as they are."""
    if x.dtype not in NARROW:
        return x
    number = constant_number(x)
    return prim.cast(x, dtype="float32") if number is None else prim.constant(number, "float32", x.shape)


def round_to(x: Value, dtype: str) -> Value:
    """What was computed of :func:`widen` operands, rounded to their dtype."""
    return x if x.dtype == dtype else prim.cast(x, dtype=dtype)


def times(g: Value, factor: Value) -> Value:
    """``g * factor``, where a cotangent of ones (the seed of a sum) costs nothing."""
    return factor if constant_number(g) == 1 else prim.mul(g, factor)


def swap_last(x: Value) -> Value:
    """``x`` with its last two axes exchanged."""
    rank = x.ndim
    return prim.transpose(x, permutation=(*range(rank - 2), rank - 1, rank - 2))


def adjoint(x: Value) -> Value:
    """The conjugate transpose over the last two axes."""
    return conj(swap_last(x))


def matmul(x: Value, y: Value) -> Value:
    """The matrix product over the last two axes of tensors with equal batch axes."""
    batch = tuple(range(x.ndim - 2))
    return prim.dot_general(
        x, y, lhs_contract=(x.ndim - 1,), rhs_contract=(y.ndim - 2,), lhs_batch=batch, rhs_batch=batch
    )
