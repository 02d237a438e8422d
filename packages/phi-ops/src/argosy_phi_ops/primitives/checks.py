"""What type rules check, with errors that name the primitive, what came and what was expected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from argosy_phi_ops.errors import AxisError, DTypeError, OperatorError, ShapeError
from argosy_pir.types import TensorType

__all__ = [
    "BOOL", "COMPLEX", "FLOATING", "INEXACT", "INTEGER", "NUMERIC", "ORDERED", "REAL_OF", "check_axes", "check_dtype",
    "check_permutation", "check_same_dtype", "check_same_type", "require",
]  # fmt: skip

BOOL = frozenset({"bool"})
INTEGER = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
FLOATING = frozenset({"float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64"})
COMPLEX = frozenset({"complex64", "complex128"})
INEXACT = FLOATING | COMPLEX
ORDERED = BOOL | INTEGER | FLOATING
NUMERIC = INTEGER | INEXACT
REAL_OF = {"complex64": "float32", "complex128": "float64"}


def require(condition: bool, message: str, error: type[OperatorError] = ShapeError) -> None:
    """Raise ``error(message)`` unless ``condition`` holds."""
    if not condition:
        raise error(message)


def check_dtype(name: str, x: TensorType, allowed: Iterable[str], operand: str = "x") -> None:
    """Raise :class:`DTypeError` unless the dtype of ``x`` is one of ``allowed``."""
    if x.dtype not in allowed:
        raise DTypeError(f"prim.{name}: {operand} has dtype {x.dtype}, expected one of {', '.join(sorted(allowed))}")


def check_same_dtype(name: str, xs: Sequence[TensorType]) -> None:
    """Raise :class:`DTypeError` unless all dtypes are equal."""
    if any(x.dtype != xs[0].dtype for x in xs[1:]):
        raise DTypeError(f"prim.{name}: dtypes must agree, got {', '.join(x.dtype for x in xs)}")


def check_same_type(name: str, xs: Sequence[TensorType]) -> None:
    """Raise unless all shapes and dtypes are equal."""
    check_same_dtype(name, xs)
    if any(x.shape != xs[0].shape for x in xs[1:]):
        raise ShapeError(f"prim.{name}: shapes must agree, got {', '.join(format_shape(x.shape) for x in xs)}")


def check_axes(name: str, axes: Sequence[Any], rank: int) -> None:
    """Raise :class:`AxisError` unless ``axes`` are distinct ints in ``[0, rank)``."""
    for axis in axes:
        if not isinstance(axis, int) or not 0 <= axis < rank:
            raise AxisError(
                f"prim.{name}: axis {axis} is outside a tensor of rank {rank}; it should be from 0 to {rank - 1}"
            )
    if len(set(axes)) != len(axes):
        raise AxisError(f"prim.{name}: axes {tuple(axes)} repeat")


def check_permutation(name: str, permutation: Sequence[int], rank: int) -> None:
    """Raise :class:`AxisError` unless ``permutation`` is one of ``range(rank)``."""
    if sorted(permutation) != list(range(rank)):
        raise AxisError(f"prim.{name}: {tuple(permutation)} is not a permutation of the {rank} axes")


def format_shape(shape: Sequence[Any]) -> str:
    """``shape`` as ``[2, s0]``."""
    return "[" + ", ".join(str(dim) for dim in shape) + "]"
