"""Sets of monomials: how values depend on others, without numbers.

A monomial is a set of pairs (atom, exponent), an exponent is a positive whole number or infinite; an atom is anything
hashable. A set has no member that divides another one of its members, which says nothing new. Sets that grow long
become one monomial that all members divide: what is made of it depends on whatever the set depends on, or on more.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

__all__ = ["CONSTANT", "Monomials", "Still", "atom", "atoms_of", "plus", "power", "still", "substitute", "times"]

Monomial: TypeAlias = frozenset[tuple[Hashable, float]]
Monomials: TypeAlias = frozenset[Monomial]

_MOST = 16
"""Products of so many monomials and fewer are written out."""


@dataclass(frozen=True)
class Still:
    """An atom that counts as one that a value depends on, with a derivative of zero: a step of ``value``, say."""

    value: Hashable


_ONE: Monomial = frozenset()
CONSTANT: Monomials = frozenset([_ONE])
"""What depends on nothing; the empty set is zero."""


def atom(value: Hashable, exponent: float = 1) -> Monomials:
    """The one monomial of a power of ``value``."""
    return frozenset([frozenset([(value, exponent)])])


def atoms_of(x: Monomials) -> set[Hashable]:
    """Everything that stands in ``x``."""
    return {a for monomial in x for a, _ in monomial}


def plus(*terms: Monomials) -> Monomials:
    """A sum of values."""
    return _prune(frozenset().union(*terms))


def times(x: Monomials, y: Monomials) -> Monomials:
    """A product."""
    if x == CONSTANT or not y:
        return y
    if y == CONSTANT or not x:
        return x
    if len(x) * len(y) > _MOST:
        x, y = _join(x), _join(y)
    return _prune(frozenset(_product(a, b) for a in x for b in y))


def power(x: Monomials, exponent: float) -> Monomials:
    """A power; an infinite one of a smooth function of ``x``."""
    if exponent == inf or (len(x) > 1 and exponent > 2):
        return frozenset([frozenset((a, inf) for a in atoms_of(x))])
    if len(x) > 1 and exponent == 2:
        return times(x, x)
    return frozenset(frozenset((a, e * exponent) for a, e in monomial) for monomial in x)


def still(x: Monomials) -> Monomials:
    """A function of ``x`` whose derivative is zero."""
    return frozenset([frozenset((a if isinstance(a, Still) else Still(a), 1) for a in atoms_of(x))])


def substitute(pattern: Monomials, operands: Sequence[Monomials]) -> Monomials:
    """``pattern``, whose atoms are numbers of operands (or :class:`Still` of them), of the ``operands``."""
    terms = []
    for monomial in pattern:
        term = CONSTANT
        for number, exponent in monomial:
            if isinstance(number, Still):
                factor = still(operands[number.value])  # type: ignore[call-overload]
            else:
                factor = power(operands[number], exponent)  # type: ignore[call-overload]
            term = times(term, factor or CONSTANT)
        terms.append(term)
    return plus(*terms)


def _product(x: Monomial, y: Monomial) -> Monomial:
    made = dict(x)
    for a, e in y:
        made[a] = made.get(a, 0) + e
    return frozenset(made.items())


def _join(x: Monomials) -> Monomials:
    made: dict[Hashable, float] = {}
    for monomial in x:
        for a, e in monomial:
            made[a] = max(e, made.get(a, 0))
    return frozenset([frozenset(made.items())])


def _prune(x: Iterable[Monomial]) -> Monomials:
    found = frozenset(x)
    if len(found) < 2:
        return found
    if len(found) > _MOST:
        return _join(found)
    listed = [dict(monomial) for monomial in found]
    return frozenset(
        frozenset(m.items()) for m in listed if not any(m is not other and _divides(m, other) for other in listed)
    )


def _divides(x: dict[Hashable, float], y: dict[Hashable, float]) -> bool:
    return len(x) <= len(y) and all(y.get(a, 0) >= e for a, e in x.items())
