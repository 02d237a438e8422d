"""Which axes of a value run along the batch and the sequence, and how axis notation carries that through an
operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy_infer.errors import IncrementalError
from argosy_phi_ops.declare.axes import Axis, AxisNotation
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir.core import Operation

__all__ = ["BATCH", "FLAT", "NONE", "TOKENS", "Roles", "operation_roles", "result_roles"]

NONE, BATCH, TOKENS, FLAT = "", "batch", "tokens", "flat"
"""An axis runs along neither, the batch, the sequence, or both merged (batch slowest)."""

Roles = tuple[str, ...]


def operation_roles(op: Operation, operands: Sequence[Roles], sizes: tuple[Any, Any], place: str) -> list[Roles]:
    """The roles of the results' axes of a primitive. Raises :class:`IncrementalError` where it mixes positions, or
    where that is not known."""
    primitive = PRIMITIVES.get(op.kind) if op.dialect == "prim" else None
    if primitive is None:
        raise IncrementalError(f"{place} takes tokens, and its dependence on positions is not known")
    attributes = primitive.complete({k: v for k, v in op.attributes.items() if k in primitive.attributes})
    notation = primitive.notation([v.type for v in op.operands], attributes)
    if notation is None:
        raise IncrementalError(f"{place} takes tokens, and has no axis notation")
    return result_roles(notation, operands, [r.shape for r in op.results], sizes, place)


def result_roles(
    notation: AxisNotation,
    operands: Sequence[Roles],
    shapes: Sequence[tuple[Any, ...]],
    sizes: tuple[Any, Any],
    place: str,
) -> list[Roles]:
    """The roles of the results' axes.

    ``shapes`` are the results' shapes and ``sizes`` those of batch and sequence: an axis that no operand has (a
    broadcast, an iota) gets its role from its size. Raises :class:`IncrementalError` at ``place`` when positions are
    mixed.
    """
    factors: dict[str, str] = {}
    for roles, term in zip(operands, notation.operands, strict=True):
        for role, axis in zip(roles, term, strict=True):
            _assign(factors, role, axis, place)
    for factor, role in factors.items():
        if role and factor in notation.mixing:
            raise IncrementalError(f"{place} mixes indices along the {role}")
        if role and factor in notation.reduced_factors:
            raise IncrementalError(f"{place} reduces over the {role}")
    return [
        tuple(_role(factors, axis, size, sizes, place) for axis, size in zip(term, shape, strict=True))
        for term, shape in zip(notation.results, shapes, strict=True)
    ]


def _assign(factors: dict[str, str], role: str, axis: Axis, place: str) -> None:
    if role == FLAT and len(axis) == 2:
        parts: Sequence[str] = (BATCH, TOKENS)
    elif len(axis) <= 1 or not role:
        parts = (role,) * len(axis)
    else:
        raise IncrementalError(f"{place} splits the {role} axis")
    for factor, part in zip(axis, parts, strict=True):
        if factors.setdefault(factor, part) != part:
            raise IncrementalError(
                f"{place} pairs an axis of {factors[factor] or 'no'} role with one of {part or 'no'} role"
            )


def _role(factors: dict[str, str], axis: Axis, size: Any, sizes: tuple[Any, Any], place: str) -> str:
    roles = tuple(factors.get(factor, _by_size(size, sizes)) for factor in axis)
    if not any(roles) and _by_size(size, sizes):
        raise IncrementalError(f"{place} makes an axis as long as the sequence out of one that is not")
    if len(roles) == 1:
        return roles[0]
    if not any(roles):
        return NONE
    if roles == (BATCH, TOKENS):
        return FLAT
    raise IncrementalError(f"{place} merges {' and '.join(r or 'other' for r in roles)} axes")


def _by_size(size: Any, sizes: tuple[Any, Any]) -> str:
    if isinstance(size, int):
        return NONE
    if size == sizes[1]:
        return TOKENS
    if size == sizes[0]:
        return BATCH
    return FLAT if size == sizes[0] * sizes[1] else NONE
