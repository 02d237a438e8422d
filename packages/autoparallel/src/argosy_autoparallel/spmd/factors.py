"""Strategies from the axis notation: split one factor.

A factor that runs through splits operands and results; a reduced one splits operands and leaves a partial result; a
mixing one cannot be split. Where an axis is made of several factors only the slowest is contiguous, and its parts must
be even, or chunks of the axis would not be chunks of the factor. Where tensors are split in blocks (``split_factor``),
an axis may be split along any of its factors: what is slower than that one counts blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
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
        if factor in notation.mixing:
            continue
        kind = _REDUCTIONS.get(notation.reduction)
        reduced = factor in notation.reduced_factors
        if reduced and (kind is None or query.name in _OWN_RULE):
            continue
        blocks = [1] if _splits(factor, terms, types, query) else []
        sizes = _sizes(terms, types) if query.blocks else {}
        if query.blocks:
            blocks = list(dict.fromkeys([*blocks, *_block_counts(factor, notation, query, sizes)]))
        for count in blocks:
            placed = [_placement(factor, term, count, sizes) for term in terms]
            operands = placed[: len(notation.operands)]
            results: list[Placement] = placed[len(operands) :]
            if reduced:
                assert kind is not None
                results = [Partial(kind)] * len(query.results)
            yield Strategy(tuple(operands), tuple(results), factor)


def _placement(factor: str, term: Sequence[Axis], blocks: int, sizes: Mapping[str, int]) -> Placement:
    """How a tensor lies that is split along ``factor``, in so many ``blocks`` of it."""
    for number, axis in enumerate(term):
        if factor in axis:
            return Shard(number, blocks * _slower(factor, axis, sizes))
    return Replicate()


def _slower(factor: str, axis: Axis, sizes: Mapping[str, int]) -> int:
    """How often the axis runs through ``factor``."""
    return prod(sizes[other] for other in axis[: axis.index(factor)])


def _sizes(terms: Sequence[Sequence[Axis]], types: Sequence[Any]) -> dict[str, int]:
    """Those of the factors, where they are known."""
    axes = [pair for term, tensor in zip(terms, types, strict=True) for pair in zip(term, tensor.shape, strict=True)]
    return {axis[0]: length for axis, length in axes if len(axis) == 1 and type(length) is int}


def _block_counts(factor: str, notation: AxisNotation, query: StrategyQuery, sizes: Mapping[str, int]) -> Iterator[int]:
    """In how many blocks of ``factor`` the operands lie now that are split along it. What is faster in an axis takes
    even parts."""
    axes = [axis for term in (*notation.operands, *notation.results) for axis in term if factor in axis]
    if not all(other in sizes for axis in axes for other in axis):
        return
    faster = any(prod(sizes[other] for other in axis[axis.index(factor) + 1 :]) != 1 for axis in axes)
    parts = query.size * query.taken.get(factor, 1) if faster else 1
    for term, placement in zip(notation.operands, query.given, strict=True):
        if isinstance(placement, Shard) and factor in term[placement.dim]:
            count, rest = divmod(placement.split_factor, _slower(factor, term[placement.dim], sizes))
            if count and not rest and sizes[factor] % (count * parts) == 0:
                yield count


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
