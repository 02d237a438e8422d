"""Equations between symbolic sizes."""

from __future__ import annotations

from typing import Any

from argosy_pir.dims import Dim, SymExpr


def solve_equality(a: Dim, b: Dim) -> tuple[str, int] | None:
    """The one symbol and number that make ``a`` and ``b`` equal whatever the other symbols are, but for their zeros:
    ``s0*s1`` is ``9*s0`` where ``s1`` is 9. None where that needs more."""
    difference = a - b
    if not isinstance(difference, SymExpr):
        return None
    for name in sorted(difference.symbols):
        slope, rest = (
            difference.substitute({name: 1}) - difference.substitute({name: 0}),
            difference.substitute({name: 0}),
        )
        for number in _candidates(rest, slope):
            if number > 0 and difference.substitute({name: number}) == 0:
                return name, number
    return None


def _candidates(rest: Dim, slope: Dim) -> list[int]:
    numbers: list[dict[Any, int]] = [dict(x.terms) if isinstance(x, SymExpr) else {(): x} for x in (rest, slope)]
    return [-c // numbers[1][m] for m, c in numbers[0].items() if numbers[1].get(m)]
