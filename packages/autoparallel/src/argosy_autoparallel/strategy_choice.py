"""The choice of a strategy for an operation: the one that costs least communication for its operands' layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy_autoparallel.broadcast_resharding import broadcast_of, source_placement
from argosy_autoparallel.mesh import ProcessMesh
from argosy_autoparallel.placement import Partial, Placement, Replicate, Shard
from argosy_autoparallel.resharding.costs import step_cost
from argosy_autoparallel.spmd import Strategy, strategies
from argosy_autoparallel.spmd.strategy import StrategyQuery
from argosy_autoparallel.tensor_layout import Layout
from argosy_autoparallel.value_layouts import ValueLayouts, bytes_of, is_zero
from argosy_pir import Operation, Value

__all__ = ["StrategyChoice", "drop_mixed_reductions"]

_MERGING = 0.75
"""What a sort along a split axis counts as, beside gathering its operands: it sends about as much, but nobody holds the
whole. Splitting another axis instead costs half of that or less."""


def drop_mixed_reductions(options: Sequence[Strategy], chosen: Sequence[Strategy]) -> list[Strategy]:
    """The ``options`` for a mesh dimension that leave no value with reductions of several kinds, after what was
    ``chosen`` for those before: a maximum of sums is no sum of maxima.
    """
    before = [[*s.operands, *s.results] for s in chosen]
    kinds = [{p for p in values if p.is_partial()} for values in zip(*before, strict=True)]
    if not any(kinds):
        return list(options)
    return [
        s
        for s in options
        if all(not p.is_partial() or kind <= {p} for p, kind in zip((*s.operands, *s.results), kinds, strict=True))
    ]


def drop_mixed_nesting(
    options: Sequence[Strategy], chosen: Sequence[Strategy], shapes: Sequence[Any], mesh: ProcessMesh
) -> list[Strategy]:
    """The ``options`` for a mesh dimension that split no axis in blocks, or parts of given sizes, that those before
    split along another factor, or of which ranks have no such blocks or parts by then; ``shapes`` are those of operands
    and results."""
    nested = [s for s in options if any(_nests(s, before) for before in chosen)]
    return [s for s in options if s not in nested or _nests_well(s, chosen, shapes, mesh)]


def _nests(one: Strategy, other: Strategy) -> bool:
    pairs = zip((*one.operands, *one.results), (*other.operands, *other.results), strict=True)
    shards = [(p, q) for p, q in pairs if isinstance(p, Shard) and isinstance(q, Shard) and p.dim == q.dim]
    return not all(p.is_plain and q.is_plain for p, q in shards)


def _nests_well(option: Strategy, chosen: Sequence[Strategy], shapes: Sequence[Any], mesh: ProcessMesh) -> bool:
    if option.factor.startswith("blocks") or any(_nests(option, s) and s.factor != option.factor for s in chosen):
        return False
    if any(_multiplies_sizes(s) for s in (*chosen, option)):
        return False
    rest = (Replicate(),) * (mesh.ndim - len(chosen) - 1)
    steps = [(*s.operands, *s.results) for s in (*chosen, option)]
    layouts = [Layout(mesh, (*placements, *rest)) for placements in zip(*steps, strict=True)]
    return all(layout.fits(shape) for layout, shape in zip(layouts, shapes, strict=True))


def _multiplies_sizes(strategy: Strategy) -> bool:
    """Whether parts of given sizes are those of an axis in one tensor and of a factor of it in another: those of such
    parts may not be."""
    shards = {(p.split_factor, p.sizes) for p in (*strategy.operands, *strategy.results) if isinstance(p, Shard)}
    return len(shards) > 1 and any(sizes is not None for _, sizes in shards)


class StrategyChoice:
    """Choices for the values of one program, as they are ``held`` by the time of each."""

    def __init__(self, held: Mapping[Value, ValueLayouts]) -> None:
        self.held = held
        self.plain = True
        """Whether no value is split in blocks, or parts of given sizes: then nothing is."""
        self._known: dict[Any, list[Strategy]] = {}

    def choose(
        self,
        op: Operation,
        mesh: ProcessMesh,
        wanted: Sequence[Placement] | None = None,
        number: int = 0,
    ) -> list[Strategy]:
        """A strategy for each mesh dimension; ``wanted`` are placements that the result ``number`` should get. Equal
        operations, as equal layers have them, whose operands lie alike are decided once."""
        if op.name == "prim.host_call":
            return self._choose(op, mesh, wanted, number)
        places = tuple([self._place(x) for x in op.operands])
        asked = None if wanted is None else tuple(wanted)
        key = op.name, tuple(op.attributes.items()), op.results[0].type, mesh, asked, number, self.plain, places
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._choose(op, mesh, wanted, number)
        return found

    def _place(self, value: Value) -> Any:
        """All that a choice depends on of an operand."""
        held = self.held[value]
        if held.is_deferred:
            return value.type, held.primary, is_zero(value)
        op = broadcast_of(value)
        source = (op.attributes["axes"], self._place(op.operand(0))) if op and op.operand(0) in self.held else None
        return value.type, held.primary, tuple(held.versions), is_zero(value), source

    def _choose(
        self, op: Operation, mesh: ProcessMesh, wanted: Sequence[Placement] | None, number: int
    ) -> list[Strategy]:
        chosen: list[Strategy] = []
        taken: dict[str, int] = {}
        types = [x.type for x in op.operands], [x.type for x in op.results]
        for dim, size in enumerate(mesh.shape):
            given = [self._present(x, mesh, dim) for x in op.operands]
            asked = [wanted[dim] if wanted and i == number else None for i in range(0 if self.plain else len(types[1]))]
            options = strategies(StrategyQuery(op, *types, op.attributes, size, taken, given, self.plain, asked))  # type: ignore[arg-type]
            options = drop_mixed_reductions(options, chosen)
            if not self.plain:
                options = drop_mixed_nesting(options, chosen, [x.shape for kind in types for x in kind], mesh)  # type: ignore[attr-defined]
            if wanted is not None:
                options = [s for s in options if s.results[number] == wanted[dim]] or options[:1]
            elif not any(isinstance(p, Shard) for p in given):
                options = [s for s in options if not s.factor]  # nothing is split unless something is already
            best = self._cheapest(op, options, mesh, dim, size)
            if best.factor:
                taken[best.factor] = taken.get(best.factor, 1) * size
            chosen.append(best)
        return chosen

    def _present(self, value: Value, mesh: ProcessMesh, dim: int) -> Placement:
        primary = self.held[value].primary
        return Replicate() if primary is None or primary.mesh != mesh else primary.placements[dim]

    def _cheapest(self, op: Operation, options: Sequence[Strategy], mesh: ProcessMesh, dim: int, n: int) -> Strategy:
        """The first of those that cost least."""
        best, least = options[0], (float("inf"), 0)
        for option in options if len(options) > 1 else ():
            price = self._price(op, option, mesh, dim, n)
            if price < least:
                best, least = option, price
            if price == (0.0, 0):
                break  # nothing is cheaper
        return best

    def _price(self, op: Operation, strategy: Strategy, mesh: ProcessMesh, dim: int, n: int) -> tuple[float, int]:
        """Bytes that the strategy costs, and how many operands change at all.

        A strategy that needs no communication now is free, so that computation stays where its data is; of one that
        does, reductions that it leaves for later count, too. Carrying a reduction through costs what it grows by.
        """
        cost, changes, carried = 0.0, 0, 0.0
        for value, wanted in zip(op.operands, strategy.operands, strict=True):
            price, changed = self._change(value, wanted, mesh, dim, n)
            cost += price
            changes += changed
            if isinstance(wanted, Partial):
                carried = max(carried, step_cost(wanted, Replicate(), bytes_of(value), n))
        later = sum(
            step_cost(p, Replicate(), bytes_of(value), n)
            for value, p in zip(op.results, strategy.results, strict=True)
            if isinstance(p, Partial)
        )
        if strategy.factor == "sorted":
            cost += _MERGING * sum(self._change(value, Replicate(), mesh, dim, n)[0] for value in op.operands)
        if cost:
            cost += later
        elif carried:
            cost += max(0.0, later - carried)
        return cost, changes

    def _change(self, value: Value, wanted: Placement, mesh: ProcessMesh, dim: int, n: int) -> tuple[float, bool]:
        held = self.held[value]
        if held.is_deferred:
            return self._from_everywhere(value, wanted, n) if isinstance(wanted, Partial) else (0.0, False)
        size = bytes_of(value)
        prices = []
        for layout in held.versions:
            at = Replicate() if layout is None else layout.placements[dim]
            if isinstance(wanted, Partial) and not at.is_partial():
                prices.append(self._from_everywhere(value, wanted, n))
            else:
                whole = size if layout is None else size / layout.parts(but=dim)
                prices.append((step_cost(at, wanted, whole, n), at != wanted))
        best = min(prices)
        op = broadcast_of(value)
        before = None if op is None or not best[0] else source_placement(op, wanted)
        if op is not None and before is not None and op.operand(0) in self.held:
            best = min(best, (self._change(op.operand(0), before, mesh, dim, n)[0], True))
        return best

    def _from_everywhere(self, value: Value, wanted: Placement, n: int) -> tuple[float, bool]:
        """A whole value made a term of a sum will be reduced again, unless it is zero."""
        return (0.0, False) if is_zero(value) else (step_cost(wanted, Replicate(), bytes_of(value), n), True)
