"""Strategies for partial values: which primitives commute with the reduction that is still to be made.

``_SUM`` lists, for each primitive, the sets of operands in which it is linear: P stands for a partial operand, R for a
replicated one; a trailing ``*`` repeats. A primitive that is not listed reduces a partial operand first: there is never
a wrong sum. Narrowing casts are not listed, since they round.
"""

from __future__ import annotations

from collections.abc import Iterator

from argosy_autoparallel.placement import Partial, Placement, ReduceType, Replicate
from argosy_autoparallel.spmd.strategy import Strategy, StrategyQuery

__all__ = ["linear_strategies", "patterns_of"]

_SUM: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("neg", "real", "imag", "conj", "copy", "place", "stop_gradient"), ("P",)),
    **dict.fromkeys(("reshape", "transpose", "broadcast", "slice", "reverse", "reduce_sum", "fft"), ("P",)),
    **dict.fromkeys(("add", "sub", "pad", "complex"), ("P P",)),
    **dict.fromkeys(("mul", "dot_general", "conv"), ("P R", "R P")),
    **dict.fromkeys(("grouped_dot", "grouped_outer"), ("P R R", "R P R")),
    "div": ("P R",),
    "select": ("R P P",),
    "concat": ("P*",),
    "cast": ("P",),
    "cumulative": ("P",),
    "gather": ("P R",),
    "scatter": ("P R P",),
    "dynamic_slice": ("P R*",),
    "dynamic_update_slice": ("P P R*",),
    **dict.fromkeys(("triangular_solve", "solve"), ("R P",)),
}
_EXTREMA: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("copy", "stop_gradient", "reshape", "transpose", "broadcast", "slice", "reverse"), ("P",)),
    "concat": ("P*",),
}
_SAME_EXTREMUM = {
    ReduceType.kRedMax: {"maximum": ("P P",), "reduce_max": ("P",)},
    ReduceType.kRedMin: {"minimum": ("P P",), "reduce_min": ("P",)},
}
_WIDTH = {"float16": 2, "bfloat16": 2, "float32": 3, "float64": 4, "complex64": 5, "complex128": 6}
_INEXACT = frozenset(_WIDTH)


def linear_strategies(query: StrategyQuery) -> Iterator[Strategy]:
    """Ways to carry the reductions of the operands' present placements through."""
    kinds = dict.fromkeys(p.reduce_type() for p in query.given if isinstance(p, Partial))
    for kind in kinds:
        for pattern in _patterns(query, kind):
            operands = _expand(pattern, len(query.operands), Partial(kind))
            if operands is not None:
                yield Strategy(operands, (Partial(kind),) * len(query.results))


def patterns_of(kind: ReduceType) -> dict[str, tuple[str, ...]]:
    """From each primitive that commutes with reductions of this ``kind`` to the operands in which it does."""
    if kind in (ReduceType.kRedSum, ReduceType.kRedAvg):
        return _SUM
    return _EXTREMA | _SAME_EXTREMUM.get(kind, {})


def _patterns(query: StrategyQuery, kind: ReduceType) -> tuple[str, ...]:
    if kind in (ReduceType.kRedSum, ReduceType.kRedAvg) and not _is_linear(query):
        return ()
    return patterns_of(kind).get(query.name, ())


def _is_linear(query: StrategyQuery) -> bool:
    """Exceptions by dtype or attribute."""
    name, dtype = query.name, query.operands[0].dtype
    if name == "div":
        return dtype in _INEXACT
    if name == "cast":
        target = query.results[0].dtype
        return dtype in _INEXACT and target in _INEXACT and _WIDTH[target] > _WIDTH[dtype]
    if name == "cumulative":
        return bool(query.attributes["kind"] == "sum")
    if name == "scatter":
        return query.attributes["kind"] in ("add", "set")
    if name == "fft":
        return bool(query.attributes["kind"] != "c2r")
    return True


def _expand(pattern: str, count: int, partial: Partial) -> tuple[Placement, ...] | None:
    words = pattern.split()
    if words[-1].endswith("*"):
        words[-1] = words[-1][:-1]
        words += [words[-1]] * (count - len(words))
        words = words[:count]
    if len(words) != count:
        return None
    return tuple(partial if w == "P" else Replicate() for w in words)
