"""Offsets in one arena: values whose lifetimes do not overlap share memory.

Lifetimes are intervals of steps. Largest first, each value goes to the lowest place that is free for its whole life
(greedy by size, as in Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020). Neighbours
start at different places within a page, since streams with equal addresses modulo 4 KiB compete for cache sets.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

#: Bytes between the starts of successive values modulo a page.
STAGGER = 832
_PAGE = 4096
_ALIGN = 64
_STAGGERED = 1 << 14


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A value of ``nbytes`` bytes, written by step ``first`` and last read by step ``last`` (inclusive)."""

    key: Hashable
    nbytes: int
    first: int
    last: int


def plan(lifetimes: Sequence[Lifetime]) -> tuple[dict[Hashable, int], int]:
    """Offset of every value, and the size of the arena in bytes."""
    spans: list[tuple[int, int]] = []
    lives = np.empty((2, len(lifetimes)), np.int64)  # first and last steps of what is placed
    offsets: dict[Hashable, int] = {}
    size, colour = 0, 0
    for value in sorted(lifetimes, key=lambda v: (-v.nbytes, v.first, v.last)):
        nbytes = value.nbytes + _ALIGN
        if value.nbytes >= _STAGGERED:
            colour = (colour + STAGGER) % _PAGE // _ALIGN * _ALIGN
        count = len(spans)
        (meets,) = np.nonzero((lives[0, :count] <= value.last) & (value.first <= lives[1, :count]))
        busy = sorted([spans[i] for i in meets.tolist()])
        start = _lowest(busy, nbytes, colour if value.nbytes >= _STAGGERED else 0)
        lives[:, count] = value.first, value.last
        spans.append((start, start + nbytes))
        offsets[value.key] = start
        size = max(size, start + nbytes)
    return offsets, size


def _lowest(busy: Sequence[tuple[int, int]], nbytes: int, colour: int) -> int:
    """The lowest start of ``nbytes`` outside the busy spans, which are sorted, that has the colour modulo a page."""
    start = _aligned(0, colour)
    for a, z in busy:
        if start + nbytes <= a:
            return start
        if z > start:
            start = _aligned(z, colour)
    return start


def _aligned(offset: int, colour: int) -> int:
    offset = -(-offset // _ALIGN) * _ALIGN
    return offset + (colour - offset) % _PAGE if colour else offset
