"""Strategies from the axis notation: split one factor.

A factor that runs through splits operands and results; a reduced one splits operands and leaves a partial result; a
mixing one cannot be split. Where an axis is made of several factors only the slowest is contiguous, and its parts must
be even, or chunks of the axis would not be chunks of the factor. Where tensors are split in blocks (``split_factor``)
or in parts of given sizes, an axis may be split along any of its factors: what is slower than that one counts blocks,
what is faster multiplies sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

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
_BY_PLACE = frozenset({"iota", "rng_bits"})  # what they give depends on where a part begins: blocks begin nowhere
_OWN_RULE = frozenset({"scatter", "relayout"})  # what their notation calls a reduction is no plain sum


class Cut(NamedTuple):
    """How the indices of a factor are split: in so many ``blocks``, each by ceiling division or in ``parts``."""

    blocks: int
    parts: tuple[int, ...] | None = None


_PLAIN = Cut(1)


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
        cuts = [_PLAIN] if _splits(factor, terms, types, query) else []
        sizes = {} if query.plain else _sizes(terms, types)
        if not query.plain:
            cuts = list(dict.fromkeys([*cuts, *_present_cuts(factor, notation, query, sizes)]))
        for cut in cuts:
            placed = [_placement(factor, term, cut, sizes) for term in terms]
            operands = placed[: len(notation.operands)]
            results: list[Placement] = placed[len(operands) :]
            if reduced:
                assert kind is not None
                results = [Partial(kind)] * len(query.results)
            yield Strategy(tuple(operands), tuple(results), factor)


def _placement(factor: str, term: Sequence[Axis], cut: Cut, sizes: Mapping[str, int]) -> Placement:
    """How a tensor lies whose ``factor`` is cut so."""
    for number, axis in enumerate(term):
        if factor in axis:
            parts = cut.parts and [n * _faster(factor, axis, sizes) for n in cut.parts]
            return Shard(number, cut.blocks * _slower(factor, axis, sizes), parts)
    return Replicate()


def _slower(factor: str, axis: Axis, sizes: Mapping[str, int]) -> int:
    """How often the axis runs through ``factor``."""
    return prod(sizes[other] for other in axis[: axis.index(factor)])


def _faster(factor: str, axis: Axis, sizes: Mapping[str, int]) -> int:
    """How many elements of the axis an index of ``factor`` has."""
    return prod(sizes[other] for other in axis[axis.index(factor) + 1 :])


def _sizes(terms: Sequence[Sequence[Axis]], types: Sequence[Any]) -> dict[str, int]:
    """Those of the factors, where they are known."""
    axes = [pair for term, tensor in zip(terms, types, strict=True) for pair in zip(term, tensor.shape, strict=True)]
    return {axis[0]: length for axis, length in axes if len(axis) == 1 and type(length) is int}


def _present_cuts(factor: str, notation: AxisNotation, query: StrategyQuery, sizes: Mapping[str, int]) -> Iterator[Cut]:
    """How ``factor`` is cut in the operands that lie so now, and in results as they are asked for."""
    axes = [axis for term in (*notation.operands, *notation.results) for axis in term if factor in axis]
    if not all(other in sizes for axis in axes for other in axis):
        return
    terms, placements = (*notation.operands, *notation.results), (*query.given, *query.wanted)
    for term, placement in zip(terms, placements, strict=False):  # mostly nobody asks for results
        if isinstance(placement, Shard) and factor in term[placement.dim]:
            if placement.split_factor > 1 and query.name in _BY_PLACE:
                continue
            cut = _cut_of(factor, term[placement.dim], placement, sizes)
            if cut is not None and _divides(factor, axes, cut, query, sizes):
                yield cut


def _cut_of(factor: str, axis: Axis, placement: Shard, sizes: Mapping[str, int]) -> Cut | None:
    """How ``factor`` is cut where its axis lies so; None where parts go through its indices."""
    slower = _slower(factor, axis, sizes)
    if not slower or placement.split_factor % slower:  # an axis without elements runs through nothing
        return None
    blocks = placement.split_factor // slower
    if sizes[factor] % blocks:
        return None
    if placement.sizes is None:
        return Cut(blocks)
    faster = _faster(factor, axis, sizes)
    if not faster or any(n % faster for n in placement.sizes):
        return None
    parts = tuple([n // faster for n in placement.sizes])
    return Cut(blocks, parts) if sum(parts) * blocks == sizes[factor] else None


def _divides(factor: str, axes: Sequence[Axis], cut: Cut, query: StrategyQuery, sizes: Mapping[str, int]) -> bool:
    """Whether ranks have whole indices of the factor: what is faster in an axis takes even parts, or given ones."""
    if not all(_slower(factor, axis, sizes) for axis in axes):  # there is no number of blocks
        return False
    compound = any(_faster(factor, axis, sizes) != 1 for axis in axes)
    taken = query.taken.get(factor, 1)
    if cut.parts is not None:
        return taken == 1
    return not compound or sizes[factor] % (cut.blocks * query.size * taken) == 0


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
