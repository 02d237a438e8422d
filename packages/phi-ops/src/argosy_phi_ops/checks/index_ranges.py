"""Ranges of integers by the way they are made: positions, numbers, what is moved, cut out or clamped."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from argosy_phi_ops.reference.constants import constant_array
from argosy_pir.core import Operation
from argosy_pir.dims import Dim
from argosy_pir.values import OpResult, Value

__all__ = ["is_within"]

Range = tuple[Any, Any]
"""The least and the greatest number that may occur; symbolic sizes count by what they are at least and at most."""

_DEEPEST = 24
_UNKNOWN: Range = (-inf, inf)


def is_within(value: Value, low: Dim, size: Dim, besides: Dim | None = None) -> bool:
    """Whether it is known that all of ``value`` is from ``low`` to ``size - 1``, or ``besides``. Never wrong; what is
    not known counts as outside."""
    if _length_of_positions(value) == size and low in (0, -size):  # whatever the size is
        return True
    if not (_is_known(low) and _is_known(size)):
        return False
    data = _numbers(value)
    if data is not None:
        inside = (data >= low) & (data < size)
        return bool((inside if besides is None else inside | (data == besides)).all())
    least, most = _range(value, 0)
    return bool(least >= low and most < size)


def _is_known(dim: Any) -> bool:
    return isinstance(dim, int)


def _length_of_positions(value: Value) -> Any:
    """The length of the axis whose positions the value holds, through what only moves or repeats them."""
    while isinstance(value, OpResult) and value.op.name in _MOVES and value.dtype in ("int32", "int64"):
        value = value.op.operand(0)
    if isinstance(value, OpResult) and value.op.name == "prim.iota":
        return value.op.attributes["shape"][value.op.attributes["axis"]]
    if isinstance(value, OpResult) and value.op.name in ("prim.argmax", "prim.argmin"):
        return value.op.operand(0).shape[value.op.attributes["axis"]]
    return None


def _numbers(value: Value) -> Any:
    """The numbers that are all that the value can hold, where they are known."""
    while isinstance(value, OpResult) and value.op.name in _MOVES - {"prim.cast"}:
        value = value.op.operand(0)
    if isinstance(value, OpResult) and value.op.name == "builtin.constant":
        dense = value.op.attributes["value"]
        return constant_array(dense, {}) if dense.type.is_static else None
    return None


def _range(value: Value, depth: int) -> Range:
    limits = _EXACT.get(value.dtype, _UNKNOWN)
    if not isinstance(value, OpResult) or depth > _DEEPEST:
        return limits
    data = _numbers(value)
    if data is not None and data.dtype.kind in "iub":
        return (int(data.min()), int(data.max())) if data.size else (0, -1)
    rule = _RULES.get(value.op.name)
    found = _UNKNOWN if rule is None else rule(value.op, value, depth)
    return found if limits[0] <= found[0] and found[1] <= limits[1] else limits  # it may have wrapped around


_EXACT: dict[str, Range] = {
    "bool": (0, 1),
    **{f"int{n}": (-(1 << n - 1), (1 << n - 1) - 1) for n in (8, 16, 32, 64)},
    **{f"uint{n}": (0, (1 << n) - 1) for n in (8, 16, 32, 64)},
}


def _same_range(op: Operation, value: Value, depth: int) -> Range:
    return _range(op.operand(0), depth + 1)


def _positions(op: Operation, value: Value, depth: int) -> Range:
    length = _length_of_positions(value)
    return (0, length - 1) if _is_known(length) else (0, inf)


def _sort(op: Operation, value: Value, depth: int) -> Range:
    return _range(op.operand(value.index), depth + 1)  # type: ignore[attr-defined]


def _join(first: int) -> Callable[[Operation, Value, int], Range]:
    def rule(op: Operation, value: Value, depth: int) -> Range:
        ranges = [_range(x, depth + 1) for x in op.operands[first:]]
        return min(low for low, _ in ranges), max(high for _, high in ranges)

    return rule


def _pairs(combine: Callable[[Range, Range], Range]) -> Callable[[Operation, Value, int], Range]:
    return lambda op, value, depth: combine(_range(op.operand(0), depth + 1), _range(op.operand(1), depth + 1))


def _modulo(x: Range, y: Range) -> Range:
    return (0, y[1] - 1) if y[0] > 0 else _UNKNOWN


_MOVES = frozenset(
    f"prim.{name}"
    for name in ("reshape", "transpose", "broadcast", "slice", "reverse", "copy", "stop_gradient", "cast", "gather")
)
"""What gives elements of its first operand, all of them in range where that is; casts among integers do."""

_RULES: dict[str, Callable[[Operation, Value, int], Range]] = {
    **dict.fromkeys(_MOVES, _same_range),
    **dict.fromkeys(("prim.iota", "prim.argmax", "prim.argmin"), _positions),
    "prim.sort": _sort,
    "prim.concat": _join(0),
    "prim.select": _join(1),
    "prim.add": _pairs(lambda x, y: (x[0] + y[0], x[1] + y[1])),
    "prim.sub": _pairs(lambda x, y: (x[0] - y[1], x[1] - y[0])),
    "prim.maximum": _pairs(lambda x, y: (max(x[0], y[0]), max(x[1], y[1]))),
    "prim.minimum": _pairs(lambda x, y: (min(x[0], y[0]), min(x[1], y[1]))),
    "prim.floor_mod": _pairs(_modulo),
}
