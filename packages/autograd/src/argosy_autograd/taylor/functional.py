"""Multi-indices, and linear functionals of Taylor coefficients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import combinations, product
from math import comb, factorial, prod

from argosy_pir import Operation

__all__ = [
    "VALUE", "Functional", "Index", "Split", "close_downward", "decrement", "derivative", "functional_of",
    "group_terms", "lower_functionals", "proper_splits",
]  # fmt: skip

Index = tuple[int, ...]
"""A multi-index: the directions, each as often as it is differentiated along, in increasing order."""


class Functional:
    """``L(v) = sum of c v_a``: a linear functional of the Taylor coefficients ``v_a`` of a value.

    ``terms`` are pairs (multi-index, c), sorted, none of them zero. Immutable and hashable.
    """

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: Mapping[Index, float] | Iterable[tuple[Index, float]]) -> None:
        pairs = terms.items() if isinstance(terms, Mapping) else terms
        self.terms = tuple(sorted((index, c) for index, c in pairs if c))
        self._hash = hash(self.terms)

    @property
    def degree(self) -> int:
        """The highest order among the terms."""
        return max((len(index) for index, _ in self.terms), default=0)

    def after_direction(self, direction: int) -> Functional:
        """The functional ``v -> self(dv)`` where dv is the derivative of v along ``direction``."""
        return Functional((raise_order(a, direction), c * (a.count(direction) + 1)) for a, c in self.terms)

    def then(self, outer: Functional) -> Functional:
        """The functional ``v -> outer(self(v))``: ``(v_a)_b`` is ``v_(a + b)`` as often as a can be taken from it."""
        total: dict[Index, float] = {}
        for (a, c), (b, d) in product(self.terms, outer.terms):
            index = tuple(sorted((*a, *b)))
            ways = prod(comb(index.count(i), a.count(i)) for i in set(index))
            total[index] = total.get(index, 0.0) + c * d * ways
        return Functional(total)

    def normalise(self) -> tuple[float, Functional]:
        """The first coefficient, and the functional divided by it."""
        scale = self.terms[0][1]
        return scale, self if scale == 1 else Functional((a, c / scale) for a, c in self.terms)

    def __add__(self, other: Functional) -> Functional:
        total = dict(self.terms)
        for a, c in other.terms:
            total[a] = total.get(a, 0.0) + c
        return Functional(total)

    def __mul__(self, factor: float) -> Functional:
        return Functional((a, c * factor) for a, c in self.terms)

    def restrict(self, directions: frozenset[int]) -> Functional:
        """The terms whose multi-index has none of ``directions``."""
        return Functional((a, c) for a, c in self.terms if not directions.intersection(a))

    def __iter__(self) -> Iterator[tuple[Index, float]]:
        return iter(self.terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Functional) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return " + ".join(f"{c:g}*{list(a)}" for a, c in self.terms) or "0"


VALUE = Functional([((), 1.0)])
"""The functional that gives the value itself."""


def derivative(index: Iterable[int]) -> Functional:
    """The partial derivative along the directions of ``index``, each as often as it is listed."""
    directions = tuple(sorted(index))
    scale = 1
    for direction in set(directions):
        scale *= factorial(directions.count(direction))
    return Functional([(directions, float(scale))])


def functional_of(op: Operation) -> Functional:
    """What an ``ad.coefficient`` is of its operand."""
    return Functional(op.attributes["terms"])


def raise_order(index: Index, direction: int) -> Index:
    """``index`` with one more of ``direction``."""
    return tuple(sorted((*index, direction)))


def decrement(index: Index, direction: int) -> Index:
    """``index`` with one less of ``direction``."""
    at = index.index(direction)
    return index[:at] + index[at + 1 :]


@cache
def proper_splits(index: Index) -> tuple[tuple[Index, Index], ...]:
    """The pairs (b, index - b) of multi-indices strictly between zero and ``index``."""
    directions = sorted(set(index))
    counts = [index.count(d) for d in directions]
    pairs = []
    for chosen in product(*(range(n + 1) for n in counts)):
        if 0 < sum(chosen) < len(index):
            part = tuple(d for d, n in zip(directions, chosen, strict=True) for _ in range(n))
            rest = tuple(d for d, n, m in zip(directions, chosen, counts, strict=True) for _ in range(m - n))
            pairs.append((part, rest))
    return tuple(pairs)


def close_downward(indices: Iterable[Index]) -> list[Index]:
    """``indices`` and all that are below one of them, by order."""
    found = {part for index in indices for k in range(1, len(index) + 1) for part in combinations(index, k)}
    return sorted(found, key=lambda index: (len(index), index))


Split = tuple[Functional, Functional, float]
"""``(left, right, c)``: c times the left functional of one factor times the right one of the other."""


def group_terms(terms: Iterable[tuple[Index, Index, float]]) -> list[Split]:
    """The sum of ``c x_a y_b`` over ``terms`` (a, b, c) with as few factors as may be: those with the same index of
    lower order share it, and the other ones become one functional, which travels as one value."""
    groups: dict[tuple[bool, Index], dict[Index, float]] = {}
    for a, b, c in terms:
        key, other = ((True, a), b) if len(a) <= len(b) else ((False, b), a)
        group = groups.setdefault(key, {})
        group[other] = group.get(other, 0.0) + c
    found = []
    for (first, index), others in groups.items():
        single = Functional([(index, 1.0)])
        scale, joined = Functional(others).normalise()
        found.append((single, joined, scale) if first else (joined, single, scale))
    return found


@cache
def lower_functionals(functional: Functional) -> tuple[Functional, ...]:
    """The functionals of lower order that a nonlinear primitive needs for ``functional``, by increasing order.

    Up to half the order these are single coefficients, of which sums are made at once where they are wanted.
    """
    half = functional.degree // 2
    found: set[Functional] = set()
    stack = [functional]
    while stack:
        terms = ((a, b, c) for index, c in stack.pop() for a, b in proper_splits(index))
        for left, right, _ in group_terms(terms):
            for part in (left, right):
                small = [Functional([(a, 1.0)]) for a, _ in part] if part.degree <= half else [part]
                new = [p for p in small if p not in found]
                found.update(new)
                stack.extend(new)
    return tuple(sorted(found, key=lambda p: (p.degree, len(p.terms), p.terms)))
