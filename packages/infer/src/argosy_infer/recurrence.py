"""Recurrent cells in incremental programs: loops along the text (``control.scan``) go over the flat tokens, one row
after the other, and what they carry is cached for each token, so that a sequence goes on from any of them.

Each sequence is computed as a batch of one: its bits do not depend on those beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from argosy_infer.errors import IncrementalError
from argosy_infer.paging import Pages
from argosy_infer.roles import BATCH, NONE, TOKENS, Roles, operation_roles
from argosy_phi_ops import prim
from argosy_phi_ops.context import context
from argosy_phi_ops.ops.common.loops import scan
from argosy_pir.core import Operation
from argosy_pir.substitution import substitute_in_operation
from argosy_pir.values import Value

__all__ = ["Recurrence"]


class Recurrence(NamedTuple):
    """A loop along the text at ``place``, with the roles of what it goes along, of what it carries and of values around
    it (``roles``), for a program of these ``sizes`` of batch and sequence."""

    op: Operation
    place: str
    roles: Mapping[Value, Roles]
    sizes: tuple[Any, Any]

    @property
    def inputs(self) -> int:
        """Of how many operands it takes a slice in each step."""
        count: int = self.op.attributes["inputs"]
        return count

    def result_roles(self) -> list[Roles]:
        """The roles of what it stacks. Raises :class:`IncrementalError` for steps that mix sequences, or whose
        dependence on them is not known."""
        operands = self.op.operands
        for value in operands[: self.inputs]:
            if self.roles[value][:1] != (TOKENS,):
                raise IncrementalError(f"{self.place} goes along {value.type}, expected [sequence, batch, ...]")
        if any(BATCH in self.roles[v][1:] for v in operands[self.inputs :]):
            raise IncrementalError(f"{self.place} carries values whose first axis is not the batch")
        if not self.inputs or self.op.attributes.get("reverse"):
            raise IncrementalError(f"{self.place} mixes positions: it is no loop from the beginning of the text")
        given = [self.roles[v][1:] for v in operands[: self.inputs]] + [self.roles[v] for v in operands[self.inputs :]]
        block = self.op.regions[0].blocks[0]
        inside: dict[Value, Roles] = dict(zip(block.arguments, given, strict=True))
        *steps, last = block
        for op in steps:
            for result, roles in zip(op.results, self._roles_within(op, inside), strict=True):
                inside[result] = roles
        yields = [inside.get(v, (NONE,) * v.ndim) for v in last.operands]
        stacked = len(yields) - len(operands) + self.inputs
        if yields[stacked:] != given[self.inputs :]:
            raise IncrementalError(f"{self.place} carries values whose axes change their meaning")
        return [(TOKENS, *roles) for roles in yields[:stacked]]

    def _roles_within(self, op: Operation, inside: Mapping[Value, Roles]) -> list[Roles]:
        place = f"{op.name} in {self.place}"
        around = [self.roles[v] for v in op.operands if v not in inside]
        if op.regions or any(map(any, around)):
            raise IncrementalError(f"{place} reads tokens from around, or has a region; this is not implemented")
        given = [inside[v] if v in inside else self.roles[v] for v in op.operands]
        if op.dialect != "prim" and not any(map(any, given)):
            return [(NONE,) * r.ndim for r in op.results]
        return operation_roles(op, given, self.sizes, place)

    def emit(
        self,
        values: Mapping[Value, Value],
        initial: Sequence[Value],
        pages: Pages,
        starts: Value,
        name: str,
        layer: int,
    ) -> list[Value]:
        """What it stacks for each of the flat tokens. ``values``: those of the new program; ``initial``: what is
        carried first, [rows or 1, ...]; its caches are called ``name`` and a number."""
        tokens = pages.positions.shape[0]
        carried = self.op.operands[self.inputs :]
        caches = []
        for i, (value, first) in enumerate(zip(carried, initial, strict=True)):
            shape = _one(value.shape, self.roles[value])
            first = prim.reshape(first, shape=(first.shape[0], *shape))
            caches.append(pages.add_carry(f"{name}.{i}", shape, value.dtype, first, starts, layer))
        rows = prim.reshape(pages.rows, shape=(tokens, 1))
        begins = prim.gather(prim.slice(starts, start=(0,), limit=(starts.shape[0] - 1,), stride=(1,)), rows, axes=(0,))
        is_first = prim.eq(begins, prim.iota(shape=(tokens,), axis=0, dtype="int64"))
        loaded = [prim.gather(before, rows, axes=(0,)) for _, before in caches]
        slices = [
            prim.reshape(values[v], shape=(tokens, *_one(v.shape[1:], self.roles[v][1:])))
            for v in self.op.operands[: self.inputs]
        ]
        block = self.op.regions[0].blocks[0]
        *steps, last = block

        def step(given: Sequence[Any], state: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            first, own, before = given[0], given[1 : 1 + len(loaded)], given[1 + len(loaded) :]
            now = [
                prim.select(prim.broadcast(first, shape=new.shape, axes=()), new, old)
                for new, old in zip(own, state, strict=True)
            ]
            inside: dict[Value, Value] = {**values}
            inside.update(zip(block.arguments, [*before, *now], strict=True))
            for op in steps:
                copy = op.clone(inside)
                substitute_in_operation(copy, {next(iter(self.sizes[0].symbols)): 1})
                context().builder.insert(copy)  # type: ignore[union-attr]
            made = [inside[v] for v in last.operands]
            after = made[len(made) - len(now) :]
            return [*made[: len(made) - len(now)], *after], after

        stacked, _ = scan(
            step,
            [is_first, *loaded, *slices],
            [prim.constant(0, v.dtype, x.shape[1:]) for v, x in zip(carried, loaded, strict=True)],
        )
        results, states = stacked[: len(stacked) - len(caches)], stacked[len(stacked) - len(caches) :]
        for (cache, _), new in zip(caches, states, strict=True):
            pages.keep(cache, new)
        roles = self.result_roles()
        return [
            prim.reshape(x, shape=(tokens, *(n for n, role in zip(x.shape[1:], r[1:], strict=True) if role != BATCH)))
            for x, r in zip(results, roles, strict=True)
        ]


def _one(shape: Sequence[Any], roles: Roles) -> tuple[Any, ...]:
    """The shape where the batch is one sequence."""
    return tuple(1 if role == BATCH else n for n, role in zip(shape, roles, strict=True))
