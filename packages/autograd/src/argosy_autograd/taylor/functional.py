"""Multi-indices, and linear functionals of Taylor coefficients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import product
from math import factorial

__all__ = ["VALUE", "Functional", "Index", "below", "derivative", "without"]

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

    def after(self, direction: int) -> Functional:
        """The functional ``v -> self(dv)`` where dv is the derivative of v along ``direction``."""
        return Functional((raised(a, direction), c * (a.count(direction) + 1)) for a, c in self.terms)

    def only(self, directions: frozenset[int]) -> Functional:
        """The terms whose multi-index has none of ``directions``."""
        return Functional((a, c) for a, c in self.terms if not directions.intersection(a))

    def proper_parts(self) -> list[Functional]:
        """The coefficients of lower order that a nonlinear primitive needs, by increasing order."""
        found = {part for a, _ in self.terms for part, _ in below(a)}
        return [Functional([(part, 1.0)]) for part in sorted(found, key=lambda p: (len(p), p))]

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


def raised(index: Index, direction: int) -> Index:
    """``index`` with one more of ``direction``."""
    return tuple(sorted((*index, direction)))


def without(index: Index, direction: int) -> Index:
    """``index`` with one less of ``direction``."""
    at = index.index(direction)
    return index[:at] + index[at + 1 :]


@cache
def below(index: Index) -> tuple[tuple[Index, Index], ...]:
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
