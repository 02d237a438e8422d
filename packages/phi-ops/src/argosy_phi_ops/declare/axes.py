"""Axis notation: which index of an operand each index of a result depends on.

The notation is the one source of dependence (sharding rules, loop nests, batching, incremental decoding are derived
from it). A term names the axes of one tensor, as in ``"b m k, b k n -> b m n"``:

- a factor on both sides runs along: result index ``i`` needs operand index ``i`` only;
- a factor of operands only is reduced (contracted); one of results only is new (broadcast, iota);
- ``(h d)`` is one axis made of several factors, the first one slowest;
- ``!t`` mixes: every index of the axis may depend on every other one (sort, fft, a scan);
- ``...`` stands for any number of leading axes, aligned at the right like numpy's broadcasting.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Axis", "AxisNotation", "elementwise_notation", "parse_notation"]

Axis = tuple[str, ...]
"""The factors of one axis, slowest first; the empty tuple is an axis of size one that carries no dependence."""


class AxisNotation:
    """Dependence between the axes of operands and results.

    ``operands`` and ``results`` hold one term (a tuple of :data:`Axis`) for each tensor; ``mixing`` the factors along
    which indices are mixed; ``reduction`` says how reduced factors combine (``"sum"``, ``"max"``, ...; empty where none
    is).
    """

    __slots__ = ("mixing", "operands", "reduction", "results")

    def __init__(
        self,
        operands: Sequence[Sequence[Axis]],
        results: Sequence[Sequence[Axis]],
        mixing: frozenset[str] = frozenset(),
        reduction: str = "",
    ) -> None:
        self.operands = tuple(tuple(term) for term in operands)
        self.results = tuple(tuple(term) for term in results)
        self.mixing = mixing
        self.reduction = reduction

    @property
    def reduced_factors(self) -> frozenset[str]:
        """Factors that operands have and results have not."""
        return _factors(self.operands) - _factors(self.results)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AxisNotation):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.operands, self.results, self.mixing, self.reduction)

    def __str__(self) -> str:
        left = ", ".join(self._term(term) for term in self.operands)
        return f"{left} -> {', '.join(self._term(term) for term in self.results)}".strip()

    __repr__ = __str__

    def _term(self, term: Sequence[Axis]) -> str:
        return " ".join(self._axis(axis) for axis in term)

    def _axis(self, axis: Axis) -> str:
        names = ["!" + factor if factor in self.mixing else factor for factor in axis]
        return names[0] if len(names) == 1 else f"({' '.join(names)})"


def _factors(terms: Sequence[Sequence[Axis]]) -> frozenset[str]:
    return frozenset(factor for term in terms for axis in term for factor in axis)


def parse_notation(text: str, shapes: Sequence[Sequence[object]], reduction: str = "") -> AxisNotation:
    """Bind the notation ``text`` to operands of the given ``shapes``.

    The shapes settle how many axes an ellipsis stands for; an axis of static size one under an ellipsis carries no
    factor, so that it broadcasts. Raises ``ValueError`` when the ranks do not fit the text.
    """
    left, arrow, right = text.partition("->")
    if not arrow:
        raise ValueError(f"axis notation {text!r} has no '->'")
    terms = [_tokens(term) for term in left.split(",")] if left.strip() else []
    if len(terms) != len(shapes):
        raise ValueError(f"axis notation {text!r} describes {len(terms)} operands, got {len(shapes)}")
    mixing = frozenset(f[1:] for term in terms for axis in term for f in axis if f.startswith("!"))
    operands = [_bind_term(term, shape, text) for term, shape in zip(terms, shapes, strict=True)]
    rank = max(
        (len(shape) - len(term) + 1 for term, shape in zip(terms, shapes, strict=True) if ("...",) in term), default=0
    )
    results = [_expand_ellipsis(_tokens(term), rank) for term in right.split(",")]
    return AxisNotation(operands, results, mixing, reduction)


def elementwise_notation(rank: int, operands: int, results: int = 1) -> AxisNotation:
    """The notation of an operation on ``operands`` tensors of equal shape and the given ``rank``."""
    term = tuple((f"d{i}",) for i in range(rank))
    return AxisNotation((term,) * operands, (term,) * results)


def _tokens(term: str) -> list[Axis]:
    axes: list[Axis] = []
    group: list[str] | None = None
    for word in term.replace("(", " ( ").replace(")", " ) ").split():
        if word == "(":
            group = []
        elif word == ")":
            axes.append(tuple(group or ()))
            group = None
        elif group is not None:
            group.append(word)
        else:
            axes.append((word,))
    return axes


def _bind_term(term: list[Axis], shape: Sequence[object], text: str) -> list[Axis]:
    hidden = len(shape) - len(term) + 1 if ("...",) in term else 0
    if hidden < 0 or (not hidden and ("...",) not in term and len(term) != len(shape)):
        raise ValueError(f"a tensor of rank {len(shape)} does not fit axis notation {text!r}")
    axes = _expand_ellipsis(term, hidden)
    start = term.index(("...",)) if ("...",) in term else 0
    for i in range(start, start + hidden):
        if shape[i] == 1:
            axes[i] = ()
    return axes


def _expand_ellipsis(term: list[Axis], rank: int) -> list[Axis]:
    axes: list[Axis] = []
    for axis in term:
        if axis == ("...",):
            axes += [(f"e{i}",) for i in range(rank, 0, -1)]
        else:
            axes.append(tuple(factor.removeprefix("!") for factor in axis))
    return axes
