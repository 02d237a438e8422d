"""Offsets in one arena: values whose lifetimes do not overlap share memory.

Lifetimes are intervals of steps. Largest first, each value goes to the lowest place that is free for its whole life
(greedy by size, as in Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020). Where that
leaves gaps, the order in which values are written is tried as well. Neighbours start at different places within a page,
since streams with equal addresses modulo 4 KiB compete for cache sets.

Where sizes are known at run time only, an `Arrangement` of similar sizes is kept, and costs a few additions at others.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np

#: Bytes between the starts of successive values modulo a page.
STAGGER = 832
#: Bytes of a page.
PAGE = 4096
_ALIGN = 64
_STAGGERED = 1 << 14
_GAPS = 1 / 32
"""The share of what lives at once that may be lost between values."""
Offsets: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"
Offset = TypeVar("Offset", int, Offsets)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value is: byte ``offset`` into the memory whose address is entry ``entry`` of the address table."""

    entry: int
    offset: int = 0

    def advance(self, nbytes: int) -> Place:
        """The place so many bytes further on."""
        return Place(self.entry, self.offset + nbytes) if nbytes else self


@dataclass(frozen=True, slots=True)
class Recomputation:
    """What a budget did: bytes at the peak before, steps that run again, and the share of work that they add."""

    budget: int
    peak_before: int
    steps: int
    work: float


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A value of ``nbytes`` bytes, written by step ``first`` and last read by step ``last`` (inclusive)."""

    key: Hashable
    nbytes: int
    first: int
    last: int


def assign_offsets(lifetimes: Sequence[Lifetime]) -> tuple[dict[Hashable, int], int]:
    """Offset of every value, and the size of the arena in bytes."""
    found = _place_in_order(sorted(lifetimes, key=lambda v: (-v.nbytes, v.first, v.last)))
    if found[1] <= (1 + _GAPS) * _most_at_once(lifetimes):
        return found
    other = _place_in_order(sorted(lifetimes, key=lambda v: (v.first, -v.nbytes, v.last)))
    return min(found, other, key=lambda made: made[1])


def _most_at_once(lifetimes: Sequence[Lifetime]) -> int:
    """Bytes of the values that live in one step, in that with most."""
    change = np.zeros(max((v.last for v in lifetimes), default=0) + 2, np.int64)
    for value in lifetimes:
        change[value.first] += value.nbytes
        change[value.last + 1] -= value.nbytes
    return int(np.cumsum(change).max())


def _place_in_order(lifetimes: Sequence[Lifetime]) -> tuple[dict[Hashable, int], int]:
    """Each value in turn at the lowest place that is free."""
    placed = np.empty((4, len(lifetimes)), np.int64)  # first and last steps of what is placed, where it starts and ends
    offsets: dict[Hashable, int] = {}
    size, colour = 0, 0
    for count, value in enumerate(lifetimes):
        nbytes = value.nbytes + _ALIGN
        if value.nbytes >= _STAGGERED:
            colour = (colour + STAGGER) % PAGE // _ALIGN * _ALIGN
        first, last, starts, ends = placed[:, :count]
        meets = (first <= value.last) & (value.first <= last)
        start = _lowest(starts[meets], ends[meets], nbytes, colour if value.nbytes >= _STAGGERED else 0)
        placed[:, count] = value.first, value.last, start, start + nbytes
        offsets[value.key] = start
        size = max(size, start + nbytes)
    return offsets, size


def place_apart(lifetimes: Sequence[Lifetime], guard: str) -> tuple[dict[Hashable, int], int]:
    """What `plan` gives, with pages of its own for every value (see `on_own_pages`)."""
    offsets, size = on_own_pages([value.nbytes for value in lifetimes], guard)
    return {value.key: offset for value, offset in zip(lifetimes, offsets, strict=True)}, size


def on_own_pages(nbytes: Sequence[int], guard: str) -> tuple[list[int], int]:
    """Offsets of values on pages of their own, and the size of it all.

    An empty page lies in front of every value, and one behind the last. With ``guard`` "before" a value begins where
    such a page ends, with "behind" it ends where the next one begins, up to the alignment of values.
    """
    offsets, start = [], PAGE
    for size in nbytes:
        room = -(-size // PAGE) * PAGE
        offsets.append(start if guard == "before" else start + room - -(-size // _ALIGN) * _ALIGN)
        start += room + PAGE
    return offsets, start


class Arrangement:
    """A plan that serves other sizes, too: which values lie below which.

    It is made by `plan` for some sizes. For others every value starts where the highest of those that live with it and
    lay below it ends, so that no two that live together meet, whatever the sizes are.
    """

    def __init__(self, lifetimes: Sequence[Lifetime]) -> None:
        offsets, _ = assign_offsets(lifetimes)
        starts = [offsets[value.key] for value in lifetimes]
        self._order = sorted(range(len(lifetimes)), key=starts.__getitem__)
        self._colours = [
            start % PAGE if v.nbytes >= _STAGGERED else 0 for start, v in zip(starts, lifetimes, strict=True)
        ]
        self._below = self._supports(lifetimes)

    def _supports(self, lifetimes: Sequence[Lifetime]) -> list[list[int]]:
        """For each value those right below it: without those that lie below one of them."""
        under = [0] * len(lifetimes)  # bits: all that lie below, directly or not
        found: list[list[int]] = [[] for _ in lifetimes]
        for position, i in enumerate(self._order):
            value = lifetimes[i]
            for j in reversed(self._order[:position]):
                other = lifetimes[j]
                if not under[i] >> j & 1 and other.first <= value.last and value.first <= other.last:
                    found[i].append(j)
                    under[i] |= under[j] | 1 << j
        return found

    def place(self, nbytes: Sequence[int]) -> tuple[list[int], int]:
        """Offsets of values of so many bytes, in the order of the lifetimes, and the size of the arena."""
        starts, ends = [0] * len(nbytes), [0] * len(nbytes)
        for i in self._order:
            low = max([ends[j] for j in self._below[i]], default=0)
            starts[i] = start = _align(low, self._colours[i])
            ends[i] = start + nbytes[i] + _ALIGN
        return starts, max(ends, default=0)


def _lowest(starts: Offsets, ends: Offsets, nbytes: int, colour: int) -> int:
    """The lowest start of ``nbytes`` outside the busy spans from ``starts`` to ``ends`` that has the colour modulo a
    page."""
    order = np.argsort(starts)
    gaps = np.zeros(len(order) + 1, np.int64)  # where the space before each span begins, and that after the last
    np.maximum.accumulate(ends[order], out=gaps[1:])
    gaps = _align(gaps, colour)
    (fitting,) = np.nonzero(gaps[:-1] + nbytes <= starts[order])
    return int(gaps[fitting[0] if len(fitting) else -1])


def _align(offset: Offset, colour: int) -> Offset:
    offset = -(-offset // _ALIGN) * _ALIGN
    return offset + (colour - offset) % PAGE if colour else offset
