"""Collectives through memory that the processes of one machine share, in pieces that stay in their caches.

Each rank writes a piece of its operand, combines its part of everybody's piece in the order of the ranks (so that bits
do not depend on who comes first, and are those of :func:`argosy_hwadapt.communicator.reduce_arrays`), and reads what
the others have combined: a reduce-scatter and an all-gather, as in Thakur, Rabenseifner and Gropp, "Optimization of
Collective Communication Operations in MPICH" (2005), without messages.
"""

from __future__ import annotations

import itertools
import mmap
import os
import platform
from collections.abc import Callable
from typing import Any

import numpy as np

from argosy_hwadapt.board import create_segment, remove_segment
from argosy_hwadapt.calls import Array
from argosy_hwadapt.communicator import reduce_into
from argosy_hwadapt.progress import Steps

SMALLEST = 1 << 15
"""Bytes of an operand from which on the memory is used; messages are faster below."""
_LARGEST_GROUP = 16
_ROW = 1 << 20
"""Bytes of a piece: as much of one rank's operand as is on its way at a time."""
_DEPTHS = (8, 3)
"""Pieces that are in the memory at once; fewer where there is little. A line that another core has just read is slow to
write, where cores have caches of their own, so it is not used again before other lines have taken its place there."""
_LINE = 64
_SPINS = 1000
"""Looks at the others before a rank lets another process run; one look where ranks share cores."""
_WRITTEN, _COMBINED, _READ = range(3)


def can_share(size: int) -> bool:
    """Whether a group of this size may use an exchange: several ranks, not too many, on processors that never show
    one store of another core before an earlier one."""
    return 1 < size <= _LARGEST_GROUP and platform.machine().lower() in ("x86_64", "amd64")


def exchange_memory(size: int) -> tuple[bytes, mmap.mmap | None]:
    """:func:`argosy_hwadapt.board.create_segment` for an exchange of ``size`` ranks, as large as the machine allows."""
    for depth in _DEPTHS:
        label, memory = create_segment((3 * _LINE + depth * _ROW) * size)
        if memory is not None or depth == _DEPTHS[-1]:
            break
        remove_segment(label)
    return label, memory


class SharedExchange:
    """The memory of one group (:func:`exchange_memory`): how far each rank is, and slots of one piece of every rank.

    In a rank's piece its own part, which nobody else needs, makes room for that part of the combination. Collectives
    run one after the other, in one order on all ranks. ``ended()`` are the ranks that communicate no more, which
    everybody who waits yields.
    """

    def __init__(self, memory: mmap.mmap, rank: int, size: int, ended: Callable[[], set[int]]) -> None:
        self._rank, self._size, self._ended = rank, size, ended
        self._spins = _SPINS if size <= (os.cpu_count() or 1) else 1
        start = 3 * size * _LINE
        counts = memoryview(memory)[:start].cast("q")[:: _LINE // 8]
        self._counts = [counts[stage * size : (stage + 1) * size] for stage in range(3)]
        self._depth = (len(memory) - start) // (size * _ROW)
        self._slots = np.ndarray((self._depth, size, _ROW), np.uint8, memory, start)
        self._done = 0  # pieces of all collectives before this one

    def all_reduce(self, send: Array, recv: Array, op: str) -> Steps:
        """Combine flat operands of any dtype, apart or the same. Yields while others are behind."""
        rank, pieces = self._rank, self._pieces(send, 1)
        for number in range(len(pieces) + 1):
            if number < len(pieces):
                mine = send[pieces[number]]
                own = self._parts(mine)[rank]
                rows = self._rows(number, send.dtype)
                yield from self._reach(_READ, number + 1 - self._depth)
                for part in (slice(0, own.start), slice(own.stop, len(mine))):
                    rows[rank, part] = mine[part]
                self._set(_WRITTEN, number)
                yield from self._reach(_WRITTEN, number + 1)
                reduce_into(rows[rank, own], [*rows[:rank, own], mine[own], *rows[rank + 1 :, own]], op)
                self._set(_COMBINED, number)
            if number > 0:
                yield from self._reach(_COMBINED, number)
                piece, rows = recv[pieces[number - 1]], self._rows(number - 1, send.dtype)
                for other, part in enumerate(self._parts(piece)):
                    piece[part] = rows[other, part]
                self._set(_READ, number - 1)
        self._done += len(pieces)

    def reduce_scatter(self, send: Array, recv: Array, op: str) -> Steps:
        """Combine everybody's part ``rank`` of ``send`` into ``recv``."""
        size, rank, pieces = self._size, self._rank, self._pieces(recv, self._size)
        parts = send.reshape(size, -1)
        for number, piece in enumerate(pieces):
            target = recv[piece]
            rows = self._rows(number, send.dtype)[:, : size * len(target)].reshape(size, size, -1)
            yield from self._reach(_READ, number + 1 - self._depth)
            for others in (slice(0, rank), slice(rank + 1, size)):
                rows[rank, others] = parts[others, piece]
            self._set(_WRITTEN, number)
            yield from self._reach(_WRITTEN, number + 1)
            reduce_into(target, [*rows[:rank, rank], parts[rank, piece], *rows[rank + 1 :, rank]], op)
            self._set(_READ, number)
        self._done += len(pieces)

    def all_gather(self, send: Array, recv: Array) -> Steps:
        """Put everybody's ``send`` one after another into ``recv``."""
        size, rank, pieces = self._size, self._rank, self._pieces(send, 1)
        parts = recv.reshape(size, -1)
        for number, piece in enumerate(pieces):
            rows = self._rows(number, send.dtype)[:, : len(send[piece])]
            yield from self._reach(_READ, number + 1 - self._depth)
            rows[rank] = parts[rank, piece] = send[piece]
            self._set(_WRITTEN, number)
            yield from self._reach(_WRITTEN, number + 1)
            for others in (slice(0, rank), slice(rank + 1, size)):
                parts[others, piece] = rows[others]
            self._set(_READ, number)
        self._done += len(pieces)

    def _pieces(self, array: Array, rows: int) -> list[slice]:
        """Equal pieces of a flat array, of which ``rows`` fit into one rank's row of a slot."""
        longest = _ROW // (array.itemsize * rows)
        length = -(-array.size // -(-array.size // longest))
        return [slice(i, i + length) for i in range(0, array.size, length)]

    def _rows(self, number: int, dtype: np.dtype[Any]) -> Array:
        """The slot of piece ``number`` of this collective: a row for each rank."""
        rows: Array = self._slots[(self._done + number) % self._depth].view(dtype)
        return rows

    def _parts(self, piece: Array) -> list[slice]:
        """The part of a piece that each rank combines."""
        bounds = [len(piece) * i // self._size for i in range(self._size + 1)]
        return [slice(*pair) for pair in itertools.pairwise(bounds)]

    def _set(self, stage: int, number: int) -> None:
        self._counts[stage][self._rank] = self._done + number + 1

    def _reach(self, stage: int, number: int) -> Steps:
        """Wait until every rank has done this many pieces of this collective; a stage it lacks is never asked for."""
        counts, goal = self._counts[stage], self._done + number
        spins = 0
        while min(counts) < goal:
            spins += 1
            if spins % self._spins == 0:
                yield self._ended()
