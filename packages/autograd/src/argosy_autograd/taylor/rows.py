"""Rows: which axes of a value run along with leading axes of an input, so that row b depends on row b alone.

The gradient of a sum over such rows is, row by row, the derivative of each row along the components of its own
input row: one direction for each component serves all rows at once. The axis notation of the primitives tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from argosy_autograd.registry import NOT_APPLICABLE
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir import Operation, Value

__all__ = ["MIXED", "Rows", "row_axes"]

Rows = tuple[int, ...]
"""The axis of a value that each row axis of the input runs along."""

MIXED: Rows = (-1,)
"""The rows of a value of which one row depends on several rows of the input."""


def row_axes(
    order: Iterable[Operation], source: Value, count: int, alias: Callable[[Value], Value | None]
) -> dict[Value, Rows]:
    """The rows of every value that the operations ``order`` (in program order) make of ``source``.

    The first ``count`` axes of ``source`` are its row axes. ``alias`` gives for a value another one that has the same
    rows, or None. Values that are not in the result do not depend on ``source``.
    """
    rows: dict[Value, Rows] = {source: tuple(range(count))}
    for op in order:
        same = alias(op.results[0]) if op.results else None
        if same is not None:
            found = rows.get(same)
        elif source in op.results or _constant(op):
            continue
        else:
            found = _carried(op, rows)
        if found is not None:
            rows.update(dict.fromkeys(op.results, found))
    return rows


def _constant(op: Operation) -> bool:
    return op.dialect == "prim" and op.name[5:] in NOT_APPLICABLE


def _carried(op: Operation, rows: dict[Value, Rows]) -> Rows | None:
    active = [(i, rows[v]) for i, v in enumerate(op.operands) if v in rows]
    if not active:
        return MIXED if op.regions and _reads(op, rows) else None
    if op.dialect != "prim" or any(r == MIXED for _, r in active):
        return MIXED
    notation = PRIMITIVES[op.name[5:]].notation([v.type for v in op.operands], _own_attributes(op))
    if notation is None:
        return MIXED
    placed: set[Rows] = set()
    for number, axes in active:
        for result in notation.results:
            factors = [notation.operands[number][axis] for axis in axes]
            if any(len(f) != 1 or f[0] in notation.mixing or f not in result for f in factors):
                return MIXED
            placed.add(tuple(result.index(f) for f in factors))
    return placed.pop() if len(placed) == 1 else MIXED


def _reads(op: Operation, rows: dict[Value, Rows]) -> bool:
    return any(v in rows for region in op.regions for inner in region.walk() for v in inner.operands)


def _own_attributes(op: Operation) -> dict[str, object]:
    primitive = PRIMITIVES[op.name[5:]]
    return primitive.complete({k: v for k, v in op.attributes.items() if k in primitive.attributes})
