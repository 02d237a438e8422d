"""Indices held against the sizes of the axes that they address.

The primitives ``gather`` and ``scatter`` clamp and drop what is out of range, so that code stays within its memory. An
operator that users give indices to says with :meth:`Operator.check_bounds` which they are: eager execution looks at
them before its kernel runs, and in programs a ``prim.check_index`` stands before what the operator decomposes into.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from argosy_phi_ops.checks.index_errors import find_outlier, index_error
from argosy_phi_ops.declare.operator import Operator
from argosy_pir.dims import SymExpr

__all__ = ["Bound", "bounds_of", "check_bounds", "check_indices", "known_bounds"]


def check_bounds(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> None:
    """Raise :class:`AxisError` where an index of an application of ``op`` is out of range."""
    bounds = op.bounds or op.own_bounds
    assert bounds is not None
    for indices, low, size, *besides in bounds(**op.signature.regroup(arrays, attributes)):
        check_indices(op.name, indices, low, size, *besides)


class Bound(NamedTuple):
    """Indices from ``low`` to ``size - 1``, and ``besides``: an operand, by its number, or one ``column`` of its last
    axis. Where no index is allowed besides, that is ``low``. Numbers are sizes: symbolic where those of types are."""

    operand: int
    column: int | None
    low: Any
    size: Any
    besides: Any


class _OperandShape:
    """An operand without its elements, as bounds see it; ``column`` is one place of its last axis."""

    __slots__ = ("column", "dtype", "number", "shape")

    def __init__(self, number: int, shape: tuple[Any, ...], dtype: Any, column: int | None = None) -> None:
        self.number, self.shape, self.dtype, self.column = number, shape, dtype, column

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Any:
        return prod(self.shape)

    def __getitem__(self, key: tuple[Any, int]) -> _OperandShape:
        return _OperandShape(self.number, self.shape[:-1], self.dtype, key[1])


def bounds_of(op: Operator, types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Bound]:
    """The bounds of operands of these types, whoever looks at them; sizes may be symbolic."""
    bounds = op.bounds or op.own_bounds
    if bounds is None:
        return []
    described = [_OperandShape(i, tuple(t.shape), t.dtype) for i, t in enumerate(types)]
    found = []
    for indices, low, size, *besides in bounds(**op.signature.regroup(described, dict(attributes))):
        low, size, also = (n if isinstance(n, SymExpr) else int(n) for n in (low, size, *(besides or (low,))))
        found.append(Bound(indices.number, indices.column, low, size, also))
    return found


def known_bounds(op: Operator, types: Sequence[Any], attributes: dict[str, Any]) -> list[Bound] | None:
    """What eager execution has to look at, for operands of these array types; None where that is not an operand as it
    is."""
    found = bounds_of(op, types, attributes)
    return None if any(bound.column is not None for bound in found) else found


def check_indices(name: str, indices: Any, low: int, size: int, besides: int | None = None) -> None:
    """Raise :class:`AxisError`, naming the operator, where an index is less than ``low`` or not less than ``size``, and
    not the one that is allowed ``besides``."""
    if indices.dtype.kind not in "iu":
        return
    wrong = find_outlier(indices, low, size, besides)
    if wrong is not None:
        raise index_error(name, wrong, low, size, besides)
