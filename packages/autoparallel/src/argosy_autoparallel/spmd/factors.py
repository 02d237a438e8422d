"""Strategies from the axis notation: split one factor.

A factor that runs through splits operands and results; a reduced one splits operands and leaves a partial result; a
mixing one cannot be split. Where an axis is made of several factors only the slowest is contiguous, and its parts must
be even, or chunks of the axis would not be chunks of the factor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from argosy_autoparallel.placement import Partial, Placement, ReduceType, Replicate, Shard
from argosy_autoparallel.spmd.strategy import Strategy, StrategyQuery
from argosy_phi_ops.declare.axes import Axis, AxisNotation
from argosy_phi_ops.primitives import PRIMITIVES

__all__ = ["factor_strategies", "notation_of"]

_REDUCTIONS = {
    "sum": ReduceType.kRedSum,
    "prod": ReduceType.kRedProd,
    "max": ReduceType.kRedMax,
    "min": ReduceType.kRedMin,
    "and": ReduceType.kRedAll,
    "or": ReduceType.kRedAny,
}
_OWN_RULE = frozenset({"scatter", "relayout"})  # what their notation calls a reduction is no plain sum


def notation_of(query: StrategyQuery) -> AxisNotation | None:
    """The axis notation of the operation for its global types."""
    primitive = PRIMITIVES.get(query.name)
    if primitive is None or primitive.category == "communication":
        return None
    known = {name: value for name, value in query.attributes.items() if name in primitive.attributes}
    return primitive.notation(query.operands, known)


def factor_strategies(query: StrategyQuery) -> Iterator[Strategy]:
    """One strategy for each factor that can be split into ``query.size`` parts."""
    notation = notation_of(query)
    if notation is None:
        return
    terms = [*notation.operands, *notation.results]
    types = [*query.operands, *query.results]
    for factor in dict.fromkeys(f for term in terms for axis in term for f in axis):
        if factor in notation.mixing or not _splits(factor, terms, types, query):
            continue
        operands = [_placement(factor, term) for term in notation.operands]
        if factor in notation.reduced_factors:
            kind = _REDUCTIONS.get(notation.reduction)
            if kind is None or query.name in _OWN_RULE:
                continue
            results: list[Placement] = [Partial(kind)] * len(query.results)
        else:
            results = [_placement(factor, term) for term in notation.results]
        yield Strategy(tuple(operands), tuple(results), factor)


def _placement(factor: str, term: Sequence[Axis]) -> Placement:
    for number, axis in enumerate(term):
        if axis and axis[0] == factor:
            return Shard(number)
    return Replicate()


def _splits(factor: str, terms: Sequence[Sequence[Axis]], types: Sequence[Any], query: StrategyQuery) -> bool:
    compound = False
    size = 0
    for term, tensor in zip(terms, types, strict=True):
        for axis, length in zip(term, tensor.shape, strict=True):
            if factor not in axis:
                continue
            if axis[0] != factor:
                return False
            if len(axis) == 1:
                size = length
            compound = compound or len(axis) > 1
    if not compound:
        return True
    parts = query.size * query.taken.get(factor, 1)
    return size != 0 and size % parts == 0
