"""Index arithmetic: sums of loop variables with integer coefficients, divided and taken modulo exactly where possible.

Every access of a fused kernel is an `Index` in terms of its loop variables. Views (reshape, transpose, slice,
broadcast) are arithmetic on indices and cost nothing at run time. Where a quotient cuts through a loop variable, that
variable is best split in two: `SplitVariable` asks for it, and the caller lowers again with finer variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

from argosy_cinn.shapes import NotSymbolic, estimate, surely_at_least, surely_less
from argosy_pir.dims import SymExpr


class SplitVariable(Exception):
    """A loop variable should be split into (outer, inner of ``factor``) and the kernel be lowered again."""

    def __init__(self, variable: Variable, factor: int) -> None:
        super().__init__(f"split {variable} by {factor}")
        self.variable, self.factor = variable, factor


class Atom:
    """What an index is a sum of: a value in ``range(extent)``. ``variables`` is a bit mask of loop variables it
    depends on; ``symbolic``: whether sizes known at run time are in it."""

    __slots__ = ("extent", "key", "symbolic", "variables")
    extent: int
    key: tuple[Any, ...]
    variables: int
    symbolic: bool

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Atom) and self.key == other.key)


class Variable(Atom):
    """A loop variable. It is not split into inner parts smaller than ``smallest``: the lanes of vectors need some."""

    __slots__ = ("number", "smallest")

    def __init__(self, number: int, extent: int, smallest: int = 1) -> None:
        self.number, self.extent, self.smallest = number, extent, smallest
        self.key = (0, number, extent)
        self.symbolic = isinstance(extent, SymExpr)
        self.variables = 1 << number

    def __repr__(self) -> str:
        return f"i{self.number}"


class Quotient(Atom):
    """``index // divisor`` that could not be resolved."""

    __slots__ = ("divisor", "index")

    def __init__(self, index: Index, divisor: int) -> None:
        self.index, self.divisor = index, divisor
        self.extent = index.high // divisor + 1
        self.key = (1, index.key, divisor)
        self.symbolic = index.symbolic or isinstance(divisor, SymExpr)
        self.variables = index.variables

    def __repr__(self) -> str:
        return f"(({self.index}) // {self.divisor})"


class Remainder(Atom):
    """``index % divisor`` that could not be resolved."""

    __slots__ = ("divisor", "index")

    def __init__(self, index: Index, divisor: int) -> None:
        self.index, self.divisor = index, divisor
        self.extent = index.high + 1 if surely_less(index.high, divisor) else divisor
        self.key = (2, index.key, divisor)
        self.symbolic = index.symbolic or isinstance(divisor, SymExpr)
        self.variables = index.variables

    def __repr__(self) -> str:
        return f"(({self.index}) % {self.divisor})"


class Lookup(Atom):
    """A run-time integer (``expression``) clamped into ``range(extent)``: the index that a gather reads."""

    __slots__ = ("expression",)

    def __init__(self, expression: Any, extent: int) -> None:
        self.expression, self.extent = expression, extent
        self.key = (3, expression.number, extent)
        self.symbolic = isinstance(extent, SymExpr)
        self.variables = expression.variables

    def __repr__(self) -> str:
        return f"[{self.expression}]"


class Index:
    """``constant + sum of coefficient * atom``, with the range ``low..high`` (inclusive) it can take."""

    __slots__ = ("constant", "high", "key", "low", "symbolic", "terms", "variables")

    def __init__(self, terms: Iterable[tuple[Atom, int]], constant: int = 0) -> None:
        self.terms = _order(list(terms)) if terms else ()
        self.constant = low = high = constant
        variables = 0
        self.symbolic = isinstance(constant, SymExpr)
        for atom, coefficient in self.terms:
            reach = coefficient * (atom.extent - 1)
            number = coefficient.__class__ is int
            if coefficient >= 0 if number else surely_at_least(coefficient, 0):
                high += reach
            elif number or surely_at_least(-coefficient, 0):
                low += reach
            else:
                raise NotSymbolic(f"an index moves by {coefficient}, which may be of either sign")
            variables |= atom.variables
            self.symbolic = self.symbolic or atom.symbolic or not number
        self.low, self.high, self.variables = low, high, variables
        self.key = (tuple([(atom.key, coefficient) for atom, coefficient in self.terms]), constant)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Index) and self.key == other.key)

    def __add__(self, other: Index | int) -> Index:
        if not isinstance(other, Index):
            return Index(self.terms, self.constant + other) if other else self
        if not other.terms:
            return self + other.constant
        if not self.terms:
            return other + self.constant
        sums = dict(self.terms)
        for atom, coefficient in other.terms:
            sums[atom] = sums.get(atom, 0) + coefficient
        return Index(_join(sums), self.constant + other.constant)

    def __mul__(self, factor: int) -> Index:
        if isinstance(factor, int) and factor == 1:
            return self
        return Index([(a, c * factor) for a, c in self.terms] if factor else (), self.constant * factor)

    def coefficient(self, variable: Variable) -> int:
        """The coefficient of a loop variable."""
        return next((c for atom, c in self.terms if atom.key == variable.key), 0)

    def __repr__(self) -> str:
        parts = [f"{c}*{a}" if c != 1 else str(a) for a, c in self.terms]
        return " + ".join([*parts, *([str(self.constant)] if self.constant or not parts else [])])


ZERO = Index(())


def _join(sums: dict[Atom, int]) -> list[tuple[Atom, int]]:
    """Terms without zeros; ``(i // n) * n * k + (i % n) * k`` becomes ``i * k``."""
    for atom in [a for a in sums if isinstance(a, Remainder)]:
        coefficient = sums.get(atom, 0)
        quotient = Quotient(atom.index, atom.divisor)
        if coefficient and sums.get(quotient) == coefficient * atom.divisor and not atom.index.constant:
            del sums[atom], sums[quotient]
            for inner, c in atom.index.terms:
                sums[inner] = sums.get(inner, 0) + c * coefficient
    return [(a, c) for a, c in sums.items() if c]


def _order(terms: list[tuple[Atom, int]]) -> tuple[tuple[Atom, int], ...]:
    """Terms in an order that depends on nothing but them; formulas are ordered by their text."""
    if len(terms) < 2:
        return tuple(terms)
    if any([atom.symbolic for atom, _ in terms]):
        return tuple(sorted(terms, key=lambda term: str(term[0].key)))
    return tuple(sorted(terms, key=lambda term: term[0].key))


def atom_index(atom: Atom) -> Index:
    """The index that is one atom."""
    return Index(((atom, 1),)) if atom.extent != 1 else ZERO


def divide(index: Index, divisor: int, split: bool) -> tuple[Index, Index]:
    """Quotient and remainder of an index that is not negative.

    Exact where the range allows. Otherwise raises `SplitVariable` where ``split`` is set and that helps, and leaves
    `Quotient` and `Remainder` atoms where it does not.
    """
    if divisor == 1:
        return index, ZERO
    if surely_at_least(index.low, 0) and surely_less(index.high, divisor):
        return ZERO, index
    whole = [(a, c // divisor) for a, c in index.terms if c % divisor == 0]
    rest = [(a, c) for a, c in index.terms if c % divisor]
    carry, constant = _carry(index.constant, divisor)
    remainder = Index(rest, constant)
    if surely_at_least(remainder.low, 0) and surely_less(remainder.high, divisor):
        return Index(whole, carry), remainder
    grouped = _divide_by_group(remainder, divisor, split)
    if grouped is not None:
        return Index(whole, carry) + grouped[0], grouped[1]
    if split:
        _ask_for_split(rest, divisor)
    if not rest:
        return Index(whole, carry), remainder
    natural = surely_at_least(remainder.low, 0)
    quotient = (
        Index(whole, carry) + atom_index(Quotient(remainder, divisor))
        if natural
        else atom_index(Quotient(index, divisor))
    )
    return quotient, atom_index(Remainder(remainder if natural else index, divisor))


def _carry(constant: int, divisor: int) -> tuple[int, int]:
    """``constant`` as ``carry * divisor + rest``; the rest is in ``range(divisor)`` where both are numbers."""
    if isinstance(constant, int) and isinstance(divisor, int):
        return divmod(constant, divisor)
    return (constant // divisor, 0) if constant % divisor == 0 else (0, constant)


def _divide_by_group(index: Index, divisor: int, split: bool) -> tuple[Index, Index] | None:
    """Of ``g * x + y`` with ``0 <= y < g`` and ``g`` a divisor of the divisor, only ``x`` need be divided."""
    found = {c for _, c in index.terms if surely_at_least(c, 1) and c != 1 and divisor % c == 0}
    for g in sorted(found, key=estimate, reverse=True):
        carry, constant = _carry(index.constant, g)
        y = Index([(a, c) for a, c in index.terms if c % g], constant)
        if surely_at_least(y.low, 0) and surely_less(y.high, g):
            x = Index([(a, c // g) for a, c in index.terms if c % g == 0], carry)
            quotient, remainder = divide(x, divisor // g, split)
            return quotient, remainder * g + y
    return None


def _ask_for_split(rest: Sequence[tuple[Atom, int]], divisor: int) -> None:
    for atom, coefficient in sorted(rest, key=lambda term: -estimate(term[1])):
        if not isinstance(atom, Variable) or not surely_at_least(coefficient, 1) or divisor % coefficient:
            continue
        factor = divisor // coefficient
        finer = surely_less(factor, atom.extent) or not (isinstance(atom.extent, int) or factor in (1, atom.extent))
        if estimate(factor) >= estimate(atom.smallest) and finer and atom.extent % factor == 0:
            raise SplitVariable(atom, factor)


def delinearise(flat: Index, shape: Sequence[int], split: bool) -> tuple[Index, ...]:
    """Coordinates in ``shape`` of the row-major position ``flat``."""
    coordinates: list[Index] = []
    remaining = flat
    for axis in range(len(shape) - 1, 0, -1):
        remaining, coordinate = divide(remaining, shape[axis], split)
        coordinates.append(coordinate)
    if shape:
        coordinates.append(remaining if shape[0] != 1 else ZERO)
    return tuple(reversed(coordinates))


def linearise(coordinates: Sequence[Index], shape: Sequence[int]) -> Index:
    """The row-major position of coordinates in ``shape``."""
    flat = ZERO
    for i, coordinate in enumerate(coordinates):
        flat = flat + coordinate * prod(shape[i + 1 :])
    return flat


class Position:
    """Where an element of a tensor of ``shape`` is: its coordinates and its row-major position, each made from the
    other."""

    __slots__ = ("_coordinates", "_flat", "shape", "split")

    def __init__(
        self,
        shape: Sequence[int],
        flat: Index | None = None,
        coordinates: tuple[Index, ...] | None = None,
        split: bool = False,
    ) -> None:
        self.shape = tuple(shape)
        self._flat, self._coordinates, self.split = flat, coordinates, split

    @property
    def flat_index(self) -> Index:
        """The row-major position."""
        if self._flat is None:
            assert self._coordinates is not None
            self._flat = linearise(self._coordinates, self.shape)
        return self._flat

    @property
    def coordinates(self) -> tuple[Index, ...]:
        """One index for each axis."""
        if self._coordinates is None:
            assert self._flat is not None
            self._coordinates = delinearise(self._flat, self.shape, self.split)
        return self._coordinates

    def with_shape(
        self, shape: Sequence[int], flat: Index | None = None, coordinates: tuple[Index, ...] | None = None
    ) -> Position:
        """A position in another tensor, with the same habit of splitting."""
        return Position(shape, flat, coordinates, self.split)
