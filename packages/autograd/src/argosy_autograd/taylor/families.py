"""Families: the linear functionals of one degree that a sweep needs, in an order, so that they travel as one array.

A Laplacian of a Laplacian in d dimensions wants d slopes, d (d + 1) / 2 second derivatives, d sums of third ones and a
sum of fourth ones. Each of these four families is one value with a leading axis here; how members of one family are
sums of products of members of two others is a table of numbers, so that a program does not grow with d.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from argosy_autograd.errors import MissingRule
from argosy_autograd.taylor.functional import Functional, group_terms, lower_functionals, proper_splits

__all__ = ["Families", "ProductSplit", "StackingError", "compositions", "homogeneous"]

FEW = 12
"""With fewer coefficients than this, each is a part of the program of its own."""

Row = dict[int, float]
"""What a left factor is multiplied by: c times the member of the right family, for each number of a member."""


class StackingError(MissingRule):
    """Coefficients that families are no way to: each is made alone."""


@dataclass(frozen=True)
class ProductSplit:
    """Members of one family as sums of products of members of two others.

    ``products`` are ``(member, left, right, c)`` in the order of members: c times the product of member ``left`` of
    the first family and ``right`` of the second. ``common`` is a functional of the second family, ``(right, c)``, and
    ``with_common`` the ``(member, left, c)`` that it is a factor of.
    """

    products: tuple[tuple[int, int, int, float], ...]
    common: tuple[tuple[int, float], ...] = ()
    with_common: tuple[tuple[int, int, float], ...] = ()


class Families:
    """The functionals that ``targets`` (each of one degree) need, by degree."""

    def __init__(self, targets: Iterable[Functional]) -> None:
        found: set[Functional] = set()
        for target in targets:
            found.add(target)
            found.update(lower_functionals(target))
        self.members: dict[int, list[Functional]] = {}
        for each in sorted(found, key=lambda f: (f.degree, len(f.terms), f.terms)):
            self.members.setdefault(each.degree, []).append(each)
        self._places = {each: i for family in self.members.values() for i, each in enumerate(family)}
        self._splits: dict[tuple[int, int, bool], ProductSplit] = {}

    @property
    def is_costly(self) -> bool:
        """Whether a program with a part for each member would be the longer and slower one (measured: Laplacians
        from a dozen dimensions on, biharmonic operators from three)."""
        sizes = [len(family) for family in self.members.values()]
        return sum(sizes) >= FEW and 2 * max(sizes) >= FEW

    @property
    def directions(self) -> list[int]:
        """The direction of each member of degree one."""
        return [each.terms[0][0][0] for each in self.members.get(1, ())]

    def place(self, functional: Functional) -> int:
        """The number of ``functional`` in the family of its degree."""
        return self._places[functional]

    def split(self, degree: int, left: int, square: bool) -> ProductSplit:
        """The family of ``degree`` as products of those of degree ``left``, at most half of it, and ``degree - left``;
        of a ``square`` both factors are the same value."""
        key = (degree, left, square)
        if key not in self._splits:
            self._splits[key] = self._split_by_degree(degree, left, square)
        return self._splits[key]

    def _split_by_degree(self, degree: int, left: int, square: bool) -> ProductSplit:
        rows: dict[tuple[int, int], Row] = {}
        for member, functional in enumerate(self.members[degree]):
            terms = ((a, b, c) for index, c in functional for a, b in proper_splits(index) if len(a) == left)
            for first, second, c in group_terms(terms):
                row = rows.setdefault((member, self._place_of(first)), {})
                for number, factor in self._expand(second):
                    row[number] = row.get(number, 0.0) + c * factor
        common = _common_row(rows)
        with_common = []
        if common:
            for (member, a), row in rows.items():
                scale = _scale(row)
                if _saves(row, common, scale):
                    with_common.append((member, a, scale))
                    rows[member, a] = _difference(row, common, scale)
        products = [(member, a, b, c) for (member, a), row in rows.items() for b, c in row.items()]
        if square and 2 * left == degree:
            products = _fold(products)
        return ProductSplit(tuple(sorted(products)), tuple(sorted(common.items())), tuple(sorted(with_common)))

    def _place_of(self, functional: Functional) -> int:
        if functional not in self._places:
            raise StackingError(f"{functional} is in no family")
        return self._places[functional]

    def _expand(self, functional: Functional) -> list[tuple[int, float]]:
        """``functional`` as members of its family: itself, or single coefficients."""
        if functional in self._places:
            return [(self._places[functional], 1.0)]
        return [(self._place_of(Functional([(index, 1.0)])), c) for index, c in functional]


def _scale(row: Row) -> float:
    return Counter(row.values()).most_common(1)[0][0]


def _common_row(rows: Mapping[tuple[int, int], Row]) -> Row:
    """What most of the long rows are multiples of, but for a few of their entries; empty where that saves nothing.

    Isotropic operators have such rows: with the second derivative along i go all other ones, and itself three times.
    """
    seen: defaultdict[int, Counter[float]] = defaultdict(Counter)
    long = [(row, _scale(row)) for row in rows.values() if len(row) > 2]
    for row, scale in long:
        for number, c in row.items():
            seen[number][c / scale] += 1
    common = {number: counts.most_common(1)[0][0] for number, counts in seen.items()}
    saved = sum(len(row) - 1 - len(_difference(row, common, scale)) for row, scale in long)
    return common if saved > len(common) else {}


def _saves(row: Row, common: Row, scale: float) -> bool:
    return len(row) > 2 and len(_difference(row, common, scale)) + 1 < len(row)


def _difference(row: Row, common: Row, scale: float) -> Row:
    every = {number: row.get(number, 0.0) - scale * common.get(number, 0.0) for number in {**row, **common}}
    return {number: c for number, c in every.items() if c}


def _fold(products: Iterable[tuple[int, int, int, float]]) -> list[tuple[int, int, int, float]]:
    """Products of a value with itself, where the factors may change places: each pair once."""
    total: dict[tuple[int, int, int], float] = {}
    for member, a, b, c in products:
        key = (member, min(a, b), max(a, b))
        total[key] = total.get(key, 0.0) + c
    return [(*key, c) for key, c in total.items()]


def homogeneous(functional: Functional) -> list[Functional]:
    """``functional`` as a sum of functionals of one degree each."""
    parts: dict[int, dict[tuple[int, ...], float]] = {}
    for index, c in functional:
        parts.setdefault(len(index), {})[index] = c
    return [Functional(terms) for _, terms in sorted(parts.items())]


@cache
def compositions(degree: int) -> tuple[tuple[tuple[int, ...], int], ...]:
    """The ways to write ``degree`` as a sum of at least two degrees, sorted, and how many orders each has."""
    found: Counter[tuple[int, ...]] = Counter()

    def extend(parts: tuple[int, ...], left: int) -> None:
        if not left:
            found[tuple(sorted(parts))] += 1
        for part in range(1, left + 1):
            extend((*parts, part), left - part)

    extend((), degree)
    return tuple((parts, count) for parts, count in sorted(found.items()) if len(parts) > 1)
