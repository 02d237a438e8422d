"""Sums of rows that several work-items have made, combined in a fixed order: in sub-groups, or in local memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from argosy_cinn.forms.nest import Reduction
from argosy_cinn.loops import reductions
from argosy_cinn.loops.elementwise import REGISTER
from argosy_cinn.printers.types import I32, Value, vector
from argosy_cinn.printers.types import Index as MachineIndex
from argosy_cinn.printers.work_groups import WorkGroupInstructions


def near_type(dtype: str) -> str:
    """The type of a reduction's values in local memory, where vectors of truth values have none."""
    return I32 if dtype == "bool" else REGISTER[dtype]


class ItemPlaces(NamedTuple):
    """The number of a work-item in its group and in its row, and that of the row in the group."""

    in_group: Value
    in_row: Value
    row: MachineIndex


class RowSums:
    """Reductions of rows that ``items`` share, in vectors of ``lanes``; a group has ``group_items``."""

    def __init__(self, b: WorkGroupInstructions, places: ItemPlaces, items: int, group_items: int, lanes: int) -> None:
        self.b, self.places, self.items, self.group_items, self.lanes = b, places, items, group_items, lanes
        self.shared: dict[int, Value] = {}

    def combine_halves(self, own: Sequence[Reduction], sums: Sequence[Sequence[Value]]) -> list[Value]:
        """Several sums of each reduction as one: a tree of halves."""
        parts = [list(each) for each in sums]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [
                [reductions.combine(self.b, r.kind, r.dtype, x, y) for r, x, y in zip(own, low, high, strict=True)]
                for low, high in zip(parts[:half], parts[half:], strict=True)
            ]
        return parts[0]

    def combine_items(self, r: Reduction, total: Value) -> Value:
        """What the work-items of a row have reduced: a tree of halves of the items, and of the lanes."""
        width, near = self.items, min(self.items, self.b.module.target.sub_group)
        if width > near:
            total = self._combine_in_local_memory(r, total, near)
        if near > 1:
            total = self._combine_in_sub_groups(r, total, near)
        if width > near > 1:  # the first sub-group of the row has it
            total = self._share(r, total)
        return reductions.fold(self.b, r.kind, r.dtype, total)

    def _combine_in_sub_groups(self, r: Reduction, total: Value, width: int) -> Value:
        """The same in all items of a sub-group of which ``width`` have sums of a row each."""
        b = self.b
        own = b.rem(self.places.in_group, b.module.target.sub_group)
        first = b.mul(b.div(own, width), width)
        while width > 1:
            width //= 2
            other = self._shuffle(r, total, b.rem(b.add(own, width), b.module.target.sub_group))
            total = reductions.combine(b, r.kind, r.dtype, total, other)
        return self._shuffle(r, total, first)

    def _shuffle(self, r: Reduction, value: Value, item: MachineIndex) -> Value:
        found = self.b.sub_group_shuffle(self._to_memory_type(r, value), item)
        return self.b.icmp("ne", found, 0) if r.dtype == "bool" else found

    def _combine_in_local_memory(self, r: Reduction, total: Value, near: int) -> Value:
        """Of items that are ``near`` and more apart; the same in all items where they are one apart at last."""
        b, lanes, width, element = self.b, self.lanes, self.items, near_type(r.dtype)
        memory = self._local_memory(r)
        own = b.gep(memory, b.mul(self.places.in_group, lanes), element)
        self.store(r, total, own)
        b.barrier()
        while width > near:
            width //= 2
            with b.if_then(b.icmp("slt", self.places.in_row, width)):
                other = self.load(r, b.gep(memory, b.mul(b.add(self.places.in_group, width), lanes), element))
                self.store(r, reductions.combine(b, r.kind, r.dtype, self.load(r, own), other), own)
            b.barrier()
        value = self.load(r, own if near > 1 else self._row_start(memory, element))
        b.barrier()
        return value

    def _share(self, r: Reduction, total: Value) -> Value:
        """What the first item of a row has, in all of them."""
        b, memory, element = self.b, self._local_memory(r), near_type(r.dtype)
        with b.if_then(b.icmp("eq", self.places.in_row, 0)):
            self.store(r, total, self._row_start(memory, element))
        b.barrier()
        value = self.load(r, self._row_start(memory, element))
        b.barrier()
        return value

    def _row_start(self, memory: Value, element: str) -> Value:
        row = self.b.mul(self.places.row, self.items * self.lanes)
        return self.b.gep(memory, row, element)

    def _local_memory(self, r: Reduction) -> Value:
        """Local memory of a reduction, for each item of the group its lanes."""
        if r.result.number not in self.shared:
            elements = self.group_items * self.lanes
            self.shared[r.result.number] = self.b.local_memory(near_type(r.dtype), elements)
        return self.shared[r.result.number]

    def _to_memory_type(self, r: Reduction, value: Value) -> Value:
        """A value as memory that is near has it."""
        return self.b.convert("sext", value, near_type(r.dtype)) if r.dtype == "bool" else value

    def load(self, r: Reduction, place: Value) -> Value:
        """A vector of sums in memory."""
        found = self.b.load(vector(near_type(r.dtype), self.lanes), place)
        return self.b.icmp("ne", found, 0) if r.dtype == "bool" else found

    def store(self, r: Reduction, value: Value, place: Value) -> None:
        """Write it there."""
        self.b.store(self._to_memory_type(r, value), place)
