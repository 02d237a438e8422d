"""Formulas of sizes as one compiled Python function: what a new combination of sizes costs is their arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from argosy_cinn.shapes import Size
from argosy_pir.dims import Atom

_OPERATORS = {"floordiv": " // ", "mod": " % "}


class Formulas:
    """Sizes as functions of symbols, given in the order of ``symbols``."""

    def __init__(self, sizes: Sequence[Size], symbols: Sequence[str]) -> None:
        names = {symbol: f"v{i}" for i, symbol in enumerate(symbols)}
        distinct = {size: i for i, size in enumerate(dict.fromkeys(sizes))}
        self._index = [distinct[size] for size in sizes]
        parts = "".join(f"{_source(size, names)}, " for size in distinct)
        # Names and numbers of our own making only: whatever symbols are called does not enter.
        self._function: Callable[..., tuple[int, ...]] = eval(f"lambda {', '.join(names.values())}: ({parts})", _SCOPE)

    def evaluate(self, numbers: Sequence[int]) -> list[int]:
        """The sizes where the symbols are these numbers."""
        values = self._function(*numbers)
        return [values[i] for i in self._index]


_SCOPE = {"__builtins__": {}, "min": min, "max": max}


def _source(size: Size, names: dict[str, str]) -> str:
    """The size as Python."""
    if isinstance(size, int):
        return str(int(size))
    terms = ("*".join([str(c), *(_atom(atom, names) for atom in monomial)]) for monomial, c in size.terms)
    return f"({' + '.join(terms)})"


def _atom(atom: Atom, names: dict[str, str]) -> str:
    if atom.kind == "symbol":
        return names[atom.arguments[0]]
    parts = [_source(argument, names) for argument in atom.arguments]
    if atom.kind in _OPERATORS:
        return f"({_OPERATORS[atom.kind].join(parts)})"
    return f"{atom.kind}({', '.join(parts)})"


__all__ = ["Formulas"]
