"""Fusion: which values in memory are computed together.

Every value that is computed by loops starts as a group of its own. Walking forwards, a group joins the groups of what
it reads, as long as it needs each of their elements only at the point of the loop nest where they are computed, and no
path leads out of the joint group and back. What only the group itself reads then never reaches memory.

A group has a grid of ``rows`` x ``columns`` (``columns`` 0: one flat dimension that can still take any grid of its
size). A member's flavour says how it sits on the grid: ``full`` (one element per cell), ``row`` (one per row), ``sum``
(a reduction along the row), ``column`` (a reduction over all rows), ``strided`` (a reduction of another layout, always
alone), ``scan`` (alone, too), ``update`` or ``product`` (the matrix product that the group is the epilogue of).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from argosy_cinn.attention.regions import Region
from argosy_cinn.fusion.group import Group
from argosy_cinn.fusion.group_lowering import KnownReads
from argosy_cinn.fusion.kinds import ATTENTION, kind_of
from argosy_cinn.fusion.memory import Memory
from argosy_cinn.lowering.classify import CONSTANT, CONTROL, HOST, INLINE
from argosy_cinn.lowering.elements import NotAligned
from argosy_cinn.shapes import count, estimate, sizes
from argosy_pir.core import Operation
from argosy_pir.rewrite.fuel import spend
from argosy_pir.values import Value

_MOST_MEMBERS = 40
_MOST_READS = 28


class Fusion:
    """The groups of a program, and who makes what."""

    def __init__(self, memory: Memory, reads: KnownReads | None = None) -> None:
        self.memory, self._known = memory, reads or KnownReads(memory)
        self.groups: dict[int, Group] = {}
        self.maker: dict[Value, Group] = {}
        self._followers: dict[int, set[int]] = {}  # numbers of those right after a group; some are joined since
        self._count = 0
        self._order: dict[Value, int] = {v: -1 for v in memory.program.block.arguments}
        self._order.update((v, -1) for v in memory.regions.inner)
        for order, op in enumerate(memory.regions.sequence):
            self._order.update((r, order) for r in op.results)
            if op in memory.regions.of:
                self._add_region(memory.regions.of[op], order)
            elif op in memory.kinds:
                self._add(op, order)
        self._fuse_siblings()

    # -- making groups

    def _add(self, op: Operation, order: int) -> None:
        kind = self.memory.kinds[op]
        if kind == CONSTANT and op.result not in self.memory.returned:
            return
        if kind in (INLINE, CONSTANT) and op.result not in self.memory.values:
            return
        if all(0 in sizes(v) for v in op.results if hasattr(v.type, "shape")) and kind not in (HOST, CONTROL):
            return
        made = kind_of(op, kind).group(op, self._count, order, self.memory, self._known)
        group = self._number(made)
        self._connect(group)
        if group.kind.takes_producers and not _ALONE & set(group.members.values()):
            self._fuse_into_producers(group)

    def _add_region(self, region: Region, order: int) -> None:
        """The group of a region, made when its first operation is met."""
        if region.members()[0] not in self.maker:
            self._connect(self._number(ATTENTION.group_of_region(region, self._count, order, self.memory)))

    def _number(self, group: Group) -> Group:
        self._count += 1
        self.groups[group.number] = group
        self.maker.update(dict.fromkeys(group.members, group))
        return group

    def _connect(self, group: Group) -> None:
        self.put_after(group, self.producers(group))

    def put_after(self, group: Group, earlier: Iterable[Group]) -> None:
        """Let a group run after others; so does what follows it."""
        for other in earlier:
            group.ancestors |= other.ancestors | other.bits
            self._followers.setdefault(other.number, set()).add(group.number)
        waiting = [*self._followers.get(group.number, ())]
        while waiting:
            follower = self.groups.get(waiting.pop())
            if follower is not None and group.ancestors & ~follower.ancestors:  # else what follows it knows already
                follower.ancestors |= group.ancestors
                waiting.extend(self._followers.get(follower.number, ()))

    def producers(self, group: Group) -> list[Group]:
        """What makes what a group reads, the latest first."""
        found = {self.maker[v].number: self.maker[v] for v in group.reads if v in self.maker}
        found.pop(group.number, None)
        return [found[number] for number in sorted(found, key=lambda n: -found[n].order)]

    def drop_unread(self) -> None:
        """Leave out the groups whose results no group reads after all, host calls, control flow and notes aside.

        An operation may use a value that its code never reads: a block that replaces all of its operand, wherever it
        begins. Such a value has no place in memory that a kernel could write to.
        """
        waiting = [self.maker[v] for v in self.memory.returned if v in self.maker]
        waiting += [group for group in self.groups.values() if group.kind.always_runs]
        kept: dict[int, Group] = {}
        while waiting:
            group = waiting.pop()
            if group.number not in kept:
                kept[group.number] = group
                waiting += [self.maker[v] for v in group.reads if v in self.maker]
        self.groups = {number: group for number, group in self.groups.items() if number in kept}
        self.maker = {value: group for value, group in self.maker.items() if group.number in kept}

    # -- merging

    def _fuse_into_producers(self, group: Group) -> None:
        tried: set[int] = set()
        again = True
        while again:
            again = False
            for producer in self.producers(group):
                if producer.number in tried:
                    continue
                tried.add(producer.number)
                merged = self._try(producer, group)
                if merged is not None:
                    group, again = merged, True
                    break

    def _try(self, first: Group, second: Group) -> Group | None:
        """Join two groups, of which the second may read what the first makes, or return None."""
        if not self._may_join(first, second):
            return None
        grid = _common_grid(first, second)
        if grid is None:
            return None
        candidate = _join(first, second, *grid)
        if candidate is None:
            return None
        try:
            candidate.reads = self._known.find_joint_reads(candidate, first, second)
        except NotAligned:
            return None
        if len(candidate.reads) > _MOST_READS:
            return None
        if not spend("fuse", (*first.members, *second.members)):
            return None
        self._replace(first, second, candidate)
        return candidate

    def _may_join(self, first: Group, second: Group) -> bool:
        if not first.kind.takes_readers or not second.kind.takes_producers:
            return False
        if len(first.members) + len(second.members) > _MOST_MEMBERS:
            return False
        if _ALONE & {*first.members.values(), *second.members.values()}:
            return False
        return not any(p is not first and p.ancestors & first.bits for p in self.producers(second))

    def _replace(self, first: Group, second: Group, merged: Group) -> None:
        merged.bits = first.bits | second.bits
        merged.ancestors = (first.ancestors | second.ancestors) & ~merged.bits
        del self.groups[first.number], self.groups[second.number]
        self.groups[merged.number] = merged
        self.maker.update(dict.fromkeys(merged.members, merged))
        followers = self._followers.pop(first.number, set()) | self._followers.pop(second.number, set())
        self._followers[merged.number] = followers - {first.number, second.number}
        self._connect(merged)

    # -- siblings

    def _fuse_siblings(self) -> None:
        """Groups on equal grids that read the same large tensor and do not depend on each other."""
        program, readers = self.memory.program, dict[Value, list[int]]()
        updates: dict[Value, Value] = {
            s.argument: new for s, new in zip(program.states, program.state_updates, strict=True)
        }
        for group in list(self.groups.values()):
            if not group.kind.takes_producers:
                continue
            for value in sorted(group.reads, key=self._order.__getitem__):
                if estimate(count(value)) >= max(estimate(group.elements), 1 << 12):
                    readers.setdefault(value, []).append(group.number)
        for value, numbers in readers.items():
            current: Group | None = None
            for number in numbers:
                found = self.groups.get(number)
                if found is None or found is current:
                    continue
                if current is None or current.number not in self.groups:
                    current = found
                    continue
                first, second = sorted((current, found), key=lambda g: g.order)
                if second.ancestors & first.bits or first.ancestors & second.bits or not _same_rows(first, second):
                    continue
                if updates.get(value, value) in first.members.keys() ^ second.members.keys():
                    continue  # what else reads a state shall not keep its update from being in place
                joined = self._try(first, second)
                current = joined if joined is not None else current


#: Flavours whose groups nothing joins.
_ALONE = {"strided", "scan"}


def _same_rows(first: Group, second: Group) -> bool:
    return first.elements == second.elements


def _common_grid(first: Group, second: Group) -> tuple[int, int] | None:
    """A grid that suits both groups."""
    if first.product is not None or second.product is not None:
        product, other = (first, second) if first.product is not None else (second, first)
        if other.columns and (other.rows, other.columns) != (product.rows, product.columns):
            return None
        return (product.rows, product.columns) if other.elements == product.elements else None
    if first.columns and second.columns:
        return (first.rows, first.columns) if (first.rows, first.columns) == (second.rows, second.columns) else None
    if not first.columns and not second.columns:
        return (first.rows, 0) if first.rows == second.rows else None
    flat, grid = (first, second) if second.columns else (second, first)
    return (grid.rows, grid.columns) if flat.rows in (grid.rows * grid.columns, grid.rows) else None


def _join(first: Group, second: Group, rows: int, columns: int) -> Group | None:
    """The group of both, with the flavours that members have on the joint grid."""
    product = first if first.product is not None else second if second.product is not None else None
    members: dict[Value, str] = {}
    for group in (first, second):
        for value, flavour in group.members.items():
            if flavour in ("full", "row") and columns:
                flavour = "full" if prod(sizes(value)) == rows * columns else "row"
            if product is not None and flavour not in ("full", "product"):
                return None
            if product is not None and flavour == "product" and group is not product:
                return None
            members[value] = flavour
    if list(members.values()).count("product") > 1:
        return None
    kept = product or first
    return Group(
        first.number, kept.kind, max(first.order, second.order), members, rows, columns,
        kept.op, product=product.product if product is not None else None, first=min(first.first, second.first),
    )  # fmt: skip
