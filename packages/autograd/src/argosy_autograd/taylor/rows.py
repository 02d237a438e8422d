"""Rows: which axes of a value run along with leading axes of an input, so that row b depends on row b alone.

The gradient of a sum over such rows is, row by row, the derivative of each row along the components of its own
input row: one direction for each component serves all rows at once. The axis notation of the primitives tells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from argosy_autograd.activity import read_values
from argosy_autograd.registry import NOT_APPLICABLE
from argosy_autograd.reverse import plain_attributes
from argosy_phi_ops.axes import AxisNotation
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir import Operation, Value
from argosy_pir.values import OpResult

__all__ = ["MIXED", "RowAxes", "Rows", "upstream"]

Rows = tuple[int, ...]
"""The axis of a value that each row axis of the input runs along."""

MIXED: Rows = (-1,)
"""The rows of a value of which one row depends on several rows of the input."""


class RowAxes:
    """The rows of values that depend on ``source``, whose first ``count`` axes are its row axes; found when asked for.

    ``base`` gives for a value another one that has the same rows, or None.
    """

    def __init__(self, source: Value, count: int, base: Callable[[Value], Value | None]) -> None:
        self._known: dict[Value, Rows | None] = {source: tuple(range(count))}
        self._base = base

    def __getitem__(self, value: Value) -> Rows | None:
        """The rows of ``value``, :data:`MIXED`, or None for a value that does not depend on the source."""
        if value not in self._known:
            for op in upstream(value, self._known.__contains__, self._read):
                same = self._base(op.results[0])
                found = self._carried(op) if same is None else self._known.get(same)
                for result in op.results:
                    self._known.setdefault(result, found)
        return self._known.get(value)

    def _read(self, op: Operation) -> Sequence[Value]:
        same = self._base(op.results[0]) if op.results else None
        return read_values(op) if same is None else (same,)

    def _carried(self, op: Operation) -> Rows | None:
        if _constant(op):
            return None
        held = [(i, self._known.get(v)) for i, v in enumerate(op.operands)]
        active = [(i, rows) for i, rows in held if rows is not None]
        if not active:
            return MIXED if op.regions and any(self._known.get(v) is not None for v in read_values(op)) else None
        if op.dialect != "prim" or any(rows == MIXED for _, rows in active):
            return MIXED
        notation = PRIMITIVES[op.name[5:]].notation([v.type for v in op.operands], plain_attributes(op))
        return MIXED if notation is None else _placed(notation, active)


def _placed(notation: AxisNotation, active: Sequence[tuple[int, Rows]]) -> Rows:
    """Where the rows of the operands come to lie in the results; one place for all, else they are mixed."""
    placed: set[Rows] = set()
    for number, axes in active:
        for result in notation.results:
            factors = [notation.operands[number][axis] for axis in axes]
            if any(len(f) != 1 or f[0] in notation.mixing or f not in result for f in factors):
                return MIXED
            placed.add(tuple(result.index(f) for f in factors))
    return placed.pop() if len(placed) == 1 else MIXED


def _constant(op: Operation) -> bool:
    return op.dialect == "prim" and op.name[5:] in NOT_APPLICABLE


def upstream(
    value: Value, known: Callable[[Value], bool], reads: Callable[[Operation], Sequence[Value]]
) -> list[Operation]:
    """The operations that make ``value``, as far as values are not ``known``, each after those it reads."""
    order: list[Operation] = []
    seen: set[Operation] = set()
    stack: list[tuple[Value, bool]] = [(value, False)]
    while stack:
        current, ready = stack.pop()
        if not isinstance(current, OpResult):
            continue
        if ready:
            order.append(current.op)
        elif current.op not in seen and not known(current):
            seen.add(current.op)
            stack.append((current, True))
            stack.extend((v, False) for v in reads(current.op))
    return order
