"""Sizes of values: numbers, or formulas over the sizes that are known at run time only.

A program with symbolic sizes is compiled once for all of them, so that a decision must hold for every size:
`surely_less` and `surely_at_least` say what is proven for all symbols that are one or more, and nothing else. Choices
that change speed alone may ask for an `estimate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod
from typing import Any, TypeAlias

from argosy_pir.dims import Atom, SymExpr, evaluate_dim, maximum, minimum
from argosy_pir.text.dims import parse_dim
from argosy_pir.types import ITEM_SIZES
from argosy_pir.values import Value

Size: TypeAlias = int | SymExpr
#: What a symbol counts as where only speed depends on it.
TYPICAL = 128
#: Bytes from which on a value begins at a cache line wherever it lies: results of this size have memory of the device.
LARGE = 1 << 20


class NotSymbolic(Exception):
    """The program cannot be compiled for sizes that are known at run time only; the message says why."""


def sizes(value: Value) -> tuple[int, ...]:
    """The shape: numbers, or formulas (`Size`) in programs with symbolic sizes."""
    return value.shape  # type: ignore[return-value]  # formulas behave as numbers in arithmetic


def count(value: Value) -> int:
    """The number of elements."""
    return prod(sizes(value))


def has_bytes(value: Value) -> bool:
    """Whether a value occupies memory (tokens do not)."""
    return hasattr(value.type, "shape")


def nbytes(value: Any) -> int:
    """Bytes of a value's elements."""
    return count(value) * ITEM_SIZES[value.dtype]


def estimate(size: Size) -> int:
    """A typical number for a size."""
    return size if isinstance(size, int) else _estimate(size)


@lru_cache(4096)
def _estimate(size: SymExpr) -> int:
    return size.evaluate(dict.fromkeys(size.symbols, TYPICAL))


def surely_less(a: Size, b: Size) -> bool:
    """Whether ``a < b`` for all sizes; False where it is not proven."""
    if isinstance(a, int) and isinstance(b, int):
        return a < b
    return surely_at_least(b - a, 1)


def surely_at_least(a: Size, b: Size) -> bool:
    """Whether ``a >= b`` for all sizes; False where it is not proven."""
    difference = a - b
    return difference >= 0 if isinstance(difference, int) else _never_negative(difference)


@lru_cache(4096)
def _never_negative(size: SymExpr) -> bool:
    """A sum of products of what is not negative, in symbols that count from one."""
    shifted = size.substitute({name: SymExpr.symbol(name) + 1 for name in size.symbols})
    if isinstance(shifted, int):
        return shifted >= 0
    return all(c >= 0 and all(map(_atom_is_natural, monomial)) for monomial, c in shifted.terms)


def _atom_is_natural(atom: Atom) -> bool:
    """Whether a factor is zero or more where symbols are."""
    if atom.kind == "symbol":
        return True
    natural = [a >= 0 if isinstance(a, int) else _natural_terms(a) for a in atom.arguments]
    return any(natural) if atom.kind == "max" else all(natural)


def _natural_terms(size: SymExpr) -> bool:
    return all(c >= 0 and all(map(_atom_is_natural, monomial)) for monomial, c in size.terms)


def smaller(a: int, b: int) -> int:
    """The smaller of two sizes."""
    return minimum(a, b)  # type: ignore[return-value]  # see `sizes`


def formula(size: Size) -> Any:
    """A size as JSON holds it: a number, or a formula's text (see `evaluate_size`)."""
    return size if isinstance(size, int) else str(size)


def evaluate_size(size: Any, symbols: Mapping[str, int]) -> int:
    """What `formula` gave, as a number."""
    return evaluate_dim(_parse(size), symbols) if isinstance(size, str) else size


def size_of_formula(size: Any) -> Size:
    """The size that `formula` gave the text of."""
    return _parse(size) if isinstance(size, str) else int(size)


@lru_cache(4096)
def _parse(text: str) -> Size:
    return parse_dim(text)


def larger(a: int, b: int) -> int:
    """The larger of two sizes."""
    return maximum(a, b)  # type: ignore[return-value]  # see `sizes`


def at_least_one(size: int) -> int:
    """``max(size, 1)``; sizes of a program that is compiled for all of them are one or more."""
    return max(size, 1) if isinstance(size, int) else size


def ceil_div(a: int, b: int) -> int:
    """``a / b`` rounded up."""
    return (a + b - 1) // b
