"""Masks by hand: what a value computed of iota and constants is, as a function of a query's and a key's position.

Such a value is a *line* ``a i + b j + c`` of positions (i of queries, j of keys), or *bands*: constant over intervals
of ``d = j - i``. Comparing lines whose difference is a multiple of ``d`` gives bands, and any elementwise primitive of
bands is that primitive of their constants, so ``tril``, ``triu``, ``where`` and sums of minus infinities are all told
by the same rules. Nothing is sampled: edges of intervals are exact.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy_phi_ops.primitives import PRIMITIVES
from argosy_phi_ops.reference.kernels import kernel_for
from argosy_pir.attributes import Dense
from argosy_pir.core import Operation
from argosy_pir.values import OpResult, Value
from argosy_tensorcore.dtype import as_dtype

__all__ = ["COLUMN", "HIDDEN", "ROW", "Axes", "Bands", "axes_before", "causal_window", "mask_of"]

Array = np.ndarray[Any, Any]
ROW, COLUMN = "row", "column"
"""An axis of queries, an axis of keys; None is an axis along which a value does not vary, a digit one of others."""

Axes = tuple[str | None, ...]
HIDDEN = -1e4
"""Scores with this much added, or less, take no weight."""
_SAME = frozenset({"prim.copy", "prim.stop_gradient"})
_EXACT = frozenset({"int32", "int64", "float32", "float64"})
"""Dtypes in which positions and their differences are what they are: others round them, or wrap around."""
_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})


@dataclass(frozen=True)
class Line:
    """``row * i + column * j + constant``, of ``dtype``."""

    row: int
    column: int
    constant: float
    dtype: str


@dataclass(frozen=True)
class Bands:
    """``values[k]`` (0-D arrays of one dtype) from ``edges[k - 1]`` on, below ``edges[k]``, by d = j - i."""

    edges: tuple[int, ...]
    values: tuple[Array, ...]

    def value_at(self, d: float) -> Array:
        """The value at ``d``."""
        return self.values[bisect_right(self.edges, d)]

    @property
    def constant(self) -> Array | None:
        """The value, where it is one everywhere."""
        return self.values[0] if not self.edges else None


def causal_window(mask: Bands) -> int | None:
    """How many keys up to the query's own a mask lets it see: 0 for all of them; None for masks of another kind.

    A boolean mask is True, and one that is added 0, where a key is seen.
    """
    seen = [_is_seen(value) for value in mask.values]
    if any(x is None for x in seen):
        return None
    changes = [edge for edge, before, after in zip(mask.edges, seen[:-1], seen[1:], strict=True) if before != after]
    if seen[-1] or not changes or changes[-1] != 1:
        return None
    if len(changes) == 1:
        return 0
    return 1 - changes[0] if len(changes) == 2 and not seen[0] else None


def _is_seen(value: Array) -> bool | None:
    if value.dtype == bool:
        return bool(value)
    return True if value == 0 else False if value <= HIDDEN else None


def mask_of(value: Value, axes: Axes) -> Line | Bands | None:
    """What ``value`` is, its axes running as ``axes`` say; None where it is neither line nor bands."""
    if not isinstance(value, OpResult):
        return None
    op = value.op
    if op.name == "builtin.constant":
        return _constant(op)
    if op.name == "prim.iota":
        return _iota(op, axes)
    if (before := axes_before(value, axes)) is not None:
        return mask_of(op.operand(0), before)
    primitive = PRIMITIVES.get(op.kind) if op.dialect == "prim" else None
    if primitive is None or primitive.category != "elementwise":
        return None
    found = [mask_of(x, axes) for x in op.operands]
    parts = [x for x in found if x is not None]
    return None if len(parts) < len(found) else _elementwise(op, parts)


def _constant(op: Operation) -> Bands | None:
    dense = op.attributes["value"]
    if not isinstance(dense, Dense) or not dense.is_splat:
        return None
    return Bands((), (np.frombuffer(dense.data, as_dtype(dense.type.dtype).numpy)[0],))


def axes_before(value: Value, axes: Axes) -> Axes | None:
    """How the axes of its first operand run where an operation moves elements, and ``axes`` are those of its result;
    None for other operations, and where that is not known."""
    assert isinstance(value, OpResult)
    rule = _MOVES.get(value.op.name)
    return axes if value.op.name in _SAME else None if rule is None else rule(value.op, axes)


def _broadcast(op: Operation, axes: Axes) -> Axes:
    kept = zip(op.operand(0).shape, op.attributes["axes"], strict=True)
    return tuple(axes[t] if n == op.result.shape[t] else None for n, t in kept)


def _transpose(op: Operation, axes: Axes) -> Axes:
    order = op.attributes["permutation"]
    return tuple(axes[order.index(i)] for i in range(len(order)))


def _reshape(op: Operation, axes: Axes) -> Axes | None:
    """Axes of size one come and go."""
    source = op.operand(0)
    rest = [(n, axis) for n, axis in zip(op.result.shape, axes, strict=True) if n != 1]
    if [n for n in source.shape if n != 1] != [n for n, _ in rest]:
        return None
    left = iter(axis for _, axis in rest)
    return tuple(None if n == 1 else next(left) for n in source.shape)


def _slice(op: Operation, axes: Axes) -> Axes | None:
    """The first rows and columns, as many as there are positions."""
    start, stride = op.attributes["start"], op.attributes["stride"]
    moved = any(begin or step != 1 for begin, step, axis in zip(start, stride, axes, strict=True) if axis is not None)
    return None if moved else axes


_MOVES = {
    "prim.broadcast": _broadcast, "prim.transpose": _transpose, "prim.reshape": _reshape, "prim.slice": _slice,
}  # fmt: skip


def _iota(op: Operation, axes: Axes) -> Line | Bands | None:
    axis, dtype = axes[op.attributes["axis"]], op.attributes["dtype"]
    if axis not in (ROW, COLUMN):
        single = op.result.shape[op.attributes["axis"]] == 1
        return Bands((), (np.zeros((), as_dtype(dtype).numpy)[()],)) if single else None
    return Line(int(axis == ROW), int(axis == COLUMN), 0, dtype) if dtype in _EXACT else None


def _elementwise(op: Operation, parts: Sequence[Line | Bands]) -> Line | Bands | None:
    bands = [x for x in parts if isinstance(x, Bands)]
    return _of_bands(op, bands) if len(bands) == len(parts) else _of_lines(op, parts)


def _of_bands(op: Operation, parts: Sequence[Bands]) -> Bands:
    primitive = PRIMITIVES[op.kind]
    attributes = {k: v for k, v in op.attributes.items() if k in primitive.attributes}
    edges = sorted({edge for part in parts for edge in part.edges})
    places = [edges[0] - 1, *edges] if edges else [0]
    kernel = kernel_for(op.name)
    made = [np.asarray(kernel(*(np.asarray(part.value_at(d)) for part in parts), **attributes))[()] for d in places]
    return Bands(tuple(edges), tuple(made))


def _of_lines(op: Operation, parts: Sequence[Line | Bands]) -> Line | Bands | None:
    dtype = op.result.dtype
    if op.kind == "cast":
        line = parts[0]
        assert isinstance(line, Line)  # or all were bands
        return Line(line.row, line.column, line.constant, dtype) if dtype in _EXACT else None
    if len(parts) != 2:
        return None
    left, right = (x if isinstance(x, Line) else _as_line(x) for x in parts)
    if left is None or right is None:
        return None
    if op.kind == "mul" and 0 in (left.row or left.column, right.row or right.column):
        line, factor = (left, right.constant) if left.row or left.column else (right, left.constant)
        whole = int(factor)
        return Line(line.row * whole, line.column * whole, line.constant * whole, dtype) if whole == factor else None
    sign = {"add": 1, **dict.fromkeys(("sub", *_COMPARISONS), -1)}.get(op.kind)
    if sign is None:
        return None
    made = Line(
        left.row + sign * right.row, left.column + sign * right.column, left.constant + sign * right.constant, dtype
    )
    return _compare_line(op.kind, made) if op.kind in _COMPARISONS else made


def _as_line(bands: Bands) -> Line | None:
    value = bands.constant
    return None if value is None or value.dtype == bool or not np.isfinite(value) else Line(0, 0, float(value), "")


def _compare_line(kind: str, line: Line) -> Bands | None:
    """Where ``line`` has a sign: between the intervals of d before and behind the zero, and at it."""
    slope, constant = line.column, line.constant
    if line.row != -slope:
        return None
    compare = getattr(np, {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
                           "ge": "greater_equal"}[kind])  # fmt: skip
    if not slope:
        return Bands((), (compare(constant, 0),))
    zero = -constant / slope
    edges = (int(np.ceil(zero)), int(np.floor(zero)) + 1)
    places = (edges[0] - 1, *dict.fromkeys(edges))
    return Bands(tuple(dict.fromkeys(edges)), tuple(compare(slope * d + constant, 0) for d in places))
