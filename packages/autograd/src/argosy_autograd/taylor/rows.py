"""Rows: which axes of a value run along with leading axes of an input, so that row b depends on row b alone.

The gradient of a sum over such rows is, row by row, the derivative of each row along the components of its own
input row: one direction for each component serves all rows at once. The axis notation of the primitives tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from argosy_autograd.activity import captured_values, has_no_derivative, read_values
from argosy_autograd.loops import FIRST_CARRIED
from argosy_autograd.reverse import plain_attributes
from argosy_phi_ops.declare.axes import AxisNotation
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir import Block, Operation, TensorType, Value
from argosy_pir.values import OpResult

__all__ = ["MIXED", "RowAxes", "Rows", "is_carried", "upstream"]

Rows = tuple[int, ...]
"""The axis of a value that each row axis of the input runs along."""

MIXED: Rows = (-1,)
"""The rows of a value of which one row depends on several rows of the input."""


class RowAxes:
    """The rows of values that depend on those whose rows are ``known``; found when asked for.

    ``base`` gives for a value another one that has the same rows, or None.
    """

    def __init__(self, known: Mapping[Value, Rows | None], base: Callable[[Value], Value | None]) -> None:
        self._known: dict[Value, Rows | None] = dict(known)
        self._base = base

    def __getitem__(self, value: Value) -> Rows | None:
        """The rows of ``value``, :data:`MIXED`, or None for a value that depends on none of them."""
        if value not in self._known:
            for op in upstream(value, self._known.__contains__, self._read_values):
                same = self._base(op.results[0])
                found: Sequence[Rows | None]
                if same is None and is_carried(op):
                    found = self._rows_of_control(op)
                else:
                    found = [self._carry(op) if same is None else self._known.get(same)] * len(op.results)
                for result, rows in zip(op.results, found, strict=True):
                    self._known.setdefault(result, rows)
        return self._known.get(value)

    def _read_values(self, op: Operation) -> Sequence[Value]:
        same = self._base(op.results[0]) if op.results else None
        return read_values(op) if same is None else (same,)

    def _rows_of_control(self, op: Operation) -> list[Rows | None]:
        """The rows of the results of a loop or branch: what it carries keeps its rows, or gets those of what comes
        after a step, until nothing changes any more. Whether a loop goes on is no matter of derivatives."""
        if op.name == "control.if":
            held, other = (self._ends(op, region.block, ()) for region in op.regions)
            return [_join(*each) for each in zip(held, other, strict=True)]
        first, skipped = FIRST_CARRIED.get(op.name, 0), int(op.name == "control.for")
        scanned = op.attributes["inputs"] if op.name == "control.scan" else 0
        rows = [self._known.get(v) for v in op.operands[first:]]
        xs = [_move(each, -1) for each in [*[None] * skipped, *rows[:scanned]]]
        carries = rows[scanned:]
        while True:
            ends = self._ends(op, op.regions[-1].block, [*xs, *carries])
            stacked = len(ends) - len(carries)
            after = [_join(*pair) for pair in zip(carries, ends[stacked:], strict=True)]
            if after == carries:
                return [*(_move(each, 1) for each in ends[:stacked]), *carries]
            carries = after

    def _ends(self, op: Operation, body: Block, arguments: Sequence[Rows | None]) -> list[Rows | None]:
        """The rows of what ``body``, a region of ``op``, yields, from those of its arguments."""
        known = {v: self._known.get(v) for v in captured_values(op)}
        inner = RowAxes({**known, **dict(zip(body.arguments, arguments, strict=True))}, self._base)
        assert body.last is not None
        return [inner[v] for v in body.last.operands]

    def _carry(self, op: Operation) -> Rows | None:
        if has_no_derivative(op):
            return None
        held = [(i, self._known.get(v)) for i, v in enumerate(op.operands)]
        active = [(i, rows) for i, rows in held if rows is not None]
        if not active:
            return MIXED if op.regions and any(self._known.get(v) is not None for v in read_values(op)) else None
        if op.dialect != "prim" or any(rows == MIXED for _, rows in active):
            return MIXED
        notation = PRIMITIVES[op.kind].notation([v.type for v in op.operands], plain_attributes(op))
        return MIXED if notation is None else _place(notation, active)


def is_carried(op: Operation) -> bool:
    """Whether ``op`` is a loop or a branch that rows and coefficients go through: its steps do not communicate."""
    if op.dialect != "control" or not op.regions:
        return False
    return all(isinstance(r.type, TensorType) for inner in op.walk() for r in inner.results)


def _join(first: Rows | None, second: Rows | None) -> Rows | None:
    """The rows of what is one or the other."""
    if first is None or second is None or first == second:
        return second if first is None else first
    return MIXED


def _move(rows: Rows | None, by: int) -> Rows | None:
    """``rows`` where an axis is put before all others, or the first one is taken away."""
    if rows is None or rows == MIXED or (by < 0 and 0 in rows):
        return None if rows is None else MIXED
    return tuple(axis + by for axis in rows)


def _place(notation: AxisNotation, active: Sequence[tuple[int, Rows]]) -> Rows:
    """Where the rows of the operands come to lie in the results; one place for all, else they are mixed."""
    placed: set[Rows] = set()
    for number, axes in active:
        for result in notation.results:
            factors = [notation.operands[number][axis] for axis in axes]
            if any(len(f) != 1 or f[0] in notation.mixing or f not in result for f in factors):
                return MIXED
            placed.add(tuple(result.index(f) for f in factors))
    return placed.pop() if len(placed) == 1 else MIXED


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
