"""Which columns of a row can matter: masks that compare indices, as inequalities between row and column.

A bound ``(r, c, k)`` says that a cell matters only where ``r * row + c * column + k >= 0``. It is found by asking, for
what is reduced or contracted, where it is known to be the value that changes nothing: zero in a sum, minus infinity in
a maximum (mask numbers of -1e8 and less count as that: the exponential of what they are added to is zero). Columns
outside the bounds of all rows of a tile are never computed.
"""

from __future__ import annotations

from typing import Any

from argosy_cinn.forms.attention import Bound, Bounds
from argosy_cinn.forms.expressions import Expression
from argosy_cinn.forms.indices import Index, Variable
from argosy_cinn.shapes import smaller, surely_at_least, surely_less
from argosy_pir.scalars import decode_scalar

_MASKED = -1e8
#: "Everywhere": what intersects to the other set, and swallows it in a union.
_ALL: frozenset[Bound] = frozenset({(0, 0, -1)})
_NONE: frozenset[Bound] = frozenset()


def _union(x: frozenset[Bound], y: frozenset[Bound]) -> frozenset[Bound]:
    return _ALL if x is _ALL or y is _ALL else x | y


def _union_bounds(x: frozenset[Bound], y: frozenset[Bound]) -> frozenset[Bound]:
    return y if x is _ALL else x if y is _ALL else x & y


def find_bounds(
    sums: list[Expression], maxima: list[Expression], row: Variable, column: Variable, nodes: list[Expression]
) -> Bounds:
    """The bounds common to expressions that are summed (or contracted) and expressions whose maximum is taken."""
    search = _Search(row, column)
    found = _ALL
    for node in sums:
        found = _union_bounds(found, search.zero(node))
    for node in maxima:
        found = _union_bounds(found, search.minimum(node))
    # Bounds whose edge is a column, or follows the row: what a tile of rows sees then follows from its first and last.
    usable = sorted((b for b in found if b[1] in (1, -1) and b[0] in (0, -b[1])), key=str)
    usable = [b for b in usable if not _holds(b, row.extent, column.extent)]
    if found is _ALL or not usable or not _rows_see_columns(usable, row.extent, column.extent):
        return Bounds()
    bounds = Bounds([b for b in usable if b[1] > 0], [b for b in usable if b[1] < 0])
    for node in nodes:
        for sense, implied in ((True, search.implied_bounds(node, True)), (False, search.implied_bounds(node, False))):
            if len(implied) == 1 and node.kind in _COMPARISONS and (bound := next(iter(implied))) in usable:
                bounds.nodes[node.number] = (bound, sense)
    return bounds


def _holds(bound: Bound, rows: int, columns: int) -> bool:
    r, c, k = bound
    return surely_at_least(smaller(0, r * (rows - 1)) + smaller(0, c * (columns - 1)) + k, 0)


def _rows_see_columns(bounds: list[Bound], rows: int, columns: int) -> bool:
    """Whether every row surely sees a column: one that sees none has results of its own (NaN), and needs them all.
    The edges follow the row, so that the first and the last row tell of all."""
    lows, highs = [b for b in bounds if b[1] > 0], [b for b in bounds if b[1] < 0]
    for row in (0, rows - 1):
        begins = [0, *(-(r * row + k) for r, _, k in lows)]
        ends = [columns, *(r * row + k + 1 for r, _, k in highs)]
        if not all(surely_less(begin, end) for begin in begins for end in ends):
            return False
    return True


_COMPARISONS = {"le": (-1, 1, 0), "lt": (-1, 1, -1), "ge": (1, -1, 0), "gt": (1, -1, -1)}


class _Search:
    """``zero(x)``: bounds outside of which x is 0; ``least``: -inf; ``one``: 1; ``implied``: false (or true)."""

    def __init__(self, row: Variable, column: Variable) -> None:
        self.row, self.column = row, column
        self._known: dict[tuple[str, int], frozenset[Bound]] = {}

    def _ask(self, what: str, node: Expression) -> frozenset[Bound]:
        key = (what, node.number)
        if key not in self._known:
            self._known[key] = getattr(self, "_" + what)(node)
        return self._known[key]

    def zero(self, node: Expression) -> frozenset[Bound]:
        """Bounds outside of which the node is 0."""
        return self._ask("zero", node)

    def minimum(self, node: Expression) -> frozenset[Bound]:
        """Bounds outside of which the node is minus infinity, or a mask's number."""
        return self._ask("minimum", node)

    def one(self, node: Expression) -> frozenset[Bound]:
        """Bounds outside of which the node is 1."""
        return self._ask("one", node)

    def implied_bounds(self, node: Expression, holds: bool) -> frozenset[Bound]:
        """Bounds outside of which a condition is false (``holds``) or true."""
        return self._ask("holds" if holds else "fails", node)

    def _zero(self, node: Expression) -> frozenset[Bound]:
        number, a = _number(node), node.arguments
        if number is not None:
            return _ALL if number == 0 else _NONE
        if node.kind == "select":
            return self._choice(node, self.zero)
        if node.kind == "mul":
            return _union(self.zero(a[0]), self.zero(a[1]))
        if node.kind == "cast" and a[0].dtype == "bool":
            return self.implied_bounds(a[0], True)
        if node.kind in ("div", "neg", "cast", "abs"):
            return self.zero(a[0])
        if node.kind in ("add", "sub"):
            return _union_bounds(self.zero(a[0]), self.zero(a[1]))
        return self.minimum(a[0]) if node.kind == "exp" else _NONE

    def _minimum(self, node: Expression) -> frozenset[Bound]:
        number, a = _number(node), node.arguments
        if number is not None:
            return _ALL if number <= _MASKED else _NONE
        if node.kind == "select":
            return self._choice(node, self.minimum)
        if node.kind == "add":
            return _union(self.minimum(a[0]), self.minimum(a[1]))
        if node.kind == "mul":
            return _union(self._scale(a[0], a[1]), self._scale(a[1], a[0]))
        if node.kind == "div":
            factor = _number(a[1])
            return self.minimum(a[0]) if factor is not None and 0 < factor <= 1e4 else _NONE
        return self.minimum(a[0]) if node.kind in ("sub", "cast") else _NONE

    def _scale(self, x: Expression, factor: Expression) -> frozenset[Bound]:
        number = _number(factor)
        if number is None:
            return _NONE
        return self.one(x) if number <= _MASKED else self.minimum(x) if number >= 1e-4 else _NONE

    def _one(self, node: Expression) -> frozenset[Bound]:
        number, a = _number(node), node.arguments
        if number is not None:
            return _ALL if number == 1 else _NONE
        if node.kind == "select":
            return self._choice(node, self.one)
        if node.kind == "cast":
            return self.implied_bounds(a[0], False) if a[0].dtype == "bool" else self.one(a[0])
        return self.zero(a[1]) if node.kind == "sub" and _number(a[0]) == 1 else _NONE

    def _choice(self, node: Expression, ask: Any) -> frozenset[Bound]:
        condition, x, y = node.arguments
        found: frozenset[Bound] = _union_bounds(ask(x), ask(y))
        if ask(y) is _ALL:
            found = _union(found, _union(self.implied_bounds(condition, True), ask(x)))
        if ask(x) is _ALL:
            found = _union(found, _union(self.implied_bounds(condition, False), ask(y)))
        return found

    def _holds(self, node: Expression) -> frozenset[Bound]:
        a = node.arguments
        if node.kind in _COMPARISONS:
            return self._comparison(node, 0)
        if node.kind == "logical_and":
            return _union(self.implied_bounds(a[0], True), self.implied_bounds(a[1], True))
        if node.kind == "logical_not":
            return self.implied_bounds(a[0], False)
        if node.kind == "ne" and _number(a[1]) == 0:
            return self.zero(a[0])
        if node.kind == "cast" and a[0].dtype != "bool":
            return self.zero(a[0])
        return self._range_bounds(node) if node.kind == "within" else self._constant(node, 0)

    def _fails(self, node: Expression) -> frozenset[Bound]:
        a = node.arguments
        if node.kind in _COMPARISONS:
            return self._comparison(node, 1)
        if node.kind == "logical_or":
            return _union(self.implied_bounds(a[0], False), self.implied_bounds(a[1], False))
        if node.kind == "logical_not":
            return self.implied_bounds(a[0], True)
        return self.zero(a[0]) if node.kind == "eq" and _number(a[1]) == 0 else self._constant(node, 1)

    def _constant(self, node: Expression, value: int) -> frozenset[Bound]:
        if node.kind == "select" and node.dtype == "bool":
            return self._choice(node, lambda x: self.implied_bounds(x, value == 0))
        number = _number(node)
        return _ALL if number is not None and bool(number) == bool(value) else _NONE

    def _comparison(self, node: Expression, negated: int) -> frozenset[Bound]:
        x, y = self._linear_form(node.arguments[0]), self._linear_form(node.arguments[1])
        if x is None or y is None:
            return _NONE
        cx, cy, k = _COMPARISONS[node.kind]
        bound = [cx * p + cy * q for p, q in zip(x, y, strict=True)]
        bound[2] += k
        return frozenset({(-bound[0], -bound[1], -bound[2] - 1) if negated else (bound[0], bound[1], bound[2])})

    def _range_bounds(self, node: Expression) -> frozenset[Bound]:
        index, low, high = node.payload
        found = self._of_index(index)
        if found is None:
            return _NONE
        r, c, k = found
        return frozenset({(r, c, k - low), (-r, -c, high - 1 - k)})

    def _linear_form(self, node: Expression) -> tuple[int, int, int] | None:
        """An integer as ``r * row + c * column + k``."""
        number = _number(node)
        if number is not None:
            return (0, 0, int(number)) if number == int(number) else None
        if node.kind == "index":
            return self._of_index(node.payload[0])
        if node.kind == "cast":
            exact = node.dtype in ("int32", "int64", "float32", "float64")
            return self._linear_form(node.arguments[0]) if exact else None
        if node.kind not in ("add", "sub"):
            return None
        x, y = (self._linear_form(a) for a in node.arguments)
        if x is None or y is None:
            return None
        sign = 1 if node.kind == "add" else -1
        return x[0] + sign * y[0], x[1] + sign * y[1], x[2] + sign * y[2]

    def _of_index(self, index: Index) -> tuple[int, int, int] | None:
        if any(atom.key not in (self.row.key, self.column.key) for atom, _ in index.terms):
            return None
        return index.coefficient(self.row), index.coefficient(self.column), index.constant


def _number(node: Expression) -> float | None:
    if node.kind != "constant":
        return None
    number = decode_scalar(node.payload, node.dtype)
    return None if isinstance(number, complex) or number != number else float(number)
